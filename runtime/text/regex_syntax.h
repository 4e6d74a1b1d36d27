// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The regular expressions of tokenizer.json are written for Oniguruma; PCRE2 runs them. This is the translation.

#ifndef HONE_RUNTIME_TEXT_REGEX_SYNTAX_H
#define HONE_RUNTIME_TEXT_REGEX_SYNTAX_H

#include "hone/io/status.h"

#include <string>
#include <string_view>

namespace hone::text {

/// The PCRE2 pattern (options UTF, UCP, MULTILINE, newline LF) that matches what `pattern` matches in Oniguruma's
/// default syntax. What differs: \s \w \d \h \v and POSIX brackets mean other sets; classes nest and intersect (`&&`);
/// `(?m)` is "dot matches newline"; an option group reaches to the end of its group, over alternatives; `{n,m}+` and
/// `{n}?` repeat greedily instead of being possessive and lazy; \p{Han} names a script, not script extensions.
/// Fails for an unclosed class, a dangling backslash and escapes that have no counterpart.
absl::StatusOr<std::string> translateRegex(std::string_view pattern);

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_REGEX_SYNTAX_H
