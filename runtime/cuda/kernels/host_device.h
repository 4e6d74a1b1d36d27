// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What host and device code share: index arithmetic is written once and tested on the host.

#ifndef HONE_RUNTIME_CUDA_KERNELS_HOST_DEVICE_H
#define HONE_RUNTIME_CUDA_KERNELS_HOST_DEVICE_H

#include <stdint.h>

#ifdef __CUDACC__
#define HONE_HOST_DEVICE __host__ __device__
#ifdef HONE_INLINES_CALLS
#define HONE_HOST_DEVICE_CALL __host__ __device__
#else
#define HONE_HOST_DEVICE_CALL __host__ __device__ __noinline__
#endif
#else
#define HONE_HOST_DEVICE
#define HONE_HOST_DEVICE_CALL // for code that is too long to be repeated in a kernel, which has to fetch it
#endif

namespace hone::cuda {

HONE_HOST_DEVICE constexpr int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }
HONE_HOST_DEVICE constexpr int64_t roundUp(int64_t a, int64_t b) { return divideUp(a, b) * b; }

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_HOST_DEVICE_H
