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

class HopperRows {
public:
  __device__ HopperRows(const HopperRowsArguments &args, char *shared)
      : args(args), layer(args.layer.linear), shared(shared), base(sharedAddress(shared)),
        barriers{base + kHopperRowsBarriers}, steps(hopperSteps(args.layer.depth, args.products)),
        rowTiles(divideUp(layer.rows, kHopperTileRows)), outputTiles(divideUp(layer.outputs, kHopperTileOutputs)) {}

  __device__ void makeBarriers() const {
    constexpr uint32_t kConsumerWarps = 8;
    barriers.make(kConsumerWarps);
  }

  /// One thread.
  __device__ void produce(const TensorMap &x, const TensorMap &weight) const {
    prefetchMap(x), prefetchMap(weight);
    Ring ring;
#pragma unroll 1
    for (int64_t tile = blockIdx.x; tile < rowTiles * outputTiles; tile += gridDim.x) {
      TilePlace place = tileOfBlock(tile, rowTiles, outputTiles);
      auto row = static_cast<int32_t>(place.row * kHopperTileRows);
      auto output = static_cast<int32_t>(place.output * kHopperTileOutputs);
#pragma unroll 1
      for (int32_t step = 0; step < steps; ++step, ring.advance()) {
        HopperStep part = hopperStep(step, args.layer.depth);
        uint32_t to = base + ring.stage * kHopperStageBytes, full = barriers.full(ring.stage);
        waitAt(barriers.empty(ring.stage), ring.parity ^ 1);
        arriveAndExpect(full, kHopperStageBytes);
        copyBox(to, x, part.input, row, part.xPlane, 0, full);
        copyBox(to + kHopperXBytes, weight, part.input, output, part.weightPlane, 0, full);
      }
    }
  }

  /// A warpgroup.
  template <bool IsHalf> __device__ void consume(int group) const {
    Ring ring;
#pragma unroll 1
    for (int64_t tile = blockIdx.x; tile < rowTiles * outputTiles; tile += gridDim.x) {
      float sums[kHopperTileOutputs / 2] = {};
      multiply<IsHalf>(sums, ring, group);
      TilePlace place = tileOfBlock(tile, rowTiles, outputTiles);
      finishProduct<false>(layer, sums, reinterpret_cast<float *>(shared + kHopperRowsSums), group,
                           static_cast<int32_t>(place.row * kHopperTileRows) + group * 64,
                           static_cast<int32_t>(place.output * kHopperTileOutputs));
    }
  }

private:
  using Ring = StageRing<kHopperRowsStages>;

  /// All steps of a tile; the stage of a step is given back when the next one's products are under way.
  template <bool IsHalf>
  __device__ void multiply(float (&sums)[kHopperTileOutputs / 2], Ring &ring, int group) const {
    Ring before = ring;
    bool arrives = threadIdx.x % 32 == 0;
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
      if (step == 0)
        continue;
      if (arrives)
        arriveAt(barriers.empty(before.stage));
      before.advance();
    }
    waitForProducts<0>(sums);
    if (arrives)
      arriveAt(barriers.empty(before.stage));
  }

  const HopperRowsArguments &args;
  const LinearArguments &layer;
  char *const shared;
  const uint32_t base;
  const StageBarriers<kHopperRowsStages> barriers;
  const int32_t steps;
  const int64_t rowTiles, outputTiles;
};

template <bool IsHalf>
__device__ inline void multiplyRows(const HopperRowsArguments &args, const TensorMap &x, const TensorMap &weight,
                                    char *shared) {
  // Of 65536 registers each of 384 threads has 168 at the beginning, and in the end 24 and twice 240.
  constexpr int kFewRegisters = 24, kManyRegisters = 240;
  HopperRows rows(args, shared);
  if (threadIdx.x == 0)
    rows.makeBarriers();
  __syncthreads();
  if (threadIdx.x < 128) {
    giveRegistersBack<kFewRegisters>();
    if (threadIdx.x == 0)
      rows.produce(x, weight);
  } else {
    takeRegisters<kManyRegisters>();
    rows.consume<IsHalf>(__shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0) - 1);
  }
}

} // namespace hone::cuda

#define HONE_HOPPER_ROWS(name, isHalf)                                                                                 \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kHopperRowsThreads, 1)                                      \
      name(const __grid_constant__ hone::cuda::HopperRowsArguments args,                                               \
           const __grid_constant__ hone::cuda::TensorMap x, const __grid_constant__ hone::cuda::TensorMap weight) {    \
    extern __shared__ __align__(1024) char hopperShared[];                                                             \
    hone::cuda::multiplyRows<isHalf>(args, x, weight, hopperShared);                                                   \
  }

HONE_HOPPER_ROWS(hopper_rows_f16, true)
HONE_HOPPER_ROWS(hopper_rows_bf16, false)
