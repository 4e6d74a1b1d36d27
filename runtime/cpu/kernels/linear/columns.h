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

/// Prefetch distances in bytes: a line is prefetched into the L2 cache first and into the L1 cache later (two-level
/// software prefetch), as the hardware does not prefetch across the end of a small page. Panels of a block have the
/// same offsets in their pages, which DRAM serves slower, so the distance is staggered from panel to panel.
constexpr int64_t kWeightsL2Distance = 2048, kPanelStagger = 512, kWeightsL1Distance = 1024;

inline void prefetchL2(const uint8_t *line) { __builtin_prefetch(line, 0, 2); }
inline void prefetchL1(const uint8_t *line) { __builtin_prefetch(line, 0, 3); }

/// Prefetches the lines of panel `panel` of a block that follow `line`, which is read now as one of every `SHARE` lines
/// that are. Beyond the end of memory it does nothing.
template <int64_t SHARE = 1> void prefetchWeights(const uint8_t *line, int64_t panel = 0) {
  prefetchL2(line + (kWeightsL2Distance + panel * kPanelStagger) / SHARE);
  prefetchL1(line + kWeightsL1Distance / SHARE);
}

/// Prefetches into the L1 cache alone, for weights that the L2 cache may hold since the last call.
inline void prefetchCachedWeights(const uint8_t *line) { prefetchL1(line + kWeightsL1Distance); }

/// Calls Block::run<rows, PANELS>(arguments...) for rows in [1, MOST_ROWS].
template <typename Block, int MOST_ROWS, int PANELS, typename... Arguments>
void runBlock(int64_t rows, const Arguments &...arguments) {
  if constexpr (MOST_ROWS > 1)
    if (rows < MOST_ROWS)
      return runBlock<Block, MOST_ROWS - 1, PANELS>(rows, arguments...);
  Block::template run<MOST_ROWS, PANELS>(arguments...);
}

/// Panels that a GEMV block multiplies at once, if its sums fit the registers.
constexpr int kMostPanels = 4;

/// How many panels a block of `rows` rows has whose `sums` sums stay in registers; `least` for as many rows as there
/// can be.
inline int64_t widthOf(int64_t rows, int64_t sums, int64_t least) {
  int64_t width = kMostPanels;
  while (width > least && width * rows > sums)
    width /= 2;
  return width;
}

/// Calls Block::run<rows, width>(arguments...) for widths that `widthOf` gives, and 1; single panels have MOST_ROWS
/// rows at most.
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
