// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Patterns and the five ways to split at them.

#include "text/pattern.h"

namespace hone::text {

absl::StatusOr<Pattern> Pattern::read(const JsonObject &owner, std::string_view key) {
  HONE_ASSIGN_OR_RETURN(JsonObject object, owner.object(key));
  Pattern pattern;
  if (object.find("String")) {
    HONE_ASSIGN_OR_RETURN(pattern.literal, object.string("String"));
    if (!pattern.literal.empty())
      return pattern;
  } else if (!object.find("Regex")) {
    return owner.mismatch(key, "{\"String\": …} or {\"Regex\": …}");
  }
  std::string source;
  if (object.find("Regex")) {
    HONE_ASSIGN_OR_RETURN(source, object.string("Regex"));
  }
  auto regex = Regex::compile(source);
  if (!regex.ok())
    return io::invalid(object.path(), ": ", regex.status().message());
  pattern.regex = *std::move(regex);
  return pattern;
}

absl::Status Pattern::literalSegments(std::string_view text, SegmentSink sink) const {
  size_t position = 0;
  for (size_t found; (found = text.find(literal, position)) != std::string_view::npos;) {
    if (found > position)
      HONE_RETURN_IF_ERROR(sink({position, found}, false));
    position = found + literal.size();
    HONE_RETURN_IF_ERROR(sink({found, position}, true));
  }
  return position < text.size() ? sink({position, text.size()}, false) : absl::OkStatus();
}

absl::Status Pattern::segments(std::string_view text, RegexScratch &scratch, SegmentSink sink) const {
  if (text.empty())
    return absl::OkStatus();
  if (!regex)
    return literalSegments(text, sink);
  RegexMatches matches(*regex, text, scratch);
  Range match;
  size_t position = 0;
  while (true) {
    HONE_ASSIGN_OR_RETURN(bool found, matches.next(match));
    if (!found)
      break;
    if (match.begin > position)
      HONE_RETURN_IF_ERROR(sink({position, match.begin}, false));
    HONE_RETURN_IF_ERROR(sink(match, true));
    position = match.end;
  }
  return position < text.size() ? sink({position, text.size()}, false) : absl::OkStatus();
}

absl::StatusOr<SplitBehavior> readSplitBehavior(const JsonObject &owner, std::string_view key) {
  static constexpr struct {
    std::string_view name;
    SplitBehavior behavior;
  } kBehaviors[] = {{"Removed", SplitBehavior::Removed},
                    {"Isolated", SplitBehavior::Isolated},
                    {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
                    {"MergedWithNext", SplitBehavior::MergedWithNext},
                    {"Contiguous", SplitBehavior::Contiguous}};
  HONE_ASSIGN_OR_RETURN(std::string name, owner.string(key));
  for (auto candidate : kBehaviors)
    if (candidate.name == name)
      return candidate.behavior;
  return owner.unsupported(owner.pathOf(key), name,
                           "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

/// Whether a segment becomes one piece with the one held.
bool SplitStream::joins(bool isMatch) const {
  if (!held)
    return false;
  switch (behavior) {
  case SplitBehavior::MergedWithPrevious:
    return isMatch && !lastIsMatch;
  case SplitBehavior::MergedWithNext:
    return !isMatch && lastIsMatch;
  case SplitBehavior::Contiguous:
    return isMatch == lastIsMatch;
  default:
    return false;
  }
}

absl::Status SplitStream::segment(Range range, bool isMatch) {
  if (behavior == SplitBehavior::Isolated)
    return emit(range);
  if (behavior == SplitBehavior::Removed)
    return isMatch ? absl::OkStatus() : emit(range);
  bool join = joins(isMatch);
  lastIsMatch = isMatch;
  if (join) {
    held->end = range.end;
    return absl::OkStatus();
  }
  absl::Status status = finish();
  held = range;
  return status;
}

absl::Status SplitStream::finish() {
  absl::Status status = held ? emit(*held) : absl::OkStatus();
  held.reset();
  return status;
}

} // namespace hone::text
