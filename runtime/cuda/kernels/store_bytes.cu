// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores bytes of the host in device memory. A copy of a few bytes makes the kernels around it wait for another engine,
// for as long as ten kernels of a decoding step take.

#include "device/overlap.h"
#include "store_bytes.h"

extern "C" __global__ void __launch_bounds__(hone::cuda::kMostStoredBytes)
    store_bytes(const __grid_constant__ hone::cuda::StoreBytesArguments args) {
  hone::cuda::enterInOrder();
  int i = threadIdx.x;
  if (i < args.count)
    args.to[i] = args.bytes[i];
}
