// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only user of PCRE2.

#include "text/regex.h"

#include "text/regex_syntax.h"
#include "text/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace hone::text {

namespace {

constexpr size_t kFirstStackBytes = 32 << 10, kLargestStackBytes = 8 << 20;

std::string errorText(int code) {
  char buffer[256];
  int length = pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR *>(buffer), sizeof(buffer));
  return length < 0 ? io::cat("PCRE2 error ", code) : std::string(buffer, length);
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

} // namespace

RegexScratch::RegexScratch()
    : matchData(pcre2_match_data_create(1, nullptr)), context(pcre2_match_context_create(nullptr)),
      stack(pcre2_jit_stack_create(kFirstStackBytes, kLargestStackBytes, nullptr)) {
  pcre2_jit_stack_assign(context, nullptr, stack);
}

RegexScratch::~RegexScratch() {
  pcre2_jit_stack_free(stack);
  pcre2_match_context_free(context);
  pcre2_match_data_free(matchData);
}

void Regex::CodeDeleter::operator()(pcre2_real_code_8 *code) const { pcre2_code_free(code); }

absl::StatusOr<Regex> Regex::compile(std::string_view pattern) {
  HONE_ASSIGN_OR_RETURN(std::string translated, translateRegex(pattern));
  std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  if (!context)
    return absl::ResourceExhaustedError("cannot read regular expression: out of memory");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Regex regex;
  regex.pattern = pattern;
  regex.code.reset(pcre2_compile(units(translated), translated.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error,
                                 &offset, context.get()));
  if (!regex.code)
    return io::invalid("cannot read regular expression '", pattern, "': ", errorText(error));
  regex.hasJit = pcre2_jit_compile(regex.code.get(), PCRE2_JIT_COMPLETE) == 0;
  return regex;
}

absl::StatusOr<bool> Regex::find(std::string_view text, size_t start, RegexScratch &scratch, Range &match) const {
  if (!scratch.matchData)
    return absl::ResourceExhaustedError("cannot match regular expression: out of memory");
  int count = PCRE2_ERROR_JIT_STACKLIMIT;
  if (hasJit)
    count = pcre2_jit_match(code.get(), units(text), text.size(), start, 0, scratch.matchData, scratch.context);
  if (count == PCRE2_ERROR_JIT_STACKLIMIT) // the interpreter keeps its frames on the heap
    count = pcre2_match(code.get(), units(text), text.size(), start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                        scratch.matchData, scratch.context);
  if (count == PCRE2_ERROR_NOMATCH)
    return false;
  if (count < 0)
    return absl::ResourceExhaustedError(
        io::cat("cannot match regular expression '", pattern, "' against ", text.size(), " bytes: ", errorText(count)));
  const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(scratch.matchData);
  match = {bounds[0], bounds[1]};
  if (match.begin > match.end) // \K in a lookahead
    return io::invalid("cannot use regular expression '", pattern, "': a match that ends before it begins");
  return true;
}

absl::StatusOr<bool> RegexMatches::next(Range &match) {
  while (position <= text.size()) {
    HONE_ASSIGN_OR_RETURN(bool found, regex.find(text, position, scratch, match));
    if (!found)
      return false;
    if (match.empty() && match.end == lastEnd) {
      position += position < text.size() ? sequenceLength(text[position]) : 1;
      continue;
    }
    position = lastEnd = match.end;
    return true;
  }
  return false;
}

} // namespace hone::text
