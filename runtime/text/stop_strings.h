// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ends streamed text at the first stop string.

#ifndef HONE_RUNTIME_TEXT_STOP_STRINGS_H
#define HONE_RUNTIME_TEXT_STOP_STRINGS_H

#include "hone/io/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace hone::text {

/// The stop string that is complete first ends the text; of several complete at the same place, the one that begins
/// first. It is not part of the text that is returned. How the text is cut into pushes does not matter.
class StopStrings {
public:
  /// Fails for an empty stop string.
  static absl::StatusOr<StopStrings> create(std::vector<std::string> strings);

  /// The text that is certain: all so far but what may be the beginning of a stop string. Empty once stopped.
  std::string push(std::string_view text);
  /// What was held back, when no text follows.
  std::string finish();
  bool stopped() const { return isStopped; }

private:
  explicit StopStrings(std::vector<std::string> strings) : strings(std::move(strings)) {}
  size_t longestEndingAt(size_t end) const;
  size_t possiblePrefix() const;

  std::vector<std::string> strings;
  std::string held;
  bool isStopped = false;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_STOP_STRINGS_H
