// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Coordinate descent over the codes, outliers and scales of a row. D and its gradient, D H', follow every change.

#include "hone/Compress/Refinement.h"

#include "DenseProduct.h"
#include "Descent.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace hone::compress {
namespace {

/// One row: its codes and scales, what they miss, and how the error changes with each element.
class Row : RowDifference {
public:
  Row(const AffineFormat &format, const DampedHessian &hessian, std::span<const float> elements,
      std::span<const bool> isFixed, std::span<int16_t> codes, std::span<AffineScale> scales, RowOutliers outliers,
      double *difference, double *gradient)
      : RowDifference(hessian, elements, difference, gradient), format(format), isFixed(isFixed), codes(codes),
        scales(scales), outliers(outliers), width(format.width(hessian.size)) {}

  /// The gradient is left to the caller: `moved` gets, for each element of the group, by how much its difference became less.
  void refineScale(int64_t group, double *moved);
  /// The code of a column, or its outlier; to be called for one column after the other.
  void refineElement(int64_t column) {
    bool isOutlier = outliers.isNext(column), staysAsItIs = elements[column] == 0 || isFixed[column];
    if (!staysAsItIs)
      isOutlier ? refineOutlier(column) : refineCode(column);
    if (isOutlier)
      ++outliers.next;
    if (column + 1 == hessian.size)
      outliers.next = 0;
  }

private:
  void refineCode(int64_t column) {
    AffineScale scale = scales[column / width];
    auto code = static_cast<int16_t>(roundToCode(format, scale, static_cast<float>(getWanted(column))));
    if (code == codes[column])
      return;
    if (moveTo(column, elements[column] - static_cast<double>(scale.valueOf(code))))
      codes[column] = code;
  }

  void refineOutlier(int64_t column) {
    auto value = static_cast<float>(static_cast<_Float16>(getWanted(column)));
    if (std::isfinite(value) && moveTo(column, elements[column] - static_cast<double>(value)))
      outliers.value(outliers.next) = value;
  }

  AffineFormat format;
  std::span<const bool> isFixed;
  std::span<int16_t> codes;
  std::span<AffineScale> scales;
  RowOutliers outliers;
  int64_t width;
  std::vector<double> steps; // of a group
};

void Row::refineScale(int64_t group, double *moved) {
  int64_t begin = group * width, end = std::min(begin + width, hessian.size);
  AffineScale &scale = scales[group];
  // What the elements mean, in multiples of the scale.
  steps.resize(end - begin);
  for (int64_t i = begin; i < end; ++i)
    steps[i - begin] = static_cast<double>(codes[i] - scale.zero);
  double slope = multiplyAndAdd(steps.data(), gradient + begin, end - begin), curvature = 0;
  for (int64_t i = begin; i < end; ++i)
    if (steps[i - begin] != 0)
      curvature += steps[i - begin] * multiplyAndAdd(steps.data(), hessian.row(i) + begin, end - begin);
  float wanted = curvature > 0 ? scale.scale + static_cast<float>(slope / curvature) : scale.scale;
  if (format.hasHalfScales)
    wanted = static_cast<float>(static_cast<_Float16>(wanted));
  double change = static_cast<double>(wanted) - scale.scale;
  std::fill_n(moved, end - begin, 0.0);
  // The error becomes less by 2 change slope - change² curvature.
  if (!std::isfinite(wanted) || wanted == 0 || !(change * (2 * slope - change * curvature) > 0))
    return;
  AffineScale before = scale;
  scale.scale = wanted;
  for (int64_t i = begin; i < end; ++i) {
    moved[i - begin] = static_cast<double>(scale.valueOf(codes[i])) - before.valueOf(codes[i]);
    difference[i] -= moved[i - begin];
  }
}

/// A scale moves every element of its group, whose gradients are one product for all rows.
void refineScales(std::vector<Row> &rows, const DampedHessian &hessian, int64_t width, double *gradients) {
  std::vector<double> moved(rows.size() * static_cast<size_t>(width));
  for (int64_t group = 0; group * width < hessian.size; ++group) {
    for (size_t r = 0; r < rows.size(); ++r)
      rows[r].refineScale(group, &moved[r * static_cast<size_t>(width)]);
    int64_t begin = group * width, depth = std::min(width, hessian.size - begin);
    subtractProduct(static_cast<int64_t>(rows.size()), hessian.size, depth, {moved.data(), width},
                    {hessian.row(begin), hessian.size}, {gradients, hessian.size});
  }
}

} // namespace

absl::Status refine(const Weight &weight, const AffineFormat &format, const Hessian &hessian, int64_t passes,
                    AffineWeight &rounded, SparseWeight *outliers) {
  HONE_RETURN_IF_ERROR(checkSize(weight, hessian));
  DampedHessian damped(hessian);
  int64_t columns = weight.columns, width = format.width(columns);
  auto isFixed = std::make_unique<bool[]>(columns);
  for (int64_t i = 0; i < columns; ++i)
    isFixed[i] = hessian.diagonal(i) == 0;
#pragma omp parallel for schedule(dynamic)
  for (int64_t first = 0; first < weight.rows; first += kDescentRows) {
    int64_t count = std::min(kDescentRows, weight.rows - first);
    std::vector<double> differences(count * columns), missing(count * columns), gradients(count * columns);
    for (int64_t r = 0; r < count; ++r) {
      double *difference = &differences[r * columns];
      for (int64_t i = 0; i < columns; ++i)
        difference[i] =
            static_cast<double>(weight.row(first + r)[i]) -
            rounded.scales[(first + r) * rounded.groups + i / width].valueOf(rounded.codes[(first + r) * columns + i]);
      RowOutliers sparse(outliers, first + r);
      for (int64_t i = 0; i < sparse.count; ++i)
        difference[sparse.column(i)] -= sparse.value(i);
      std::transform(difference, difference + columns, &missing[r * columns], std::negate<>());
    }
    subtractProduct(count, columns, columns, {missing.data(), columns}, {damped.elements.data(), columns},
                    {gradients.data(), columns});
    std::vector<Row> rows;
    for (int64_t r = 0; r < count; ++r)
      rows.emplace_back(format, damped, weight.row(first + r),
                        std::span<const bool>(isFixed.get(), static_cast<size_t>(columns)),
                        std::span(rounded.codes).subspan((first + r) * columns, columns),
                        std::span(rounded.scales).subspan((first + r) * rounded.groups, rounded.groups),
                        RowOutliers(outliers, first + r), &differences[r * columns], &gradients[r * columns]);
    for (int64_t pass = 0; pass < passes; ++pass) {
      refineScales(rows, damped, width, gradients.data());
      // Column by column, so that each row of H' comes from memory once.
      for (int64_t column = 0; column < columns; ++column)
        for (int64_t r = 0; r < count; ++r)
          rows[r].refineElement(column);
    }
  }
  return absl::OkStatus();
}

} // namespace hone::compress
