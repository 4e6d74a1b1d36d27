// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers of many rows by 2:4 weights on sm_90a: outputs are rows of the product, as operand A is the one that may be sparse.
// Three warpgroups multiply 64 outputs by 256 rows each, and one of their threads has the copy engine bring tiles of kept numbers and of
// x, three steps ahead: the sums leave no registers for a warp that does nothing else. Metadata go from memory to registers, two
// steps ahead. Planes of numbers that are sums of two are further steps of the same product.
//
// What limits it is shared memory, which gives 128 bytes a cycle. A product of 64 by 256 by 32 inputs reads 2 KiB of A and 16 KiB of B
// and takes the matrix units 128 cycles: that is 144 cycles of shared memory, and with its share of what copies write, 7.3 KiB, 203.
// So tiles have as many outputs as registers allow, since those share what is written of x.

#include "../device/async_copy.h"
#include "../device/box_copy.h"
#include "../device/finish_rows.h"
#include "../device/warpgroup.h"
#include "hopper_sparse_rows.h"
#include "sparse_metadata.h"

namespace hone::cuda {

class HopperSparseRows {
  using Ring = StageRing<kHopperSparseStages>;

public:
  /// What the thread that copies is at.
  struct Copies {
    const TensorMap &x, &weight;
    Ring ring = {};
    int32_t step = 0, product = 0;
  };

  __device__ HopperSparseRows(const HopperSparseRowsArguments &args, char *shared)
      : args(args), layer(args.layer.linear), shared(shared), base(sharedAddress(shared)),
        barriers{base + kHopperSparseBarriers}, stepsOfProduct(hopperSparseSteps(args.layer.depth)),
        place(tileOfBlock(blockIdx.x, divideUp(layer.rows, kHopperSparseRows),
                          divideUp(layer.outputs, kHopperSparseOutputs))) {}

  /// All threads; copies begin.
  __device__ void begin(Copies &copies) const {
    constexpr uint32_t kWarps = kHopperSparseThreads / 32;
    if (threadIdx.x == 0) {
      barriers.make(kWarps);
      prefetchMap(copies.x), prefetchMap(copies.weight);
      for (int stage = 0; stage < kHopperSparseStages - 1; ++stage)
        copyStep(copies);
    }
    __syncthreads();
  }

  /// A warpgroup; the stage of a step is given back when the next one's products are under way, and filled one step later.
  template <bool IsHalf> __device__ void consume(Copies &copies, int group, int lane) const {
    const PlacesOfLane from = placesOf(group, lane);
    float sums[kHopperSparseRows / 2] = {};
    Ring ring, before;
    Places next = from.read(0, args.layer.depth);
    int32_t steps = stepsOfProduct * args.products;
    int64_t input = 0;
#pragma unroll 1
    for (int32_t step = 0; step < steps; step += 2) {
      Places now = next;
      input += 2 * kHopperSparseDepth;
      if (input >= args.layer.depth)
        input = 0; // of the next planes
      next = from.read(input, args.layer.depth);
      // Steps have registers in turn, as the products of one are under way while the next one's begin.
      uint32_t metadata = metadataOf(now.above[0], now.below[0], lane);
      multiply<IsHalf>(sums, metadata, ring, group);
      if (step > 0)
        giveBack(before, copies, lane);
      uint32_t others = metadataOf(now.above[1], now.below[1], lane);
      multiply<IsHalf>(sums, others, ring, group);
      giveBack(before, copies, lane);
    }
    waitForProducts<0>(sums);
    // Other warpgroups may still read their last stages, where these sums go.
    __syncthreads();
    leaveSums(sums, group);
    asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
    finish(group);
  }

private:
  /// One thread: the next step's tiles, if there is one.
  __device__ void copyStep(Copies &copies) const {
    if (copies.product == args.products)
      return;
    int stage = copies.ring.stage;
    uint32_t to = base + stage * kHopperSparseStageBytes, full = barriers.full(stage);
    waitAt(barriers.empty(stage), copies.ring.parity ^ 1);
    arriveAndExpect(full, kHopperSparseStageBytes);
    copyBox(to, copies.weight, copies.step * kHopperSparseKept,
            static_cast<int32_t>(place.output * kHopperSparseOutputs), copies.product == 2, 0, full);
    copyBox(to + kHopperSparseWeightBytes, copies.x, copies.step * kHopperSparseDepth,
            static_cast<int32_t>(place.row * kHopperSparseRows), copies.product == 1, 0, full);
    copies.ring.advance();
    if (++copies.step == stepsOfProduct)
      copies.step = 0, ++copies.product;
  }

  /// Gives back the stage that `before` says, and fills the one before that, which other warpgroups have had a step's time to leave.
  __device__ void giveBack(Ring &before, Copies &copies, int lane) const {
    if (lane == 0)
      arriveAt(barriers.empty(before.stage));
    before.advance();
    if (threadIdx.x == 0)
      copyStep(copies);
    __syncwarp();
  }

  /// Words of places of two steps, of outputs g and g + 8 of a warp.
  struct Places {
    uint32_t above[2], below[2];
  };

  /// Where a lane reads them: lanes 0 and 1 of four have the first 32 inputs of a step, and 2 and 3 the others.
  struct PlacesOfLane {
    const uint32_t *above, *below;
    int32_t first; // input

    __device__ Places read(int64_t input, int64_t depth) const {
      constexpr uint32_t kAnyPlaces = 0x44444444; // of what is 0
      Places places;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        int64_t at = input + i * kHopperSparseDepth + first;
        bool exists = at < depth;
        places.above[i] = exists ? __ldg(above + at / 32) : kAnyPlaces;
        places.below[i] = exists ? __ldg(below + at / 32) : kAnyPlaces;
      }
      return places;
    }
  };

  /// Outputs behind the last read the last one, since places must be those of two different numbers.
  __device__ PlacesOfLane placesOf(int group, int lane) const {
    int64_t output = place.output * kHopperSparseOutputs + 64 * group + threadIdx.x % 128 / 32 * 16 + lane / 4;
    auto rowOf = [&](int64_t row) {
      row = row < layer.outputs ? row : layer.outputs - 1;
      return reinterpret_cast<const uint32_t *>(layer.indices + row * layer.indexStride);
    };
    return {rowOf(output), rowOf(output + 8), lane % 4 / 2 * 32};
  }

  /// Begins a step's products, and waits for those of the step before.
  template <bool IsHalf>
  __device__ void multiply(float (&sums)[kHopperSparseRows / 2], uint32_t &metadata, Ring &ring, int group) const {
    uint32_t stage = base + ring.stage * kHopperSparseStageBytes;
    waitAt(barriers.full(ring.stage), ring.parity);
    uint64_t a = matrixAt<kHopperSparseKept * 2>(stage + group * 64 * kHopperSparseKept * 2);
    uint64_t b = matrixAt(stage + kHopperSparseWeightBytes);
    settle(metadata);
    fenceProducts(sums);
    beginSparseProduct<IsHalf, 0>(sums, a, b, metadata);
    beginSparseProduct<IsHalf, 1>(sums, a + (32 >> 4), b + (64 >> 4), metadata);
    commitProducts();
    waitForProducts<1>(sums);
    ring.advance();
  }

  __device__ void leaveSums(const float (&sums)[kHopperSparseRows / 2], int group) const {
    auto *to = reinterpret_cast<float *>(shared);
    int output = 64 * group + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < kHopperSparseRows / 2; ++i)
      to[hopperSparseSumPlace(i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2, output + i / 2 % 2 * 8)] = sums[i];
  }

  /// Threads side by side have outputs side by side, four each.
  __device__ void finish(int group) const {
    const auto *from = reinterpret_cast<const float *>(shared);
    constexpr int kPieces = 64 / 4;
#pragma unroll 1
    for (int i = threadIdx.x % 128; i < kHopperSparseRows * kPieces; i += 128) {
      int ownRow = i / kPieces, ownOutput = 64 * group + i % kPieces * 4;
      int64_t row = place.row * kHopperSparseRows + ownRow, output = place.output * kHopperSparseOutputs + ownOutput;
      if (row >= layer.rows || output >= layer.outputs)
        break;
      finishFour(layer, *reinterpret_cast<const float4 *>(from + hopperSparseSumPlace(ownRow, ownOutput)), row, output);
    }
  }

  const HopperSparseRowsArguments &args;
  const LinearArguments &layer;
  char *const shared;
  const uint32_t base;
  const StageBarriers<kHopperSparseStages> barriers;
  const int32_t stepsOfProduct;
  const TilePlace place;
};

template <bool IsHalf>
__device__ inline void multiplySparseRows(const HopperSparseRowsArguments &args, const TensorMap &x,
                                          const TensorMap &weight, char *shared) {
  HopperSparseRows rows(args, shared);
  HopperSparseRows::Copies copies = {x, weight};
  rows.begin(copies);
  rows.consume<IsHalf>(copies, __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0), threadIdx.x % 32);
}

} // namespace hone::cuda

#define HONE_HOPPER_SPARSE_ROWS(name, isHalf)                                                                          \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kHopperSparseThreads, 1)                                    \
      name(const __grid_constant__ hone::cuda::HopperSparseRowsArguments args,                                         \
           const __grid_constant__ hone::cuda::TensorMap x, const __grid_constant__ hone::cuda::TensorMap weight) {    \
    extern __shared__ __align__(1024) char hopperSparseShared[];                                                       \
    hone::cuda::multiplySparseRows<isHalf>(args, x, weight, hopperSparseShared);                                       \
  }

HONE_HOPPER_SPARSE_ROWS(hopper_sparse_rows_f16, true)
HONE_HOPPER_SPARSE_ROWS(hopper_sparse_rows_bf16, false)
