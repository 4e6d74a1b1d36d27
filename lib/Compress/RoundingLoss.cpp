// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row by row, so that nothing but sums is kept.

#include "hone/Compress/RoundingLoss.h"

#include <numeric>
#include <vector>

namespace hone::compress {

/// The loss of one row; not a number where a group has no finite scale.
static double rowLoss(std::span<const float> row, const AffineFormat &format, std::span<const float> importance) {
  auto columns = static_cast<int64_t>(row.size()), width = format.width(columns);
  double loss = 0;
  for (int64_t begin = 0; begin < columns; begin += width) {
    int64_t end = std::min(begin + width, columns);
    std::optional<AffineScale> scale = fitScale(format, row.subspan(begin, end - begin));
    if (!scale)
      return std::numeric_limits<double>::quiet_NaN();
    for (int64_t i = begin; i < end; ++i) {
      double error = static_cast<double>(row[i]) - scale->valueOf(roundToLevel(format, *scale, row[i]));
      loss += error * error * (importance.empty() ? 1.0 : static_cast<double>(importance[i]));
    }
  }
  return loss;
}

absl::StatusOr<double> roundingLoss(const Weight &weight, const AffineFormat &format,
                                    std::span<const float> importance) {
  std::vector<double> losses(weight.rows);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < weight.rows; ++row)
    losses[row] = rowLoss(weight.row(row), format, importance);
  for (int64_t row = 0; row < weight.rows; ++row)
    if (!std::isfinite(losses[row]))
      return io::invalid("cannot quantize row ", row, ": its elements are not all finite, or too large for scales of ",
                         format.hasHalfScales ? "f16" : "f32");
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

} // namespace hone::compress
