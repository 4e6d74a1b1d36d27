// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rotary position embedding of queries and keys, written to their destination: keys, and values with them, to the
// room that the state has reserved. A thread rotates a pair of a row, or four.

#include "../device/overlap.h"
#include "../device/vectors.h"
#include "rope.h"

namespace hone::cuda {

/// Where a row goes to.
__device__ inline int64_t targetOf(const RopeArguments &args, const RopeRows &side, uint32_t row, uint32_t sequence) {
  int64_t to = side.to.offset(row);
  if (side.moved != 0)
    to += *args.stateLength * side.moved;
  if (side.lags.data)
    to -= kernels::elementOr(side.lags, sequence, 0) * side.positionStride;
  return to;
}

/// Pairs first … first + Pairs - 1 of a row.
template <int Pairs>
__device__ inline void rotate(const RopeArguments &args, const RopeRows &side, uint32_t row, uint32_t sequence,
                              int64_t first) {
  auto positions = static_cast<uint32_t>(args.positions);
  int64_t table = row % positions + (args.tables == 1 ? 0 : sequence * positions);
  int64_t from = side.from.offset(row), to = targetOf(args, side, row, sequence);
  float cosine[Pairs], sine[Pairs], x[2 * Pairs], y[2 * Pairs];
  loadVector<Pairs>(cosine, args.cosine, args.cosine.offset(table), first);
  loadVector<Pairs>(sine, args.sine, args.sine.offset(table), first);
  if (args.interleaved) {
    loadVector<2 * Pairs>(x, side.from, from, 2 * first);
#pragma unroll
    for (int i = 0; i < Pairs; ++i) {
      y[2 * i] = x[2 * i] * cosine[i] - x[2 * i + 1] * sine[i];
      y[2 * i + 1] = x[2 * i + 1] * cosine[i] + x[2 * i] * sine[i];
    }
    storeVector<2 * Pairs>(y, side.to, to, 2 * first);
    return;
  }
  loadVector<Pairs>(x, side.from, from, first);
  loadVector<Pairs>(x + Pairs, side.from, from, args.half + first);
#pragma unroll
  for (int i = 0; i < Pairs; ++i) {
    y[i] = x[i] * cosine[i] - x[i + Pairs] * sine[i];
    y[i + Pairs] = x[i + Pairs] * cosine[i] + x[i] * sine[i];
  }
  storeVector<Pairs>(y, side.to, to, first);
  storeVector<Pairs>(y + Pairs, side.to, to, args.half + first);
}

/// Elements from `first` on.
template <int Pairs>
__device__ inline void copyVector(const RopeArguments &args, const RopeRows &side, uint32_t row, uint32_t sequence,
                                  int64_t first) {
  int64_t from = side.from.offset(row), to = targetOf(args, side, row, sequence);
  float x[2 * Pairs];
  if (first + 2 * Pairs <= side.from.count) {
    loadVector<2 * Pairs>(x, side.from, from, first);
    storeVector<2 * Pairs>(x, side.to, to, first);
  } else if (first < side.from.count) { // the last element of a row of odd length
    loadVector<1>(x, side.from, from, first);
    storeVector<1>(x, side.to, to, first);
  }
}

/// The code is the same for the three, so that there is less of it to fetch.
template <int Pairs> __device__ inline void moveAll(const RopeArguments &args) {
  enterInOrder();
  const RopeRows &side = sideOf(args, blockIdx.y);
  auto threads = static_cast<uint32_t>(threadsOf(side, Pairs));
  uint64_t thread = uint64_t{kRopeThreads} * blockIdx.x + threadIdx.x;
  if (side.rows == 0 || thread >= uint64_t{threads} * static_cast<uint64_t>(side.rows))
    return;
  bool isShort = thread <= 0xffffffff; // divisions of 64 bits take much longer
  uint32_t row = isShort ? static_cast<uint32_t>(thread) / threads : static_cast<uint32_t>(thread / threads);
  auto part = static_cast<int64_t>(thread - uint64_t{row} * threads);
  bool needsSequence = args.tables != 1 || side.lags.data;
  uint32_t sequence = needsSequence ? row / static_cast<uint32_t>(args.positions * side.heads) : 0;
  if (blockIdx.y < 2 && part * Pairs < args.half)
    rotate<Pairs>(args, side, row, sequence, part * Pairs);
  else
    copyVector<Pairs>(args, side, row, sequence, 2 * Pairs * part);
}

HONE_VECTORIZED_KERNELS(rope, kRopeThreads, RopeArguments, moveAll)

} // namespace hone::cuda
