// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers of many rows on sm_90a: one thread has the copy engine bring tiles of x and of the weight, four stages ahead, and two
// warpgroups multiply 64 rows by 256 outputs each. Planes of numbers that are sums of two are further steps of the same product.

#include "../device/async_copy.h"
#include "../device/box_copy.h"
#include "../device/finish_rows.h"
#include "../device/warpgroup.h"
#include "hopper_rows.h"

namespace hone::cuda {

class HopperRows {
public:
  __device__ HopperRows(const HopperRowsArguments &args, char *shared)
      : args(args), layer(args.layer.linear), shared(shared), base(sharedAddress(shared)),
        barriers{base + kHopperRowsBarriers}, steps(hopperSteps(args.layer.depth, args.products)),
        place(tileOfBlock(blockIdx.x, divideUp(layer.rows, kHopperTileRows),
                          divideUp(layer.outputs, kHopperTileOutputs))) {}

  __device__ void makeBarriers() const {
    constexpr uint32_t kConsumerWarps = 8;
    barriers.make(kConsumerWarps);
  }

  /// One thread.
  __device__ void produce(const TensorMap &x, const TensorMap &weight) const {
    prefetchMap(x), prefetchMap(weight);
    for (int32_t step = 0; step < steps; ++step) {
      int stage = step % kHopperRowsStages;
      HopperStep part = hopperStep(step, args.layer.depth);
      uint32_t to = base + stage * kHopperStageBytes;
      waitAt(barriers.empty(stage), (step / kHopperRowsStages & 1) ^ 1);
      arriveAndExpect(barriers.full(stage), kHopperStageBytes);
      copyBox(to, x, part.input, static_cast<int32_t>(place.row * kHopperTileRows), part.xPlane, 0,
              barriers.full(stage));
      copyBox(to + kHopperXBytes, weight, part.input, static_cast<int32_t>(place.output * kHopperTileOutputs),
              part.weightPlane, 0, barriers.full(stage));
    }
  }

  /// A warpgroup; the stage of a step is given back when the next one's products are under way.
  template <bool IsHalf> __device__ void consume(int group, int lane) const {
    float sums[kHopperTileOutputs / 2] = {};
#pragma unroll 1
    for (int32_t step = 0; step < steps; ++step) {
      int stage = step % kHopperRowsStages;
      waitAt(barriers.full(stage), step / kHopperRowsStages & 1);
      uint64_t a = matrixAt(base + stage * kHopperStageBytes + group * 64 * kBoxRowBytes);
      uint64_t b = matrixAt(base + stage * kHopperStageBytes + kHopperXBytes);
      fenceProducts(sums);
#pragma unroll
      for (int i = 0; i < kHopperDepth / 16; ++i)
        beginProduct<IsHalf>(sums, a + (i * 32 >> 4), b + (i * 32 >> 4));
      commitProducts();
      waitForProducts<1>(sums);
      if (step > 0 && lane == 0)
        arriveAt(barriers.empty((step - 1) % kHopperRowsStages));
    }
    waitForProducts<0>(sums);
    // The other warpgroup may still read its last stage, where these sums go.
    asm volatile("bar.sync 1, 256;" ::: "memory");
    leaveSums(sums, group);
    asm volatile("bar.sync %0, 128;" ::"r"(2 + group) : "memory");
    finish(group);
  }

private:
  __device__ void leaveSums(const float (&sums)[kHopperTileOutputs / 2], int group) const {
    auto *to = reinterpret_cast<float *>(shared);
    int row = 64 * group + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < kHopperTileOutputs / 2; i += 2)
      *reinterpret_cast<float2 *>(to + hopperSumPlace(row + i / 2 % 2 * 8, i / 4 * 8 + threadIdx.x % 4 * 2)) = {
          sums[i], sums[i + 1]};
  }

  /// Threads side by side have outputs side by side, four each.
  __device__ void finish(int group) const {
    const auto *from = reinterpret_cast<const float *>(shared);
    constexpr int kPieces = kHopperTileOutputs / 4;
#pragma unroll 1
    for (int i = threadIdx.x % 128; i < 64 * kPieces; i += 128) {
      int ownRow = 64 * group + i / kPieces, ownOutput = i % kPieces * 4;
      int64_t row = place.row * kHopperTileRows + ownRow, output = place.output * kHopperTileOutputs + ownOutput;
      if (row >= layer.rows)
        break;
      finishFour(layer, *reinterpret_cast<const float4 *>(from + hopperSumPlace(ownRow, ownOutput)), row, output);
    }
  }

  const HopperRowsArguments &args;
  const LinearArguments &layer;
  char *const shared;
  const uint32_t base;
  const StageBarriers<kHopperRowsStages> barriers;
  const int32_t steps;
  const TilePlace place;
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
    rows.consume<IsHalf>(__shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0) - 1, threadIdx.x % 32);
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
