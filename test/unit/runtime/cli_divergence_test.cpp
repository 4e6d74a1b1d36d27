// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Divergence of predictions, against the formula.

#include "hone/cli/divergence.h"
#include "support.h"

#include <cmath>

namespace hone::test {
namespace {

TEST(MeanDivergence, IsThatOfSoftmaxes) {
  // Softmaxes of logarithms are what they are the logarithms of, whatever is added to a row.
  std::vector<float> expected = {std::log(0.5f), std::log(0.25f), std::log(0.25f), 3, 3, 3};
  std::vector<float> actual = {7 + std::log(0.25f), 7 + std::log(0.25f), 7 + std::log(0.5f),
                               std::log(0.1f),      std::log(0.2f),      std::log(0.7f)};
  double first = 0.5 * std::log(2.0) - 0.25 * std::log(2.0);
  double second = (std::log(1 / 0.3) + std::log(1 / 0.6) + std::log(1 / 2.1)) / 3;
  EXPECT_NEAR(cli::meanDivergence(expected, actual, 3), (first + second) / 2, 1e-6); // logits are of f32
}

TEST(MeanDivergence, OfTheSameIsNone) {
  std::vector<float> logits = {80, -80, 1e4f, -1e4f};
  EXPECT_EQ(cli::meanDivergence(logits, logits, 4), 0);
  EXPECT_EQ(cli::meanDivergence({}, {}, 4), 0);
}

} // namespace
} // namespace hone::test
