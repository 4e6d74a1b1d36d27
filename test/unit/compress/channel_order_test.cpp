// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Orders of channels: against all of them where they are few.

#include "hone/Compress/ChannelOrder.h"

#include "Matrices.h"

#include <algorithm>
#include <numeric>
#include <omp.h>

namespace hone::compress {
namespace {

constexpr NmPattern kPattern{2, 4};

std::vector<float> makeScores(int64_t rows, int64_t columns, unsigned seed) {
  std::vector<float> scores = makeRandom(rows * columns, seed);
  for (float &score : scores)
    score *= score;
  return scores;
}

std::vector<int64_t> identity(int64_t columns) {
  std::vector<int64_t> order(columns);
  std::iota(order.begin(), order.end(), int64_t(0));
  return order;
}

TEST(KeptScore, IsThatOfTheHighest) {
  std::vector<float> scores = {1, 2, 3, 4, 8, 7, 6, 5};
  EXPECT_EQ(keptScore(scores, identity(8), kPattern), 4 + 3 + 8 + 7);
  EXPECT_EQ(keptScore(scores, std::vector<int64_t>{0, 1, 4, 5, 2, 3, 6, 7}, kPattern), 8 + 7 + 6 + 5);
  EXPECT_EQ(keptScore(scores, identity(8), {3, 4}), 4 + 3 + 2 + 8 + 7 + 6);
  EXPECT_EQ(keptScore(scores, identity(8), {1, 8}), 8);
}

TEST(FindChannelOrder, IsAPermutationThatKeepsMore) {
  for (int64_t columns : {4, 12, 64}) {
    std::vector<float> scores = makeScores(16, columns, static_cast<unsigned>(columns));
    std::vector<int64_t> order = findChannelOrder(scores, columns, kPattern), sorted = order;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, identity(columns));
    double before = keptScore(scores, identity(columns), kPattern), after = keptScore(scores, order, kPattern);
    if (columns == 4)
      EXPECT_EQ(after, before);
    else
      EXPECT_GT(after, 1.01 * before) << columns;
  }
}

TEST(FindChannelOrder, OfEightIsNearTheBest) {
  double found = 0, best = 0;
  for (unsigned seed = 0; seed < 3; ++seed) {
    std::vector<float> scores = makeScores(4, 8, seed);
    double kept = keptScore(scores, findChannelOrder(scores, 8, kPattern), kPattern), most = 0;
    std::vector<int64_t> order = identity(8);
    do
      most = std::max(most, keptScore(scores, order, kPattern));
    while (std::ranges::next_permutation(order).found);
    EXPECT_LE(kept, most * (1 + 1e-6));
    found += kept;
    best += most;
  }
  EXPECT_GT(found, 0.98 * best); // swaps end where no single one gains
}

TEST(FindChannelOrder, SpreadsWhatIsLarge) {
  // Four columns that matter, in one group of four.
  std::vector<float> scores = makeScores(8, 8, 1);
  for (int64_t row = 0; row < 8; ++row)
    for (int64_t column = 0; column < 4; ++column)
      scores[row * 8 + column] += 100;
  std::vector<int64_t> order = findChannelOrder(scores, 8, kPattern);
  EXPECT_EQ(std::count_if(order.begin(), order.begin() + 4, [](int64_t column) { return column < 4; }), 2);
}

TEST(FindChannelOrder, DoesNotDependOnThreads) {
  std::vector<float> scores = makeScores(80, 52, 2); // 13 groups: one waits in each round
  int before = omp_get_max_threads();
  omp_set_num_threads(1);
  std::vector<int64_t> one = findChannelOrder(scores, 52, kPattern);
  omp_set_num_threads(5);
  EXPECT_EQ(findChannelOrder(scores, 52, kPattern), one);
  omp_set_num_threads(before);
}

} // namespace
} // namespace hone::compress
