// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code for sm_90: copies of boxes of tensors into shared memory by one thread, and the barriers in shared memory that count their
// bytes. A barrier's phases are numbered from 0; waiting names the parity of one. A new barrier is in phase 0: phase -1, of
// parity 1, has ended.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_BOX_COPY_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_BOX_COPY_H

#include "../tensor_map.h"

namespace hone::cuda {

/// A barrier whose phases end when so many threads have arrived, and all bytes that they expect have come. Before others use it there are
/// publishBarriers() and a barrier of the block.
__device__ inline void makeBarrier(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void publishBarriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void arriveAt(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void arriveAndExpect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/// Waits for the end of the current phase if it has this parity, and else not at all.
__device__ inline void waitAt(uint32_t barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0)
    asm volatile(
        "{ .reg .pred done; mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2; selp.u32 %0, 1, 0, done; }"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
}

/// Two barriers for each of `Stages` stages of shared memory, from `address` on: `full` once a copy has come, `empty` once nobody reads it.
template <int Stages> struct StageBarriers {
  static constexpr int kBytes = Stages * 2 * 8;
  uint32_t address;

  __device__ uint32_t full(int stage) const { return address + 8 * stage; }
  __device__ uint32_t empty(int stage) const { return full(stage) + 8 * Stages; }

  /// One thread; `readers` arrive at `empty`.
  __device__ void make(uint32_t readers) const {
    for (int stage = 0; stage < Stages; ++stage)
      makeBarrier(full(stage), 1), makeBarrier(empty(stage), readers);
    publishBarriers();
  }
};

/// A way around the stages.
template <int Stages> struct StageRing {
  int stage = 0;
  uint32_t parity = 0; // of the stage's use

  __device__ void advance() {
    if (++stage == Stages)
      stage = 0, parity ^= 1;
  }
};

/// Copies the box of `map` that begins at these indices, from the innermost axis on, to a multiple of 128 bytes.
__device__ inline void copyBox(uint32_t to, const TensorMap &map, int32_t x, int32_t y, int32_t z, int32_t w,
                               uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
               "%4, %5}], [%6];" ::"r"(to),
               "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
               : "memory");
}

/// What copies need of a map comes nearer.
__device__ inline void prefetchMap(const TensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_BOX_COPY_H
