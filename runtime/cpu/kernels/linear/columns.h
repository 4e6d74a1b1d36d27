// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sixteen columns of a row of y, fewer at its end; and the choice of a block by its number of rows.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_COLUMNS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_COLUMNS_H

#include "../vector.h"

namespace {

/// The end of a row, out of line: blocks of every size have it, and only the last panel needs it.
__attribute__((noinline)) void copySome(float *to, const float *from, int64_t count) {
  for (int64_t j = 0; j < count; ++j)
    to[j] = from[j];
}

/// The first `count` columns, 0 in the others; count may exceed 16 or be negative.
inline Vector loadColumns(const float *from, int64_t count) {
  if (count >= kLanes)
    return load(from);
  float columns[kLanes] = {};
  copySome(columns, from, count);
  return load(columns);
}

inline void storeColumns(float *to, Vector vector, int64_t count) {
  if (count >= kLanes)
    return store(to, vector);
  float columns[kLanes];
  store(columns, vector);
  copySome(to, columns, count);
}

/// Where weights that are asked for wait, and how far ahead they are, in bytes: the hardware does not prefetch across the end of a small
/// page. Four panels ahead push each other out of a first-level cache of 32 KiB in eight ways: one row of int4 then reads at 80 to
/// 89 % of the limit, and from the second-level cache at 99 to 107 %. Processors with tiles have 48 KiB, from which integers read faster
/// (int4 16.3 GB/s instead of 15.4), and are nearer to memory: with 3 KiB instead of 4 one row of int8 and int4 reads 1 to 4 % faster.
#ifdef __AMX_TILE__
constexpr int kWeightLocality = 3;
constexpr int64_t kWeightPrefetch = 3072;
#else
constexpr int kWeightLocality = 2;
constexpr int64_t kWeightPrefetch = 4096;
#endif

/// Floats are so many that they come from the second-level cache faster (bf16 17.7 GB/s instead of 17.1).
constexpr int kFloatLocality = 2;

/// Asks for the line that `distance` bytes ahead will be needed. Beyond the end of memory it does nothing.
template <int LOCALITY = kWeightLocality> void prefetchAhead(const uint8_t *from, int64_t distance) {
  __builtin_prefetch(from + distance, 0, LOCALITY);
}

/// Calls Block::run<rows, PANELS>(arguments...) for rows in [1, MOST_ROWS].
template <typename Block, int MOST_ROWS, int PANELS, typename... Arguments>
void runBlock(int64_t rows, const Arguments &...arguments) {
  if constexpr (MOST_ROWS > 1)
    if (rows < MOST_ROWS)
      return runBlock<Block, MOST_ROWS - 1, PANELS>(rows, arguments...);
  Block::template run<MOST_ROWS, PANELS>(arguments...);
}

/// Panels that a block of few rows multiplies at once, if its sums fit the registers.
constexpr int kMostPanels = 4;

/// How many panels a block of `rows` rows has whose `sums` sums stay in registers; `least` for as many rows as there can be.
inline int64_t widthOf(int64_t rows, int64_t sums, int64_t least) {
  int64_t width = kMostPanels;
  while (width > least && width * rows > sums)
    width /= 2;
  return width;
}

/// Calls Block::run<rows, width>(arguments...) for widths that `widthOf` gives, and 1; single panels have MOST_ROWS rows at most.
template <typename Block, int SUMS, int MOST_ROWS, int WIDTH = kMostPanels, typename... Arguments>
void runPanels(int64_t width, int64_t rows, const Arguments &...arguments) {
  if constexpr (WIDTH > 1) {
    if (width < WIDTH)
      return runPanels<Block, SUMS, MOST_ROWS, WIDTH / 2>(width, rows, arguments...);
    return runBlock<Block, SUMS / WIDTH, WIDTH>(rows, arguments...);
  }
  runBlock<Block, MOST_ROWS, 1>(rows, arguments...);
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_COLUMNS_H
