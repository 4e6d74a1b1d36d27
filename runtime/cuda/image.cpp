// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading a fat binary, and copying weights.

#include "cuda/image.h"

#include "cuda/staging.h"
#include "hone/io/file.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace hone::rt::cuda {
namespace {

using io::cat;
using io::invalid;

/// Large enough that a copy takes longer than its start, small enough to be pinned anywhere.
constexpr uint64_t kWeightChunk = uint64_t{32} << 20;

/// What a fat binary begins with (fatbinary_section.h of the CUDA toolkit).
struct FatbinHeader {
  uint32_t magic;
  uint16_t version, headerBytes;
  uint64_t contentBytes;
};
constexpr uint32_t kFatbinMagic = 0xBA55ED50;

/// The driver is told where an image begins but not where it ends, and trusts its header.
absl::Status checkFatbin(const std::string &fatbin, const std::string &file) {
  FatbinHeader header = {};
  if (fatbin.size() >= sizeof header)
    std::memcpy(&header, fatbin.data(), sizeof header);
  if (header.magic != kFatbinMagic)
    return invalid(file, ": not a fat binary of CUDA");
  if (header.headerBytes < sizeof header || header.headerBytes > fatbin.size() ||
      header.contentBytes > fatbin.size() - header.headerBytes)
    return invalid(file, ": expected ", header.contentBytes, " bytes after a header of ", header.headerBytes,
                   ", but the file has ", fatbin.size());
  return absl::OkStatus();
}

/// 90 for "sm_90a"; 0 where that is no chip.
int capabilityOf(std::string_view chip) {
  int capability = 0;
  if (chip.starts_with("sm_"))
    std::from_chars(chip.data() + 3, chip.data() + chip.size(), capability);
  return capability;
}

bool meansOtherChip(CUresult result) {
  return result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_INVALID_PTX ||
         result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

} // namespace

absl::StatusOr<std::shared_ptr<const LoadedImage>>
LoadedImage::load(std::shared_ptr<Context> context, const std::string &fatbin, const DeviceSource &source) {
  std::shared_ptr<LoadedImage> image(new LoadedImage(std::move(context)));
  Context::Scope scope(*image->owner);
  HONE_RETURN_IF_ERROR(image->loadKernels(fatbin, source));
  HONE_RETURN_IF_ERROR(image->copyWeights(source.weights));
  return std::shared_ptr<const LoadedImage>(std::move(image));
}

LoadedImage::~LoadedImage() {
  if (owner->isLost())
    return;
  Context::Scope scope(*owner);
  if (module)
    owner->driver().cuModuleUnload(module);
  if (weightMemory)
    owner->driver().cuMemFree(weightMemory);
}

absl::Status LoadedImage::loadKernels(const std::string &fatbin, const DeviceSource &source) {
  const Driver &driver = owner->driver();
  const Properties &gpu = owner->properties();
  std::string chips =
      cat("this artefact was built for ", source.info->chip, ", and this GPU, ", gpu.name, ", is sm_", gpu.capability);
  HONE_RETURN_IF_ERROR(checkFatbin(fatbin, source.file));
  if (capabilityOf(source.info->chip) > gpu.capability)
    return invalid(chips);
  CUresult result = driver.cuModuleLoadData(&module, fatbin.data());
  if (meansOtherChip(result))
    return invalid(chips, "; its driver cannot compile the PTX: ", driver.textOf(result));
  HONE_RETURN_IF_ERROR(owner->check(result, cat("load ", source.file)));
  for (const std::string &name : source.info->kernels) {
    CUfunction function = nullptr;
    result = driver.cuModuleGetFunction(&function, module, name.c_str());
    if (result == CUDA_ERROR_NOT_FOUND)
      return invalid(source.file, ": has no kernel '", name, "', which the manifest lists");
    HONE_RETURN_IF_ERROR(owner->check(result, cat("find kernel '", name, "'")));
    functions.push_back({name.c_str(), function, /*isDependent=*/false});
  }
  return absl::OkStatus();
}

absl::Status LoadedImage::copyWeights(std::span<const uint8_t> bytes) {
  uint64_t needed = std::max<uint64_t>(bytes.size(), kDeviceAlignment);
  weightBytes = bytes.size();
  CUresult result = owner->driver().cuMemAlloc(&weightMemory, needed);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return owner->outOfMemory(needed, "the weights");
  HONE_RETURN_IF_ERROR(owner->check(result, cat("allocate ", needed, " bytes of GPU memory for the weights")));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<Stream> stream, Stream::create(owner));
  Staging staging(stream, std::min(kWeightChunk, needed));
  HONE_RETURN_IF_ERROR(staging.upload(weightMemory, bytes.data(), bytes.size()));
  return staging.flush();
}

} // namespace hone::rt::cuda
