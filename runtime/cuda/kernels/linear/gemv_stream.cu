// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent GEMV by weights of f16 and bf16.

#include "../device/stream_kernel.h"

#define HONE_STREAM(name, isHalf, split, depth, holdsX, warps, residents)                                              \
  extern "C" __global__ void __launch_bounds__(32 * warps, residents)                                                  \
      name(const __grid_constant__ hone::cuda::StreamArguments args) {                                                 \
    extern __shared__ __align__(128) char streamShared[];                                                              \
    hone::cuda::Stream<isHalf, split, depth, holdsX>(args, streamShared).run();                                        \
  }

#define HONE_STREAMS(name, isHalf, split)                                                                              \
  HONE_STREAM(name##_12, isHalf, split, 12, true, 8, 2)                                                                \
  HONE_STREAM(name##_6, isHalf, split, 6, true, 16, 2)                                                                 \
  HONE_STREAM(name##_3, isHalf, split, 3, true, 16, 2)                                                                 \
  HONE_STREAM(name##_3_global, isHalf, split, 3, false, 16, 1)

HONE_STREAMS(gemv_stream_f16, true, false)
HONE_STREAMS(gemv_stream_bf16, false, false)
HONE_STREAMS(gemv_stream_bf16_split, false, true)
