// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rotations: orthogonal for every size, and the same to both sides of a product.

#include "hone/Compress/Rotation.h"

#include "Matrices.h"
#include "hone/Compress/InverseFactor.h"

#include <bit>

namespace hone::compress {
namespace {

/// Q, whose row i is what becomes of unit i.
std::vector<std::vector<double>> rowsOf(const Rotation &rotation) {
  std::vector<std::vector<double>> rows;
  for (int64_t i = 0; i < rotation.size(); ++i) {
    rows.emplace_back(rotation.size(), 0.0)[i] = 1;
    rotation.apply(rows.back());
  }
  return rows;
}

class Sizes : public testing::TestWithParam<int64_t> {};

TEST_P(Sizes, AreOrthogonalAndSpread) {
  int64_t size = GetParam(), odd = size / (size & -size);
  auto rows = rowsOf(Rotation(size, 3));
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < size; ++j) {
      double product = 0;
      for (int64_t k = 0; k < size; ++k)
        product += rows[i][k] * rows[j][k];
      ASSERT_NEAR(product, i == j, 1e-12) << i << ", " << j;
      // |cos + sin| is at most the root of 2.
      ASSERT_LE(std::abs(rows[i][j]), std::sqrt((odd == 1 ? 1.0 : 2.0) / static_cast<double>(size)) + 1e-12);
    }
}

INSTANTIATE_TEST_SUITE_P(PowersAndOthers, Sizes, testing::Values(1, 2, 3, 8, 12, 56, 64, 45));

TEST(Rotation, OfBlocksIsThatOfEach) {
  auto rows = rowsOf(Rotation::ofBlocks(12, 4));
  for (int64_t i = 0; i < 12; ++i)
    for (int64_t j = 0; j < 12; ++j) {
      double sign = std::popcount(static_cast<uint64_t>(i % 4 & j % 4)) % 2 ? -1 : 1;
      ASSERT_NEAR(rows[i][j], i / 4 == j / 4 ? sign / 2 : 0, 1e-15) << i << ", " << j;
    }
}

TEST(Rotation, DependsOnItsSeedAlone) {
  EXPECT_EQ(rowsOf(Rotation(8, 1)), rowsOf(Rotation(8, 1)));
  EXPECT_NE(rowsOf(Rotation(8, 1)), rowsOf(Rotation(8, 2)));
}

TEST(Rotation, OfBothSidesLeavesProducts) {
  // y = x W1ᵀ W2ᵀ, with the numbers between rotated.
  int64_t inputs = 5, hidden = 12, outputs = 3;
  OwnedWeight x(1, inputs, 1), first(hidden, inputs, 2), second(outputs, hidden, 3);
  auto run = [&] {
    std::vector<double> result(outputs);
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t h = 0; h < hidden; ++h)
        for (int64_t i = 0; i < inputs; ++i)
          result[o] += static_cast<double>(second.at(o, h)) * first.at(h, i) * x.at(0, i);
    return result;
  };
  std::vector<double> before = run();
  OwnedWeight unrotated = second;
  Rotation rotation(hidden, 0);
  rotation.rotateOutputs(first.view());
  rotation.rotateInputs(second.view());
  EXPECT_NE(second.elements, unrotated.elements);
  std::vector<double> after = run();
  for (int64_t o = 0; o < outputs; ++o)
    EXPECT_NEAR(after[o], before[o], 1e-5); // elements are rounded to f32
}

TEST(Rotation, OfWeightAndHessianLeavesTheEnergy) {
  int64_t size = 24;
  OwnedWeight weight(4, size);
  OwnedHessian hessian = OwnedHessian::diagonal(size);
  for (int64_t i = 1; i < size; ++i)
    hessian.at(i, i - 1) = hessian.at(i - 1, i) = 0.3f * std::sqrt(hessian.at(i, i) * hessian.at(i - 1, i - 1));
  double before = outputEnergy(weight.view(), hessian.view());
  Rotation rotation(size, 7);
  rotation.rotateInputs(weight.view());
  rotation.rotateHessian(hessian.elements);
  EXPECT_NEAR(outputEnergy(weight.view(), hessian.view()), before, 1e-5 * before);
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < size; ++j)
      EXPECT_EQ(hessian.at(i, j), hessian.at(j, i));
}

} // namespace
} // namespace hone::compress
