// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed weights of 8, 4, 3 and 2 bits as f32, for GEMM (large M) of weights with outliers on ISAs without dot products
// of bytes: outliers go where they belong once for all rows, and x stays as it is.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_DEQUANTIZED_WEIGHTS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_DEQUANTIZED_WEIGHTS_H

#include "quantized_dot.h"

#ifndef HONE_HAS_BYTE_DOT

#include "gemm_vectors.h"
#include "quantized_weight.h"

namespace {

/// With fewer rows unpacking costs more than integers do.
constexpr int64_t kFewestFloatRows = 64;

/// For VectorEngine. A step is one of the panels.
template <typename Codes> class DequantizedWeights {
public:
  using Target = F32Format;
  static constexpr int64_t kTargetSteps = Codes::kInputs;
  static constexpr bool kIsUnpacked = true;

  explicit DequantizedWeights(const QuantizedWeight &weight)
      : panels(weight.panels), steps(weight.lines / Codes::kLines), weight(weight) {}

  /// Writes `count` steps from `step` on as f32, sixteen outputs of an input each, with outliers in their places.
  void unpack(int64_t panel, int64_t step, int64_t count, float *to) const {
    for (int64_t i = 0; i < count; ++i)
      unpackStep(panel, step + i, to + i * Codes::kInputs * kLanes);
    if (weight.outliers.count > 0)
      weight.outliers.takeWithin(panel, step * Codes::kInputs, count * Codes::kInputs,
                                 [to](int64_t input, int64_t output, _Float16 outlier) {
                                   to[input * kLanes + output] = static_cast<float>(outlier);
                                 });
  }

  int64_t panels, steps;

private:
  void unpackStep(int64_t panel, int64_t step, float *to) const {
    int64_t group = weight.group > 0 ? step * Codes::kInputs / weight.group : 0;
    WeightScales scales = weight.scales.from(group, panel, 0);
    Vector scale = scales.scale(0, 0), offset = -scale * scales.zero(0, 0, Codes::kZero);
    const uint8_t *from = weight.data + panel * weight.panelBytes + step * Codes::kStepBytes;
    Codes::prefetch(from);
#pragma unroll
    for (int q = 0; q < Codes::kQuads; ++q) {
      auto codes = (Integers)Codes::quad(from, q);
      for (int i = 0; i < 4; ++i, to += kLanes)
        store(to, __builtin_convertvector((codes >> (8 * i)) & 0xff, Vector) * scale + offset);
    }
  }

  QuantizedWeight weight;
};

} // namespace

#endif // HONE_HAS_BYTE_DOT
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_DEQUANTIZED_WEIGHTS_H
