// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an artefact has on a GPU: its generated kernels and its weights.

#ifndef HONE_RUNTIME_CUDA_IMAGE_H
#define HONE_RUNTIME_CUDA_IMAGE_H

#include "core/device.h"
#include "cuda/context.h"

#include <vector>

namespace hone::rt::cuda {

/// Kernels and weights in one context. Immutable.
class LoadedImage {
public:
  /// Loads `fatbin`, finds the kernels of the manifest in it, and copies the weights, which takes until it returns.
  static absl::StatusOr<std::shared_ptr<const LoadedImage>> load(std::shared_ptr<Context> context,
                                                                 const std::string &fatbin, const DeviceSource &source);
  LoadedImage(const LoadedImage &) = delete;
  LoadedImage &operator=(const LoadedImage &) = delete;
  ~LoadedImage();

  const std::shared_ptr<Context> &context() const { return owner; }
  std::span<const Kernel> kernels() const { return functions; } // the generated ones
  CUdeviceptr weights() const { return weightMemory; }
  bool isWeight(CUdeviceptr address) const { return address - weightMemory < weightBytes; }

private:
  explicit LoadedImage(std::shared_ptr<Context> context) : owner(std::move(context)) {}
  absl::Status loadKernels(const std::string &fatbin, const DeviceSource &source);
  absl::Status copyWeights(std::span<const uint8_t> bytes);

  std::shared_ptr<Context> owner;
  CUmodule module = nullptr;
  std::vector<Kernel> functions;
  CUdeviceptr weightMemory = 0;
  uint64_t weightBytes = 0;
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_IMAGE_H
