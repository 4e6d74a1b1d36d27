// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of what `hone calibrate` measured of attentions: safetensors with a tensor of f32 for each, by the name of the slot that has its
// keys.

#ifndef HONE_COMPRESS_SLOTTENSORS_H
#define HONE_COMPRESS_SLOTTENSORS_H

#include "hone/io/status.h"

#include <map>
#include <string>
#include <vector>

namespace hone::compress {

struct SlotTensor {
  std::vector<int64_t> shape;
  std::vector<float> numbers;
};

struct SlotTensors {
  std::map<std::string, std::string> metadata;
  std::map<std::string, SlotTensor> tensors; // by slot
};

/// What a kind of file says of itself in its metadata, and what a message calls it.
struct SlotFormat {
  const char *name, *version, *description;
  size_t rank; // of its tensors
};

/// Writes such a file, which appears whole.
absl::Status writeSlotTensors(const std::string &path, const SlotFormat &format, SlotTensors contents);

/// Fails where the file is none of that format. What its numbers are is for the caller to check.
absl::StatusOr<SlotTensors> readSlotTensors(const std::string &path, const SlotFormat &format);

} // namespace hone::compress

#endif // HONE_COMPRESS_SLOTTENSORS_H
