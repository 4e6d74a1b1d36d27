// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes of the host that come as an argument of a kernel.

#ifndef HONE_RUNTIME_CUDA_KERNELS_STORE_BYTES_H
#define HONE_RUNTIME_CUDA_KERNELS_STORE_BYTES_H

#include <stdint.h>

namespace hone::cuda {

constexpr int32_t kMostStoredBytes = 64;

struct StoreBytesArguments {
  char *to;
  int32_t count;
  char bytes[kMostStoredBytes];
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_STORE_BYTES_H
