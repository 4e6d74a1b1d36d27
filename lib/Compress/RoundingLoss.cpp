// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row by row, so that nothing but sums is kept.

#include "hone/Compress/RoundingLoss.h"

#include "hone/Compress/Outliers.h"
#include "hone/Compress/ScaleSearch.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <vector>

namespace hone::compress {

/// The loss of one row; not a number where a group has no finite scale.
static double rowLoss(std::span<const float> row, const AffineFormat &format, std::span<const float> importance) {
  auto columns = static_cast<int64_t>(row.size()), width = format.width(columns);
  double loss = 0;
  for (int64_t begin = 0; begin < columns; begin += width) {
    int64_t end = std::min(begin + width, columns);
    std::span<const float> elements = row.subspan(begin, end - begin), costs = importance.subspan(begin, end - begin);
    std::optional<AffineScale> scale = searchScale(format, elements, costs);
    if (!scale)
      return std::numeric_limits<double>::quiet_NaN();
    loss += getRoundingError(format, *scale, elements, costs);
  }
  return loss;
}

absl::StatusOr<double> roundingLoss(const Weight &weight, const AffineFormat &format, std::span<const float> importance,
                                    double outliers, int64_t mostRows) {
  int64_t count = std::min(weight.rows, mostRows);
  std::vector<float> elements;
  for (int64_t i = 0; i < count; ++i)
    std::ranges::copy(weight.row(i * weight.rows / count), std::back_inserter(elements));
  Weight some{elements, count, weight.columns};
  int64_t slots = std::llround(outliers * static_cast<double>(countSparsePanels(count)));
  Outliers marks = slots > 0 ? markCostly(some, format, importance, slots) : Outliers(elements.size());
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = marks[i] ? 0 : elements[i];
  std::vector<double> losses(count);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i)
    losses[i] = rowLoss(some.row(i), format, importance);
  for (int64_t i = 0; i < count; ++i)
    if (!std::isfinite(losses[i]))
      return io::invalid("cannot quantize row ", i * weight.rows / count,
                         ": its elements are not all finite, or too large for scales of ",
                         format.hasHalfScales ? "f16" : "f32");
  double share = count > 0 ? static_cast<double>(weight.rows) / static_cast<double>(count) : 0;
  return share * std::accumulate(losses.begin(), losses.end(), 0.0);
}

} // namespace hone::compress
