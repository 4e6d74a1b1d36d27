// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rounding to nearest, and GPTQ.

#include "hone/Compress/Rounding.h"

#include "ColumnSweep.h"
#include "FirstFailure.h"
#include "hone/Compress/ScaleSearch.h"

#include <cmath>

namespace hone::compress {
namespace {

/// Why a row has no scales.
absl::Status getStatus(const FirstFailure &failure, const AffineFormat &format) {
  return failure.status("its elements are not all finite, or too large for scales of ",
                        format.hasHalfScales ? "f16" : "f32");
}

/// Scales of one row, or of a group of it, fitted to its elements as they are; searched where `importance` is not empty.
bool fitScales(const AffineFormat &format, std::span<const float> elements, std::span<const float> importance,
               std::span<AffineScale> scales) {
  auto columns = static_cast<int64_t>(elements.size()), width = format.width(columns);
  bool isFinite = true;
  if (columns == 0)
    return true;
  for (int64_t group = 0; group < static_cast<int64_t>(scales.size()); ++group) {
    int64_t begin = group * width, count = std::min(width, columns - begin);
    auto part = elements.subspan(begin, count);
    auto fitted =
        importance.empty() ? fitScale(format, part) : searchScale(format, part, importance.subspan(begin, count));
    scales[group] = fitted.value_or(AffineScale());
    isFinite &= fitted.has_value();
  }
  return isFinite;
}

} // namespace

void writeValues(const AffineWeight &rounded, const AffineFormat &format, const Weight &weight) {
  int64_t width = format.width(rounded.columns);
  for (int64_t row = 0; row < rounded.rows; ++row)
    for (int64_t column = 0; column < rounded.columns; ++column)
      weight.row(row)[column] =
          rounded.scales[row * rounded.groups + column / width].valueOf(rounded.codes[row * rounded.columns + column]);
}

absl::StatusOr<AffineWeight> roundToNearest(const Weight &weight, const AffineFormat &format,
                                            std::span<const float> importance) {
  AffineWeight rounded(format, weight.rows, weight.columns);
  FirstFailure failure(weight.rows);
  int64_t columns = weight.columns, width = format.width(columns);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < weight.rows; ++row) {
    std::span<AffineScale> scales = std::span(rounded.scales).subspan(row * rounded.groups, rounded.groups);
    if (!fitScales(format, weight.row(row), importance, scales)) {
      failure.add(row);
      continue;
    }
    for (int64_t column = 0; column < columns; ++column)
      rounded.codes[row * columns + column] =
          static_cast<int16_t>(roundToCode(format, scales[column / width], weight.row(row)[column]));
  }
  HONE_RETURN_IF_ERROR(getStatus(failure, format));
  return rounded;
}

absl::StatusOr<AffineWeight> roundWithCompensation(const Weight &weight, const AffineFormat &format,
                                                   const InverseFactor &factor, bool hasStaticScales,
                                                   bool searchesScales, const Outliers &outliers) {
  AffineWeight rounded(format, weight.rows, weight.columns);
  FirstFailure failure(weight.rows);
  int64_t columns = weight.columns, width = format.width(columns), groups = rounded.groups;
  clearDeadColumns(weight, factor);
  auto isOutlier = [&](int64_t row, int64_t column) { return !outliers.empty() && outliers[row * columns + column]; };
  bool fitsBefore = hasStaticScales || format.group == 0;
  std::vector<float> importance = searchesScales ? getErrorCosts(factor) : std::vector<float>();
  if (fitsBefore) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < weight.rows; ++row) {
      std::vector<float> others(columns);
      for (int64_t column = 0; column < columns; ++column)
        others[column] = isOutlier(row, column) ? 0 : weight.row(row)[column];
      if (!fitScales(format, others, importance, std::span(rounded.scales).subspan(row * groups, groups)))
        failure.add(row);
    }
  }
  HONE_RETURN_IF_ERROR(getStatus(failure, format));

  ColumnSweep sweep(weight, factor, fitsBefore ? kSweepColumns : getSweepBlock(width));
  sweep.run([&](int64_t row, int64_t i, std::span<const double> current) -> float {
    int64_t column = factor.column(i);
    AffineScale &scale = rounded.scales[row * groups + column / width];
    if (!fitsBefore && column % width == 0) {
      std::vector<float> group(current.begin(), current.begin() + std::min<int64_t>(width, current.size()));
      for (size_t k = 0; k < group.size(); ++k) // what stays 0 takes no part
        group[k] = weight.row(row)[column + k] == 0 || isOutlier(row, column + k) ? 0 : group[k];
      auto costs = importance.empty() ? std::span<const float>() : std::span(importance).subspan(column, group.size());
      if (!fitScales(format, group, costs, {&scale, 1}))
        failure.add(row);
    }
    bool staysZero = weight.row(row)[column] == 0 || !std::isfinite(current[0]);
    if (!std::isfinite(current[0]))
      failure.add(row);
    bool outlier = isOutlier(row, column);
    int64_t code = staysZero || outlier ? scale.zero : roundToCode(format, scale, static_cast<float>(current[0]));
    rounded.codes[row * columns + column] = static_cast<int16_t>(code);
    return outlier && !staysZero ? static_cast<float>(static_cast<_Float16>(current[0])) : scale.valueOf(code);
  });
  HONE_RETURN_IF_ERROR(getStatus(failure, format));
  return rounded;
}

} // namespace hone::compress
