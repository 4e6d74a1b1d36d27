// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dense and sparse: a few elements of a weight, its outliers, stored separately in f16, so that the others
// round better. Which those are,
// and their form.

#ifndef HONE_COMPRESS_OUTLIERS_H
#define HONE_COMPRESS_OUTLIERS_H

#include "hone/Compress/AffineQuantization.h"
#include "hone/Compress/Matrix.h"
#include "hone/io/status.h"

#include <vector>

namespace hone::compress {

/// Which elements of a weight [N, K] are outliers, row-major.
using Outliers = std::vector<bool>;

/// Rows that have the same number of outliers, a panel: the lanes of the registers that multiply them.
constexpr int64_t kSparseRows = 16;

inline int64_t countSparsePanels(int64_t rows) { return (rows + kSparseRows - 1) / kSparseRows; }

// Each way to choose marks outliers for `slots` slots, each of which is one element of every row of a panel: as many of all panels
// as gain most together, and then of each row so many that gain most. No slot is left empty but for rows that are not there, and on
// trained weights a free choice of as many elements lost as much. Of equal ones those that come first; all where elements
// are fewer. None depends on the number of threads.

/// The highest of `scores`, [N, `columns`], 0 or more each; a NaN is the highest of all.
Outliers markHighest(std::span<const float> scores, int64_t columns, int64_t slots);

/// The largest magnitudes, which SqueezeLLM takes by a threshold between quartiles (Kim et al., "SqueezeLLM", 2024, section 4.2).
Outliers markLargest(const Weight &weight, int64_t slots);

/// The highest w_j² H_jj: what the outputs lose where the element is 0, without error compensation.
Outliers markSensitive(const Weight &weight, const Hessian &hessian, int64_t slots);

/// The elements whose group loses least without them, one after the other: an element takes its own error of rounding with it,
/// and where it is one of the largest of its group, the others get a finer scale (the leave-one-out criterion of Dettmers et
/// al., "SpQR", 2023, section 3.2). Up to kMostTogether of the largest leave together where that gains more for each. Errors
/// are squared, and those of column j count importance[j] times, or once where it is empty. Each element that leaves costs
/// O(group), beside O(N K) in the beginning. Groups without a finite scale lose nothing. Parallel over rows.
Outliers markCostly(const Weight &weight, const AffineFormat &format, std::span<const float> importance, int64_t slots);

/// Largest elements of a group that markCostly looks at together.
constexpr int64_t kMostTogether = 4;

/// Some elements of a weight [N, K], as many of each row of a panel. Row r, row r % 16 of panel r / 16, has its j-th one at at(r, j).
struct SparseWeight {
  std::vector<int32_t> starts;   // [panels + 1]: where the slots of a panel begin, and all end
  std::vector<uint16_t> columns; // [slots, 16], ascending in a row; 0 for rows that are not there
  std::vector<float> values;     // [slots, 16], of f16; 0 for rows that are not there

  int64_t slots() const { return starts.empty() ? 0 : starts.back(); }
  int64_t count(int64_t row) const { return starts[row / kSparseRows + 1] - starts[row / kSparseRows]; }
  int64_t at(int64_t row, int64_t number) const {
    return (starts[row / kSparseRows] + number) * kSparseRows + row % kSparseRows;
  }
};

/// Most columns of a weight whose columns SparseWeight can say.
constexpr int64_t kMostSparseColumns = int64_t(1) << 16;

/// Takes the elements that `outliers` marks out of `weight`, which has 0 in their place; they are rounded to f16, to nearest, ties
/// to even. Fails, naming the row, where one is not finite then, or where rows of a panel have different numbers of
/// them.
absl::StatusOr<SparseWeight> detach(const Weight &weight, const Outliers &outliers);

/// Puts them back.
void attach(const SparseWeight &outliers, const Weight &weight);

/// Adds the panels of `below`, the outliers of rows that come next, to `outliers`. Those before fill whole panels, or there are none
/// of either.
void append(const SparseWeight &below, SparseWeight &outliers);

/// Makes each outlier what `weight` has there more than `base`, of the same size, rounded to f16: where a base has no 0.
void takeMissing(const Weight &weight, const Weight &base, SparseWeight &outliers);

/// Adds outliers that takeMissing made to that base.
void addMissing(const SparseWeight &outliers, const Weight &base);

} // namespace hone::compress

#endif // HONE_COMPRESS_OUTLIERS_H
