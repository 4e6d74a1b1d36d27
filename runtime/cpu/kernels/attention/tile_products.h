// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of small matrices of floats that lie in the cache, by AMX tiles of bf16.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_TILE_PRODUCTS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_TILE_PRODUCTS_H

#include "products.h"

namespace {

/// Products in f32 (products.h). Factors stay where they are; strides count elements.
struct FloatProducts {
  struct Factor {
    const float *from;
    int64_t stride;
  };
  using Left = Factor;
  using Right = Factor;

  static int64_t leftBytes(int64_t, int64_t) { return 0; }
  static int64_t rightBytes(int64_t, int64_t) { return 0; }
  static Left packLeft(const float *from, int64_t stride, int64_t, int64_t, uint8_t *) { return {from, stride}; }
  static Right packRight(const float *from, int64_t stride, int64_t, int64_t, uint8_t *) { return {from, stride}; }

  /// c[rows, columns] = a[rows, depth] · b[depth, columns], plus c where `accumulate`. Columns are a multiple of 16.
  static void multiply(Left a, Right b, int64_t depth, float *c, int64_t cStride, bool accumulate, int64_t rows,
                       int64_t columns) {
    ::multiply({a.from, a.stride, b.from, b.stride, depth, c, cStride, accumulate}, rows, columns);
  }
};

} // namespace

#ifdef __AMX_TILE__

#include "../bf16_pairs.h"
#include "../linear/columns.h"
#include "../tile_registers.h"

namespace {

/// Products of factors that are rounded to bf16, with sums of f32. A factor is packed once for all products that it is in.
class TileProducts {
public:
  struct Left {
    const uint8_t *tiles;
  };
  struct Right {
    const uint8_t *tiles;
  };

  static int64_t leftBytes(int64_t rows, int64_t depth) { return tilesOf(rows) * stepsOf(depth) * kTileBytes; }
  static int64_t rightBytes(int64_t depth, int64_t columns) { return columns / kLanes * stepsOf(depth) * kTileBytes; }

  /// [tile][step][row][input]; what is beyond the rows is 0.
  static Left packLeft(const float *a, int64_t stride, int64_t rows, int64_t depth, uint8_t *to) {
    int64_t steps = stepsOf(depth);
    for (int64_t row = 0; row < tilesOf(rows) * kTileRows; ++row)
      for (int64_t step = 0; step < steps; ++step) {
        const float *from = a + row * stride + step * kInputs;
        int64_t given = row < rows ? depth - step * kInputs : 0;
        bool isWhole = given >= kInputs;
        Vector low = isWhole ? load(from) : given > 0 ? loadColumns(from, given) : (Vector)0.0f;
        Vector high = isWhole          ? load(from + kLanes)
                      : given > kLanes ? loadColumns(from + kLanes, given - kLanes)
                                       : (Vector)0.0f;
        uint8_t *line = to + (row / kTileRows * steps + step) * kTileBytes + row % kTileRows * kTileRowBytes;
        _mm512_store_si512(line, (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low));
      }
    return {to};
  }

  /// [panel][step][pair of inputs][column][input]; what is beyond the depth is 0.
  static Right packRight(const float *b, int64_t stride, int64_t depth, int64_t columns, uint8_t *to) {
    int64_t steps = stepsOf(depth);
    for (int64_t pair = 0; pair < steps * kTileRows; ++pair)
      for (int64_t panel = 0; panel < columns / kLanes; ++panel) {
        const float *from = b + 2 * pair * stride + panel * kLanes;
        Vector even = 2 * pair < depth ? load(from) : (Vector)0.0f;
        Vector odd = 2 * pair + 1 < depth ? load(from + stride) : (Vector)0.0f;
        uint8_t *line = to + (panel * steps + pair / kTileRows) * kTileBytes + pair % kTileRows * kTileRowBytes;
        store(reinterpret_cast<float *>(line), pairsOfBf16(even, odd));
      }
    return {to};
  }

  /// As that of FloatProducts. Rows of c up to the next multiple of sixteen are written too.
  void multiply(Left a, Right b, int64_t depth, float *c, int64_t cStride, bool accumulate, int64_t rows,
                int64_t columns) const {
    int64_t steps = stepsOf(depth), tiles = tilesOf(rows), panels = columns / kLanes;
    for (int64_t tile = 0; tile < tiles; tile += 2)
      for (int64_t panel = 0; panel < panels; panel += 2) {
        Block block = {a.tiles + tile * steps * kTileBytes,
                       b.tiles + panel * steps * kTileBytes,
                       steps,
                       c + tile * kTileRows * cStride + panel * kLanes,
                       cStride,
                       accumulate};
        bool isHigh = tile + 1 < tiles, isWide = panel + 1 < panels;
        if (isHigh && isWide)
          multiplyBlock<2, 2>(block);
        else if (isHigh)
          multiplyBlock<2, 1>(block);
        else if (isWide)
          multiplyBlock<1, 2>(block);
        else
          multiplyBlock<1, 1>(block);
      }
  }

private:
  static constexpr int64_t kTileBytes = kTileRows * kTileRowBytes, kInputs = 2 * kLanes;

  static int64_t stepsOf(int64_t depth) { return (depth + kInputs - 1) / kInputs; }
  static int64_t tilesOf(int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

  struct Block {
    const uint8_t *a, *b;
    int64_t steps;
    float *c;
    int64_t cStride;
    bool accumulate;
  };

  /// Where sum SUM of a block lies in c: 0 and 1 are of its first rows, 2 and 3 of those below.
  template <int SUM> static float *sumOf(const Block &block) {
    return block.c + SUM / 2 * kTileRows * block.cStride + SUM % 2 * kLanes;
  }
  template <int SUM, int HEIGHT, int WIDTH> static constexpr bool kHasSum = SUM / 2 < HEIGHT && SUM % 2 < WIDTH;

  template <int SUM, int HEIGHT, int WIDTH> static void begin(const Block &block, int64_t stride) {
    if constexpr (kHasSum<SUM, HEIGHT, WIDTH>) {
      if (block.accumulate)
        _tile_loadd(SUM, sumOf<SUM>(block), stride);
      else
        _tile_zero(SUM);
    }
  }

  template <int SUM, int HEIGHT, int WIDTH> static void end(const Block &block, int64_t stride) {
    if constexpr (kHasSum<SUM, HEIGHT, WIDTH>)
      _tile_stored(SUM, sumOf<SUM>(block), stride);
  }

  template <int HEIGHT, int WIDTH> static void multiplyBlock(const Block &block) {
    const uint8_t *a = block.a, *b = block.b;
    int64_t next = block.steps * kTileBytes, stride = block.cStride * static_cast<int64_t>(sizeof(float));
    begin<0, HEIGHT, WIDTH>(block, stride);
    begin<1, HEIGHT, WIDTH>(block, stride);
    begin<2, HEIGHT, WIDTH>(block, stride);
    begin<3, HEIGHT, WIDTH>(block, stride);
    for (int64_t step = 0; step < block.steps; ++step, a += kTileBytes, b += kTileBytes) {
      _tile_loadd(4, a, kTileRowBytes);
      _tile_loadd(6, b, kTileRowBytes);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (WIDTH == 2) {
        _tile_loadd(7, b + next, kTileRowBytes);
        _tile_dpbf16ps(1, 4, 7);
      }
      if constexpr (HEIGHT == 2) {
        _tile_loadd(5, a + next, kTileRowBytes);
        _tile_dpbf16ps(2, 5, 6);
        if constexpr (WIDTH == 2)
          _tile_dpbf16ps(3, 5, 7);
      }
    }
    end<0, HEIGHT, WIDTH>(block, stride);
    end<1, HEIGHT, WIDTH>(block, stride);
    end<2, HEIGHT, WIDTH>(block, stride);
    end<3, HEIGHT, WIDTH>(block, stride);
  }

  TileRegisters registers = TileRegisters(kTileRows, kTileRowBytes);
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_TILE_PRODUCTS_H
