// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A packed quantized weight as kernels read it, and how integer sums are added to f32 sums. With w = s (q - z) and x =
// t i: Σ w x = s t (Σ q i - z Σ i).

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_WEIGHT_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_WEIGHT_H

#include "../rows.h"
#include "../vector.h"
#include "hone/cpu/packing/layout.h"
#include "outliers.h"

namespace {

/// Scales and zero points of weights, from the first chunk of a panel on; the distance of chunks is 0 where a group has all.
struct WeightScales {
  const uint8_t *scales, *zeros; // zeros may be null
  bool isHalf;
  int64_t chunkStep;             // elements
  int64_t scalePanel, zeroPanel; // bytes from panel to panel

  Vector scale(int64_t chunk, int64_t panel) const {
    const uint8_t *from = scales + panel * scalePanel;
    if (!isHalf)
      return load(reinterpret_cast<const float *>(from) + chunk * chunkStep);
    return loadHalves(from + chunk * chunkStep * 2);
  }

  Vector zero(int64_t chunk, int64_t panel, int32_t otherwise) const {
    if (!zeros)
      return static_cast<float>(otherwise);
    return __builtin_convertvector(zero(chunk, panel), Vector);
  }

  /// Where there are zero points.
  Integers zero(int64_t chunk, int64_t panel) const {
    typedef uint8_t Bytes __attribute__((ext_vector_type(16)));
    return __builtin_convertvector(loadAs<Bytes>(zeros + chunk * chunkStep + panel * zeroPanel), Integers);
  }

  /// The same from another chunk and panel on, of every `panelStride`-th panel.
  WeightScales from(int64_t chunk, int64_t panel, int64_t panelStride) const {
    int64_t at = chunk * chunkStep;
    return {scales + panel * scalePanel + at * (isHalf ? 2 : 4),
            zeros ? zeros + panel * zeroPanel + at : nullptr,
            isHalf,
            chunkStep,
            panelStride * scalePanel,
            panelStride * zeroPanel};
  }
};

/// The operands of a quantized weight.
struct QuantizedWeight {
  static constexpr bool kIsUnpacked = false;

  const uint8_t *data;
  int64_t panels, lines, panelBytes, group;
  WeightScales scales;
  Outliers outliers;

  QuantizedWeight(const hone_tensor &weight, const hone_tensor &scales, const hone_tensor &zeros, int64_t group,
                  const Outliers &outliers = {})
      : data(static_cast<const uint8_t *>(weight.data)), panels(weight.sizes[0]), lines(weight.sizes[1]),
        panelBytes(panelBytesOf(weight)), group(group),
        scales{static_cast<const uint8_t *>(scales.data),
               isAbsent(zeros) ? nullptr : static_cast<const uint8_t *>(zeros.data),
               scales.dtype == HONE_F16,
               group > 0 ? hone::cpu::kPanelOutputs : 0,
               panelBytesOf(scales),
               isAbsent(zeros) ? 0 : panelBytesOf(zeros)},
        outliers(outliers) {}
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_WEIGHT_H
