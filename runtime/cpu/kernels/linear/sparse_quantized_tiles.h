// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of 8 and 4 bits of which two of every four inputs are kept, as dense tiles of bf16, for GEMM (large M).

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_QUANTIZED_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_QUANTIZED_TILES_H

#ifdef __AMX_TILE__

#include "sparse_quantized_weight.h"
#include "tile_unpacked.h"

namespace {

template <typename Codes> class SparseQuantizedTiles {
public:
  /// Groups have as many inputs as a tile, or a multiple.
  explicit SparseQuantizedTiles(const SparseQuantizedWeight<Codes> &weight)
      : panels(weight.panels), steps(weight.indexLines), weight(weight) {
    static_assert(kIndexInputs == kTileStepInputs);
  }

  static constexpr bool kIsUnpacked = true;

  /// Writes the tiles of `count` panels from `panel` on and `some` steps from `step` on to `memory`.
  WeightTiles take(int64_t panel, int64_t count, int64_t step, int64_t some, uint8_t *memory) const {
    for (int64_t p = 0; p < count; ++p)
      for (int64_t i = 0; i < some; ++i)
        unpack(panel + p, step + i, memory + (p * some + i) * kWeightTileBytes);
    return {memory, some * kWeightTileBytes};
  }

  int64_t panels, steps; // a step is a tile

private:
  void unpack(int64_t panel, int64_t step, uint8_t *to) const {
    Words zero = weight.zeroOf(panel, step), quads[SparseQuantizedWeight<Codes>::kIndexSteps];
    Vector scale = weight.scales.scale(weight.groupOf(step), panel);
    Vector offset = -scale * __builtin_convertvector(zero, Vector);
    weight.unpackLine(panel, step, zero, quads);
    for (Words codes : quads) {
      storeQuad((Integers)codes, scale, offset, to);
      to += 2 * kTileRowBytes;
    }
  }

  SparseQuantizedWeight<Codes> weight;
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_QUANTIZED_TILES_H
