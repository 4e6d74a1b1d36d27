// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of tensors in the file is that of the slots, and so is that of the sum.

#include "cli/tuning_checkpoint.h"

#include "hone/io/file.h"
#include "hone/io/safetensors.h"

#include <charconv>
#include <filesystem>

namespace hone::cli {

using io::invalid;

static constexpr const char *kStep = "hone.tune.step", *kRun = "hone.tune.run", *kSum = "hone.tune.crc32";

std::string_view bytesOf(const hone_tensor &tensor) {
  int64_t bytes = io::elementCount(tensor) * io::dtypeBytes(static_cast<hone_dtype>(tensor.dtype));
  return {static_cast<const char *>(tensor.data), static_cast<size_t>(bytes)};
}

bool isFinite(const hone_tensor &tensor) {
  std::span elements(static_cast<const float *>(tensor.data), static_cast<size_t>(io::elementCount(tensor)));
  return std::ranges::all_of(elements, [](float element) { return std::isfinite(element); });
}

absl::Status writeCheckpoint(const std::string &path, const std::string &run, int64_t step, rt::State &state) {
  std::vector<io::StoredTensor> tensors;
  uint32_t sum = 0;
  for (const rt::Slot &slot : state.slots()) {
    HONE_ASSIGN_OR_RETURN(rt::StateBuffer held, slot.contentOnHost());
    const hone_tensor &view = held.view;
    tensors.push_back({slot.description().name, slot.description().dtype, {view.sizes, view.sizes + view.rank}});
    sum = io::crcOf(bytesOf(view), sum);
  }
  std::map<std::string, std::string> metadata = {
      {kStep, std::to_string(step)}, {kRun, run}, {kSum, std::to_string(sum)}};
  HONE_ASSIGN_OR_RETURN(io::SafetensorsWriter writer,
                        io::SafetensorsWriter::create(path, std::move(tensors), metadata));
  for (const rt::Slot &slot : state.slots()) {
    HONE_ASSIGN_OR_RETURN(rt::StateBuffer held, slot.contentOnHost());
    HONE_RETURN_IF_ERROR(writer.append(bytesOf(held.view)));
  }
  return writer.commit();
}

/// A whole number of the metadata.
static absl::StatusOr<int64_t> numberIn(const io::SafetensorsReader &file, const char *key, const std::string &path) {
  auto found = file.metadata().find(key);
  int64_t number = 0;
  if (found != file.metadata().end()) {
    const char *end = found->second.data() + found->second.size();
    if (auto [last, error] = std::from_chars(found->second.data(), end, number);
        error == std::errc() && last == end && number >= 0)
      return number;
  }
  return invalid(path, ": not a checkpoint of hone tune: its metadata have no number ", key);
}

static absl::Status checkRun(const io::SafetensorsReader &file, const std::string &run, const std::string &path) {
  auto found = file.metadata().find(kRun);
  std::string other = found == file.metadata().end() ? "" : found->second;
  if (other == run)
    return absl::OkStatus();
  return invalid(path, ": checkpoint of another run: expected '", run, "', but got '", other, "'");
}

absl::StatusOr<int64_t> readCheckpoint(const std::string &path, const std::string &run, rt::State &state) {
  if (std::error_code error; !std::filesystem::exists(path, error) && !error)
    return 0;
  HONE_ASSIGN_OR_RETURN(io::SafetensorsReader file, io::SafetensorsReader::open(path));
  HONE_ASSIGN_OR_RETURN(int64_t step, numberIn(file, kStep, path));
  HONE_ASSIGN_OR_RETURN(int64_t expectedSum, numberIn(file, kSum, path));
  HONE_RETURN_IF_ERROR(checkRun(file, run, path));
  std::vector<hone_tensor> contents;
  uint32_t sum = 0;
  for (const rt::Slot &slot : state.slots()) {
    const io::StoredTensor *tensor = file.find(slot.description().name);
    if (!tensor)
      return invalid(path, ": has no tensor '", slot.description().name, "'");
    contents.push_back(io::denseView(const_cast<uint8_t *>(file.bytesOf(*tensor)), tensor->dtype, tensor->shape));
    sum = io::crcOf(bytesOf(contents.back()), sum);
  }
  if (sum != expectedSum)
    return invalid(path, ": expected its tensors to have the sum ", expectedSum, ", but got ", sum,
                   "; the checkpoint is damaged");
  HONE_RETURN_IF_ERROR(state.setContents(contents));
  return step;
}

} // namespace hone::cli
