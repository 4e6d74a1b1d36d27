// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// R with Rᵀ R = H'⁻¹: its definition, its orders, what it refuses, and the energy of a layer's outputs.

#include "Matrices.h"
#include "hone/Compress/InverseFactor.h"
#include "lib/Compress/ColumnSweep.h"

#include <gmock/gmock.h>

#include <limits>
#include <omp.h>

namespace hone::compress {
namespace {

using testing::HasSubstr;

/// Sizes around those of blocks.
class Factor : public testing::TestWithParam<int64_t> {};

TEST_P(Factor, IsThatOfTheInverse) {
  int64_t n = GetParam();
  OwnedHessian hessian = OwnedHessian::random(n);
  std::vector<double> damped = hessian.damped(kDamping);
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok()) << factor.status();
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_GT(factor->diagonal(i), 0);
    EXPECT_EQ(factor->row(i).size(), n - i);
    for (int64_t j = 0; j < i; ++j)
      ASSERT_EQ(factor->data()[i * n + j], 0) << i << ", " << j;
  }
  // R H' Rᵀ = I, which is the same and needs one product less.
  std::vector<double> product(n * n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = i; k < n; ++k)
      for (int64_t j = 0; j < n; ++j)
        product[i * n + j] += factor->data()[i * n + k] * damped[k * n + j];
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t k = j; k < n; ++k)
        sum += product[i * n + k] * factor->data()[j * n + k];
      ASSERT_NEAR(sum, i == j, 1e-10) << i << ", " << j;
    }
}

/// R_jj² is the corner of the inverse of what is left of H' at column j.
TEST_P(Factor, HasTheCostOfAColumnOnItsDiagonal) {
  int64_t n = GetParam();
  OwnedHessian hessian = OwnedHessian::random(n);
  std::vector<double> damped = hessian.damped(kDamping);
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok()) << factor.status();
  for (int64_t j : {int64_t(0), n / 2, n - 1}) {
    std::vector<double> rest, unit(n - j);
    for (int64_t i = j; i < n; ++i)
      rest.insert(rest.end(), damped.begin() + i * n + j, damped.begin() + (i + 1) * n);
    unit[0] = 1;
    double corner = solve(rest, unit)[0];
    EXPECT_NEAR(factor->diagonal(j) * factor->diagonal(j) / corner, 1, 1e-9) << j;
  }
}

TEST_P(Factor, PermutesColumns) {
  int64_t n = GetParam();
  OwnedHessian hessian = OwnedHessian::random(n), permuted(n);
  std::vector<int64_t> order = orderByDiagonal(hessian.view());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      permuted.at(i, j) = hessian.at(order[i], order[j]);
  for (int64_t i = 1; i < n; ++i)
    EXPECT_GE(permuted.at(i - 1, i - 1), permuted.at(i, i));
  auto factor = InverseFactor::create(hessian.view(), order), expected = InverseFactor::create(permuted.view());
  ASSERT_TRUE(factor.ok() && expected.ok());
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(factor->column(i), order[i]);
    for (int64_t j = i; j < n; ++j)
      ASSERT_NEAR(factor->data()[i * n + j], expected->data()[i * n + j], 1e-12 * factor->diagonal(j));
  }
}

TEST_P(Factor, IsTheSameForEveryNumberOfThreads) {
  OwnedHessian hessian = OwnedHessian::random(GetParam());
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  auto alone = InverseFactor::create(hessian.view());
  omp_set_num_threads(3);
  auto together = InverseFactor::create(hessian.view());
  omp_set_num_threads(threads);
  ASSERT_TRUE(alone.ok() && together.ok());
  size_t bytes = GetParam() * GetParam() * sizeof(double);
  EXPECT_EQ(std::memcmp(alone->data(), together->data(), bytes), 0);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Factor, testing::Values(1, 2, 7, 63, 64, 65, 150, 193));

TEST(InverseFactor, TakesOneForAnInputThatIsAlwaysZero) {
  OwnedHessian hessian = OwnedHessian::random(6);
  for (int64_t i = 0; i < 6; ++i)
    hessian.at(2, i) = hessian.at(i, 2) = 0;
  auto factor = InverseFactor::create(hessian.view(), {}, /*damping=*/0);
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_TRUE(factor->isDead(2));
  EXPECT_FALSE(factor->isDead(1));
  EXPECT_DOUBLE_EQ(factor->diagonal(2), 1);
}

TEST(InverseFactor, RefusesWhatIsNotFinite) {
  for (float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    OwnedHessian hessian = OwnedHessian::random(70);
    hessian.at(65, 3) = value;
    absl::Status status = InverseFactor::create(hessian.view()).status();
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("expected the Hessian of inputs 65 and 3 to be finite, but got "));
  }
}

TEST(InverseFactor, RefusesWhatIsNoHessian) {
  OwnedHessian negative = OwnedHessian::identity(4, 1);
  negative.at(1, 1) = -1;
  EXPECT_THAT(std::string(InverseFactor::create(negative.view()).status().message()),
              HasSubstr("expected the Hessian of input 1 to be 0 or more, but got -1"));
  OwnedHessian indefinite = OwnedHessian::identity(4, 1);
  indefinite.at(0, 3) = indefinite.at(3, 0) = 2;
  EXPECT_THAT(std::string(InverseFactor::create(indefinite.view()).status().message()),
              HasSubstr("to be positive definite with a damping of 0.01"));
}

TEST(InverseFactor, IsEmptyForNoInputs) {
  auto factor = InverseFactor::create({{}, 0});
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_EQ(factor->size(), 0);
}

TEST(OutputEnergy, IsTheTrace) {
  for (auto [rows, columns] : {std::pair(1, 1), std::pair(3, 64), std::pair(70, 131)}) {
    OwnedWeight weight(rows, columns), zero(rows, columns);
    std::ranges::fill(zero.elements, 0.0f);
    OwnedHessian hessian = OwnedHessian::random(columns);
    double expected = errorIn(hessian.damped(0), weight, zero);
    EXPECT_NEAR(outputEnergy(weight.view(), hessian.view()) / expected, 1, 1e-12);
  }
}

TEST(OutputEnergy, MeasuresWhatChanged) {
  OwnedWeight before(3, 20), after = before;
  OwnedHessian hessian = OwnedHessian::random(20);
  EXPECT_EQ(relativeOutputError(before.view(), after.view(), hessian.view()), 0);
  for (float &element : after.elements)
    element *= 0.75f;
  EXPECT_NEAR(relativeOutputError(before.view(), after.view(), hessian.view()), 0.25, 1e-6);
  OwnedHessian nothing(20);
  EXPECT_EQ(relativeOutputError(before.view(), after.view(), nothing.view()), 0);
}

/// The column that is fixed first, to any value, leaves the others where constrained least squares would put them.
TEST(ColumnSweep, IsConstrainedLeastSquares) {
  for (int64_t columns : {5, 128, 150}) {
    OwnedWeight weight(6, columns), swept = weight;
    OwnedHessian hessian = OwnedHessian::random(columns);
    for (int64_t first : {int64_t(0), columns / 2}) {
      std::vector<int64_t> order(columns);
      std::iota(order.begin(), order.end(), 0);
      std::swap(order[0], order[first]);
      auto factor = InverseFactor::create(hessian.view(), order);
      ASSERT_TRUE(factor.ok()) << factor.status();
      swept = weight;
      std::vector<float> fixed;
      for (int64_t row = 0; row < weight.rows; ++row)
        fixed.push_back(std::round(weight.at(row, first) * 2) / 2 + (row == 0 ? 1.0f : 0.0f));
      ColumnSweep(swept.view(), *factor, kSweepColumns).run([&](int64_t row, int64_t i, auto current) -> float {
        return i == 0 ? fixed[row] : static_cast<float>(current[0]);
      });
      std::vector<double> damped = hessian.damped(kDamping);
      OwnedWeight expected = solveConstrained(weight, damped, first, fixed);
      double difference = 0, change = 0;
      for (size_t i = 0; i < weight.elements.size(); ++i) {
        difference += std::pow(static_cast<double>(swept.elements[i]) - expected.elements[i], 2);
        change += std::pow(static_cast<double>(expected.elements[i]) - weight.elements[i], 2);
      }
      EXPECT_GT(change, 0.1);
      EXPECT_LE(std::sqrt(difference / change), 1e-6) << columns << ", " << first;
    }
  }
}

} // namespace
} // namespace hone::compress
