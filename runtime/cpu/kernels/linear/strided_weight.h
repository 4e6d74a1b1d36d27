// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices as they lie in memory, as the weights of a GEMM: each thread packs the N-tile that it multiplies, in the cache.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_STRIDED_WEIGHT_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_STRIDED_WEIGHT_H

#include "../transpose.h"
#include "gemm_vectors.h"

namespace {

/// A matrix [inputs, outputs] that is row-major or column-major.
class StridedPanels {
public:
  explicit StridedPanels(const Matrix &matrix)
      : panels(ceilDivide(matrix.columns, kPanelOutputs)), inputs(matrix.rows), matrix(matrix) {}

  /// Sixteen inputs from `input` on, each with the sixteen outputs of a panel; zeros where the matrix has none.
  void read(int64_t panel, int64_t input, Vector (&lines)[kLanes]) const {
    int64_t output = panel * kLanes, outputs = matrix.columns - output, given = inputs - input;
    bool isWhole = outputs >= kLanes && given >= kLanes;
    const float *from = matrix.data + input * matrix.rowStride + output * matrix.columnStride;
    if (matrix.columnStride == 1) {
      for (int64_t i = 0; i < kLanes; ++i)
        lines[i] = isWhole ? load(from + i * matrix.rowStride) : readPart(from, i, given, matrix.rowStride, outputs);
      return;
    }
    for (int64_t i = 0; i < kLanes; ++i)
      lines[i] =
          isWhole ? load(from + i * matrix.columnStride) : readPart(from, i, outputs, matrix.columnStride, given);
    transpose(lines);
  }

  int64_t panels, inputs;

private:
  /// Line i of `lines`, of which the first `columns` elements are there.
  static Vector readPart(const float *from, int64_t i, int64_t lines, int64_t stride, int64_t columns) {
    return i < lines && columns > 0 ? loadColumns(from + i * stride, columns) : (Vector)0.0f;
  }

  Matrix matrix;
};

#ifdef __AMX_TILE__
/// For a SplitEngine, as f32.
class StridedSplit : public StridedPanels {
public:
  using StridedPanels::StridedPanels;
  static constexpr int kPlanes = 3;
  static constexpr bool kPrefetches = false;
};
#endif

#ifdef __AVX512BF16__
/// Rounded to bf16: for a VectorEngine, whose step is a pair of inputs, and for tiles, whose step is `PAIRS` pairs.
template <int64_t PAIRS> class StridedPairs : StridedPanels {
public:
  using Target = Bf16Format;
  static constexpr int64_t kTargetSteps = 1;
  static constexpr bool kIsUnpacked = true;

  explicit StridedPairs(const Matrix &matrix) : StridedPanels(matrix), steps(ceilDivide(inputs, 2 * PAIRS)) {}

  void unpack(int64_t panel, int64_t step, int64_t count, float *to) const {
    int64_t first = 2 * PAIRS * step, pairs = PAIRS * count;
    for (int64_t i = 0; i < pairs; i += kLanes / 2) {
      Vector lines[kLanes];
      read(panel, first + 2 * i, lines);
      for (int64_t j = 0; j < smaller(kLanes / 2, pairs - i); ++j)
        store(to + (i + j) * kLanes, pairsOfBf16(lines[2 * j], lines[2 * j + 1]));
    }
  }

  using StridedPanels::panels;
  int64_t steps;
};
#endif

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_STRIDED_WEIGHT_H
