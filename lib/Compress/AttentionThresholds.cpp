// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes thresholds of attention.

#include "hone/Compress/AttentionThresholds.h"

#include "hone/Compress/SlotTensors.h"

#include <charconv>

namespace hone::compress {

static constexpr SlotFormat kFormat = {"hone attention thresholds", "1",
                                       "thresholds of attention, which hone calibrate --attention-error measures", 2};

absl::Status writeAttentionThresholds(const std::string &path, const AttentionThresholds &thresholds) {
  SlotTensors contents;
  contents.metadata = {{"model", thresholds.model},
                       {"sinks", std::to_string(thresholds.sinks)},
                       {"window", std::to_string(thresholds.window)},
                       {"block", std::to_string(thresholds.block)}};
  for (const auto &[slot, rows] : thresholds.rows)
    contents.tensors[slot] = {{std::ssize(rows) / kThresholdsOfHead, kThresholdsOfHead}, rows};
  return writeSlotTensors(path, kFormat, std::move(contents));
}

/// Whether numbers are shares and a mean cosine.
static bool areThresholds(const float *row) {
  auto isBetween = [](float number, float least, float most) { return number >= least && number <= most; };
  return isBetween(row[0], 0, 1) && isBetween(row[1], 0, 1) && isBetween(row[2], -1, 1);
}

absl::StatusOr<AttentionThresholds> readAttentionThresholds(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(SlotTensors contents, readSlotTensors(path, kFormat));
  AttentionThresholds thresholds;
  thresholds.model = contents.metadata["model"];
  for (auto [name, number] : {std::pair("sinks", &thresholds.sinks), std::pair("window", &thresholds.window),
                              std::pair("block", &thresholds.block)}) {
    const std::string &text = contents.metadata[name];
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    if (error != std::errc() || end != text.data() + text.size())
      return io::invalid(path, ": expected '", name, "' to be a number of keys, but got '", text, "'");
  }
  for (auto &[slot, tensor] : contents.tensors) {
    if (tensor.shape[1] != kThresholdsOfHead)
      return io::invalid(path, ": expected '", slot, "' to have rows of ", kThresholdsOfHead, ", but got ",
                         tensor.shape[1]);
    for (int64_t head = 0; head < tensor.shape[0]; ++head)
      if (!areThresholds(tensor.numbers.data() + head * kThresholdsOfHead))
        return io::invalid(path, ": expected '", slot, "' of head ", head,
                           " to be two shares from 0 to 1 and a cosine from -1 to 1");
    thresholds.rows[slot] = std::move(tensor.numbers);
  }
  return thresholds;
}

} // namespace hone::compress
