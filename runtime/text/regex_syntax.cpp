// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pass over an Oniguruma pattern that writes the PCRE2 pattern. It copies what both read alike and knows only what
// they read differently; PCRE2's compiler judges the rest.

#include "text/regex_syntax.h"

#include "text/regex_class.h"
#include "text/unicode.h"

#include <cctype>
#include <cstring>

namespace hone::text {

namespace {

constexpr int kMaximalClassDepth = 64;
constexpr char32_t kLastCodePoint = 0x10ffff;

bool isDigit(char c) { return c >= '0' && c <= '9'; }

class Translator {
public:
  explicit Translator(std::string_view pattern) : pattern(pattern) {}

  absl::StatusOr<std::string> run();

private:
  // A group that is open: where its text began, and how many option groups to close with it.
  struct Group {
    size_t start;
    int extraCloses;
  };

  absl::Status atom();
  absl::Status escape();
  absl::Status characterClass(int depth, CharacterSet &set);
  absl::Status classTerm(int depth, CharacterSet &set);
  absl::Status classEscape(CharacterSet &set);
  absl::Status classRange(char32_t first, CharacterSet &set);
  absl::StatusOr<char32_t> classCharacter();
  absl::StatusOr<char32_t> codePointEscape(char kind);
  absl::Status property(CharacterSet &set);
  absl::Status openGroup();
  absl::Status closeGroup();
  bool posixBracket(CharacterSet &set);
  bool optionGroup();
  bool interval();
  void wordBoundary(bool negated);

  bool atEnd() const { return position == pattern.size(); }
  char peek(size_t offset = 0) const { return position + offset < pattern.size() ? pattern[position + offset] : '\0'; }
  bool accept(std::string_view text);
  absl::Status fault(std::string_view what) const {
    return io::invalid("cannot read regular expression '", pattern, "': ", what, " at byte ", position);
  }

  std::string_view pattern;
  size_t position = 0;
  std::string output;
  size_t atomStart = 0;
  std::vector<Group> groups = {{0, 0}};
};

bool Translator::accept(std::string_view text) {
  if (pattern.substr(position, text.size()) != text)
    return false;
  position += text.size();
  return true;
}

absl::StatusOr<std::string> Translator::run() {
  while (!atEnd())
    HONE_RETURN_IF_ERROR(atom());
  if (groups.size() > 1)
    return fault("unclosed group");
  output.append(groups.back().extraCloses, ')');
  return std::move(output);
}

absl::Status Translator::atom() {
  char c = peek();
  if (c == '{' && interval())
    return absl::OkStatus();
  if (c == '(')
    return openGroup();
  if (c == ')')
    return closeGroup();
  if (std::strchr("*+?|", c) && c != '\0') {
    output.push_back(c);
    ++position;
    return absl::OkStatus();
  }
  atomStart = output.size();
  if (c == '\\')
    return escape();
  if (c == '[') {
    CharacterSet set;
    HONE_RETURN_IF_ERROR(characterClass(0, set));
    output += set.expression();
    return absl::OkStatus();
  }
  size_t length = sequenceLength(c);
  output += pattern.substr(position, length);
  position += length;
  return absl::OkStatus();
}

/// `{n,m}` after an atom. A `+` after it repeats the interval again, a `?` after `{n}` makes it optional.
bool Translator::interval() {
  size_t end = position + 1;
  auto digits = [&] {
    size_t start = end;
    while (end < pattern.size() && isDigit(pattern[end]))
      ++end;
    return pattern.substr(start, end - start);
  };
  std::string_view low = digits();
  bool isRange = end < pattern.size() && pattern[end] == ',';
  std::string_view high = isRange ? (++end, digits()) : low;
  if (end >= pattern.size() || pattern[end] != '}' || (low.empty() && high.empty()))
    return false;
  position = end + 1;
  std::string range = io::cat("{", low.empty() ? "0" : low, isRange ? "," : "", isRange ? high : "", "}");
  bool repeats = peek() == '+' || (peek() == '?' && !isRange);
  if (repeats) {
    output.insert(atomStart, "(?:");
    range += ')';
  }
  output += range;
  return true;
}

absl::Status Translator::openGroup() {
  atomStart = output.size();
  if (pattern.substr(position, 3) == "(?#") {
    size_t end = pattern.find(')', position);
    if (end == std::string_view::npos)
      return fault("unclosed comment");
    position = end + 1;
    return absl::OkStatus();
  }
  if (pattern.substr(position, 3) == "(?~")
    return fault("unsupported absence operator");
  if (optionGroup())
    return absl::OkStatus();
  groups.push_back({output.size(), 0});
  for (std::string_view opening : {"(?<=", "(?<!", "(?:", "(?=", "(?!", "(?>"})
    if (accept(opening)) {
      output += opening;
      return absl::OkStatus();
    }
  output.push_back('(');
  ++position;
  if (peek() == '?' || peek() == '*') { // a named group, or what PCRE2 will refuse
    output.push_back(peek());
    ++position;
  }
  return absl::OkStatus();
}

/// `(?imx-imx:` and `(?imx-imx)`; the latter holds to the end of the enclosing group, alternatives included.
bool Translator::optionGroup() {
  size_t end = position + 2;
  if (pattern.substr(position, 2) != "(?")
    return false;
  std::string options;
  for (; end < pattern.size() && std::strchr("imx-", pattern[end]); ++end)
    options.push_back(pattern[end] == 'm' ? 's' : pattern[end]);
  if (options.empty() || end >= pattern.size() || (pattern[end] != ':' && pattern[end] != ')'))
    return false;
  if (pattern[end] == ':')
    groups.push_back({output.size(), 0});
  else
    ++groups.back().extraCloses;
  output += io::cat("(?", options, ":");
  position = end + 1;
  return true;
}

absl::Status Translator::closeGroup() {
  if (groups.size() == 1)
    return fault("unmatched ')'");
  output.append(groups.back().extraCloses + 1, ')');
  atomStart = groups.back().start;
  groups.pop_back();
  ++position;
  return absl::OkStatus();
}

void Translator::wordBoundary(bool negated) {
  std::string word = escapeSet('w').expression();
  output += negated ? io::cat("(?:(?<=", word, ")(?=", word, ")|(?<!", word, ")(?!", word, "))")
                    : io::cat("(?:(?<=", word, ")(?!", word, ")|(?<!", word, ")(?=", word, "))");
}

absl::Status Translator::escape() {
  char kind = peek(1);
  if (position + 1 == pattern.size())
    return fault("dangling backslash");
  if (std::strchr("dDhHsSwW", kind)) {
    output += escapeSet(kind).expression();
    position += 2;
    return absl::OkStatus();
  }
  if (kind == 'b' || kind == 'B') {
    wordBoundary(kind == 'B');
    position += 2;
    return absl::OkStatus();
  }
  if (kind == 'p' || kind == 'P') {
    CharacterSet set;
    HONE_RETURN_IF_ERROR(property(set));
    output += set.expression();
    return absl::OkStatus();
  }
  if (std::strchr("AzZGKRXNkg", kind) || (kind >= '1' && kind <= '9')) { // both read these alike
    output += pattern.substr(position, 2);
    position += 2;
    return absl::OkStatus();
  }
  if (kind == 'O') {
    output += "(?s:.)";
    position += 2;
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(char32_t codePoint, classCharacter());
  output += literalCharacter(codePoint);
  return absl::OkStatus();
}

/// `\p{Name}`, `\p{^Name}`, `\P{Name}`.
absl::Status Translator::property(CharacterSet &set) {
  bool negated = peek(1) == 'P';
  size_t end = pattern.find('}', position);
  if (peek(2) != '{' || end == std::string_view::npos)
    return fault("expected \\p to be followed by a name in braces");
  std::string_view name = pattern.substr(position + 3, end - position - 3);
  if (!name.empty() && name[0] == '^') {
    negated = !negated;
    name.remove_prefix(1);
  }
  set = propertySet(name);
  set.negated ^= negated;
  position = end + 1;
  return absl::OkStatus();
}

/// `\xHH`, `\x{H…}`, `\uHHHH` and octal `\0oo`; `position` is at the backslash.
absl::StatusOr<char32_t> Translator::codePointEscape(char kind) {
  bool braced = kind == 'x' && peek(2) == '{';
  int base = kind == '0' ? 8 : 16;
  size_t most = kind == 'u' ? 4 : braced ? 8 : 2;
  size_t begin = position + (braced ? 3 : 2), end = begin;
  char32_t value = 0;
  for (; end < pattern.size() && end - begin < most; ++end) {
    char digit = pattern[end];
    if (base == 8 ? digit < '0' || digit > '7' : !std::isxdigit(static_cast<unsigned char>(digit)))
      break;
    value = value * base + (isDigit(digit) ? digit - '0' : (digit | 0x20) - 'a' + 10);
  }
  if (braced ? end >= pattern.size() || pattern[end] != '}' || end == begin : kind == 'u' && end - begin != most)
    return fault("malformed character escape");
  bool isSurrogate = value >= 0xd800 && value <= 0xdfff;
  if (value > kLastCodePoint || isSurrogate)
    return fault("escape that names no character");
  if (kind == 'x' && !braced && value >= 0x80)
    return fault("unsupported escape of a single byte; supported: \\x{…} and \\u");
  position = end + (braced ? 1 : 0);
  return value;
}

/// One character, escaped or plain, as both a class and an atom may hold it.
absl::StatusOr<char32_t> Translator::classCharacter() {
  if (peek() != '\\')
    return decodeCodePoint(pattern, position);
  if (position + 1 == pattern.size())
    return fault("dangling backslash");
  char kind = peek(1);
  if (kind == 'x' || kind == 'u' || kind == '0')
    return codePointEscape(kind);
  constexpr std::string_view kLetters = "abefnrtv", kControls = "\a\b\x1b\f\n\r\t\v";
  size_t letter = kLetters.find(kind);
  if (letter == std::string_view::npos && std::isalnum(static_cast<unsigned char>(kind)))
    return fault(io::cat("unsupported escape \\", std::string_view(&kind, 1)));
  ++position;
  if (letter == std::string_view::npos)
    return decodeCodePoint(pattern, position);
  ++position;
  return static_cast<char32_t>(kControls[letter]);
}

/// A class from its '[' to its ']'.
absl::Status Translator::characterClass(int depth, CharacterSet &set) {
  if (depth > kMaximalClassDepth)
    return fault("classes nested too deeply");
  ++position;
  bool negated = accept("^");
  CharacterSet part;
  std::vector<CharacterSet> parts;
  for (bool first = true; first || peek() != ']'; first = false) {
    if (atEnd())
      return fault("unclosed class");
    if (accept("&&"))
      parts.push_back(std::exchange(part, {}));
    else
      HONE_RETURN_IF_ERROR(classTerm(depth, part));
  }
  ++position;
  if (parts.empty()) {
    set = std::move(part);
  } else {
    parts.push_back(std::move(part));
    set.parts = std::move(parts);
  }
  for (const CharacterSet &one : set.parts)
    if (one.items.empty() && one.nested.empty())
      return fault("empty side of &&");
  set.negated = negated;
  return absl::OkStatus();
}

absl::Status Translator::classTerm(int depth, CharacterSet &set) {
  CharacterSet inner;
  if (posixBracket(inner)) {
    set.add(std::move(inner));
    return absl::OkStatus();
  }
  if (peek() == '[') {
    HONE_RETURN_IF_ERROR(characterClass(depth + 1, inner));
    set.add(std::move(inner));
    return absl::OkStatus();
  }
  if (peek() == '\\' && peek(1) != '\0' && std::strchr("dDhHsSwWpPR", peek(1)))
    return classEscape(set);
  HONE_ASSIGN_OR_RETURN(char32_t first, classCharacter());
  return classRange(first, set);
}

absl::Status Translator::classEscape(CharacterSet &set) {
  CharacterSet inner;
  if (peek(1) == 'R')
    return fault("unsupported escape \\R in a class");
  if (peek(1) == 'p' || peek(1) == 'P') {
    HONE_RETURN_IF_ERROR(property(inner));
  } else {
    inner = escapeSet(peek(1));
    position += 2;
  }
  set.add(std::move(inner));
  return absl::OkStatus();
}

/// A character that was read, or the range it begins. A '-' before ']' or before a set stands for itself.
absl::Status Translator::classRange(char32_t first, CharacterSet &set) {
  set.items += literalCharacter(first);
  bool beforeSet = peek(1) == '\\' && peek(2) != '\0' && std::strchr("dDhHsSwWpPR", peek(2));
  if (peek() != '-' || peek(1) == ']' || peek(1) == '[' || peek(1) == '\0' || beforeSet)
    return absl::OkStatus();
  ++position;
  HONE_ASSIGN_OR_RETURN(char32_t last, classCharacter());
  if (last < first)
    return fault("range out of order");
  set.items += io::cat("-", literalCharacter(last));
  return absl::OkStatus();
}

/// `[:name:]` and `[:^name:]` inside a class.
bool Translator::posixBracket(CharacterSet &set) {
  if (peek() != '[' || peek(1) != ':')
    return false;
  bool negated = peek(2) == '^';
  size_t begin = position + 2 + negated, end = pattern.find(":]", begin);
  if (end == std::string_view::npos || !posixSet(pattern.substr(begin, end - begin), set))
    return false;
  set.negated ^= negated;
  position = end + 2;
  return true;
}

} // namespace

absl::StatusOr<std::string> translateRegex(std::string_view pattern) {
  if (pattern.find('\0') != std::string_view::npos)
    return io::invalid("cannot read regular expression: it holds a NUL character; write \\x00");
  return Translator(pattern).run();
}

} // namespace hone::text
