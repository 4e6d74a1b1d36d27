// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stop strings in streamed text.

#include "text/stop_strings.h"

#include <algorithm>

namespace hone::text {

absl::StatusOr<StopStrings> StopStrings::create(std::vector<std::string> strings) {
  for (size_t i = 0; i < strings.size(); ++i)
    if (strings[i].empty())
      return io::invalid("expected stop string ", i + 1, " to have at least one character, but it is empty");
  return StopStrings(std::move(strings));
}

/// Length of the longest stop string that ends at `end` of the held text; 0 for none.
size_t StopStrings::longestEndingAt(size_t end) const {
  size_t longest = 0;
  for (const std::string &string : strings)
    if (std::string_view(held).substr(0, end).ends_with(string))
      longest = std::max(longest, string.size());
  return longest;
}

/// Length of the longest end of the held text that begins a stop string.
size_t StopStrings::possiblePrefix() const {
  size_t longest = 0;
  for (const std::string &string : strings)
    for (size_t length = std::min(string.size() - 1, held.size()); length > longest; --length)
      if (held.compare(held.size() - length, length, string, 0, length) == 0)
        longest = length;
  return longest;
}

std::string StopStrings::push(std::string_view text) {
  if (isStopped)
    return {};
  size_t end = held.size();
  held += text;
  while (++end <= held.size()) {
    size_t length = longestEndingAt(end);
    if (length == 0)
      continue;
    isStopped = true;
    return std::exchange(held, {}).substr(0, end - length);
  }
  size_t certain = held.size() - possiblePrefix();
  std::string result = held.substr(0, certain);
  held.erase(0, certain);
  return result;
}

std::string StopStrings::finish() { return std::exchange(held, {}); }

} // namespace hone::text
