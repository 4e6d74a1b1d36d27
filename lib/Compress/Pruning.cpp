// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which elements stay, by the score of each method.

#include "hone/Compress/Pruning.h"

#include "ColumnSweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace hone::compress {

namespace {
/// Most inputs of a group; see NmPattern.
constexpr int64_t kMostWidth = kSweepColumns;
using Marks = std::array<bool, kMostWidth>;
using Scores = std::array<double, kMostWidth>;
} // namespace

void selectHighest(std::span<const double> scores, int64_t count, std::span<bool> isKept) {
  std::ranges::fill(isKept, false);
  for (int64_t taken = 0; taken < count; ++taken) {
    int64_t best = -1;
    for (int64_t i = 0; i < static_cast<int64_t>(scores.size()); ++i)
      if (!isKept[i] && (best < 0 || scores[i] > scores[best] || (std::isnan(scores[best]) && !std::isnan(scores[i]))))
        best = i;
    if (best >= 0)
      isKept[best] = true;
  }
}

double getShrinkScale(const Weight &weight, NmPattern pattern) {
  double product = 0, square = 0;
  std::array<float, kMostWidth> magnitudes;
  for (size_t begin = 0; begin < weight.elements.size(); begin += pattern.width) {
    std::span group = std::span(magnitudes).first(pattern.width);
    std::ranges::transform(weight.elements.subspan(begin, pattern.width), group.begin(),
                           [](float x) { return std::abs(x); });
    std::ranges::sort(group, std::greater());
    for (float magnitude : group.first(pattern.kept)) {
      double rest = static_cast<double>(magnitude) - group[pattern.kept];
      product += rest * magnitude;
      square += rest * rest;
    }
  }
  return square > 0 ? product / square : 1;
}

/// Makes what a group does not keep 0, by `score(row, column)` of its elements.
template <typename Score>
static void pruneByScore(const Weight &weight, NmPattern pattern, const Score &score) {
  int64_t width = pattern.width;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < weight.rows; ++row) {
    Scores scores;
    Marks isKept;
    std::span<float> elements = weight.row(row);
    for (int64_t begin = 0; begin < weight.columns; begin += width) {
      for (int64_t i = 0; i < width; ++i)
        scores[i] = score(elements[begin + i], begin + i);
      selectHighest(std::span(scores).first(width), pattern.kept, std::span(isKept).first(width));
      for (int64_t i = 0; i < width; ++i)
        if (!isKept[i])
          elements[begin + i] = 0;
    }
  }
}

void pruneByMagnitude(const Weight &weight, NmPattern pattern) {
  pruneByScore(weight, pattern, [](float element, int64_t) { return std::abs(static_cast<double>(element)); });
}

void pruneByWanda(const Weight &weight, const Hessian &hessian, NmPattern pattern) {
  pruneByScore(weight, pattern, [&](float element, int64_t column) {
    return std::abs(static_cast<double>(element)) * std::sqrt(static_cast<double>(hessian.diagonal(column)));
  });
}

double pruneBySparseGpt(const Weight &weight, const InverseFactor &factor, NmPattern pattern) {
  int64_t width = pattern.width;
  std::vector<Marks> marks(weight.rows); // of the group that a row is in
  ColumnSweep sweep(weight, factor, getSweepBlock(width));
  return sweep.run([&](int64_t row, int64_t i, std::span<const double> current) -> float {
    std::span<bool> isKept = std::span(marks[row]).first(width);
    if (i % width == 0) {
      Scores scores;
      for (int64_t k = 0; k < width; ++k) {
        double element = factor.isDead(i + k) ? 0 : current[k] / factor.diagonal(i + k);
        scores[k] = element * element;
      }
      selectHighest(std::span(scores).first(width), pattern.kept, isKept);
    }
    return isKept[i % width] && !factor.isDead(i) ? static_cast<float>(current[0]) : 0.0f;
  });
}

} // namespace hone::compress
