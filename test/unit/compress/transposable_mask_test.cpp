// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks of blocks that are 2:4 by rows and by columns, against every mask that there is.

#include "hone/Compress/TransposableMask.h"

#include "Matrices.h"
#include "hone/Compress/Pruning.h"

#include <numeric>

namespace hone::compress {
namespace {

int64_t countOnes(uint32_t mask, int64_t first, int64_t step) {
  int64_t ones = 0;
  for (int64_t i = 0; i < kMaskBlock; ++i)
    ones += mask >> (first + i * step) & 1;
  return ones;
}

/// Products of choices of two of four for each row, of which columns take what fits.
std::vector<uint16_t> listMasks() {
  std::vector<uint16_t> masks;
  for (uint32_t mask = 0; mask < 1u << 16; ++mask) {
    bool fits = true;
    for (int64_t i = 0; i < kMaskBlock; ++i)
      fits &= countOnes(mask, 4 * i, 1) == 2 && countOnes(mask, i, 4) == 2;
    if (fits)
      masks.push_back(static_cast<uint16_t>(mask));
  }
  return masks;
}

TEST(TransposableMasks, AreNinety) {
  EXPECT_EQ(std::vector<uint16_t>(transposableMasks().begin(), transposableMasks().end()), listMasks());
  EXPECT_EQ(transposableMasks().size(), 90u);
}

TEST(TransposableMasks, TheBestIsThatOfBruteForce) {
  std::vector<uint16_t> masks = listMasks();
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::array<double, 16> scores;
    std::ranges::copy(makeRandom(16, seed), scores.begin());
    for (double &score : scores)
      score = std::abs(score);
    auto sum = [&](uint16_t mask) {
      double kept = 0;
      for (int64_t i = 0; i < 16; ++i)
        kept += mask >> i & 1 ? scores[i] : 0;
      return kept;
    };
    EXPECT_EQ(sum(selectTransposable(scores)), sum(*std::ranges::max_element(masks, {}, sum)));
  }
  std::array<double, 16> zeros{};
  EXPECT_EQ(selectTransposable(zeros), masks[0]); // the first of equal ones
}

double sumOfMagnitudes(const OwnedWeight &weight) {
  return std::accumulate(weight.elements.begin(), weight.elements.end(), 0.0,
                         [](double sum, float element) { return sum + std::abs(element); });
}

TEST(PruneTransposable, IsTwoOfFourBothWays) {
  OwnedWeight weight(240, 200), before = weight, byRows = weight;
  pruneTransposable(weight.view());
  pruneByMagnitude(byRows.view(), {2, 4});
  for (int64_t i = 0; i < weight.rows; ++i)
    for (int64_t j = 0; j < weight.columns; ++j) {
      ASSERT_TRUE(weight.at(i, j) == 0 || weight.at(i, j) == before.at(i, j));
      int64_t inRow = 0, inColumn = 0;
      for (int64_t k = 0; k < 4; ++k) {
        inRow += weight.at(i, j / 4 * 4 + k) != 0;
        inColumn += weight.at(i / 4 * 4 + k, j) != 0;
      }
      ASSERT_EQ(inRow, 2);
      ASSERT_EQ(inColumn, 2);
    }
  // Of normal elements, 0.703 of the magnitude stays, and 0.744 where columns are free; 3000 blocks give that within 0.003.
  EXPECT_NEAR(sumOfMagnitudes(weight) / sumOfMagnitudes(before), 0.703, 0.003);
  EXPECT_NEAR(sumOfMagnitudes(byRows) / sumOfMagnitudes(before), 0.744, 0.003);
}

TEST(PruneTransposable, WeighsColumns) {
  // As if the weight were multiplied with the roots of what columns count.
  OwnedWeight weight(16, 16), scaled = weight, plain = weight;
  std::vector<float> roots = makeRandom(16, 9), importance;
  for (float root : roots)
    importance.push_back(root * root);
  for (int64_t i = 0; i < 16 * 16; ++i)
    scaled.elements[i] *= std::abs(roots[i % 16]);
  pruneTransposable(weight.view(), importance);
  pruneTransposable(scaled.view());
  pruneTransposable(plain.view());
  EXPECT_NE(weight.elements, plain.elements);
  for (int64_t i = 0; i < 16 * 16; ++i)
    EXPECT_EQ(weight.elements[i] != 0, scaled.elements[i] != 0);
}

} // namespace
} // namespace hone::compress
