// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Descent over the centroids, indices and outliers of rows: centroids by least squares, indices one at a time.

#include "hone/Compress/Codebook.h"

#include "DenseProduct.h"
#include "Descent.h"

#include <cmath>
#include <functional>

namespace hone::compress {
namespace {

/// What all rows have in common.
struct Descent {
  const CodebookFormat &format;
  const DampedHessian &hessian;
  const std::vector<bool> &isFixed; // columns
};

/// One row: its indices and centroids, and what they miss.
class CodebookRow : RowDifference {
public:
  CodebookRow(const Descent &descent, const Weight &weight, int64_t row, CodebookWeight &rounded,
              const RowOutliers &outliers, double *difference, double *gradient)
      : RowDifference(descent.hessian, weight.row(row), difference, gradient), format(descent.format),
        isFixed(descent.isFixed), indices(std::span(rounded.indices).subspan(row * rounded.columns, rounded.columns)),
        centroids(std::span(rounded.codebook).subspan(row * rounded.entries, rounded.entries)), outliers(outliers) {}

  /// The gradient is left to the caller: `moved` gets, for each column, by how much its difference became less.
  void refineCentroids(double *moved);
  /// The index of a column, or its outlier; to be called for one column after the other.
  void refineElement(int64_t column);

private:
  void sumByCentroid(std::vector<double> &curvature, std::vector<double> &slope) const;
  bool isPinned(int64_t centroid) const { return centroids[centroid] == 0; }

  const CodebookFormat &format;
  const std::vector<bool> &isFixed;
  std::span<uint8_t> indices;
  std::span<float> centroids;
  RowOutliers outliers;
};

/// Aᵀ H' A and Aᵀ g, where A [K, entries] says which centroid each column has. Centroids that no column has, or that stay 0, have a 1
/// on the diagonal and nothing else.
void CodebookRow::sumByCentroid(std::vector<double> &curvature, std::vector<double> &slope) const {
  int64_t size = hessian.size;
  size_t entries = centroids.size();
  std::vector<double> sums(entries * static_cast<size_t>(size)); // A^T H', a centroid a row
  for (int64_t k = 0; k < size; ++k)
    if (!isFixed[k])
      addMultiple(1, hessian.row(k), size, &sums[indices[k] * static_cast<size_t>(size)]);
  for (size_t a = 0; a < entries; ++a)
    for (int64_t k = 0; k < size; ++k)
      if (!isFixed[k])
        curvature[a * entries + indices[k]] += sums[a * static_cast<size_t>(size) + static_cast<size_t>(k)];
  for (int64_t k = 0; k < size; ++k)
    if (!isFixed[k])
      slope[indices[k]] += gradient[k];
  for (size_t a = 0; a < entries; ++a) {
    if (curvature[a * entries + a] > 0 && !isPinned(static_cast<int64_t>(a)))
      continue;
    for (size_t b = 0; b < entries; ++b)
      curvature[a * entries + b] = curvature[b * entries + a] = 0;
    curvature[a * entries + a] = 1;
    slope[a] = 0;
  }
}

/// Solves a · x = b by Cholesky's factor, a [n, n] symmetric and positive definite; false where it is not. b becomes x.
bool solve(std::vector<double> a, std::vector<double> &b) {
  size_t n = b.size();
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (size_t k = 0; k < j; ++k)
        sum -= a[i * n + k] * a[j * n + k];
      if (i == j && !(sum > 0))
        return false;
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k)
      b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k)
      b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
  return true;
}

void CodebookRow::refineCentroids(double *moved) {
  size_t entries = centroids.size();
  std::vector<double> curvature(entries * entries), slope(entries);
  std::fill_n(moved, hessian.size, 0.0);
  sumByCentroid(curvature, slope);
  std::vector<double> changes = slope;
  if (!solve(curvature, changes))
    return;
  std::vector<float> wanted(entries);
  for (size_t a = 0; a < entries; ++a) {
    wanted[a] = format.round(centroids[a] + static_cast<float>(changes[a]));
    if (!std::isfinite(wanted[a]))
      return;
    changes[a] = static_cast<double>(wanted[a]) - centroids[a];
  }
  // The error becomes less by 2 changes · slope - changes · curvature · changes, with the changes that the type allows.
  double gain = 0;
  for (size_t a = 0; a < entries; ++a) {
    gain += 2 * changes[a] * slope[a];
    for (size_t b = 0; b < entries; ++b)
      gain -= changes[a] * curvature[a * entries + b] * changes[b];
  }
  if (!(gain > 0))
    return;
  std::ranges::copy(wanted, centroids.begin());
  for (int64_t k = 0; k < hessian.size; ++k) {
    moved[k] = isFixed[k] ? 0 : changes[indices[k]];
    difference[k] -= moved[k];
  }
}

void CodebookRow::refineElement(int64_t column) {
  bool isOutlier = outliers.isNext(column),
       stays = isFixed[column] || (elements[column] == 0 && isPinned(indices[column]));
  double wanted = getWanted(column), element = elements[column];
  if (isOutlier && !stays) {
    float centroid = centroids[indices[column]];
    auto value = static_cast<float>(static_cast<_Float16>(wanted - centroid));
    if (std::isfinite(value) && moveTo(column, element - centroid - static_cast<double>(value)))
      outliers.value(outliers.next) = value;
  } else if (!stays) {
    auto index = static_cast<uint8_t>(findNearest(centroids, wanted));
    if (index != indices[column] && moveTo(column, element - static_cast<double>(centroids[index])))
      indices[column] = index;
  }
  if (isOutlier)
    ++outliers.next;
  if (column + 1 == hessian.size)
    outliers.next = 0;
}

/// Rows that are refined together.
class RowBlock {
public:
  RowBlock(const Descent &descent, const Weight &weight, int64_t first, CodebookWeight &rounded, SparseWeight *outliers)
      : hessian(descent.hessian), count(std::min(kDescentRows, weight.rows - first)), differences(count * hessian.size),
        moved(count * hessian.size), gradients(count * hessian.size) {
    for (int64_t r = 0; r < count; ++r) {
      double *difference = &differences[r * hessian.size];
      RowOutliers sparse(outliers, first + r);
      for (int64_t i = 0; i < hessian.size; ++i)
        difference[i] = static_cast<double>(weight.row(first + r)[i]) -
                        rounded.centroidsOf(first + r)[rounded.indices[(first + r) * hessian.size + i]];
      for (int64_t i = 0; i < sparse.count; ++i)
        difference[sparse.column(i)] -= sparse.value(i);
      for (int64_t i = 0; i < hessian.size; ++i)
        difference[i] = descent.isFixed[i] ? 0 : difference[i];
      std::transform(difference, difference + hessian.size, &moved[r * hessian.size], std::negate<>());
      rows.emplace_back(descent, weight, first + r, rounded, sparse, difference, &gradients[r * hessian.size]);
    }
    follow();
  }

  void refine() {
    for (int64_t r = 0; r < count; ++r)
      rows[r].refineCentroids(&moved[r * hessian.size]);
    follow();
    // Column by column, so that each row of H' comes from memory once.
    for (int64_t column = 0; column < hessian.size; ++column)
      for (CodebookRow &row : rows)
        row.refineElement(column);
  }

private:
  /// Gradients lose what the differences have lost, times H'.
  void follow() {
    int64_t size = hessian.size;
    subtractProduct(count, size, size, {moved.data(), size}, {hessian.elements.data(), size}, {gradients.data(), size});
  }

  const DampedHessian &hessian;
  int64_t count;
  std::vector<double> differences, moved, gradients;
  std::vector<CodebookRow> rows;
};

} // namespace

absl::Status refineCodebook(const Weight &weight, const CodebookFormat &format, const Hessian &hessian, int64_t passes,
                            CodebookWeight &rounded, SparseWeight *outliers) {
  HONE_RETURN_IF_ERROR(checkSize(weight, hessian));
  DampedHessian damped(hessian);
  std::vector<bool> isFixed(weight.columns); // without inputs, where an error costs nothing
  for (int64_t i = 0; i < weight.columns; ++i)
    isFixed[i] = hessian.diagonal(i) == 0;
#pragma omp parallel for schedule(dynamic)
  for (int64_t first = 0; first < weight.rows; first += kDescentRows) {
    RowBlock block({format, damped, isFixed}, weight, first, rounded, outliers);
    for (int64_t pass = 0; pass < passes; ++pass)
      block.refine();
  }
  return absl::OkStatus();
}

} // namespace hone::compress
