// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes what was measured of attentions.

#include "hone/Compress/SlotTensors.h"

#include "hone/io/safetensors.h"

namespace hone::compress {

absl::Status writeSlotTensors(const std::string &path, const SlotFormat &format, SlotTensors contents) {
  std::vector<io::StoredTensor> stored;
  for (const auto &[slot, tensor] : contents.tensors)
    stored.push_back({slot, HONE_F32, tensor.shape});
  contents.metadata["format"] = format.name;
  contents.metadata["version"] = format.version;
  HONE_ASSIGN_OR_RETURN(io::SafetensorsWriter writer,
                        io::SafetensorsWriter::create(path, std::move(stored), contents.metadata));
  for (const auto &[slot, tensor] : contents.tensors)
    HONE_RETURN_IF_ERROR(
        writer.append({reinterpret_cast<const char *>(tensor.numbers.data()), tensor.numbers.size() * sizeof(float)}));
  return writer.commit();
}

absl::StatusOr<SlotTensors> readSlotTensors(const std::string &path, const SlotFormat &format) {
  HONE_ASSIGN_OR_RETURN(io::SafetensorsReader file, io::SafetensorsReader::open(path));
  SlotTensors contents = {file.metadata(), {}};
  if (contents.metadata["format"] != format.name || contents.metadata["version"] != format.version)
    return io::invalid(path, ": expected ", format.description);
  for (const io::StoredTensor &tensor : file.tensors()) {
    if (tensor.dtype != HONE_F32 || tensor.shape.size() != format.rank)
      return io::invalid(path, ": expected '", tensor.name, "' to be f32 of rank ", format.rank, ", but got ",
                         io::dtypeName(tensor.dtype), " of ", io::shapeText(tensor.shape));
    std::span numbers(reinterpret_cast<const float *>(file.bytesOf(tensor)), tensor.bytes / sizeof(float));
    contents.tensors[tensor.name] = {tensor.shape, {numbers.begin(), numbers.end()}};
  }
  return contents;
}

} // namespace hone::compress
