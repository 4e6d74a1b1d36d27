// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Named character sets as Oniguruma defines them, spelt for PCRE2.

#include "text/regex_class.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

namespace hone::text {

namespace {

// White_Space. PCRE2's own \s also holds U+180E.
constexpr std::string_view kSpace = R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f})"
                                    R"(\x{3000})";
// PCRE2 before 10.43 leaves marks and connectors out of \w.
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
// Superscript digits and fractions of Latin-1: Oniguruma has them in \w and not in [:word:].
constexpr std::string_view kLatin1Numbers = R"(\xb2\xb3\xb9\xbc-\xbe)";
constexpr std::string_view kHexDigits = "0-9a-fA-F";
constexpr std::string_view kInvisible = R"(\p{Zs}\p{Zl}\p{Zp}\p{Cc}\p{Cn}\p{Cs})";

struct NamedSet {
  std::string_view name, items;
  bool negated = false;
};

// Names that are sets in POSIX brackets and in \p{…} alike; kPunctuation differs.
constexpr NamedSet kPosixSets[] = {
    {"alnum", R"(\p{Alphabetic}\p{Nd})"},
    {"alpha", R"(\p{Alphabetic})"},
    {"ascii", R"(\x00-\x7f)"},
    {"blank", R"(\p{Zs}\x09)"},
    {"cntrl", R"(\p{Cc})"},
    {"digit", R"(\p{Nd})"},
    {"graph", kInvisible, true},
    {"lower", R"(\p{Lowercase})"},
    {"print", R"(\p{Zl}\p{Zp}\p{Cc}\p{Cn}\p{Cs})", true},
    {"space", kSpace},
    {"upper", R"(\p{Uppercase})"},
    {"word", kWord},
    {"xdigit", kHexDigits},
};

// General categories by their long names.
constexpr struct {
  std::string_view name, category;
} kCategories[] = {
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"unassigned", "Cn"},
    {"privateuse", "Co"},
    {"surrogate", "Cs"},
    {"letter", "L"},
    {"casedletter", "L&"},
    {"lc", "L&"},
    {"lowercaseletter", "Ll"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"titlecaseletter", "Lt"},
    {"uppercaseletter", "Lu"},
    {"mark", "M"},
    {"combiningmark", "M"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"nonspacingmark", "Mn"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"punct", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"closepunctuation", "Pe"},
    {"finalpunctuation", "Pf"},
    {"initialpunctuation", "Pi"},
    {"otherpunctuation", "Po"},
    {"openpunctuation", "Ps"},
    {"symbol", "S"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"mathsymbol", "Sm"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"spaceseparator", "Zs"},
};

// Properties that are neither a category nor a script.
constexpr std::string_view kBinaryProperties[] = {"any",
                                                  "alphabetic",
                                                  "uppercase",
                                                  "lowercase",
                                                  "whitespace",
                                                  "ideographic",
                                                  "math",
                                                  "dash",
                                                  "hexdigit",
                                                  "emoji",
                                                  "emojipresentation",
                                                  "emojimodifier",
                                                  "emojimodifierbase",
                                                  "emojicomponent",
                                                  "extendedpictographic",
                                                  "idstart",
                                                  "idcontinue",
                                                  "xidstart",
                                                  "xidcontinue",
                                                  "joincontrol",
                                                  "cased",
                                                  "caseignorable",
                                                  "diacritic",
                                                  "extender",
                                                  "variationselector",
                                                  "unifiedideograph",
                                                  "regionalindicator",
                                                  "defaultignorablecodepoint",
                                                  "asciihexdigit",
                                                  "quotationmark",
                                                  "sentenceterminal",
                                                  "terminalpunctuation",
                                                  "noncharactercodepoint",
                                                  "patternwhitespace",
                                                  "patternsyntax",
                                                  "radical",
                                                  "softdotted",
                                                  "graphemebase",
                                                  "graphemeextend"};

bool isCategoryCode(std::string_view name) {
  constexpr std::string_view kMajors = "clmnpsz";
  return !name.empty() && name.size() <= 2 && kMajors.find(name[0]) != std::string_view::npos &&
         (name.size() == 1 || std::isalpha(static_cast<unsigned char>(name[1])) || name[1] == '&');
}

/// Property names are compared without case, spaces, hyphens and underscores.
std::string foldName(std::string_view name) {
  std::string folded;
  for (char c : name)
    if (c != ' ' && c != '-' && c != '_')
      folded.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  return folded;
}

CharacterSet makeSet(std::string items, bool negated = false) { return {std::move(items), {}, {}, negated}; }

std::string unionExpression(const CharacterSet &set) {
  if (set.nested.empty())
    return io::cat(set.negated ? "[^" : "[", set.items, "]");
  std::string alternatives;
  if (!set.items.empty())
    alternatives = io::cat("[", set.items, "]");
  for (const CharacterSet &nested : set.nested)
    alternatives += io::cat(alternatives.empty() ? "" : "|", nested.expression());
  return set.negated ? io::cat("(?:(?!", alternatives, ")(?s:.))") : io::cat("(?:", alternatives, ")");
}

} // namespace

std::string CharacterSet::expression() const {
  if (parts.empty())
    return unionExpression(*this);
  std::string conditions;
  for (size_t i = 0; i + 1 < parts.size(); ++i)
    conditions += io::cat("(?=", parts[i].expression(), ")");
  conditions += parts.back().expression();
  return negated ? io::cat("(?:(?!", conditions, ")(?s:.))") : io::cat("(?:", conditions, ")");
}

void CharacterSet::add(CharacterSet other) {
  if (other.parts.empty() && other.nested.empty() && !other.negated)
    items += other.items;
  else
    nested.push_back(std::move(other));
}

CharacterSet escapeSet(char letter) {
  bool negated = letter < 'a';
  switch (std::tolower(static_cast<unsigned char>(letter))) {
  case 'd':
    return makeSet(R"(\p{Nd})", negated);
  case 'h':
    return makeSet(std::string(kHexDigits), negated);
  case 's':
    return makeSet(std::string(kSpace), negated);
  default:
    return makeSet(io::cat(kWord, kLatin1Numbers), negated);
  }
}

bool posixSet(std::string_view name, CharacterSet &set) {
  if (name == "punct") {
    set = makeSet(R"(\p{P}\p{S})");
    return true;
  }
  const auto *found = std::find_if(std::begin(kPosixSets), std::end(kPosixSets),
                                   [&](const NamedSet &candidate) { return candidate.name == name; });
  if (found == std::end(kPosixSets))
    return false;
  set = makeSet(std::string(found->items), found->negated);
  return true;
}

CharacterSet propertySet(std::string_view name) {
  std::string folded = foldName(name);
  CharacterSet set;
  if (folded == "assigned")
    return makeSet(R"(\p{Cn})", /*negated=*/true);
  for (auto category : kCategories)
    if (category.name == folded)
      return makeSet(io::cat("\\p{", category.category, "}"));
  if (posixSet(folded, set))
    return set;
  if (isCategoryCode(folded)) {
    folded[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(folded[0])));
    return makeSet(io::cat("\\p{", folded, "}"));
  }
  bool isBinary =
      std::find(std::begin(kBinaryProperties), std::end(kBinaryProperties), folded) != std::end(kBinaryProperties);
  return makeSet(io::cat("\\p{", isBinary ? "" : "sc:", folded, "}"));
}

std::string literalCharacter(char32_t codePoint) {
  std::array<char, 16> text;
  if (codePoint < 0x80 && std::isalnum(static_cast<int>(codePoint)))
    return std::string(1, static_cast<char>(codePoint));
  std::snprintf(text.data(), text.size(), codePoint < 0x100 ? "\\x%02x" : "\\x{%x}", static_cast<unsigned>(codePoint));
  return text.data();
}

} // namespace hone::text
