// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One sweep over the columns of a weight, for every method that fixes them one after the other.

#ifndef HONE_LIB_COMPRESS_COLUMNSWEEP_H
#define HONE_LIB_COMPRESS_COLUMNSWEEP_H

#include "DenseProduct.h"
#include "hone/Compress/InverseFactor.h"
#include "hone/Compress/Matrix.h"

#include <limits>
#include <numeric>
#include <vector>

namespace hone::compress {

/// Columns whose errors are spread over the rest at once (GPTQ, section 3.3, "lazy batch updates").
constexpr int64_t kSweepColumns = 128;

/// The largest number of columns up to kSweepColumns that `width` divides, or `width` where that is larger.
inline int64_t getSweepBlock(int64_t width) { return std::max(kSweepColumns / width, int64_t(1)) * width; }

/// What an error of each column costs in the sweep, 1 / R_jj², in the weight's order and relative to the largest, so that f32
/// holds them.
inline std::vector<float> getErrorCosts(const InverseFactor &factor) {
  double least = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < factor.size(); ++i)
    least = std::min(least, factor.diagonal(i));
  std::vector<float> importance(factor.size());
  for (int64_t i = 0; i < factor.size(); ++i) {
    double share = least / factor.diagonal(i);
    importance[factor.column(i)] = static_cast<float>(share * share);
  }
  return importance;
}

/// Makes the columns that never see an input 0.
inline void clearDeadColumns(const Weight &weight, const InverseFactor &factor) {
  for (int64_t i = 0; i < weight.columns; ++i)
    if (factor.isDead(i))
      for (int64_t row = 0; row < weight.rows; ++row)
        weight.row(row)[factor.column(i)] = 0;
}

/// Rows of a weight in the order of the sweep, in f64, and what is done with them.
class ColumnSweep {
public:
  /// `block` columns are fixed at a time; errors within one are spread at once.
  ColumnSweep(const Weight &weight, const InverseFactor &factor, int64_t block)
      : weight(weight), factor(factor), block(block) {}

  /// Calls `fix(row, i, current)` for every row and every i in order, i counted in the sweep: `current` are the elements of
  /// columns i and following, up to the end of the block, as corrected so far. It returns the value of column i, which the weight
  /// then has. Rows are in parallel. Returns the sum of ((w - value) / R_ii)².
  template <typename Fix> double run(const Fix &fix) const {
    std::vector<double> losses(weight.rows);
#pragma omp parallel for schedule(dynamic)
    for (int64_t first = 0; first < weight.rows; first += kRows)
      sweepRows(first, std::min(kRows, weight.rows - first), fix, losses.data());
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }

private:
  /// Rows that a thread takes at a time; R is read once for them.
  static constexpr int64_t kRows = 32;

  template <typename Fix>
  void sweepRows(int64_t first, int64_t count, const Fix &fix, double *losses) const {
    int64_t columns = weight.columns;
    std::vector<double> rows(count * columns), errors(count * block);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < columns; ++i)
        rows[r * columns + i] = weight.row(first + r)[factor.column(i)];
    for (int64_t begin = 0; begin < columns; begin += block) {
      int64_t end = std::min(begin + block, columns);
      for (int64_t r = 0; r < count; ++r)
        losses[first + r] += sweepBlock(first + r, begin, end, fix, &rows[r * columns], &errors[r * block]);
      subtractProduct(count, columns - end, end - begin, {errors.data(), block},
                      {factor.data() + begin * columns + end, columns}, {rows.data() + end, columns});
    }
  }

  /// Columns [begin, end) of one row, `row` being all of its columns; their errors divided by R_ii go to `errors`.
  template <typename Fix>
  double sweepBlock(int64_t number, int64_t begin, int64_t end, const Fix &fix, double *row, double *errors) const {
    double loss = 0;
    for (int64_t i = begin; i < end; ++i) {
      float value = fix(number, i, std::span<const double>(row + i, end - i));
      double error = (row[i] - static_cast<double>(value)) / factor.diagonal(i);
      const double *spread = factor.data() + i * weight.columns;
      for (int64_t later = i + 1; later < end; ++later)
        row[later] -= error * spread[later];
      weight.row(number)[factor.column(i)] = value;
      errors[i - begin] = error;
      loss += error * error;
    }
    return loss;
  }

  Weight weight;
  const InverseFactor &factor;
  int64_t block;
};

} // namespace hone::compress

#endif // HONE_LIB_COMPRESS_COLUMNSWEEP_H
