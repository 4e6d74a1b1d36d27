// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random weights and Hessians for tests, and plain loops to compare with.

#ifndef HONE_TEST_UNIT_COMPRESS_MATRICES_H
#define HONE_TEST_UNIT_COMPRESS_MATRICES_H

#include "hone/Compress/Matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace hone::compress {

inline std::vector<float> makeRandom(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(generator);
  return values;
}

/// A weight that owns its elements.
struct OwnedWeight {
  std::vector<float> elements;
  int64_t rows, columns;

  OwnedWeight(int64_t rows, int64_t columns, unsigned seed = 1)
      : elements(makeRandom(rows * columns, seed)), rows(rows), columns(columns) {}
  Weight view() { return {elements, rows, columns}; }
  float at(int64_t row, int64_t column) const { return elements[row * columns + column]; }
};

struct OwnedHessian {
  std::vector<float> elements;
  int64_t size;

  explicit OwnedHessian(int64_t size) : elements(size * size), size(size) {}
  Hessian view() const { return {elements, size}; }
  double at(int64_t i, int64_t j) const { return elements[i * size + j]; }
  float &at(int64_t i, int64_t j) { return elements[i * size + j]; }

  static OwnedHessian identity(int64_t size, float factor) {
    OwnedHessian hessian(size);
    for (int64_t i = 0; i < size; ++i)
      hessian.at(i, i) = factor;
    return hessian;
  }

  static OwnedHessian diagonal(int64_t size, unsigned seed = 3) {
    OwnedHessian hessian(size);
    std::vector<float> roots = makeRandom(size, seed);
    for (int64_t i = 0; i < size; ++i)
      hessian.at(i, i) = roots[i] * roots[i] + 0.01f;
    return hessian;
  }

  /// Of inputs that depend on each other and are of different sizes.
  static OwnedHessian random(int64_t size, unsigned seed = 2) {
    int64_t samples = 3 * size;
    std::vector<float> x = makeRandom(samples * size, seed);
    for (int64_t s = 0; s < samples; ++s)
      for (int64_t j = 1; j < size; ++j)
        x[s * size + j] = x[s * size + j] * (0.5f + static_cast<float>(j % 7)) + 0.6f * x[s * size + j - 1];
    OwnedHessian hessian(size);
    for (int64_t i = 0; i < size; ++i)
      for (int64_t j = 0; j < size; ++j) {
        double sum = 0;
        for (int64_t s = 0; s < samples; ++s)
          sum += static_cast<double>(x[s * size + i]) * x[s * size + j];
        hessian.at(i, j) = static_cast<float>(sum / static_cast<double>(samples));
      }
    return hessian;
  }

  /// As it is factored: `damping` times the mean of the diagonal is added to that.
  std::vector<double> damped(double damping) const {
    std::vector<double> all(elements.begin(), elements.end());
    double sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sum += at(i, i);
    for (int64_t i = 0; i < size; ++i)
      all[i * size + i] += damping * sum / static_cast<double>(size);
    return all;
  }
};

/// tr(D H Dᵀ) for D = a - b.
inline double errorIn(const std::vector<double> &hessian, const OwnedWeight &a, const OwnedWeight &b) {
  double sum = 0;
  for (int64_t row = 0; row < a.rows; ++row)
    for (int64_t i = 0; i < a.columns; ++i)
      for (int64_t j = 0; j < a.columns; ++j)
        sum += (static_cast<double>(a.at(row, i)) - b.at(row, i)) * hessian[i * a.columns + j] *
               (static_cast<double>(a.at(row, j)) - b.at(row, j));
  return sum;
}

/// Gauss with pivots: the x with a x = b; a is [n, n].
inline std::vector<double> solve(std::vector<double> a, std::vector<double> b) {
  size_t n = b.size();
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column; row < n; ++row)
      if (std::abs(a[row * n + column]) > std::abs(a[pivot * n + column]))
        pivot = row;
    for (size_t k = 0; k < n; ++k)
      std::swap(a[pivot * n + k], a[column * n + k]);
    std::swap(b[pivot], b[column]);
    for (size_t row = 0; row < n; ++row) {
      double factor = row == column ? 0 : a[row * n + column] / a[column * n + column];
      for (size_t k = column; k < n; ++k)
        a[row * n + k] -= factor * a[column * n + k];
      b[row] -= factor * b[column];
    }
  }
  for (size_t i = 0; i < n; ++i)
    b[i] /= a[i * n + i];
  return b;
}

/// What `weight` becomes where element `column` of each row is `fixed`, and the others are free: the one with the least
/// error in `hessian`.
inline OwnedWeight solveConstrained(const OwnedWeight &weight, const std::vector<double> &hessian, int64_t column,
                                    const std::vector<float> &fixed) {
  OwnedWeight best = weight;
  int64_t n = weight.columns;
  std::vector<double> a, b;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (i != column && j != column)
        a.push_back(hessian[i * n + j]);
  for (int64_t row = 0; row < weight.rows; ++row) {
    // H_ff d_f = -H_fc d_c for what the free elements change by.
    double change = static_cast<double>(fixed[row]) - weight.at(row, column);
    b.clear();
    for (int64_t i = 0; i < n; ++i)
      if (i != column)
        b.push_back(-hessian[i * n + column] * change);
    std::vector<double> changes = solve(a, b);
    for (int64_t i = 0, k = 0; i < n; ++i)
      best.elements[row * n + i] = i == column ? fixed[row] : static_cast<float>(weight.at(row, i) + changes[k++]);
  }
  return best;
}

} // namespace hone::compress

#endif // HONE_TEST_UNIT_COMPRESS_MATRICES_H
