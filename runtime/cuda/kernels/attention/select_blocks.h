// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selection of blocks of keys: arguments and the launch plan. A row is one query of one KV head. Where rows occupy all
// SMs one kernel scores the blocks of a row and lists them; else several thread blocks score those of a row first.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ATTENTION_SELECT_BLOCKS_H
#define HONE_RUNTIME_CUDA_KERNELS_ATTENTION_SELECT_BLOCKS_H

#include "../row_view.h"
#include "hone/kernels/visibility.h"

namespace hone::cuda {

/// Where the pooled keys of blocks are, all f32: a block is `blockRows` rows of `width` elements, block 0 from `firstRow` on.
struct PooledView {
  MatrixView matrices; // of sequences and KV heads
  int64_t rows;        // of a matrix
  int64_t firstRow, blockRows;
  int32_t width;
};

struct GatherPooledArguments {
  PooledView from;
  float *to; // [matrices, blocks, size], dense
  int64_t matrices, blocks;
  int32_t size;
};

struct SelectBlocksArguments {
  RowView query; // [B, Hq, Sq, D]
  PooledView pooled;
  kernels::IntegerView<2> begin, end; // of a sequence and query
  int64_t *blocks;                    // [B, Hk, Sq, places]
  int64_t blockStrides[4];            // in elements
  int64_t heads, queryHeads, queries; // KV heads
  int64_t firstRow;                   // of the launch
  int64_t room;                       // elements that scores of a head have memory for
  int32_t group;                      // query heads of a KV head
  int32_t size, places;               // D and N
  float scale;
  /// Null where a thread block keeps them in shared memory; else for each row of the launch the scores of `group` heads,
  /// and after all of these its importance, each [room].
  float *scores, *importance;
};

/// Of one KV head: so many read pooled keys often enough that those which lie in several rows are gathered first.
constexpr int64_t kFewestGatheringQueries = 8;
constexpr uint32_t kGatherThreads = 256; // of a block, an element each
constexpr int32_t kSelectWarps = 4;
constexpr int32_t kHeadsAtOnce = 4;  // query heads that a pooled key is multiplied with once it is loaded
constexpr int32_t kPooledAtOnce = 4; // pooled keys of a warp
constexpr int64_t kSelectScratchBytes = int64_t{64} << 20;

/// Bytes of shared memory that scoring needs: where the elements of a pooled key are, and the queries.
HONE_HOST_DEVICE constexpr int64_t scoringSharedBytes(int64_t size) {
  return size * (int64_t{sizeof(int64_t)} + kHeadsAtOnce * int64_t{sizeof(float)});
}

/// And where scores and importance are there too.
HONE_HOST_DEVICE constexpr int64_t selectionSharedBytes(int64_t size, int64_t room) {
  return scoringSharedBytes(size) + room * (kHeadsAtOnce + 1) * int64_t{sizeof(float)};
}

struct SelectionPlan {
  int32_t splits;     // thread blocks that score a row; 0: the one that lists its blocks
  int64_t room;       // of a head's scores
  int64_t rowsAtOnce; // rows of a launch
};

/// `blocks` is how many there may be to select from.
HONE_HOST_DEVICE constexpr SelectionPlan planSelection(int64_t rows, int64_t group, int64_t blocks, int64_t size,
                                                       int32_t multiprocessors) {
  constexpr int64_t kBlocksOfSplit = 64, kSharedBytes = 48 << 10;
  SelectionPlan plan = {0, roundUp(blocks, kBlocksOfSplit),
                        rows}; // so that a sequence that grows seldom changes a launch
  bool isSmall = rows >= multiprocessors || blocks <= 2 * kBlocksOfSplit;
  if (isSmall && selectionSharedBytes(size, plan.room) <= kSharedBytes)
    return plan;
  int64_t wanted = divideUp(2 * int64_t{multiprocessors}, rows), most = divideUp(blocks, kBlocksOfSplit);
  plan.splits = static_cast<int32_t>(wanted < most ? wanted : most);
  int64_t affordable = kSelectScratchBytes / ((group + 1) * plan.room * int64_t{sizeof(float)});
  plan.rowsAtOnce = affordable < 1 ? 1 : affordable < rows ? affordable : rows;
  return plan;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ATTENTION_SELECT_BLOCKS_H
