// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed weights of 8, 4, 3 and 2 bits as tiles of bf16, for GEMM (large M): x needs no scales, and weights are scaled
// once for all rows, where the sums of tiles of integers are scaled and added up for each row and group.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_UNPACKED_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_UNPACKED_H

#ifdef __AMX_TILE__

#include "../bf16_pairs.h"
#include "gemm_tiles.h"
#include "quantized_dot.h"
#include "quantized_weight.h"

namespace {

/// Fewer rows are multiplied as integers, by tiles too: all of x is rounded as in GEMV, and sums are added up in the same order.
constexpr int64_t kFewestUnpackedRows = kIndependentRows + 1;

/// A row of a tile: two inputs of sixteen outputs.
inline void storePair(Integers even, Integers odd, Vector scale, Vector offset, uint8_t *to) {
  Vector low = __builtin_convertvector(even, Vector) * scale + offset,
         high = __builtin_convertvector(odd, Vector) * scale + offset;
  _mm512_store_si512(to, (__m512i)pairsOfBf16(low, high));
}

/// Two rows of a tile, scaled, from the codes of four inputs in the bytes of sixteen outputs.
inline void storeQuad(Integers codes, Vector scale, Vector offset, uint8_t *to) {
  storePair(codes & 0xff, (codes >> 8) & 0xff, scale, offset, to);
  storePair((codes >> 16) & 0xff, (codes >> 24) & 0xff, scale, offset, to + kTileRowBytes);
}

template <typename Codes> class UnpackedWeights {
public:
  /// Groups have as many inputs as a tile, or a multiple.
  explicit UnpackedWeights(const QuantizedWeight &weight)
      : panels(weight.panels), packedSteps(weight.lines / Codes::kLines), steps(ceilDivide(packedSteps, kStepsOfTile)),
        weight(weight) {}

  static constexpr bool kIsUnpacked = true;

  /// Writes the tiles of `count` panels from `panel` on and `some` steps from `step` on to `memory`.
  WeightTiles take(int64_t panel, int64_t count, int64_t step, int64_t some, uint8_t *memory) const {
    for (int64_t p = 0; p < count; ++p) {
      uint8_t *tiles = memory + p * some * kWeightTileBytes;
      for (int64_t i = 0; i < some; ++i)
        unpack(panel + p, step + i, tiles + i * kWeightTileBytes);
      if (weight.outliers.count > 0)
        placeOutliers(panel + p, step * kTileStepInputs, some * kTileStepInputs, tiles);
    }
    return {memory, some * kWeightTileBytes};
  }

  static constexpr int64_t kStepsOfTile = kTileStepInputs / Codes::kInputs;

  int64_t panels, packedSteps, steps; // a step is a tile, a packed one one of the panels

private:
  void unpack(int64_t panel, int64_t step, uint8_t *to) const {
    int64_t group = weight.group > 0 ? step * kTileStepInputs / weight.group : 0;
    WeightScales scales = weight.scales.from(group, panel, 0);
    Vector scale = scales.scale(0, 0), offset = -scale * scales.zero(0, 0, Codes::kZero);
    const uint8_t *from = weight.data + panel * weight.panelBytes + step * kStepsOfTile * Codes::kStepBytes;
    int64_t count = smaller(kStepsOfTile, packedSteps - step * kStepsOfTile);
    for (int64_t i = 0; i < count; ++i, from += Codes::kStepBytes) {
      Codes::prefetch(from);
#pragma unroll
      for (int q = 0; q < Codes::kQuads; ++q, to += 2 * kTileRowBytes)
        storeQuad((Integers)Codes::quad(from, q), scale, offset, to);
    }
    for (int64_t row = count * Codes::kInputs / 2; row < kTileRows; ++row, to += kTileRowBytes)
      _mm512_store_si512(to, _mm512_setzero_si512());
  }

  /// Over what the codes mean in their places; of a row of tiles for `count` inputs from `first` on.
  void placeOutliers(int64_t panel, int64_t first, int64_t count, uint8_t *to) const {
    auto *elements = reinterpret_cast<uint16_t *>(to);
    weight.outliers.takeWithin(panel, first, count, [elements](int64_t input, int64_t output, _Float16 outlier) {
      auto value = static_cast<__bf16>(static_cast<float>(outlier));
      __builtin_memcpy(elements + (input / 2 * kLanes + output) * 2 + input % 2, &value, sizeof value);
    });
  }

  QuantizedWeight weight;
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_UNPACKED_H
