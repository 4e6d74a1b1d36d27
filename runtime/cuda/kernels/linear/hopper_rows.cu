// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers of many rows on sm_90a: one thread has the copy engine bring tiles of x and of the weight, four stages ahead, and two
// warpgroups multiply 64 rows by 256 outputs each. Planes of numbers that are sums of two are further steps of the same product. A
// block takes one tile after the other, and while its sums are finished the next one's first stages come.

#include "../device/async_copy.h"
#include "../device/box_copy.h"
#include "../device/product_sums.h"
#include "../device/warpgroup.h"
#include "hopper_rows.h"

namespace hone::cuda {

template <int Blocks> class HopperRows {
public:
  __device__ HopperRows(const HopperRowsArguments &args, char *shared)
      : args(args), layer(args.layer.linear), shared(shared), base(sharedAddress(shared)),
        barriers{base + kHopperRowsBarriers}, steps(hopperSteps(args.layer.depth, args.products)),
        rank(Blocks == 1 ? 0 : rankInCluster()),
        rowTiles(static_cast<int32_t>(divideUp(layer.rows, kHopperTileRows * Blocks))),
        outputTiles(static_cast<int32_t>(divideUp(layer.outputs, kHopperTileOutputs))) {}

  __device__ void makeBarriers() const {
    constexpr uint32_t kConsumerWarps = 8;
    barriers.make(kConsumerWarps);
  }

  /// One thread.
  __device__ void produce(const TensorMap &x, const TensorMap &weight) const {
    prefetchMap(x), prefetchMap(weight);
    Ring ring;
#pragma unroll 1
    for (int32_t tile = blockIdx.x / Blocks; tile < rowTiles * outputTiles; tile += gridDim.x / Blocks) {
      TilePlace place = placeOf(tile);
      auto row = static_cast<int32_t>(place.row * kHopperTileRows);
      auto output = static_cast<int32_t>(place.output * kHopperTileOutputs);
#pragma unroll 1
      for (int32_t step = 0; step < steps; ++step, ring.advance()) {
        HopperStep part = hopperStep(step, args.layer.depth);
        uint32_t to = base + ring.stage * kHopperStageBytes, full = barriers.full(ring.stage);
        waitAt(barriers.empty(ring.stage), ring.parity ^ 1);
        arriveAndExpect(full, kHopperStageBytes);
        copyBox(to, x, part.input, row, part.xPlane, 0, full);
        to += kHopperXBytes;
        if constexpr (Blocks == 1)
          copyBox(to, weight, part.input, output, part.weightPlane, 0, full);
        else
          copyBoxToBoth(to + rank * kHopperTileOutputs / 2 * kBoxRowBytes, weight, part.input,
                        output + rank * kHopperTileOutputs / 2, part.weightPlane, 0, full);
      }
    }
  }

  /// A warpgroup.
  template <bool IsHalf> __device__ void consume(int group) const {
    Ring ring;
#pragma unroll 1
    for (int32_t tile = blockIdx.x / Blocks; tile < rowTiles * outputTiles; tile += gridDim.x / Blocks) {
      float sums[kHopperTileOutputs / 2] = {};
      multiply<IsHalf>(sums, ring, group);
      TilePlace place = placeOf(tile);
      finishProduct<false>(layer, sums, reinterpret_cast<float *>(shared + kHopperRowsSums), group,
                           static_cast<int32_t>(place.row * kHopperTileRows) + group * 64,
                           static_cast<int32_t>(place.output * kHopperTileOutputs));
    }
  }

private:
  /// Blocks of a cluster have rows that follow each other.
  __device__ TilePlace placeOf(int32_t tile) const {
    TilePlace place = tileOfBlock(tile, rowTiles, outputTiles);
    return {place.row * Blocks + rank, place.output};
  }

  using Ring = StageRing<kHopperRowsStages>;

  /// All steps of a tile; the stage of a step is given back when the next one's products are under way.
  template <bool IsHalf>
  __device__ void multiply(float (&sums)[kHopperTileOutputs / 2], Ring &ring, int group) const {
#pragma unroll 1
    for (int32_t step = 0; step < steps; ++step, ring.advance()) {
      uint32_t stage = base + ring.stage * kHopperStageBytes;
      waitAt(barriers.full(ring.stage), ring.parity);
      uint64_t a = matrixAt(stage + group * 64 * kBoxRowBytes);
      uint64_t b = matrixAt(stage + kHopperXBytes);
      fenceProducts(sums);
#pragma unroll
      for (int i = 0; i < kHopperDepth / 16; ++i)
        beginProduct<IsHalf>(sums, a + (i * 32 >> 4), b + (i * 32 >> 4));
      commitProducts();
      waitForProducts<1>(sums);
      if (step > 0)
        barriers.giveBack(ring.before(), threadIdx.x % 32);
    }
    waitForProducts<0>(sums);
    barriers.giveBack(ring.before(), threadIdx.x % 32);
  }

  const HopperRowsArguments &args;
  const LinearArguments &layer;
  char *const shared;
  const uint32_t base;
  const StageBarriers<kHopperRowsStages, Blocks> barriers;
  const int32_t steps;
  const uint32_t rank;
  const int32_t rowTiles, outputTiles;
};

/// `Blocks` blocks of a cluster have the same outputs, each of which brings a half of the weight's tile for both.
template <bool IsHalf, int Blocks>
__device__ inline void multiplyRows(const HopperRowsArguments &args, const TensorMap &x, const TensorMap &weight,
                                    char *shared) {
  // Of 65536 registers each of 384 threads has 168 at the beginning, and in the end 40 and twice 232.
  constexpr int kFewRegisters = 40, kManyRegisters = 232;
  HopperRows<Blocks> rows(args, shared);
  if (threadIdx.x == 0)
    rows.makeBarriers();
  meetAll<Blocks>();
  if (threadIdx.x < 128) {
    giveRegistersBack<kFewRegisters>();
    if (threadIdx.x == 0)
      rows.produce(x, weight);
    __syncwarp();
  } else {
    takeRegisters<kManyRegisters>();
    rows.template consume<IsHalf>(__shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0) - 1);
  }
  // The other block may still write here.
  if constexpr (Blocks > 1)
    meetInCluster();
}

} // namespace hone::cuda

#define HONE_HOPPER_ROWS(name, isHalf, blocks)                                                                         \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kHopperRowsThreads, 1) __cluster_dims__(blocks, 1, 1)       \
      name(const __grid_constant__ hone::cuda::HopperRowsArguments args,                                               \
           const __grid_constant__ hone::cuda::TensorMap x, const __grid_constant__ hone::cuda::TensorMap weight) {    \
    extern __shared__ __align__(1024) char hopperShared[];                                                             \
    hone::cuda::multiplyRows<isHalf, blocks>(args, x, weight, hopperShared);                                           \
  }

HONE_HOPPER_ROWS(hopper_rows_f16, true, 1)
HONE_HOPPER_ROWS(hopper_rows_bf16, false, 1)
HONE_HOPPER_ROWS(hopper_rows_pair_f16, true, 2)
HONE_HOPPER_ROWS(hopper_rows_pair_bf16, false, 2)
