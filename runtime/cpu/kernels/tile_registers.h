// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tile registers of AMX: eight of up to sixteen rows of 64 bytes.

#ifndef HONE_RUNTIME_CPU_KERNELS_TILE_REGISTERS_H
#define HONE_RUNTIME_CPU_KERNELS_TILE_REGISTERS_H

#ifdef __AMX_TILE__

#include <immintrin.h>
#include <stdint.h>

namespace {

constexpr int64_t kTileRows = 16, kTileRowBytes = 64;

/// Gives the thread tile registers while it lives: 0 to 3 are sums, 4 and 5 their left operands, 6 and 7 their right
/// ones. `rows` is the height of sums and left operands, `inputBytes` how many bytes of a row of the left operand a
/// product takes; with sixteen rows of 64 bytes all registers are alike.
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

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_TILE_REGISTERS_H
