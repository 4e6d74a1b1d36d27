// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a session keeps on the GPU to sample tokens there, and what sampling launches (kernels/sampling/sampling.h).

#ifndef HONE_RUNTIME_CUDA_TOKEN_SAMPLER_H
#define HONE_RUNTIME_CUDA_TOKEN_SAMPLER_H

#include "cuda/kernels/kernel_device.h"
#include "cuda/kernels/sampling/sampling.h"
#include "cuda/staging.h"
#include "hone/sampling/options.h"

#include <vector>

namespace hone::rt::cuda {

/// Samples the tokens of one text after the other.
class TokenSampler {
public:
  explicit TokenSampler(std::shared_ptr<Stream> stream) : memory(std::move(stream)) {}

  /// Begins a text: DeviceQueue::beginSampling.
  void begin(const sampling::SamplingOptions &newOptions, std::vector<int32_t> newHistory);

  /// Where tokens are written besides, as integers of 4 or 8 bytes; null for nowhere.
  void setInput(CUdeviceptr input, int32_t bytes);

  /// What sampling from `logits` takes; `staging` brings what it needs of the host.
  absl::StatusOr<hone::cuda::SamplingArguments> prepare(Staging &staging, CUdeviceptr logits, int64_t vocabulary,
                                                        uint64_t draw);

  /// A kernel of sampling that was prepared.
  struct Launch {
    const char *name;
    hone::cuda::LaunchShape shape;
  };
  std::vector<Launch> launches() const;

private:
  absl::Status fill(Staging &staging);

  sampling::SamplingOptions options;
  std::vector<int32_t> history; // until it is on the GPU
  int64_t vocabulary = 0;       // that memory is laid out for; 0 before the first token of a text
  hone::cuda::SamplerLayout layout = {};
  DeviceBuffer memory;
  CUdeviceptr input = 0;
  int32_t inputBytes = 0;
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_TOKEN_SAMPLER_H
