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

/// Which block of a cluster this is.
__device__ inline uint32_t rankInCluster() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// All threads of the cluster: what any of them did before, all see behind it, and shared memory of all is there until then.
__device__ inline void meetInCluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// All threads of the block, or of the cluster where it has several.
template <int Blocks> __device__ inline void meetAll() {
  if constexpr (Blocks == 1)
    __syncthreads();
  else
    meetInCluster();
}

/// The same as arriveAt, at the barrier that lies there in block `rank` of the cluster.
__device__ inline void arriveInCluster(uint32_t barrier, uint32_t rank) {
  asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
               "r"(rank)
               : "memory");
}

/// Two barriers for each of `Stages` stages of shared memory, from `address` on: `full` once a copy has come, `empty` once nobody reads it,
/// in any of `Blocks` blocks that copies come to at once.
template <int Stages, int Blocks> struct StageBarriers {
  static constexpr int kBytes = Stages * 2 * 8;
  uint32_t address;

  __device__ uint32_t full(int stage) const { return address + 8 * stage; }
  __device__ uint32_t empty(int stage) const { return full(stage) + 8 * Stages; }

  /// One thread; of each block `warps` warps give stages back.
  __device__ void make(uint32_t warps) const {
    for (int stage = 0; stage < Stages; ++stage)
      makeBarrier(full(stage), 1), makeBarrier(empty(stage), warps * Blocks);
    publishBarriers();
  }

  /// A warp.
  __device__ void giveBack(int stage, uint32_t lane) const {
    if constexpr (Blocks == 1) {
      if (lane == 0)
        arriveAt(empty(stage));
    } else if (lane < Blocks) {
      arriveInCluster(empty(stage), lane);
    }
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
  __device__ int before() const { return stage == 0 ? Stages - 1 : stage - 1; }
};

/// Copies the box of `map` that begins at these indices, from the innermost axis on, to a multiple of 128 bytes.
__device__ inline void copyBox(uint32_t to, const TensorMap &map, int32_t x, int32_t y, int32_t z, int32_t w,
                               uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
               "%4, %5}], [%6];" ::"r"(to),
               "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
               : "memory");
}

/// The same, to that place of both blocks of a cluster, each of whose barriers there counts the bytes.
__device__ inline void copyBoxToBoth(uint32_t to, const TensorMap &map, int32_t x, int32_t y, int32_t z, int32_t w,
                                     uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
               "[%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(to),
               "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier), "h"(static_cast<uint16_t>(3))
               : "memory");
}

/// What copies need of a map comes nearer.
__device__ inline void prefetchMap(const TensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_BOX_COPY_H
