// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regular expressions of tokenizer.json, run by PCRE2. No other file of this folder sees PCRE2.

#ifndef HONE_RUNTIME_TEXT_REGEX_H
#define HONE_RUNTIME_TEXT_REGEX_H

#include "hone/io/status.h"

#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

namespace hone::text {

/// What one thread needs to run any number of expressions.
class RegexScratch {
public:
  RegexScratch();
  ~RegexScratch();
  RegexScratch(const RegexScratch &) = delete;
  RegexScratch &operator=(const RegexScratch &) = delete;

private:
  friend class Regex;
  pcre2_real_match_data_8 *matchData;
  pcre2_real_match_context_8 *context;
  pcre2_real_jit_stack_8 *stack;
};

/// Begin and end in bytes.
struct Range {
  size_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};

/// An immutable compiled expression, usable from several threads with a scratch each.
class Regex {
public:
  /// Compiles a pattern in Oniguruma's syntax.
  static absl::StatusOr<Regex> compile(std::string_view pattern);

  /// The first match at or after `start`; false where there is none. Fails when PCRE2 gives up (its limits on
  /// backtracking and memory). `text` is valid UTF-8.
  absl::StatusOr<bool> find(std::string_view text, size_t start, RegexScratch &scratch, Range &match) const;

private:
  struct CodeDeleter {
    void operator()(pcre2_real_code_8 *code) const;
  };

  std::string pattern;
  std::unique_ptr<pcre2_real_code_8, CodeDeleter> code;
  bool hasJit = false;
};

/// All matches of an expression from left to right. After an empty match the search goes on one character further; an
/// empty match where the last one ended does not count.
class RegexMatches {
public:
  RegexMatches(const Regex &regex, std::string_view text, RegexScratch &scratch)
      : regex(regex), text(text), scratch(scratch) {}

  absl::StatusOr<bool> next(Range &match);

private:
  const Regex &regex;
  std::string_view text;
  RegexScratch &scratch;
  size_t position = 0;
  size_t lastEnd = std::string_view::npos;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_REGEX_H
