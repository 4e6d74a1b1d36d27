// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rotary position embedding, and appends to the state with it: kernel arguments.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ROWS_ROPE_H
#define HONE_RUNTIME_CUDA_KERNELS_ROWS_ROPE_H

#include "../row_view.h"
#include "hone/kernels/visibility.h"

namespace hone::cuda {

/// Rows of `from`, numbered by sequence, head and position, go to those of `to`; of sequence b as many positions earlier as `lags` says.
struct RopeRows {
  RowView from, to;
  int64_t rows, heads;
  kernels::IntegerView<1> lags; // of a sequence
  int64_t positionStride;       // of `to`, in elements
  int64_t moved;                // elements that `to` lies further for each position of the state when the call began
};

/// The first `half` pairs of each row of `query` and `key` are rotated; the rest, and all of `value`, is copied. Each
/// may have no rows.
struct RopeArguments {
  RopeRows query, key, value; // blocks 0, 1 and 2 along y
  RowView cosine, sine;       // rows are numbered by sequence and position
  int64_t positions, half;
  int32_t interleaved, tables; // tables: sequences that cos and sin have, 1 or as many as the rows
  const int64_t *stateLength;  // null where no rows go to the state
};

/// The rows of a block.
HONE_HOST_DEVICE constexpr const RopeRows &sideOf(const RopeArguments &args, uint32_t block) {
  return block == 0 ? args.query : block == 1 ? args.key : args.value;
}

constexpr int32_t kRopeThreads = 128; // of a block; each rotates `pairs` pairs or copies as many elements

/// Pairs of a thread: four where all rows allow accesses of 16 bytes, else one.
HONE_HOST_DEVICE constexpr int32_t pairsOf(const RopeArguments &args) {
  bool isWide = args.half % 4 == 0 && (args.half == 0 || (args.cosine.isVector && args.sine.isVector));
  const RopeRows *sides[] = {&args.query, &args.key, &args.value};
  for (const RopeRows *side : sides)
    isWide = isWide && (side->rows == 0 || (side->from.count % 8 == 0 && side->from.isVector && side->to.isVector));
  return isWide ? 4 : 1;
}

/// Threads for a row.
HONE_HOST_DEVICE constexpr int64_t threadsOf(const RopeRows &side, int32_t pairs) {
  return divideUp(side.from.count, 2 * pairs);
}

/// Blocks along x, enough for each of query, key and value.
HONE_HOST_DEVICE constexpr int64_t blocksOf(const RopeArguments &args, int32_t pairs) {
  int64_t most = 0;
  const RopeRows *sides[] = {&args.query, &args.key, &args.value};
  for (const RopeRows *side : sides) {
    int64_t blocks = divideUp(side->rows * threadsOf(*side, pairs), kRopeThreads);
    most = blocks > most ? blocks : most;
  }
  return most;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ROWS_ROPE_H
