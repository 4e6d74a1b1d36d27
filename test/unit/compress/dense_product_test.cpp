// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The product of matrices in f64: the bits that its order of sums says, at the edges of its blocks too.

#include "Matrices.h"
#include "lib/Compress/DenseProduct.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace hone::compress {
namespace {

/// Rows, columns and depth, around those of blocks.
class Product : public testing::TestWithParam<std::tuple<int64_t, int64_t, int64_t>> {};

TEST_P(Product, HasTheBitsOfOneSumAfterTheOther) {
  auto [rows, columns, depth] = GetParam();
  // Rows of each matrix are farther apart than they are long: what lies between them stays.
  int64_t ofA = depth + 3, ofB = columns + 5, ofC = columns + 1;
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::vector<double> a(rows * ofA), b(depth * ofB), c(rows * ofC);
  for (std::vector<double> *matrix : {&a, &b, &c})
    for (double &element : *matrix)
      element = normal(random);
  std::vector<double> expected = c;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t k = 0; k < depth; ++k)
        expected[i * ofC + j] = std::fma(-a[i * ofA + k], b[k * ofB + j], expected[i * ofC + j]);
  subtractProduct(rows, columns, depth, {a.data(), ofA}, {b.data(), ofB}, {c.data(), ofC});
  EXPECT_EQ(c, expected);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Product,
                         testing::Combine(testing::Values(1, 3, 4, 9), testing::Values(0, 1, 23, 24, 25, 50),
                                          testing::Values(0, 1, 255, 256, 257, 600)));

} // namespace
} // namespace hone::compress
