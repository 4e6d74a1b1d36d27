// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rounding of weights to integers with a scale a group, to nearest or with error compensation in later elements (GPTQ).

#ifndef HONE_COMPRESS_ROUNDING_H
#define HONE_COMPRESS_ROUNDING_H

#include "hone/Compress/AffineQuantization.h"
#include "hone/Compress/InverseFactor.h"
#include "hone/Compress/Matrix.h"
#include "hone/Compress/Outliers.h"

#include <vector>

namespace hone::compress {

/// A weight [N, K] in the numbers of an AffineFormat.
struct AffineWeight {
  int64_t rows, columns, groups;
  std::vector<int16_t> codes;      // [N, K]
  std::vector<AffineScale> scales; // [N, groups]

  AffineWeight(const AffineFormat &format, int64_t rows, int64_t columns)
      : rows(rows), columns(columns), groups(format.groups(columns)), codes(rows * columns), scales(rows * groups) {}
};

/// Writes the numbers that `rounded` means to `weight`, which is of its size.
void writeValues(const AffineWeight &rounded, const AffineFormat &format, const Weight &weight);

/// Every element to the nearest code of its group. Scales are those of fitScale, or with `importance`, [K], those of searchScale.
/// Fails, naming the row, where a group has no finite scale. Parallel.
absl::StatusOr<AffineWeight> roundToNearest(const Weight &weight, const AffineFormat &format,
                                            std::span<const float> importance = {});

/// Column after column in the order of `factor`, with error compensation in the following ones (Frantar et al., "GPTQ", 2022,
/// algorithm 1). Columns without inputs, and elements that are 0, become 0 and stay so: what was pruned stays pruned.
///
/// Scales of groups are fitted when the sweep reaches their first column, to the elements as they are then; with
/// `hasStaticScales`, and where a row is one group, before the sweep. Other orders than the columns' own need one of the two.
/// With `searchesScales` they are those of searchScale, an element being as important as its error costs in H', 1 / R_jj².
/// `weight` is left with the values of the codes. Where H' is a multiple of the identity, the result is that of
/// roundToNearest. Each row depends on itself alone. N K² operations in f64. Fails as roundToNearest does.
///
/// Elements that `outliers` marks take no part in the fit of scales, and become f16 when the sweep reaches them, as it has
/// corrected them by then: they take the compensation of the errors before them, and leave next to no error themselves. `weight` is left with
/// their values, and their codes are the zero points.
absl::StatusOr<AffineWeight> roundWithCompensation(const Weight &weight, const AffineFormat &format,
                                                   const InverseFactor &factor, bool hasStaticScales,
                                                   bool searchesScales = false, const Outliers &outliers = {});

} // namespace hone::compress

#endif // HONE_COMPRESS_ROUNDING_H
