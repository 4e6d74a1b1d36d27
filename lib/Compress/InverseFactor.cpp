// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// H' = V Vᵀ from the last block of columns to the first, then R = V⁻¹ from the last block of rows to the first, in one array.

#include "hone/Compress/InverseFactor.h"

#include "DenseProduct.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace hone::compress {
namespace {

using io::invalid;

/// Columns that are factored at once, without products of blocks.
constexpr int64_t kBlock = 64;
/// Rows or columns that a thread takes at a time.
constexpr int64_t kTile = 64;

/// A matrix of which the upper triangle is factored in place, and the factor inverted in place.
class Factoring {
public:
  Factoring(double *elements, int64_t size) : elements(elements), size(size), corner(kBlock * kBlock) {}

  /// The upper triangle becomes V, except that blocks on the diagonal become their inverses. Returns the first column, from
  /// the last on, without a positive pivot; -1 if all have one.
  int64_t factor();
  /// After that, the upper triangle becomes V⁻¹.
  void invert();

private:
  double *at(int64_t i, int64_t j) { return elements + i * size + j; }
  int64_t factorCorner(int64_t begin, int64_t width);
  void invertCorner(int64_t width);
  void updateBefore(int64_t begin, int64_t width);
  void invertRows(int64_t begin, int64_t width);

  double *elements;
  int64_t size;
  std::vector<double> corner; // the block on the diagonal, as many elements a row as it has columns
};

int64_t Factoring::factorCorner(int64_t begin, int64_t width) {
  for (int64_t i = 0; i < width; ++i)
    std::copy_n(at(begin + i, begin), width, &corner[i * width]);
  for (int64_t j = width - 1; j >= 0; --j) {
    double pivot = corner[j * width + j];
    if (!(pivot > 0) || !std::isfinite(pivot))
      return begin + j;
    double root = std::sqrt(pivot);
    corner[j * width + j] = root;
    for (int64_t i = 0; i < j; ++i)
      corner[i * width + j] /= root;
    for (int64_t i = 0; i < j; ++i)
      for (int64_t k = i; k < j; ++k)
        corner[i * width + k] -= corner[i * width + j] * corner[k * width + j];
  }
  return -1;
}

void Factoring::invertCorner(int64_t width) {
  for (int64_t i = width - 1; i >= 0; --i) {
    double inverse = 1 / corner[i * width + i];
    for (int64_t j = width - 1; j > i; --j) {
      double sum = 0;
      for (int64_t k = i + 1; k <= j; ++k) // later rows are inverted already
        sum += corner[i * width + k] * corner[k * width + j];
      corner[i * width + j] = -sum * inverse;
    }
    corner[i * width + i] = inverse;
  }
}

/// Columns [begin, begin + width) above the diagonal become V, and what lies left of them loses their products.
void Factoring::updateBefore(int64_t begin, int64_t width) {
  std::vector<double> inverse(width * width), transposed(width * begin);
  for (int64_t i = 0; i < width; ++i)
    for (int64_t j = i; j < width; ++j)
      inverse[j * width + i] = -corner[i * width + j];
#pragma omp parallel
  {
    std::vector<double> rows(kTile * width);
#pragma omp for schedule(static)
    for (int64_t first = 0; first < begin; first += kTile) {
      int64_t count = std::min(kTile, begin - first);
      std::fill(rows.begin(), rows.end(), 0.0);
      subtractProduct(count, width, width, {at(first, begin), size}, {inverse.data(), width}, {rows.data(), width});
      for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < width; ++j)
          *at(first + i, begin + j) = transposed[j * begin + first + i] = rows[i * width + j];
    }
#pragma omp for schedule(dynamic)
    for (int64_t first = 0; first < begin; first += kTile)
      subtractProduct(std::min(kTile, begin - first), begin - first, width, {at(first, begin), size},
                      {transposed.data() + first, begin}, {at(first, first), size});
  }
}

int64_t Factoring::factor() {
  for (int64_t end = size; end > 0;) {
    int64_t begin = (end - 1) / kBlock * kBlock, width = end - begin;
    if (int64_t failed = factorCorner(begin, width); failed >= 0)
      return failed;
    invertCorner(width);
    updateBefore(begin, width);
    for (int64_t i = 0; i < width; ++i) {
      std::fill_n(at(begin + i, begin), i, 0.0); // where products of whole tiles have left something
      std::copy_n(&corner[i * width + i], width - i, at(begin + i, begin + i));
    }
    end = begin;
  }
  return -1;
}

/// Rows [begin, begin + width) right of the diagonal, once those below are inverted: minus the inverse of the corner times
/// the product of these rows with those.
void Factoring::invertRows(int64_t begin, int64_t width) {
  int64_t end = begin + width, following = size - end;
  std::vector<double> rows(width * following), inverse(width * width);
  for (int64_t i = 0; i < width; ++i) {
    std::copy_n(at(begin + i, end), following, &rows[i * following]);
    for (int64_t j = i; j < width; ++j)
      inverse[i * width + j] = -*at(begin + i, begin + j);
  }
#pragma omp parallel
  {
    std::vector<double> products(width * kTile);
#pragma omp for schedule(dynamic)
    for (int64_t first = 0; first < following; first += kTile) {
      int64_t count = std::min(kTile, following - first);
      std::fill(products.begin(), products.end(), 0.0);
      subtractProduct(width, count, first + count, {rows.data(), following}, {at(end, end + first), size},
                      {products.data(), kTile});
      for (int64_t i = 0; i < width; ++i)
        std::fill_n(at(begin + i, end + first), count, 0.0);
      subtractProduct(width, count, width, {inverse.data(), width}, {products.data(), kTile},
                      {at(begin, end + first), size});
    }
  }
}

void Factoring::invert() {
  for (int64_t end = size; end > 0;) {
    int64_t begin = (end - 1) / kBlock * kBlock;
    invertRows(begin, end - begin);
    end = begin;
  }
}

} // namespace

absl::Status checkHessian(const Hessian &hessian) {
  for (int64_t i = 0; i < hessian.size; ++i)
    for (int64_t j = 0; j < hessian.size; ++j)
      if (!std::isfinite(hessian.elements[i * hessian.size + j]))
        return invalid("expected the Hessian of inputs ", i, " and ", j, " to be finite, but got ",
                       hessian.elements[i * hessian.size + j]);
  for (int64_t i = 0; i < hessian.size; ++i)
    if (hessian.diagonal(i) < 0)
      return invalid("expected the Hessian of input ", i, " to be 0 or more, but got ", hessian.diagonal(i));
  return absl::OkStatus();
}

absl::StatusOr<InverseFactor> InverseFactor::create(const Hessian &hessian, std::span<const int64_t> order,
                                                    double damping) {
  HONE_RETURN_IF_ERROR(checkHessian(hessian));
  InverseFactor factor;
  int64_t size = factor.columns = hessian.size;
  factor.order.assign(order.begin(), order.end());
  if (order.empty()) {
    factor.order.resize(size);
    std::iota(factor.order.begin(), factor.order.end(), 0);
  }
  factor.dead.resize(size);
  factor.elements.resize(size * size);
  double sum = 0;
  for (int64_t j = 0; j < size; ++j)
    sum += hessian.diagonal(j) == 0 ? 1.0 : static_cast<double>(hessian.diagonal(j));
  double added = size ? damping * sum / static_cast<double>(size) : 0;
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = i; j < size; ++j) {
      auto [least, most] = std::minmax(factor.order[i], factor.order[j]);
      factor.elements[i * size + j] = hessian.elements[least * size + most];
    }
    factor.dead[i] = hessian.diagonal(factor.order[i]) == 0;
    factor.elements[i * size + i] += (factor.dead[i] ? 1 : 0) + added;
  }
  Factoring factoring(factor.elements.data(), size);
  if (int64_t failed = factoring.factor(); failed >= 0)
    return invalid("expected the Hessian to be positive definite with a damping of ", damping,
                   ", but got no positive pivot for input ", factor.order[failed]);
  factoring.invert();
  return factor;
}

std::vector<int64_t> orderByDiagonal(const Hessian &hessian) {
  std::vector<int64_t> order(hessian.size);
  std::iota(order.begin(), order.end(), 0);
  auto key = [&](int64_t i) { // a total order, whatever the diagonal holds
    float element = hessian.diagonal(i);
    return std::pair(std::isnan(element) ? 0 : -element, i);
  };
  std::ranges::sort(order, {}, key);
  return order;
}

/// w H wᵀ of each row of `rows`.
static void addEnergies(const std::vector<double> &rows, const Hessian &hessian, std::span<double> sums) {
  // w H wᵀ = sum over i of w_i (H_ii w_i + 2 sum over j > i of H_ij w_j), in blocks of rows of H.
  int64_t size = hessian.size, count = static_cast<int64_t>(sums.size());
  std::vector<double> products(count * size), block(kBlock * size);
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    int64_t width = std::min(kBlock, size - begin), following = size - begin;
    for (int64_t i = 0; i < width; ++i)
      for (int64_t j = 0; j < following; ++j) {
        double element = hessian.elements[(begin + i) * size + begin + j];
        block[i * size + j] = j < i ? 0 : j == i ? -element : -2 * element;
      }
    subtractProduct(count, following, width, {rows.data() + begin, size}, {block.data(), size},
                    {products.data() + begin, size});
  }
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < size; ++j)
      sums[i] += products[i * size + j] * rows[i * size + j];
}

double outputEnergy(const Weight &weight, const Hessian &hessian) {
  std::vector<double> sums(weight.rows);
#pragma omp parallel for schedule(dynamic)
  for (int64_t first = 0; first < weight.rows; first += kTile) {
    int64_t count = std::min(kTile, weight.rows - first);
    auto rows = weight.elements.subspan(first * weight.columns, count * weight.columns);
    addEnergies({rows.begin(), rows.end()}, hessian, std::span(sums).subspan(first, count));
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double relativeOutputError(const Weight &before, const Weight &after, const Hessian &hessian) {
  int64_t columns = before.columns;
  std::vector<double> energies(before.rows), changes(before.rows);
#pragma omp parallel for schedule(dynamic)
  for (int64_t first = 0; first < before.rows; first += kTile) {
    int64_t count = std::min(kTile, before.rows - first);
    auto old = before.elements.subspan(first * columns, count * columns),
         changed = after.elements.subspan(first * columns, count * columns);
    // Both at once, so that H is read once for them.
    std::vector<double> rows(old.begin(), old.end()), sums(2 * count);
    std::ranges::transform(old, changed, std::back_inserter(rows), std::minus<float>());
    addEnergies(rows, hessian, sums);
    std::copy_n(sums.begin(), count, energies.begin() + first);
    std::copy_n(sums.begin() + count, count, changes.begin() + first);
  }
  double energy = std::accumulate(energies.begin(), energies.end(), 0.0);
  return energy > 0 ? std::sqrt(std::accumulate(changes.begin(), changes.end(), 0.0) / energy) : 0;
}

} // namespace hone::compress
