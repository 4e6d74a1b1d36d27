// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Character classes on their way from Oniguruma to PCRE2: sets that may nest and intersect, where PCRE2 has flat ones.

#ifndef HONE_RUNTIME_TEXT_REGEX_CLASS_H
#define HONE_RUNTIME_TEXT_REGEX_CLASS_H

#include "hone/io/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace hone::text {

/// The union of `items`, written as inside PCRE2's brackets, and of `nested`; or, where `parts` is not empty, the
/// intersection of `parts`. `negated` takes the complement of all of it.
struct CharacterSet {
  std::string items;
  std::vector<CharacterSet> nested;
  std::vector<CharacterSet> parts;
  bool negated = false;

  /// A PCRE2 expression that matches exactly one character: one of the set.
  std::string expression() const;
  /// Adds `other` to the union.
  void add(CharacterSet other);
};

/// The set of the escape `\letter` for letter in d D h H s S w W.
CharacterSet escapeSet(char letter);

/// The set of a POSIX bracket name ("alpha", …); false where there is none of that name.
bool posixSet(std::string_view name, CharacterSet &set);

/// The set of \p{name}.
CharacterSet propertySet(std::string_view name);

/// One literal character as PCRE2 reads it inside and outside brackets.
std::string literalCharacter(char32_t codePoint);

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_REGEX_CLASS_H
