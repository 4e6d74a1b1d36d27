// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes the importance of keys.

#include "hone/Compress/KeyImportance.h"

#include "hone/Compress/SlotTensors.h"

namespace hone::compress {

static constexpr SlotFormat kFormat = {"hone key importance", "1",
                                       "the importance of keys, which hone calibrate --kv-importance measures", 1};

absl::Status writeKeyImportance(const std::string &path, const KeyImportance &importance) {
  SlotTensors contents = {{{"model", importance.model}}, {}};
  for (const auto &[slot, mass] : importance.mass)
    contents.tensors[slot] = {{std::ssize(mass)}, {mass.begin(), mass.end()}};
  return writeSlotTensors(path, kFormat, std::move(contents));
}

absl::StatusOr<KeyImportance> readKeyImportance(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(SlotTensors contents, readSlotTensors(path, kFormat));
  KeyImportance importance = {contents.metadata["model"], {}};
  for (const auto &[slot, tensor] : contents.tensors)
    importance.mass[slot].assign(tensor.numbers.begin(), tensor.numbers.end());
  return importance;
}

} // namespace hone::compress
