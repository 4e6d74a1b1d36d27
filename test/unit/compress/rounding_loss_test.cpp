// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What rounding would cost, against rounding.

#include "hone/Compress/RoundingLoss.h"

#include "Matrices.h"
#include "hone/Compress/Rounding.h"

namespace hone::compress {
namespace {

/// The loss of rounding with the same scales, by plain loops.
double lossOfRounding(OwnedWeight weight, const AffineFormat &format, const std::vector<float> &importance) {
  auto rounded = roundToNearest(weight.view(), format, importance);
  EXPECT_TRUE(rounded.ok()) << rounded.status();
  OwnedWeight after = weight;
  writeValues(*rounded, format, after.view());
  double loss = 0;
  for (int64_t row = 0; row < weight.rows; ++row)
    for (int64_t column = 0; column < weight.columns; ++column) {
      double error = static_cast<double>(weight.at(row, column)) - after.at(row, column);
      loss += importance[column] * error * error;
    }
  return loss;
}

std::vector<float> makeImportance(int64_t columns) {
  std::vector<float> importance = makeRandom(columns, 5);
  for (float &element : importance)
    element = element * element;
  return importance;
}

TEST(RoundingLoss, IsThatOfRounding) {
  for (int64_t bits : {2, 3, 4, 5, 6, 8})
    for (int64_t group : {0, 16}) {
      AffineFormat format{bits, group, /*hasZeros=*/false, /*isSigned=*/false, /*hasHalfScales=*/true};
      OwnedWeight weight(7, 48);
      std::vector<float> importance = makeImportance(48);
      auto loss = roundingLoss(weight.view(), format, importance);
      ASSERT_TRUE(loss.ok()) << loss.status();
      double expected = lossOfRounding(weight, format, importance);
      EXPECT_NEAR(*loss, expected, 1e-5 * expected) << bits << " bits, groups of " << group; // values are of f32
    }
}

TEST(RoundingLoss, LeavesOutliersOut) {
  AffineFormat format{3, 16, /*hasZeros=*/false, /*isSigned=*/false, /*hasHalfScales=*/true};
  OwnedWeight weight(32, 48), rest = weight; // two panels
  std::vector<float> importance = makeImportance(48);
  ASSERT_TRUE(detach(rest.view(), markCostly(weight.view(), format, importance, 3)).ok());
  auto loss = roundingLoss(weight.view(), format, importance, /*outliers=*/1.5);
  ASSERT_TRUE(loss.ok()) << loss.status();
  double expected = lossOfRounding(rest, format, importance);
  EXPECT_NEAR(*loss, expected, 1e-5 * expected); // values are of f32
  EXPECT_LT(*loss, *roundingLoss(weight.view(), format, importance));
}

TEST(RoundingLoss, OfManyRowsIsThatOfSome) {
  AffineFormat format{3, 16, /*hasZeros=*/false, /*isSigned=*/false, /*hasHalfScales=*/true};
  OwnedWeight weight(3 * kMostRowsLookedAt, 32);
  std::vector<float> importance = makeImportance(32);
  auto loss = roundingLoss(weight.view(), format, importance);
  ASSERT_TRUE(loss.ok()) << loss.status();
  // Errors of 8192 elements, each of the sum's mean give or take as much.
  EXPECT_NEAR(*loss / lossOfRounding(weight, format, importance), 1, 0.1);
  for (int64_t row = 0; row < weight.rows; ++row)
    if (row % 3 != 0)
      weight.elements[row * weight.columns] = 1e30f; // of a row that stands for none
  EXPECT_EQ(*roundingLoss(weight.view(), format, importance), *loss);
  weight.elements[3 * weight.columns] = INFINITY;
  EXPECT_EQ(roundingLoss(weight.view(), format, importance).status().message(),
            "cannot quantize row 3: its elements are not all finite, or too large for scales of f16");
}

} // namespace
} // namespace hone::compress
