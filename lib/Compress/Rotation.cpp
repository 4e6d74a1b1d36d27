// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row by row in f64, so that a rotated model differs from the original by the rounding of its elements alone.

#include "hone/Compress/Rotation.h"

#include <cmath>
#include <numbers>
#include <random>

namespace hone::compress {

Rotation::Rotation(int64_t size, int64_t seed) : signs(size), power(size & -size), rest(size / power) {
  std::mt19937_64 source(static_cast<uint64_t>(seed)); // whose numbers the standard fixes
  for (double &sign : signs)
    sign = source() >> 63 ? -1 : 1;
  double scale = 1 / std::sqrt(static_cast<double>(rest));
  for (int64_t i = 0; i < rest; ++i)
    for (int64_t j = 0; j < rest; ++j) {
      double angle = 2 * std::numbers::pi * static_cast<double>(i * j % rest) / static_cast<double>(rest);
      hartley.push_back((std::cos(angle) + std::sin(angle)) * scale);
    }
}

Rotation Rotation::ofBlocks(int64_t size, int64_t block) {
  Rotation rotation(block, 0);
  rotation.signs.assign(size, 1);
  return rotation;
}

void Rotation::apply(std::span<double> row) const {
  double scale = 1 / std::sqrt(static_cast<double>(power));
  for (int64_t i = 0; i < size(); ++i)
    row[i] *= signs[i] * scale;
  // Element (i, j) of [2^k, m] lies at i m + j.
  for (int64_t step = rest; step < power * rest; step *= 2)
    for (int64_t begin = 0; begin < size(); begin += 2 * step)
      for (int64_t i = begin; i < begin + step; ++i) {
        double low = row[i], high = row[i + step];
        row[i] = low + high;
        row[i + step] = low - high;
      }
  std::vector<double> part(rest);
  for (int64_t begin = 0; rest > 1 && begin < size(); begin += rest) {
    for (int64_t j = 0; j < rest; ++j) {
      part[j] = 0;
      for (int64_t i = 0; i < rest; ++i)
        part[j] += row[begin + i] * hartley[i * rest + j];
    }
    std::copy(part.begin(), part.end(), row.begin() + begin);
  }
}

void Rotation::rotateInputs(const Weight &weight) const {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < weight.rows; ++i) {
    std::span<float> elements = weight.row(i);
    std::vector<double> row(elements.begin(), elements.end());
    apply(row);
    for (size_t j = 0; j < row.size(); ++j)
      elements[j] = static_cast<float>(row[j]);
  }
}

void Rotation::rotateOutputs(const Weight &weight) const {
#pragma omp parallel for schedule(static)
  for (int64_t j = 0; j < weight.columns; ++j) {
    std::vector<double> column(weight.rows);
    for (int64_t i = 0; i < weight.rows; ++i)
      column[i] = weight.elements[i * weight.columns + j];
    apply(column);
    for (int64_t i = 0; i < weight.rows; ++i)
      weight.elements[i * weight.columns + j] = static_cast<float>(column[i]);
  }
}

void Rotation::rotateHessian(std::span<float> hessian) const {
  Weight all{hessian, size(), size()};
  rotateInputs(all);
  rotateOutputs(all);
  // The two halves were rounded in different orders.
  for (int64_t i = 0; i < size(); ++i)
    for (int64_t j = 0; j < i; ++j)
      hessian[i * size() + j] = hessian[j * size() + i];
}

} // namespace hone::compress
