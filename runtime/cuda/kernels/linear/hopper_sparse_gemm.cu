// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM by 2:4 weights on sm_90a with wgmma.mma_async.sp, persistent. Outputs are rows of the product, as operand A is
// the one that may be sparse. Three warpgroups multiply 64 outputs by 256 rows each; one of their threads issues the
// TMA loads, two steps ahead, as the accumulators leave no registers for a producer warp. The metadata are loaded
// from global memory to registers, two steps ahead. Products of hi and lo planes are further steps of the same
// accumulation. The first stages of the next tile load during the epilogue.
//
// The kernel is bound by shared memory, which delivers 128 bytes a cycle. A product of 64 by 256 by 32 reads 2 KiB of
// A and 16 KiB of B, which is 144 cycles, and takes the tensor cores 128; with its 7.3 KiB of what TMA writes it is
// 203 cycles. Tiles therefore have as many outputs as registers allow, since those share the tile of x.

#define HONE_INLINES_CALLS // all registers are taken, so calls would spill

#include "../device/cp_async.h"
#include "../device/hopper_epilogue.h"
#include "../device/tma.h"
#include "../device/wgmma.h"
#include "hopper_sparse_gemm.h"
#include "sparse_metadata.h"

namespace hone::cuda {

template <int Blocks> class HopperSparseGemm {
  using State = PipelineState<kHopperSparseStages>;

public:
  /// The state of the producer thread. It lies in shared memory, as registers are exhausted.
  struct Producer {
    State state;
    int32_t tile, row, output; // the tile, and its first row and output
    int32_t product, step;     // the next ones to load
  };

  __device__ HopperSparseGemm(const HopperGemmArguments &args, const TensorMap &x, const TensorMap &weight,
                              char *shared)
      : args(args), layer(args.layer.linear), shared(shared), base(sharedAddress(shared)),
        barriers{base + kHopperSparseBarriers}, stepsOfProduct(hopperSparseSteps(args.layer.depth)),
        rowTiles(static_cast<int32_t>(divideUp(layer.rows, kHopperSparseRows))),
        outputTiles(static_cast<int32_t>(divideUp(layer.outputs, kHopperSparseOutputs * Blocks))), x(x), weight(weight),
        producer(*reinterpret_cast<Producer *>(shared + kHopperSparseProducer)) {
    static_assert(kHopperSparseProducer + sizeof(Producer) <= kHopperSparseBytes);
  }

  /// Called by all threads; issues the first loads.
  __device__ void begin() const {
    constexpr uint32_t kWarps = kHopperSparseThreads / 32;
    if (threadIdx.x == 0) {
      barriers.init(kWarps);
      prefetchTensorMap(x), prefetchTensorMap(weight);
      producer = {{}, static_cast<int32_t>(blockIdx.x) / Blocks, 0, 0, 0, 0};
      enterTile();
    }
    blockOrClusterBarrier<Blocks>();
    if (threadIdx.x == 0)
      for (int stage = 0; stage < kHopperSparseStages - 1; ++stage)
        loadStep();
    __syncwarp();
  }

  /// A consumer warpgroup.
  template <bool IsHalf> __device__ void consume(int group) const {
    State state;
#pragma unroll 1
    for (int32_t tile = blockIdx.x / Blocks; tile < rowTiles * outputTiles; tile += gridDim.x / Blocks) {
      TileIndex index = indexOf(tile);
      auto firstOutput = static_cast<int32_t>(index.output * kHopperSparseOutputs) + 64 * group;
      float sums[kHopperSparseRows / 2] = {};
      multiplyAll<IsHalf>(sums, metadataOfLane(firstOutput), state, group);
      storeAccumulators<true>(layer, sums, reinterpret_cast<float *>(shared + kHopperSparseStaging), group,
                              static_cast<int32_t>(index.row * kHopperSparseRows), firstOutput);
    }
  }

private:
  /// Blocks of a cluster have consecutive tiles of outputs.
  __device__ TileIndex indexOf(int32_t tile) const {
    TileIndex index = tileOfBlock(tile, rowTiles, outputTiles);
    return {index.row, index.output * Blocks + (Blocks == 1 ? 0 : clusterRank())};
  }

  __device__ void enterTile() const {
    TileIndex index = indexOf(producer.tile);
    producer.row = static_cast<int32_t>(index.row * kHopperSparseRows);
    producer.output = static_cast<int32_t>(index.output * kHopperSparseOutputs);
  }

  /// Called by the producer thread: issues the loads of the next step, if there is one.
  __device__ void loadStep() const {
    if (producer.tile >= rowTiles * outputTiles)
      return;
    int stage = producer.state.stage;
    uint32_t to = base + stage * kHopperSparseStageBytes, full = barriers.full(stage);
    mbarrierWait(barriers.empty(stage), producer.state.parity ^ 1);
    mbarrierArriveExpectTx(full, kHopperSparseStageBytes);
    tmaLoad(to, weight, producer.step * kHopperSparseKept, producer.output, producer.product == 2, 0, full);
    to += kHopperSparseWeightBytes;
    int32_t input = producer.step * kHopperSparseDepth;
    if constexpr (Blocks == 1) {
      tmaLoad(to, x, input, producer.row, producer.product == 1, 0, full);
    } else {
      int32_t half = clusterRank() * kHopperSparseRows / 2;
      tmaLoadMulticast(to + half * kBoxRowBytes, x, input, producer.row + half, producer.product == 1, 0, full);
    }
    producer.state.advance();
    if (++producer.step < stepsOfProduct)
      return;
    producer.step = 0;
    if (++producer.product < args.products)
      return;
    producer.product = 0, producer.tile += gridDim.x / Blocks;
    enterTile();
  }

  /// Releases the stage of `previous`, and refills the one before it, which the other warpgroups released a step ago.
  __device__ void releaseStage(State &previous) const {
    barriers.releaseStage(previous.stage, threadIdx.x % 32);
    previous.advance();
    if (threadIdx.x == 0)
      loadStep();
    __syncwarp();
  }

  /// Index words of two steps, of outputs g and g + 8 of a warp.
  struct IndexWords {
    uint32_t above[2], below[2];
  };

  /// The index words of a lane: lanes 0 and 1 of four have the first 32 inputs of a step, lanes 2 and 3 the others.
  struct LaneMetadata {
    const uint32_t *above, *below;
    int32_t first; // input

    __device__ IndexWords read(int64_t input, int64_t depth) const {
      constexpr uint32_t kAnyIndices = 0x44444444; // for zeros
      IndexWords words;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        int64_t at = input + i * kHopperSparseDepth + first;
        bool exists = at < depth;
        words.above[i] = exists ? __ldg(above + at / 32) : kAnyIndices;
        words.below[i] = exists ? __ldg(below + at / 32) : kAnyIndices;
      }
      return words;
    }
  };

  /// Of a warpgroup's 64 outputs. Outputs past the end read the last one, since indices must name two distinct
  /// inputs.
  __device__ LaneMetadata metadataOfLane(int64_t firstOutput) const {
    int64_t output = firstOutput + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    auto rowOf = [&](int64_t row) {
      row = row < layer.outputs ? row : layer.outputs - 1;
      return reinterpret_cast<const uint32_t *>(layer.indices + row * layer.indexStride);
    };
    return {rowOf(output), rowOf(output + 8), static_cast<int32_t>(threadIdx.x % 4 / 2 * 32)};
  }

  /// The main loop of a tile. A stage is released when the next step's products are in flight.
  template <bool IsHalf>
  __device__ void multiplyAll(float (&sums)[kHopperSparseRows / 2], const LaneMetadata &from, State &state,
                              int group) const {
    State previous = state;
    IndexWords next = from.read(0, args.layer.depth);
    int32_t steps = stepsOfProduct * args.products;
    int64_t input = 0;
    int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int32_t step = 0; step < steps; step += 2) {
      IndexWords now = next;
      input += 2 * kHopperSparseDepth;
      if (input >= args.layer.depth)
        input = 0; // the next product of planes
      next = from.read(input, args.layer.depth);
      // Metadata registers are double-buffered: products of one step are in flight while the next one's are issued.
      uint32_t metadata = metadataOf(now.above[0], now.below[0], lane);
      multiply<IsHalf>(sums, metadata, state, group);
      if (step > 0)
        releaseStage(previous);
      uint32_t others = metadataOf(now.above[1], now.below[1], lane);
      multiply<IsHalf>(sums, others, state, group);
      releaseStage(previous);
    }
    wgmmaWaitGroup<0>(sums);
    releaseStage(previous);
  }

  /// Issues the products of a step, and waits for those of the previous one.
  template <bool IsHalf>
  __device__ void multiply(float (&sums)[kHopperSparseRows / 2], uint32_t &metadata, State &state, int group) const {
    uint32_t stage = base + state.stage * kHopperSparseStageBytes;
    mbarrierWait(barriers.full(state.stage), state.parity);
    uint64_t a = makeSmemDescriptor<kHopperSparseKept * 2>(stage + group * 64 * kHopperSparseKept * 2);
    uint64_t b = makeSmemDescriptor(stage + kHopperSparseWeightBytes);
    fenceOperand(metadata);
    wgmmaFence(sums);
    wgmmaSparse<IsHalf, 0>(sums, a, b, metadata);
    wgmmaSparse<IsHalf, 1>(sums, a + (32 >> 4), b + (64 >> 4), metadata);
    wgmmaCommitGroup();
    wgmmaWaitGroup<1>(sums);
    state.advance();
  }

  const HopperGemmArguments &args;
  const LinearArguments &layer;
  char *const shared;
  const uint32_t base;
  const PipelineBarriers<kHopperSparseStages, Blocks> barriers;
  const int32_t stepsOfProduct;
  const int32_t rowTiles, outputTiles;
  const TensorMap &x, &weight;
  Producer &producer;
};

/// The `Blocks` blocks of a cluster have the same rows; each multicasts a half of the tile of x.
template <bool IsHalf, int Blocks>
__device__ inline void hopperSparseGemm(const HopperGemmArguments &args, const TensorMap &x, const TensorMap &weight,
                                        char *shared) {
  HopperSparseGemm<Blocks> kernel(args, x, weight, shared);
  kernel.begin();
  kernel.template consume<IsHalf>(__shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0));
  // The other block's multicast may still write here.
  if constexpr (Blocks > 1)
    clusterBarrier();
}

} // namespace hone::cuda

#define HONE_HOPPER_SPARSE_GEMM(name, isHalf, blocks)                                                                  \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kHopperSparseThreads, 1) __cluster_dims__(blocks, 1, 1)     \
      name(const __grid_constant__ hone::cuda::HopperGemmArguments args,                                               \
           const __grid_constant__ hone::cuda::TensorMap x, const __grid_constant__ hone::cuda::TensorMap weight) {    \
    extern __shared__ __align__(1024) char hopperSparseShared[];                                                       \
    hone::cuda::hopperSparseGemm<isHalf, blocks>(args, x, weight, hopperSparseShared);                                 \
  }

HONE_HOPPER_SPARSE_GEMM(hopper_sparse_gemm_f16, true, 1)
HONE_HOPPER_SPARSE_GEMM(hopper_sparse_gemm_bf16, false, 1)
HONE_HOPPER_SPARSE_GEMM(hopper_sparse_gemm_cluster2_f16, true, 2)
HONE_HOPPER_SPARSE_GEMM(hopper_sparse_gemm_cluster2_bf16, false, 2)
