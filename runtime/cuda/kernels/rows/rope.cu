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
__device__ inline int64_t targetOf(const RopeArguments &args, const RopeRows &side, int64_t row) {
  int64_t to = side.to.offset(row);
  if (side.lags.data)
    to -= kernels::elementOr(side.lags, row / (args.positions * side.heads), 0) * side.positionStride;
  return to;
}

/// Pairs first … first + Pairs - 1 of a row.
template <int Pairs>
__device__ inline void rotate(const RopeArguments &args, const RopeRows &side, int64_t row, int64_t first) {
  int64_t position = row % args.positions;
  int64_t sequence = args.tables == 1 ? 0 : row / (args.positions * side.heads);
  int64_t table = sequence * args.positions + position;
  int64_t from = side.from.offset(row), to = targetOf(args, side, row);
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
__device__ inline void copyVector(const RopeArguments &args, const RopeRows &side, int64_t row, int64_t first) {
  int64_t from = side.from.offset(row), to = targetOf(args, side, row);
  float x[2 * Pairs];
  if (first + 2 * Pairs <= side.from.count) {
    loadVector<2 * Pairs>(x, side.from, from, first);
    storeVector<2 * Pairs>(x, side.to, to, first);
  } else if (first < side.from.count) { // the last element of a row of odd length
    loadVector<1>(x, side.from, from, first);
    storeVector<1>(x, side.to, to, first);
  }
}

template <int Pairs>
__device__ inline void moveRows(const RopeArguments &args, const RopeRows &side, int64_t rotated) {
  int64_t threads = threadsOf(side, Pairs), thread = int64_t{kRopeThreads} * blockIdx.x + threadIdx.x;
  int64_t row = thread / threads, part = thread - row * threads;
  if (row >= side.rows)
    return;
  if (part * Pairs < rotated)
    rotate<Pairs>(args, side, row, part * Pairs);
  else
    copyVector<Pairs>(args, side, row, 2 * Pairs * part);
}

template <int Pairs> __device__ inline void moveAll(const RopeArguments &args) {
  enterInOrder();
  if (blockIdx.y == 0 && args.query.rows > 0)
    moveRows<Pairs>(args, args.query, args.half);
  else if (blockIdx.y == 1 && args.key.rows > 0)
    moveRows<Pairs>(args, args.key, args.half);
  else if (blockIdx.y == 2 && args.value.rows > 0)
    moveRows<Pairs>(args, args.value, 0);
}

HONE_VECTORIZED_KERNELS(rope, kRopeThreads, RopeArguments, moveAll)

} // namespace hone::cuda
