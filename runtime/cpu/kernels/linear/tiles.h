// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of tiles by AMX: up to 2 x 2 tiles of 16 x 16 sums. A tile of packed weights is sixteen rows of 64 bytes, dense in
// memory; a tile of activations is up to sixteen rows, as far apart as the rows of x.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_TILES_H

#ifdef __AMX_TILE__

#include "columns.h"

#include <immintrin.h>

namespace {

constexpr int64_t kTileRows = 16, kTileRowBytes = 64;

/// Gives the thread tile registers while it lives. Sums are 0 (first rows, first panel), 1 (first, second), 2 and 3 (second
/// rows); 4 and 5 are activations, 6 and 7 weights. `rows` is the height of activations and sums, `inputBytes` how many bytes
/// of a row of activations a step takes: 64, or 32 where chunks are that short.
class TileRegisters {
public:
  TileRegisters(int64_t rows, int64_t inputBytes) {
    Shape shape = {};
    shape.palette = 1;
    for (int tile = 0; tile < 6; ++tile)
      set(shape, tile, rows, tile < 4 ? kTileRowBytes : inputBytes);
    for (int tile = 6; tile < 8; ++tile)
      set(shape, tile, inputBytes / 4, kTileRowBytes);
    _tile_loadconfig(&shape);
  }
  ~TileRegisters() { _tile_release(); }
  TileRegisters(const TileRegisters &) = delete;
  TileRegisters &operator=(const TileRegisters &) = delete;

private:
  /// The operand of LDTILECFG (Intel SDM volume 2A).
  struct Shape {
    uint8_t palette, startRow, reserved[14];
    uint16_t rowBytes[16];
    uint8_t rows[16];
  };

  static void set(Shape &shape, int tile, int64_t rows, int64_t rowBytes) {
    shape.rows[tile] = static_cast<uint8_t>(rows);
    shape.rowBytes[tile] = static_cast<uint16_t>(rowBytes);
  }
};

struct Bf16Products {
  template <int SUM, int X, int WEIGHT> static void add() { _tile_dpbf16ps(SUM, X, WEIGHT); }
};

/// Signed activations, unsigned weights.
struct ByteProducts {
  template <int SUM, int X, int WEIGHT> static void add() { _tile_dpbsud(SUM, X, WEIGHT); }
};

/// Strides count bytes. The second rows may be rows below the first ones, or another digit of the same rows.
struct TileOperands {
  const uint8_t *x, *secondX;
  int64_t xStride, inputBytes;
  const uint8_t *weight;
  int64_t panelBytes, steps;
  int64_t prefetch; // how far ahead weights are asked for, 0 where they are in the cache
};

/// 32-bit sums, [second rows][second panel][row][output].
struct TileSums {
  alignas(64) uint8_t bytes[2][2][kTileRows][kTileRowBytes];

  Vector floats(int height, int panel, int64_t row) const {
    return load(reinterpret_cast<const float *>(bytes[height][panel][row]));
  }
  Vector integers(int height, int panel, int64_t row) const {
    typedef int32_t Integers32 __attribute__((ext_vector_type(16)));
    Integers32 sums;
    __builtin_memcpy(&sums, bytes[height][panel][row], sizeof sums);
    return __builtin_convertvector(sums, Vector);
  }
};

inline void prefetchTile(const uint8_t *tile, int64_t bytes) {
  for (int64_t line = 0; line < bytes; line += kTileRowBytes)
    prefetchAhead(tile, line);
}

template <typename Products, int HEIGHT, int WIDTH> void multiplyTiles(const TileOperands &o, TileSums &sums) {
  _tile_zero(0);
  if constexpr (WIDTH == 2)
    _tile_zero(1);
  if constexpr (HEIGHT == 2)
    _tile_zero(2);
  if constexpr (HEIGHT == 2 && WIDTH == 2)
    _tile_zero(3);
  int64_t tileBytes = o.inputBytes / 4 * kTileRowBytes;
  for (int64_t step = 0; step < o.steps; ++step) {
    const uint8_t *weight = o.weight + step * tileBytes;
    _tile_loadd(4, o.x + step * o.inputBytes, o.xStride);
    _tile_loadd(6, weight, kTileRowBytes);
    Products::template add<0, 4, 6>();
    if constexpr (HEIGHT == 2) {
      _tile_loadd(5, o.secondX + step * o.inputBytes, o.xStride);
      Products::template add<2, 5, 6>();
    }
    if constexpr (WIDTH == 2) {
      _tile_loadd(7, weight + o.panelBytes, kTileRowBytes);
      Products::template add<1, 4, 7>();
      if constexpr (HEIGHT == 2)
        Products::template add<3, 5, 7>();
    }
    if (o.prefetch) {
      prefetchTile(weight + o.prefetch, tileBytes);
      if constexpr (WIDTH == 2)
        prefetchTile(weight + o.panelBytes + o.prefetch, tileBytes);
    }
  }
  _tile_stored(0, sums.bytes[0][0], kTileRowBytes);
  if constexpr (WIDTH == 2)
    _tile_stored(1, sums.bytes[0][1], kTileRowBytes);
  if constexpr (HEIGHT == 2)
    _tile_stored(2, sums.bytes[1][0], kTileRowBytes);
  if constexpr (HEIGHT == 2 && WIDTH == 2)
    _tile_stored(3, sums.bytes[1][1], kTileRowBytes);
}

template <typename Products>
void multiplyTiles(const TileOperands &operands, int64_t height, int64_t width, TileSums &sums) {
  if (height == 2)
    return width == 2 ? multiplyTiles<Products, 2, 2>(operands, sums) : multiplyTiles<Products, 2, 1>(operands, sums);
  return width == 2 ? multiplyTiles<Products, 1, 2>(operands, sums) : multiplyTiles<Products, 1, 1>(operands, sums);
}

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_TILES_H
