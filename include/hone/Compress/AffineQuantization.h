// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers with a scale a group: how floats become codes, and codes floats. The one place that decides it, for rounding to
// nearest and for every method that rounds one element after the other.

#ifndef HONE_COMPRESS_AFFINEQUANTIZATION_H
#define HONE_COMPRESS_AFFINEQUANTIZATION_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

namespace hone::compress {

/// What #hone.affine says of numbers; dialects/Hone/HoneEncodings.td describes it.
struct AffineFormat {
  int64_t bits;       // 1 … 8
  int64_t group;      // inputs that share a scale and a zero point; 0: all of a row
  bool hasZeros;      // or every zero point is the middle
  bool isSigned;      // codes from -2^(bits-1), or from 0
  bool hasHalfScales; // scales are rounded to f16 before they are used

  int64_t lowest() const { return isSigned ? -(int64_t(1) << (bits - 1)) : 0; }
  int64_t highest() const { return lowest() + (int64_t(1) << bits) - 1; }
  int64_t middle() const { return isSigned ? 0 : int64_t(1) << (bits - 1); }
  /// Inputs that share a scale in a row of `columns`; at least 1.
  int64_t width(int64_t columns) const { return group ? group : std::max<int64_t>(columns, 1); }
  /// Scales of a row of `columns`; one where it has no groups, even if it is empty.
  int64_t groups(int64_t columns) const { return group ? (columns + group - 1) / group : 1; }
};

/// The numbers `(code - zero) * scale`.
struct AffineScale {
  float scale = 0;
  int64_t zero = 0;

  float valueOf(int64_t code) const { return static_cast<float>(code - zero) * scale; }
};

/// The code nearest to `element`, ties to even before the zero point is added; the zero point where the scale is 0.
inline int64_t roundToCode(const AffineFormat &format, AffineScale scale, float element) {
  // In f64, where the inverse of a small scale is finite.
  double steps = scale.scale == 0 ? 0 : std::nearbyint(static_cast<double>(element) / static_cast<double>(scale.scale));
  return static_cast<int64_t>(std::clamp(steps + static_cast<double>(scale.zero), static_cast<double>(format.lowest()),
                                         static_cast<double>(format.highest())));
}

/// The least step that spans `elements` and 0 with zero points; without them, the element of largest magnitude divided by
/// -2^(bits-1). Nothing where an element or that step is not finite.
inline std::optional<AffineScale> fitScale(const AffineFormat &format, std::span<const float> elements) {
  float least = 0, most = 0;
  bool isFinite = true;
  for (float element : elements) {
    isFinite &= std::isfinite(element);
    least = std::min(least, element);
    most = std::max(most, element);
  }
  float largest = most > -least ? most : least;
  float step = format.hasZeros ? (most - least) / static_cast<float>(format.highest() - format.lowest())
                               : largest / static_cast<float>(-(int64_t(1) << (format.bits - 1)));
  if (format.hasHalfScales)
    step = static_cast<float>(static_cast<_Float16>(step));
  if (!isFinite || !std::isfinite(step))
    return std::nullopt;
  if (!format.hasZeros)
    return AffineScale{step, format.middle()};
  return AffineScale{step, roundToCode(format, {step, format.lowest()}, -least)};
}

} // namespace hone::compress

#endif // HONE_COMPRESS_AFFINEQUANTIZATION_H
