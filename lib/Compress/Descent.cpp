// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products in f64 that every method of descent needs.

#include "Descent.h"

#include "EveryWidth.h"

#include <algorithm>
#include <cmath>

namespace hone::compress {

absl::Status checkSize(const Weight &weight, const Hessian &hessian) {
  if (hessian.size != weight.columns)
    return io::invalid("expected a Hessian of ", weight.columns, " inputs, but got ", hessian.size);
  if (!std::ranges::all_of(hessian.elements, [](float element) { return std::isfinite(element); }))
    return io::invalid("expected Hessians to be finite");
  return absl::OkStatus();
}

DampedHessian::DampedHessian(const Hessian &hessian)
    : size(hessian.size), elements(hessian.elements.begin(), hessian.elements.end()) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i)
    sum += elements[i * size + i] = at(i, i) == 0 ? 1 : at(i, i);
  for (int64_t i = 0; i < size; ++i)
    elements[i * size + i] += kDamping * sum / static_cast<double>(size);
}

HONE_EVERY_WIDTH
void addMultiple(double factor, const double *from, int64_t count, double *to) {
  for (int64_t j = 0; j < count; ++j)
    to[j] += factor * from[j];
}

/// In lanes of their own, so that every width of vectors adds in the same order.
HONE_EVERY_WIDTH
double multiplyAndAdd(const double *a, const double *b, int64_t count) {
  constexpr int64_t kLanes = 8;
  double sums[kLanes] = {}, sum = 0;
  int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      sums[lane] += a[j + lane] * b[j + lane];
  for (; j < count; ++j)
    sum += a[j] * b[j];
  for (double lane : sums)
    sum += lane;
  return sum;
}

bool RowDifference::moveTo(int64_t column, double missing) {
  double change = missing - difference[column];
  if (!(change * (2 * gradient[column] + change * hessian.at(column, column)) < 0))
    return false;
  difference[column] = missing;
  addMultiple(change, hessian.row(column), hessian.size, gradient);
  return true;
}

} // namespace hone::compress
