// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of tiles by AMX: up to 2 x 2 or 1 x 4 tiles of 16 x 16 sums. A tile of packed weights is sixteen rows of 64
// bytes, dense in memory; a tile of activations is up to sixteen rows, as far apart as the rows of x. Sums are 0 (first
// rows, first panel), 1 (first, second), 2 and 3 (second rows, or the third and fourth panel).

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_TILES_H

#ifdef __AMX_TILE__

#include "../tile_registers.h"
#include "columns.h"
#include "gemm_layer.h"

namespace {

/// Weights that will be needed: at every step the next `lines` lines from here on of each panel are prefetched.
struct TilePrefetch {
  const uint8_t *from;
  int64_t lines;
  bool isNext; // needed at once, in the L1 cache; else much later
};

/// Strides count bytes. The second rows may be rows below the first ones, or another limb of the same rows.
struct TileOperands {
  const uint8_t *x, *secondX;
  int64_t xStride, xStep, inputBytes; // xStep is the distance of the tiles of two steps
  const uint8_t *weight;
  int64_t panelBytes, steps;
  TilePrefetch prefetch;
  bool accumulate = false; // to what the sums hold
};

/// 32-bit sums, [register][row][output]; panel p of the first rows is register p, of the second rows 2 + p.
struct TileSums {
  alignas(64) uint8_t bytes[4][kTileRows][kTileRowBytes];

  Vector floats(int64_t sum, int64_t row) const { return load(reinterpret_cast<const float *>(bytes[sum][row])); }
  Vector integers(int64_t sum, int64_t row) const {
    return __builtin_convertvector(loadAs<Integers>(bytes[sum][row]), Vector);
  }
};

/// Sums of a block of up to 32 rows by two panels.
struct TileBlockSums : TileSums {
  static int64_t sumOf(int64_t panel, int64_t row) { return panel + (row < kTileRows ? 0 : 2); }

  float *lanes(int64_t panel, int64_t row) {
    return reinterpret_cast<float *>(bytes[sumOf(panel, row)][row % kTileRows]);
  }
  Vector at(int64_t panel, int64_t row) const { return floats(sumOf(panel, row), row % kTileRows); }
};

template <int WIDTH> void prefetchTiles(const TilePrefetch &next, int64_t step, int64_t panelBytes) {
  const uint8_t *from = next.from + step * next.lines * kTileRowBytes;
  for (const uint8_t *end = from + next.lines * kTileRowBytes; from < end; from += kTileRowBytes)
    for (int panel = 0; panel < WIDTH; ++panel)
      if (next.isNext)
        __builtin_prefetch(from + panel * panelBytes, 0, 3);
      else
        __builtin_prefetch(from + panel * panelBytes, 0, 2);
}

/// Begins a sum with zeros or with what memory holds.
template <int SUM> void beginSum(const TileOperands &o, const TileSums &sums) {
  if (o.accumulate)
    _tile_loadd(SUM, sums.bytes[SUM], kTileRowBytes);
  else
    _tile_zero(SUM);
}

template <int SUM> void endSum(TileSums &sums) { _tile_stored(SUM, sums.bytes[SUM], kTileRowBytes); }

/// One or two tiles of rows by one or two panels.
template <int HEIGHT, int WIDTH> struct TileBlock {
  template <typename Products> static void addStep(const TileOperands &o, int64_t step, const uint8_t *weight) {
    _tile_loadd(4, o.x + step * o.xStep, o.xStride);
    _tile_loadd(6, weight, kTileRowBytes);
    Products::template add<0, 4, 6>();
    if constexpr (HEIGHT == 2) {
      _tile_loadd(5, o.secondX + step * o.xStep, o.xStride);
      Products::template add<2, 5, 6>();
    }
    if constexpr (WIDTH == 2) {
      _tile_loadd(7, weight + o.panelBytes, kTileRowBytes);
      Products::template add<1, 4, 7>();
      if constexpr (HEIGHT == 2)
        Products::template add<3, 5, 7>();
    }
  }
};

/// One tile of rows by four panels.
template <> struct TileBlock<1, 4> {
  template <typename Products> static void addStep(const TileOperands &o, int64_t step, const uint8_t *weight) {
    _tile_loadd(4, o.x + step * o.xStep, o.xStride);
    _tile_loadd(6, weight, kTileRowBytes);
    Products::template add<0, 4, 6>();
    _tile_loadd(7, weight + o.panelBytes, kTileRowBytes);
    Products::template add<1, 4, 7>();
    _tile_loadd(6, weight + 2 * o.panelBytes, kTileRowBytes);
    Products::template add<2, 4, 6>();
    _tile_loadd(7, weight + 3 * o.panelBytes, kTileRowBytes);
    Products::template add<3, 4, 7>();
  }
};

/// One product of tiles for a tile of rows and one of weights.
template <typename Products> struct SingleProducts {
  template <int HEIGHT, int WIDTH> static void addStep(const TileOperands &o, int64_t step, const uint8_t *weight) {
    TileBlock<HEIGHT, WIDTH>::template addStep<Products>(o, step, weight);
  }
};

struct Bf16Products : SingleProducts<Bf16Products> {
  template <int SUM, int X, int WEIGHT> static void add() { _tile_dpbf16ps(SUM, X, WEIGHT); }
};

/// Signed activations, unsigned weights.
struct ByteProducts : SingleProducts<ByteProducts> {
  template <int SUM, int X, int WEIGHT> static void add() { _tile_dpbsud(SUM, X, WEIGHT); }
};

template <typename Products, int HEIGHT, int WIDTH, typename Prefetcher>
void multiplyTiles(const TileOperands &o, TileSums &sums, const Prefetcher &prefetcher) {
  constexpr bool hasSecond = WIDTH >= 2, hasThird = HEIGHT == 2 || WIDTH == 4;
  beginSum<0>(o, sums);
  if constexpr (hasSecond)
    beginSum<1>(o, sums);
  if constexpr (hasThird)
    beginSum<2>(o, sums);
  if constexpr (hasSecond && hasThird)
    beginSum<3>(o, sums);
  int64_t tileBytes = o.inputBytes / 4 * kTileRowBytes;
  for (int64_t step = 0; step < o.steps; ++step) {
    Products::template addStep<HEIGHT, WIDTH>(o, step, o.weight + step * tileBytes);
    prefetchTiles<WIDTH>(o.prefetch, step, o.panelBytes);
    prefetcher.prefetch(step, o.steps);
  }
  endSum<0>(sums);
  if constexpr (hasSecond)
    endSum<1>(sums);
  if constexpr (hasThird)
    endSum<2>(sums);
  if constexpr (hasSecond && hasThird)
    endSum<3>(sums);
}

/// `height` tiles of rows by `width` panels: 1 or 2 by 1 or 2, or 1 by 4. Every step calls prefetcher.prefetch(step, steps).
template <typename Products, typename Prefetcher = NoPrefetcher>
void multiplyTiles(const TileOperands &operands, int64_t height, int64_t width, TileSums &sums,
                   const Prefetcher &prefetcher = Prefetcher()) {
  if (width == 4)
    return multiplyTiles<Products, 1, 4>(operands, sums, prefetcher);
  if (height == 2)
    return width == 2 ? multiplyTiles<Products, 2, 2>(operands, sums, prefetcher)
                      : multiplyTiles<Products, 2, 1>(operands, sums, prefetcher);
  return width == 2 ? multiplyTiles<Products, 1, 2>(operands, sums, prefetcher)
                    : multiplyTiles<Products, 1, 1>(operands, sums, prefetcher);
}

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_TILES_H
