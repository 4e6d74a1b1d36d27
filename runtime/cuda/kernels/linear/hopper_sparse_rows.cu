// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers of many rows by 2:4 weights on sm_90a: outputs are rows of the product, as operand A is the one that may be sparse.
// Three warpgroups multiply 64 outputs by 256 rows each, and one of their threads has the copy engine bring tiles of kept numbers and of
// x, two steps ahead: the sums leave no registers for a warp that does nothing else. Metadata go from memory to registers, two
// steps ahead. Planes of numbers that are sums of two are further steps of the same product. A block takes one tile after the other, and
// while its sums are finished the next one's first stages come.
//
// What limits it is shared memory, which gives 128 bytes a cycle. A product of 64 by 256 by 32 inputs reads 2 KiB of A and 16 KiB of B
// and takes the matrix units 128 cycles: that is 144 cycles of shared memory, and with its share of what copies write, 7.3 KiB, 203.
// So tiles have as many outputs as registers allow, since those share what is written of x.

#include "../device/async_copy.h"
#include "../device/box_copy.h"
#include "../device/product_sums.h"
#include "../device/warpgroup.h"
#include "hopper_sparse_rows.h"
#include "sparse_metadata.h"

namespace hone::cuda {

template <int Blocks> class HopperSparseRows {
  using Ring = StageRing<kHopperSparseStages>;

public:
  /// What the thread that copies is at. It lies in shared memory, as registers are full.
  struct Copies {
    Ring ring;
    int32_t tile, row, output; // the tile, and the first of it
    int32_t product, step;     // what comes next of it
  };

  __device__ HopperSparseRows(const HopperSparseRowsArguments &args, const TensorMap &x, const TensorMap &weight,
                              char *shared)
      : args(args), layer(args.layer.linear), shared(shared), base(sharedAddress(shared)),
        barriers{base + kHopperSparseBarriers}, stepsOfProduct(hopperSparseSteps(args.layer.depth)),
        rowTiles(static_cast<int32_t>(divideUp(layer.rows, kHopperSparseRows))),
        outputTiles(static_cast<int32_t>(divideUp(layer.outputs, kHopperSparseOutputs * Blocks))), x(x), weight(weight),
        copies(*reinterpret_cast<Copies *>(shared + kHopperSparseCopies)) {
    static_assert(kHopperSparseCopies + sizeof(Copies) <= kHopperSparseBytes);
  }

  /// All threads; copies begin.
  __device__ void begin() const {
    constexpr uint32_t kWarps = kHopperSparseThreads / 32;
    if (threadIdx.x == 0) {
      barriers.make(kWarps);
      prefetchMap(x), prefetchMap(weight);
      copies = {{}, static_cast<int32_t>(blockIdx.x) / Blocks, 0, 0, 0, 0};
      enterTile();
    }
    meetAll<Blocks>();
    if (threadIdx.x == 0)
      for (int stage = 0; stage < kHopperSparseStages - 1; ++stage)
        copyStep();
    __syncwarp();
  }

  /// A warpgroup.
  template <bool IsHalf> __device__ void consume(int group) const {
    Ring ring;
#pragma unroll 1
    for (int32_t tile = blockIdx.x / Blocks; tile < rowTiles * outputTiles; tile += gridDim.x / Blocks) {
      TilePlace place = placeOf(tile);
      auto firstOutput = static_cast<int32_t>(place.output * kHopperSparseOutputs) + 64 * group;
      float sums[kHopperSparseRows / 2] = {};
      multiplyAll<IsHalf>(sums, placesOf(firstOutput), ring, group);
      finishProduct<true>(layer, sums, reinterpret_cast<float *>(shared + kHopperSparseSums), group,
                          static_cast<int32_t>(place.row * kHopperSparseRows), firstOutput);
    }
  }

private:
  /// Blocks of a cluster have outputs that follow each other.
  __device__ TilePlace placeOf(int32_t tile) const {
    TilePlace place = tileOfBlock(tile, rowTiles, outputTiles);
    return {place.row, place.output * Blocks + (Blocks == 1 ? 0 : rankInCluster())};
  }

  __device__ void enterTile() const {
    TilePlace place = placeOf(copies.tile);
    copies.row = static_cast<int32_t>(place.row * kHopperSparseRows);
    copies.output = static_cast<int32_t>(place.output * kHopperSparseOutputs);
  }

  /// One thread: the tiles of the step after the one that it copied last, if there is one.
  __device__ void copyStep() const {
    if (copies.tile >= rowTiles * outputTiles)
      return;
    int stage = copies.ring.stage;
    uint32_t to = base + stage * kHopperSparseStageBytes, full = barriers.full(stage);
    waitAt(barriers.empty(stage), copies.ring.parity ^ 1);
    arriveAndExpect(full, kHopperSparseStageBytes);
    copyBox(to, weight, copies.step * kHopperSparseKept, copies.output, copies.product == 2, 0, full);
    to += kHopperSparseWeightBytes;
    int32_t input = copies.step * kHopperSparseDepth;
    if constexpr (Blocks == 1) {
      copyBox(to, x, input, copies.row, copies.product == 1, 0, full);
    } else {
      int32_t half = rankInCluster() * kHopperSparseRows / 2;
      copyBoxToBoth(to + half * kBoxRowBytes, x, input, copies.row + half, copies.product == 1, 0, full);
    }
    copies.ring.advance();
    if (++copies.step < stepsOfProduct)
      return;
    copies.step = 0;
    if (++copies.product < args.products)
      return;
    copies.product = 0, copies.tile += gridDim.x / Blocks;
    enterTile();
  }

  /// Gives back the stage that `before` says, and fills the one before that, which other warpgroups have had a step's time to leave.
  __device__ void giveBack(Ring &before) const {
    barriers.giveBack(before.stage, threadIdx.x % 32);
    before.advance();
    if (threadIdx.x == 0)
      copyStep();
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

  /// Of a warpgroup's 64 outputs. Those behind the last read the last one, since places must be those of two different numbers.
  __device__ PlacesOfLane placesOf(int64_t firstOutput) const {
    int64_t output = firstOutput + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    auto rowOf = [&](int64_t row) {
      row = row < layer.outputs ? row : layer.outputs - 1;
      return reinterpret_cast<const uint32_t *>(layer.indices + row * layer.indexStride);
    };
    return {rowOf(output), rowOf(output + 8), static_cast<int32_t>(threadIdx.x % 4 / 2 * 32)};
  }

  /// All steps of a tile; the stage of a step is given back when the next one's products are under way.
  template <bool IsHalf>
  __device__ void multiplyAll(float (&sums)[kHopperSparseRows / 2], const PlacesOfLane &from, Ring &ring,
                              int group) const {
    Ring before = ring;
    Places next = from.read(0, args.layer.depth);
    int32_t steps = stepsOfProduct * args.products;
    int64_t input = 0;
    int lane = threadIdx.x % 32;
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
        giveBack(before);
      uint32_t others = metadataOf(now.above[1], now.below[1], lane);
      multiply<IsHalf>(sums, others, ring, group);
      giveBack(before);
    }
    waitForProducts<0>(sums);
    giveBack(before);
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

  const HopperSparseRowsArguments &args;
  const LinearArguments &layer;
  char *const shared;
  const uint32_t base;
  const StageBarriers<kHopperSparseStages, Blocks> barriers;
  const int32_t stepsOfProduct;
  const int32_t rowTiles, outputTiles;
  const TensorMap &x, &weight;
  Copies &copies;
};

/// `Blocks` blocks of a cluster have the same rows, each of which brings a half of the tile of x for both.
template <bool IsHalf, int Blocks>
__device__ inline void multiplySparseRows(const HopperSparseRowsArguments &args, const TensorMap &x,
                                          const TensorMap &weight, char *shared) {
  HopperSparseRows<Blocks> rows(args, x, weight, shared);
  rows.begin();
  rows.template consume<IsHalf>(__shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0));
  // The other block may still write here.
  if constexpr (Blocks > 1)
    meetInCluster();
}

} // namespace hone::cuda

#define HONE_HOPPER_SPARSE_ROWS(name, isHalf, blocks)                                                                  \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kHopperSparseThreads, 1) __cluster_dims__(blocks, 1, 1)     \
      name(const __grid_constant__ hone::cuda::HopperSparseRowsArguments args,                                         \
           const __grid_constant__ hone::cuda::TensorMap x, const __grid_constant__ hone::cuda::TensorMap weight) {    \
    extern __shared__ __align__(1024) char hopperSparseShared[];                                                       \
    hone::cuda::multiplySparseRows<isHalf, blocks>(args, x, weight, hopperSparseShared);                               \
  }

HONE_HOPPER_SPARSE_ROWS(hopper_sparse_rows_f16, true, 1)
HONE_HOPPER_SPARSE_ROWS(hopper_sparse_rows_bf16, false, 1)
HONE_HOPPER_SPARSE_ROWS(hopper_sparse_rows_pair_f16, true, 2)
HONE_HOPPER_SPARSE_ROWS(hopper_sparse_rows_pair_bf16, false, 2)
