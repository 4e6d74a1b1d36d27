// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code for sm_90: mbarriers, barriers of a cluster, and the full and empty barriers of a software pipeline in
// shared memory.
//
// The phases of an mbarrier are numbered from 0, and a wait names the parity of a phase. A new mbarrier is in phase
// 0: phase -1, of parity 1, counts as complete.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_MBARRIER_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_MBARRIER_H

#include <stdint.h>

namespace hone::cuda {

/// A phase completes after so many arrivals and all expected transaction bytes. Other threads may use the mbarrier
/// after fenceMbarrierInit() and a block or cluster barrier.
__device__ inline void mbarrierInit(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void fenceMbarrierInit() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void mbarrierArrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void mbarrierArriveExpectTx(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/// Waits until the current phase completes if it has this parity, else returns at once.
__device__ inline void mbarrierWait(uint32_t barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0)
    asm volatile(
        "{ .reg .pred done; mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2; selp.u32 %0, 1, 0, done; }"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
}

/// The rank of this block in its cluster.
__device__ inline uint32_t clusterRank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// A barrier of all threads of the cluster: earlier writes are visible after it, and no block has exited before it.
__device__ inline void clusterBarrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// A block barrier, or a cluster barrier where a cluster has several blocks.
template <int Blocks> __device__ inline void blockOrClusterBarrier() {
  if constexpr (Blocks == 1)
    __syncthreads();
  else
    clusterBarrier();
}

/// Arrives at the mbarrier that has the same shared-memory offset in block `rank` of the cluster.
__device__ inline void mbarrierArriveRemote(uint32_t barrier, uint32_t rank) {
  asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
               "r"(rank)
               : "memory");
}

/// The mbarriers of a pipeline with `Stages` stages, from `address` on: `full` completes when a stage's TMA loads
/// have arrived, `empty` when all consumer warps of the `Blocks` blocks that a multicast writes to have released it.
template <int Stages, int Blocks> struct PipelineBarriers {
  static constexpr int kBytes = Stages * 2 * 8;
  uint32_t address;

  __device__ uint32_t full(int stage) const { return address + 8 * stage; }
  __device__ uint32_t empty(int stage) const { return full(stage) + 8 * Stages; }

  /// Called by one thread; `warps` is the number of consumer warps of a block.
  __device__ void init(uint32_t warps) const {
    for (int stage = 0; stage < Stages; ++stage)
      mbarrierInit(full(stage), 1), mbarrierInit(empty(stage), warps * Blocks);
    fenceMbarrierInit();
  }

  /// Called by a consumer warp.
  __device__ void releaseStage(int stage, uint32_t lane) const {
    if constexpr (Blocks == 1) {
      if (lane == 0)
        mbarrierArrive(empty(stage));
    } else if (lane < Blocks) {
      mbarrierArriveRemote(empty(stage), lane);
    }
  }
};

/// The stage that a producer or consumer is at, and the parity of its current use.
template <int Stages> struct PipelineState {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void advance() {
    if (++stage == Stages)
      stage = 0, parity ^= 1;
  }
  __device__ int previous() const { return stage == 0 ? Stages - 1 : stage - 1; }
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_MBARRIER_H
