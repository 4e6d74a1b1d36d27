// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// There are so few masks that each is tried.

#include "hone/Compress/TransposableMask.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hone::compress {

/// Whether every row and every column of the mask has two ones.
static bool isTransposable(uint32_t mask) {
  for (int64_t i = 0; i < kMaskBlock; ++i)
    if (std::popcount(mask >> (4 * i) & 0xfu) != 2 || std::popcount(mask >> i & 0x1111u) != 2)
      return false;
  return true;
}

const std::array<uint16_t, 90> &transposableMasks() {
  static const std::array<uint16_t, 90> masks = [] {
    std::array<uint16_t, 90> found{};
    size_t count = 0;
    for (uint32_t mask = 0; mask < 1u << 16; ++mask)
      if (isTransposable(mask))
        found[count++] = static_cast<uint16_t>(mask);
    return found;
  }();
  return masks;
}

uint16_t selectTransposable(std::span<const double, kMaskBlock * kMaskBlock> scores) {
  uint16_t best = transposableMasks()[0];
  double most = -1;
  for (uint16_t mask : transposableMasks()) {
    double sum = 0;
    for (size_t i = 0; i < scores.size(); ++i)
      sum += mask >> i & 1 ? scores[i] : 0;
    if (sum > most) {
      most = sum;
      best = mask;
    }
  }
  return best;
}

void pruneTransposable(const Weight &weight, std::span<const float> importance) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < weight.rows; row += kMaskBlock)
    for (int64_t column = 0; column < weight.columns; column += kMaskBlock) {
      std::array<double, kMaskBlock * kMaskBlock> scores;
      for (int64_t i = 0; i < kMaskBlock * kMaskBlock; ++i) {
        int64_t j = column + i % kMaskBlock;
        double root = importance.empty() ? 1 : std::sqrt(std::max(static_cast<double>(importance[j]), 0.0));
        scores[i] = std::abs(static_cast<double>(weight.row(row + i / kMaskBlock)[j])) * root;
      }
      uint16_t mask = selectTransposable(scores);
      for (int64_t i = 0; i < kMaskBlock * kMaskBlock; ++i)
        if (!(mask >> i & 1))
          weight.row(row + i / kMaskBlock)[column + i % kMaskBlock] = 0;
    }
}

} // namespace hone::compress
