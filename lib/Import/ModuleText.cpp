// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pass over the characters, without a grammar: brackets are counted whatever they enclose. A closing bracket that the grammar
// does not have ends the parser, so that text is never nested deeper than it is counted here.

#include "hone/Import/ModuleText.h"

#include "hone/Import/Limits.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using llvm::StringRef;

namespace hone {

namespace {

class TextCheck {
public:
  explicit TextCheck(StringRef text) : text(text) {}

  std::string run();

private:
  /// What lies between two brackets that belong together, since the last separator: each operator is a step down in the tree of an
  /// affine expression, and each `x` after a number a dimension.
  struct Level {
    int64_t operators = 0, dimensions = 0;
  };
  /// How deep what an alias stands for is nested, and how many parts it has.
  struct Alias {
    int64_t depth = 0;
    uint64_t parts = 1;
  };

  bool skipString();
  void checkResource(StringRef string);
  void takeWord();
  void takeAlias();
  void takeMark(char mark);
  void open();
  void close();
  void reach(int64_t depth);
  void endDefinition();

  StringRef text;
  std::string problem;
  size_t at = 0;
  char before = 0; // the last character that is neither blank nor of a comment
  bool wasString = false;
  bool isMetadata = false; // of the file: `{-#` was read
  llvm::SmallVector<Level> levels = {Level()};
  llvm::StringMap<Alias> aliases;
  StringRef defined; // the alias whose definition this is, or empty
  Alias definition;
};

bool isWordStart(char c) { return llvm::isAlpha(c) || c == '_'; }
bool isWordPart(char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.'; }

} // namespace

/// Leaves `at` after the string that begins there; false where it does not end.
bool TextCheck::skipString() {
  size_t i = text.find_first_of("\"\\", at + 1);
  while (i != StringRef::npos && text[i] == '\\') // and what it quotes
    i = text.find_first_of("\"\\", i + 2);
  if (i == StringRef::npos)
    return false;
  at = i + 1;
  return true;
}

/// A resource is a string of hexadecimal digits: u32, the alignment of the bytes that follow. MLIR's parser allocates these before it
/// looks whether there is such an alignment.
void TextCheck::checkResource(StringRef string) {
  constexpr size_t digitsOfByte = 2, bytesOfAlignment = 4;
  StringRef digits = string.drop_front().drop_back();
  if (!digits.consume_front("0x") || digits.size() <= digitsOfByte * bytesOfAlignment)
    return;
  uint64_t alignment = 0;
  for (size_t byte = 0; byte < bytesOfAlignment; ++byte) {
    uint64_t value = 0;
    if (digits.substr(digitsOfByte * byte, digitsOfByte).getAsInteger(16, value))
      return; // no resource
    alignment |= value << (8 * byte);
  }
  if (!llvm::isPowerOf2_64(alignment) || alignment > kMaxResourceAlignment)
    problem = "expected the alignment of a resource to be a power of two of at most " +
              std::to_string(kMaxResourceAlignment) + ", but got " + std::to_string(alignment);
}

void TextCheck::reach(int64_t depth) {
  definition.depth = std::max(definition.depth, depth);
  if (depth > kMaxNesting)
    problem = "expected at most " + std::to_string(kMaxNesting) + " brackets around each other, but there are more";
}

void TextCheck::open() {
  levels.emplace_back();
  ++definition.parts;
  reach(static_cast<int64_t>(levels.size()) - 1);
}

void TextCheck::close() {
  if (levels.size() > 1)
    levels.pop_back();
}

void TextCheck::endDefinition() {
  if (!defined.empty())
    aliases.try_emplace(defined, definition);
  defined = "";
}

/// `!name` and `#name`: the definition of an alias, or what it stands for.
void TextCheck::takeAlias() {
  size_t end = at + 1;
  while (end < text.size() && (isWordPart(text[end]) || text[end] == '-'))
    ++end;
  StringRef name = text.slice(at, end);
  at = end;
  if (levels.size() == 1 && text.drop_front(at).ltrim(" \t\r\n").starts_with("=")) {
    endDefinition();
    defined = name;
    definition = Alias();
  } else if (auto alias = aliases.find(name); alias != aliases.end()) {
    reach(static_cast<int64_t>(levels.size()) - 1 + alias->second.depth);
    definition.parts = llvm::SaturatingAdd(definition.parts, alias->second.parts);
    if (!defined.empty() && definition.parts > static_cast<uint64_t>(kMaxAliasParts))
      problem = "expected '" + name.str() + "' to stand for at most " + std::to_string(kMaxAliasParts) +
                " parts, but it has more";
  }
}

/// Operators that are words, `x` between dimensions, and names of operations, after which no alias is defined any more.
void TextCheck::takeWord() {
  size_t begin = at;
  if (text[at] == 'x' && (llvm::isDigit(before) || before == '?' || before == ']')) {
    levels.back().dimensions += 1;
    ++at; // what follows may be the next size
  } else {
    while (at < text.size() && isWordPart(text[at]))
      ++at;
    StringRef word = text.slice(begin, at);
    levels.back().operators += word == "mod" || word == "floordiv" || word == "ceildiv";
    if (levels.size() == 1 && (word == "module" || word.contains('.')))
      endDefinition();
  }
  before = text[at - 1];
}

void TextCheck::takeMark(char mark) {
  bool isArrow = mark == '>' && at > 0 && text[at - 1] == '-';
  bool isComparison = (mark == '<' || mark == '>') && text.substr(at + 1).starts_with("=");
  if (llvm::is_contained({'(', '[', '{', '<'}, mark) && !isComparison) {
    if (mark == '(' && wasString && levels.size() == 1)
      endDefinition(); // an operation in quotes
    isMetadata |= levels.size() == 1 && text.substr(at).starts_with("{-#");
    open();
  } else if (llvm::is_contained({')', ']', '}', '>'}, mark) && !isArrow && !isComparison) {
    close();
    if (mark == '}')
      levels.back() = Level();
  } else if (mark == ',' || mark == '=') {
    levels.back() = Level();
  } else if (mark == '+' || mark == '*' || (mark == '-' && !text.substr(at + 1).starts_with(">"))) {
    ++levels.back().operators;
  }
  ++at;
  before = mark;
}

std::string TextCheck::run() {
  while (at < text.size() && problem.empty()) {
    char c = text[at];
    bool isString = c == '"';
    if (llvm::isSpace(c)) {
      ++at;
      continue;
    }
    if (c == '/' && text.substr(at + 1).starts_with("/")) {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (isString) {
      size_t begin = at;
      if (!skipString())
        return "it ends inside of a string; it may be cut short";
      if (isMetadata)
        checkResource(text.slice(begin, at));
      before = '"';
    } else if ((c == '!' || c == '#') && at + 1 < text.size() && isWordStart(text[at + 1])) {
      takeAlias();
      before = 'a';
    } else if (isWordStart(c)) {
      takeWord();
    } else {
      takeMark(c);
    }
    wasString = isString;
    if (levels.back().operators > kMaxNesting)
      problem = "expected at most " + std::to_string(kMaxNesting) + " operators in an expression, but there are more";
    if (levels.back().dimensions > kMaxRank)
      problem = "expected tensors of at most " + std::to_string(kMaxRank) + " dimensions, but there are more";
  }
  return problem;
}

std::string checkModuleText(StringRef text) { return TextCheck(text).run(); }

std::string checkModuleTexts(StringRef text, StringRef marker) {
  llvm::SmallVector<StringRef> modules = {text};
  if (!marker.empty()) {
    modules.clear();
    text.split(modules, marker);
  }
  for (StringRef module : modules)
    if (std::string problem = checkModuleText(module); !problem.empty())
      return problem;
  return "";
}

} // namespace hone
