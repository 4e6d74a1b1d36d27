// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes the importance of keys.

#include "hone/Compress/KeyImportance.h"

#include "hone/io/safetensors.h"

namespace hone::compress {

static constexpr const char *kFormat = "hone key importance", *kVersion = "1";

absl::Status writeKeyImportance(const std::string &path, const KeyImportance &importance) {
  std::vector<io::StoredTensor> tensors;
  for (const auto &[slot, mass] : importance.mass)
    tensors.push_back({slot, HONE_F32, {std::ssize(mass)}});
  HONE_ASSIGN_OR_RETURN(
      io::SafetensorsWriter writer,
      io::SafetensorsWriter::create(path, std::move(tensors),
                                    {{"format", kFormat}, {"version", kVersion}, {"model", importance.model}}));
  for (const auto &[slot, mass] : importance.mass) {
    std::vector<float> numbers(mass.begin(), mass.end());
    HONE_RETURN_IF_ERROR(
        writer.append({reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(float)}));
  }
  return writer.commit();
}

absl::StatusOr<KeyImportance> readKeyImportance(const std::string &path) {
  HONE_ASSIGN_OR_RETURN(io::SafetensorsReader file, io::SafetensorsReader::open(path));
  auto of = [&](const char *name) {
    auto found = file.metadata().find(name);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (of("format") != kFormat || of("version") != kVersion)
    return io::invalid(path, ": expected the importance of keys, which hone calibrate --kv-importance measures");
  KeyImportance importance = {of("model"), {}};
  for (const io::StoredTensor &tensor : file.tensors()) {
    if (tensor.dtype != HONE_F32 || tensor.shape.size() != 1)
      return io::invalid(path, ": expected '", tensor.name, "' to be f32 of one dimension, but got ",
                         io::dtypeName(tensor.dtype), " of ", io::shapeText(tensor.shape));
    std::span numbers(reinterpret_cast<const float *>(file.bytesOf(tensor)), tensor.bytes / sizeof(float));
    importance.mass[tensor.name].assign(numbers.begin(), numbers.end());
  }
  return importance;
}

} // namespace hone::compress
