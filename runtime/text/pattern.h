// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a Split or Replace looks for, and what a split does with what it found.

#ifndef HONE_RUNTIME_TEXT_PATTERN_H
#define HONE_RUNTIME_TEXT_PATTERN_H

#include "text/json_reader.h"
#include "text/regex.h"

#include "absl/functional/function_ref.h"

#include <optional>

namespace hone::text {

/// Receives the matches of a pattern and the text between them, from left to right; together they are the whole text.
using SegmentSink = absl::FunctionRef<absl::Status(Range range, bool isMatch)>;

/// A literal string or a regular expression: `{"String": …}` or `{"Regex": …}`.
class Pattern {
public:
  static absl::StatusOr<Pattern> read(const JsonObject &owner, std::string_view key);

  absl::Status segments(std::string_view text, RegexScratch &scratch, SegmentSink sink) const;

private:
  absl::Status literalSegments(std::string_view text, SegmentSink sink) const;

  std::string literal;
  std::optional<Regex> regex;
};

enum class SplitBehavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

absl::StatusOr<SplitBehavior> readSplitBehavior(const JsonObject &owner, std::string_view key);

/// Turns segments into pieces. Splitting "a-b--c" at '-': Removed gives a, b, c; Isolated a, -, b, -, -, c;
/// MergedWithPrevious a-, b-, -, c; MergedWithNext a, -b, -, -c; Contiguous a, -, b, --, c.
class SplitStream {
public:
  using Sink = absl::FunctionRef<absl::Status(Range)>;

  SplitStream(SplitBehavior behavior, Sink sink) : behavior(behavior), sink(sink) {}

  absl::Status segment(Range range, bool isMatch);
  absl::Status finish();

private:
  bool joins(bool isMatch) const;
  absl::Status emit(Range range) { return range.empty() ? absl::OkStatus() : sink(range); }

  SplitBehavior behavior;
  Sink sink;
  std::optional<Range> held;
  bool lastIsMatch = false;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_PATTERN_H
