// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of weights as indices into a few centroids of their own, which may lie anywhere: to the nearest of the best centroids, or with
// error compensation in later elements.

#ifndef HONE_COMPRESS_CODEBOOK_H
#define HONE_COMPRESS_CODEBOOK_H

#include "hone/Compress/InverseFactor.h"
#include "hone/Compress/Outliers.h"

#include <vector>

namespace hone::compress {

/// What #hone.codebook says of centroids; dialects/Hone/HoneEncodings.td describes it.
struct CodebookFormat {
  enum class CentroidType { F32, F16, Bf16 };

  int64_t bits;      // 1 … 8
  CentroidType type; // that a row's are rounded to before they are used

  int64_t entries() const { return int64_t(1) << bits; }
  /// The value of the type that is nearest, ties to even; an infinity where it has none so large.
  float round(float value) const;
};

/// A weight [N, K] in a CodebookFormat.
struct CodebookWeight {
  int64_t rows, columns, entries;
  std::vector<uint8_t> indices; // [N, K]
  std::vector<float> codebook;  // [N, entries], ascending in a row until they are refined

  CodebookWeight(const CodebookFormat &format, int64_t rows, int64_t columns)
      : rows(rows), columns(columns), entries(format.entries()), indices(rows * columns), codebook(rows * entries) {}

  std::span<const float> centroidsOf(int64_t row) const { return std::span(codebook).subspan(row * entries, entries); }
};

/// Writes the centroids that `rounded` means to `weight`, which is of its size.
void writeValues(const CodebookWeight &rounded, const Weight &weight);

/// The index of the centroid nearest to `element`, of equally near ones the first.
int64_t findNearest(std::span<const float> centroids, double element);

/// The centroids c, at most `count` and ascending, with the least Σ importance_j (element_j - c)² over all elements and the nearest c of each; as
/// important as each other where `importance` is empty, and of no importance where it is 0. Exact, by dynamic programming over
/// sorted elements (Wang and Song, "Ckmeans.1d.dp", 2011), each row of the table by halves, since the best place of the last cut
/// never moves down (Grønlund et al., "Fast exact k-means, k-medians and Bregman divergence clustering in 1D", 2017):
/// O(count K log K). With no more different elements than `count`, those.
std::vector<double> findCentroids(std::span<const float> elements, std::span<const float> importance, int64_t count);

/// Every element to the nearest of its row's best centroids (Kim et al., "SqueezeLLM", 2024, section 4.1, where k-means begins at
/// random). `importance` is that of columns, [K], of elements, [N, K], or empty. Elements that `outliers` marks do not count, and
/// get the centroid nearest to 0. A row in which more than every 2^bits-th element is 0 has the centroid 0, and
/// the best others: what was pruned stays pruned. Parallel over rows. Fails, naming the row, where an element is not finite, or
/// a centroid is too large for its type.
absl::StatusOr<CodebookWeight> roundToCodebook(const Weight &weight, const CodebookFormat &format,
                                               std::span<const float> importance = {}, const Outliers &outliers = {});

/// The same with centroids for 1 / R_jj², what an error costs in the sweep, and then column after column in the order of `factor`,
/// with error compensation in the following ones, as roundWithCompensation does it with codes; what is said there of zeros,
/// columns without inputs and outliers holds here, but that an outlier becomes what the f16 above its centroid means. Where H' is a multiple of the
/// identity, the result is that of roundToCodebook. `weight` is left with the values.
absl::StatusOr<CodebookWeight> roundToCodebookWithCompensation(const Weight &weight, const CodebookFormat &format,
                                                               const InverseFactor &factor,
                                                               const Outliers &outliers = {});

/// Lowers tr(D H' Dᵀ), D = `weight` - values of `rounded` and `outliers`, as refine does it for codes: `passes` times every centroid of a row becomes the
/// best for all else, then the index of every element, and every outlier. Centroids that are 0 stay so. N K² operations in f64 a pass at most, and as
/// many before. Parallel over rows. Fails as refine does.
absl::Status refineCodebook(const Weight &weight, const CodebookFormat &format, const Hessian &hessian, int64_t passes,
                            CodebookWeight &rounded, SparseWeight *outliers = nullptr);

} // namespace hone::compress

#endif // HONE_COMPRESS_CODEBOOK_H
