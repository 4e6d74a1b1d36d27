// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code for sm_90: TMA loads (cp.async.bulk.tensor) into shared memory. One thread issues them; their bytes
// count as transactions of an mbarrier.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_TMA_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_TMA_H

#include "../tensor_map.h"
#include "mbarrier.h"

namespace hone::cuda {

/// Loads the box of `map` at these coordinates, innermost first, to a multiple of 128 bytes of shared memory.
__device__ inline void tmaLoad(uint32_t to, const TensorMap &map, int32_t x, int32_t y, int32_t z, int32_t w,
                               uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
               "%4, %5}], [%6];" ::"r"(to),
               "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
               : "memory");
}

/// Multicast to the same offset of both blocks of a cluster; the bytes count at the mbarrier of each.
__device__ inline void tmaLoadMulticast(uint32_t to, const TensorMap &map, int32_t x, int32_t y, int32_t z, int32_t w,
                                        uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
               "[%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(to),
               "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier), "h"(static_cast<uint16_t>(3))
               : "memory");
}

/// Prefetches the descriptor.
__device__ inline void prefetchTensorMap(const TensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_TMA_H
