// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dense and sparse: a few elements of a weight that are kept apart in f16, so that the others round better. Which those are,
// and their form.

#ifndef HONE_COMPRESS_OUTLIERS_H
#define HONE_COMPRESS_OUTLIERS_H

#include "hone/Compress/AffineLevels.h"
#include "hone/Compress/Matrix.h"
#include "hone/io/status.h"

#include <vector>

namespace hone::compress {

/// Which elements of a weight [N, K] are kept apart, row-major.
using Outliers = std::vector<bool>;

// Each way to choose marks `count` elements, or all where there are fewer; of equal ones those that come first. None depends on
// the number of threads.

/// The highest of `scores`; a NaN is the highest of all.
Outliers markHighest(std::span<const float> scores, int64_t count);

/// The largest magnitudes. The threshold max(|Q1 - r IQR|, |Q3 + r IQR|) between quartiles that SqueezeLLM tunes by r until
/// it leaves a share of elements (Kim et al., "SqueezeLLM", 2024, section 4.2) marks the same ones.
Outliers markLargest(const Weight &weight, int64_t count);

/// The highest w_j² H_jj: what the outputs lose where the element is 0 and nothing makes up for it.
Outliers markSensitive(const Weight &weight, const SecondMoment &moment, int64_t count);

/// The elements whose group loses least without them, one after the other: an element takes its own error of rounding with it,
/// and where it is one of the largest of its group, the others get a finer scale (the leave-one-out criterion of Dettmers et
/// al., "SpQR", 2023, section 3.2). Up to kMostTogether of the largest leave together where that gains more for each. Errors
/// are squared, and those of column j count importance[j] times, or once where it is empty. Each element that leaves costs
/// O(group), beside O(N K) in the beginning. Groups without a finite scale lose nothing.
Outliers markCostly(const Weight &weight, const AffineFormat &format, std::span<const float> importance, int64_t count);

/// Largest elements of a group that markCostly looks at together.
constexpr int64_t kMostTogether = 4;

/// Some elements of a weight [N, K], row by row: those of row r are numbers starts[r] … starts[r + 1] - 1.
struct SparseWeight {
  std::vector<int32_t> starts;   // [N + 1]
  std::vector<uint16_t> columns; // ascending in a row
  std::vector<float> values;     // of f16

  int64_t size() const { return static_cast<int64_t>(columns.size()); }
};

/// Most columns of a weight whose columns SparseWeight can say.
constexpr int64_t kMostSparseColumns = int64_t(1) << 16;

/// Takes the elements that `outliers` marks out of `weight`, which has 0 in their place; they are rounded to f16, to nearest, ties
/// to even. Fails, naming the row, where one is not finite then.
absl::StatusOr<SparseWeight> detach(const Weight &weight, const Outliers &outliers);

/// Puts them back.
void attach(const SparseWeight &outliers, const Weight &weight);

} // namespace hone::compress

#endif // HONE_COMPRESS_OUTLIERS_H
