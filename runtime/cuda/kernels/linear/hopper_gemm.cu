// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM on sm_90a, warp-specialized and persistent: one thread issues TMA loads of tiles of x and W, four stages
// ahead, and two warpgroups multiply 64 rows by 256 outputs each with wgmma. Products of hi and lo planes are further
// steps of the same accumulation. A block computes one tile after the other; the first stages of the next tile load
// during the epilogue.

#include "../device/cp_async.h"
#include "../device/hopper_epilogue.h"
#include "../device/tma.h"
#include "../device/wgmma.h"
#include "hopper_gemm.h"

namespace hone::cuda {

template <int Blocks> class HopperGemm {
public:
  __device__ HopperGemm(const HopperGemmArguments &args, char *shared)
      : args(args), layer(args.layer.linear), shared(shared), base(sharedAddress(shared)),
        barriers{base + kHopperGemmBarriers}, steps(hopperGemmSteps(args.layer.depth, args.products)),
        rank(Blocks == 1 ? 0 : clusterRank()),
        rowTiles(static_cast<int32_t>(divideUp(layer.rows, kHopperGemmRows * Blocks))),
        outputTiles(static_cast<int32_t>(divideUp(layer.outputs, kHopperGemmOutputs))) {}

  __device__ void initBarriers() const {
    constexpr uint32_t kConsumerWarps = 8;
    barriers.init(kConsumerWarps);
  }

  /// The producer, one thread.
  __device__ void produce(const TensorMap &x, const TensorMap &weight) const {
    prefetchTensorMap(x), prefetchTensorMap(weight);
    State state;
#pragma unroll 1
    for (int32_t tile = blockIdx.x / Blocks; tile < rowTiles * outputTiles; tile += gridDim.x / Blocks) {
      TileIndex index = indexOf(tile);
      auto row = static_cast<int32_t>(index.row * kHopperGemmRows);
      auto output = static_cast<int32_t>(index.output * kHopperGemmOutputs);
#pragma unroll 1
      for (int32_t step = 0; step < steps; ++step, state.advance()) {
        HopperGemmStep part = hopperGemmStep(step, args.layer.depth);
        uint32_t to = base + state.stage * kHopperGemmStageBytes, full = barriers.full(state.stage);
        mbarrierWait(barriers.empty(state.stage), state.parity ^ 1);
        mbarrierArriveExpectTx(full, kHopperGemmStageBytes);
        tmaLoad(to, x, part.input, row, part.xPlane, 0, full);
        to += kHopperGemmXBytes;
        if constexpr (Blocks == 1)
          tmaLoad(to, weight, part.input, output, part.weightPlane, 0, full);
        else
          tmaLoadMulticast(to + rank * kHopperGemmOutputs / 2 * kBoxRowBytes, weight, part.input,
                           output + rank * kHopperGemmOutputs / 2, part.weightPlane, 0, full);
      }
    }
  }

  /// A consumer warpgroup.
  template <bool IsHalf> __device__ void consume(int group) const {
    State state;
#pragma unroll 1
    for (int32_t tile = blockIdx.x / Blocks; tile < rowTiles * outputTiles; tile += gridDim.x / Blocks) {
      float sums[kHopperGemmOutputs / 2] = {};
      multiply<IsHalf>(sums, state, group);
      TileIndex index = indexOf(tile);
      storeAccumulators<false>(layer, sums, reinterpret_cast<float *>(shared + kHopperGemmStaging), group,
                               static_cast<int32_t>(index.row * kHopperGemmRows) + group * 64,
                               static_cast<int32_t>(index.output * kHopperGemmOutputs));
    }
  }

private:
  /// Blocks of a cluster have consecutive tiles of rows.
  __device__ TileIndex indexOf(int32_t tile) const {
    TileIndex index = tileOfBlock(tile, rowTiles, outputTiles);
    return {index.row * Blocks + rank, index.output};
  }

  using State = PipelineState<kHopperGemmStages>;

  /// The main loop of a tile. A stage is released when the next step's products are in flight.
  template <bool IsHalf>
  __device__ void multiply(float (&sums)[kHopperGemmOutputs / 2], State &state, int group) const {
#pragma unroll 1
    for (int32_t step = 0; step < steps; ++step, state.advance()) {
      uint32_t stage = base + state.stage * kHopperGemmStageBytes;
      mbarrierWait(barriers.full(state.stage), state.parity);
      uint64_t a = makeSmemDescriptor(stage + group * 64 * kBoxRowBytes);
      uint64_t b = makeSmemDescriptor(stage + kHopperGemmXBytes);
      wgmmaFence(sums);
#pragma unroll
      for (int i = 0; i < kHopperGemmDepth / 16; ++i)
        wgmma<IsHalf>(sums, a + (i * 32 >> 4), b + (i * 32 >> 4));
      wgmmaCommitGroup();
      wgmmaWaitGroup<1>(sums);
      if (step > 0)
        barriers.releaseStage(state.previous(), threadIdx.x % 32);
    }
    wgmmaWaitGroup<0>(sums);
    barriers.releaseStage(state.previous(), threadIdx.x % 32);
  }

  const HopperGemmArguments &args;
  const LinearArguments &layer;
  char *const shared;
  const uint32_t base;
  const PipelineBarriers<kHopperGemmStages, Blocks> barriers;
  const int32_t steps;
  const uint32_t rank;
  const int32_t rowTiles, outputTiles;
};

/// The `Blocks` blocks of a cluster have the same outputs; each multicasts a half of the tile of W.
template <bool IsHalf, int Blocks>
__device__ inline void hopperGemm(const HopperGemmArguments &args, const TensorMap &x, const TensorMap &weight,
                                  char *shared) {
  // Each of 384 threads starts with 168 of the 65536 registers; afterwards the warpgroups have 40, 232 and 232.
  constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
  HopperGemm<Blocks> kernel(args, shared);
  if (threadIdx.x == 0)
    kernel.initBarriers();
  blockOrClusterBarrier<Blocks>();
  if (threadIdx.x < 128) {
    setmaxnregDec<kProducerRegisters>();
    if (threadIdx.x == 0)
      kernel.produce(x, weight);
    __syncwarp();
  } else {
    setmaxnregInc<kConsumerRegisters>();
    kernel.template consume<IsHalf>(__shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0) - 1);
  }
  // The other block's multicast may still write here.
  if constexpr (Blocks > 1)
    clusterBarrier();
}

} // namespace hone::cuda

#define HONE_HOPPER_GEMM(name, isHalf, blocks)                                                                         \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kHopperGemmThreads, 1) __cluster_dims__(blocks, 1, 1)       \
      name(const __grid_constant__ hone::cuda::HopperGemmArguments args,                                               \
           const __grid_constant__ hone::cuda::TensorMap x, const __grid_constant__ hone::cuda::TensorMap weight) {    \
    extern __shared__ __align__(1024) char hopperShared[];                                                             \
    hone::cuda::hopperGemm<isHalf, blocks>(args, x, weight, hopperShared);                                             \
  }

HONE_HOPPER_GEMM(hopper_gemm_f16, true, 1)
HONE_HOPPER_GEMM(hopper_gemm_bf16, false, 1)
HONE_HOPPER_GEMM(hopper_gemm_cluster2_f16, true, 2)
HONE_HOPPER_GEMM(hopper_gemm_cluster2_bf16, false, 2)
