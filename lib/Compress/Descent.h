// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What methods have in common that lower the error of the outputs one element after the other.

#ifndef HONE_LIB_COMPRESS_DESCENT_H
#define HONE_LIB_COMPRESS_DESCENT_H

#include "hone/Compress/InverseFactor.h"
#include "hone/Compress/Outliers.h"

#include <vector>

namespace hone::compress {

/// Rows that a thread takes at a time; H' is read once for their first gradients, and once a pass over their elements.
constexpr int64_t kDescentRows = 32;

/// Fails where H is not finite or not of the weight's inputs.
absl::Status checkSize(const Weight &weight, const Hessian &hessian);

/// H' in f64, and what of it is asked for often.
struct DampedHessian {
  int64_t size;
  std::vector<double> elements;

  explicit DampedHessian(const Hessian &hessian);
  double at(int64_t i, int64_t j) const { return elements[i * size + j]; }
  const double *row(int64_t i) const { return elements.data() + i * size; }
};

/// to += factor · from.
void addMultiple(double factor, const double *from, int64_t count, double *to);

/// Σ a · b, in the same order for every width of vectors.
double multiplyAndAdd(const double *a, const double *b, int64_t count);

/// The outliers of a row, by column; `next` is where the pass over the row is. Without any there is no weight.
struct RowOutliers {
  SparseWeight *weight = nullptr;
  int64_t row = 0, count = 0, next = 0;

  RowOutliers(SparseWeight *outliers, int64_t row) : row(row) {
    if (outliers && outliers->slots() > 0) {
      weight = outliers;
      count = outliers->count(row);
    }
  }
  int64_t column(int64_t number) const { return weight->columns[weight->at(row, number)]; }
  float &value(int64_t number) const { return weight->values[weight->at(row, number)]; }
  bool isNext(int64_t at) const { return next < count && column(next) == at; }
};

/// What a row misses, D = w - value, and its gradient D H', which follow every change.
class RowDifference {
public:
  RowDifference(const DampedHessian &hessian, std::span<const float> elements, double *difference, double *gradient)
      : hessian(hessian), elements(elements), difference(difference), gradient(gradient) {}

  /// What serves best in a column, all else as it is.
  double getWanted(int64_t column) const {
    return elements[column] - difference[column] + gradient[column] / hessian.at(column, column);
  }
  /// Makes a column miss so much, if that lowers the error.
  bool moveTo(int64_t column, double missing);

protected:
  const DampedHessian &hessian;
  std::span<const float> elements;
  double *difference, *gradient;
};

} // namespace hone::compress

#endif // HONE_LIB_COMPRESS_DESCENT_H
