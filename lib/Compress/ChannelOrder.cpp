// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Swaps of channels between groups, by rounds of pairs that have no group in common.

#include "hone/Compress/ChannelOrder.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

namespace hone::compress {

static constexpr int64_t kMostWidth = 128; // of an NmPattern

/// Rows of groups in a round that are worth threads.
static constexpr int64_t kLeastParallel = 1 << 10;

/// A swap has to gain this share of what both groups keep, so that rounding makes none.
static constexpr double kLeastGain = 1e-6;

namespace {
/// Scores column by column, so that a group is a few runs of rows.
struct Scores {
  int64_t rows, columns;
  NmPattern pattern;
  std::vector<float> elements; // [columns, rows]

  Scores(std::span<const float> scores, int64_t columns, NmPattern pattern)
      : rows(columns > 0 ? static_cast<int64_t>(scores.size()) / columns : 0), columns(columns), pattern(pattern),
        elements(scores.size()) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        elements[j * rows + i] = scores[i * columns + j];
  }

  const float *column(int64_t number) const { return elements.data() + number * rows; }
  double keptOf(std::span<const int64_t> group) const;

private:
  double keptOfFour(std::span<const int64_t> group) const;
};
} // namespace

/// Of two of four.
double Scores::keptOfFour(std::span<const int64_t> group) const {
  const float *a = column(group[0]), *b = column(group[1]), *c = column(group[2]), *d = column(group[3]);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < rows; ++i) {
    float high = std::max(a[i], b[i]), low = std::min(a[i], b[i]);
    float otherHigh = std::max(c[i], d[i]), otherLow = std::min(c[i], d[i]);
    sum += std::max(high, otherHigh) + std::max(std::min(high, otherHigh), std::max(low, otherLow));
  }
  return sum;
}

/// The sum over rows of the highest of a group's scores.
double Scores::keptOf(std::span<const int64_t> group) const {
  if (pattern.kept == 2 && pattern.width == 4)
    return keptOfFour(group);
  double sum = 0;
  std::array<float, kMostWidth> row;
  for (int64_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < group.size(); ++j)
      row[j] = column(group[j])[i];
    std::partial_sort(row.begin(), row.begin() + pattern.kept, row.begin() + pattern.width, std::greater<float>());
    sum = std::accumulate(row.begin(), row.begin() + pattern.kept, sum);
  }
  return sum;
}

double keptScore(std::span<const float> scores, std::span<const int64_t> order, NmPattern pattern) {
  auto columns = static_cast<int64_t>(order.size());
  Scores all(scores, columns, pattern);
  double sum = 0;
  for (int64_t begin = 0; begin < columns; begin += pattern.width)
    sum += all.keptOf(order.subspan(begin, pattern.width));
  return sum;
}

/// Makes the swap between the groups that gains most, if one does.
static bool swapBest(const Scores &scores, std::span<int64_t> first, std::span<int64_t> second) {
  double before = scores.keptOf(first) + scores.keptOf(second), best = before * (1 + kLeastGain);
  std::pair<size_t, size_t> found;
  bool isFound = false;
  for (size_t i = 0; i < first.size(); ++i)
    for (size_t j = 0; j < second.size(); ++j) {
      std::swap(first[i], second[j]);
      double after = scores.keptOf(first) + scores.keptOf(second);
      std::swap(first[i], second[j]);
      if (after > best) {
        best = after;
        found = {i, j};
        isFound = true;
      }
    }
  if (isFound)
    std::swap(first[found.first], second[found.second]);
  return isFound;
}

std::vector<int64_t> findChannelOrder(std::span<const float> scores, int64_t columns, NmPattern pattern) {
  std::vector<int64_t> order(columns);
  std::iota(order.begin(), order.end(), int64_t(0));
  Scores all(scores, columns, pattern);
  int64_t groups = columns / pattern.width, players = groups + groups % 2;
  auto group = [&](int64_t number) { return std::span(order).subspan(number * pattern.width, pattern.width); };
  bool gains = groups > 1;
  for (int64_t sweep = 0; gains && sweep < kMostOrderSweeps; ++sweep) {
    gains = false;
    // Rounds of a tournament: one stays, the others go round, and opposite ones meet.
    for (int64_t round = 0; round + 1 < players; ++round) {
#pragma omp parallel for schedule(dynamic) reduction(|| : gains) if (players * all.rows >= kLeastParallel)
      for (int64_t pair = 0; pair < players / 2; ++pair) {
        auto rotated = [&](int64_t i) { return i == 0 ? 0 : 1 + (i - 1 + round) % (players - 1); };
        auto [low, high] = std::minmax({rotated(pair), rotated(players - 1 - pair)});
        if (high < groups)
          gains = swapBest(all, group(low), group(high)) || gains;
      }
    }
  }
  for (int64_t number = 0; number < groups; ++number)
    std::ranges::sort(group(number));
  return order;
}

} // namespace hone::compress
