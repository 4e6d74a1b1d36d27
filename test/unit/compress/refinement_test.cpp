// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Codes and scales that are refined: the error only falls, and in the end no change of one of them lowers it.

#include "Matrices.h"
#include "hone/Compress/Refinement.h"

#include <gmock/gmock.h>

#include <limits>
#include <omp.h>

namespace hone::compress {
namespace {

constexpr AffineFormat kFormats[] = {{4, 64, false, false, true},
                                     {2, 32, true, false, true},
                                     {3, 48, false, true, false},
                                     {4, 0, false, false, true},
                                     {8, 32, false, false, true}};

OwnedWeight valuesOf(const AffineWeight &rounded, const AffineFormat &format) {
  OwnedWeight values(rounded.rows, rounded.columns);
  writeValues(rounded, format, values.view());
  return values;
}

AffineWeight sweep(const OwnedWeight &weight, const AffineFormat &format, const OwnedHessian &hessian) {
  OwnedHessian copy = hessian;
  OwnedWeight compensated = weight;
  auto factor = InverseFactor::create(copy.view(), orderByDiagonal(copy.view()));
  EXPECT_TRUE(factor.ok());
  return *roundWithCompensation(compensated.view(), format, *factor, /*hasStaticScales=*/true, /*searchesScales=*/true);
}

TEST(Refine, LowersTheErrorWithEveryPass) {
  OwnedHessian hessian = OwnedHessian::random(150);
  std::vector<double> damped = hessian.damped(kDamping);
  for (const AffineFormat &format : kFormats) {
    OwnedWeight weight(21, 150);
    AffineWeight rounded = sweep(weight, format, hessian);
    double error = errorIn(damped, weight, valuesOf(rounded, format));
    for (int pass = 0; pass < 3; ++pass) {
      ASSERT_TRUE(refine(weight.view(), format, hessian.view(), 1, rounded).ok());
      double refined = errorIn(damped, weight, valuesOf(rounded, format));
      EXPECT_LE(refined, pass ? error : 0.99 * error) << format.bits << " bits, " << pass;
      error = refined;
    }
  }
}

/// What coordinate descent ends at: no other code of one element is better.
TEST(Refine, EndsWhereNoCodeCanBeBetter) {
  AffineFormat format{3, 20, false, false, true};
  OwnedHessian hessian = OwnedHessian::random(40);
  std::vector<double> damped = hessian.damped(kDamping);
  OwnedWeight weight(3, 40);
  AffineWeight rounded = sweep(weight, format, hessian);
  ASSERT_TRUE(refine(weight.view(), format, hessian.view(), 50, rounded).ok());
  double error = errorIn(damped, weight, valuesOf(rounded, format));
  for (int16_t &code : rounded.codes)
    for (int change : {-1, 1}) {
      if (code + change < format.lowest() || code + change > format.highest())
        continue;
      code = static_cast<int16_t>(code + change);
      EXPECT_GE(errorIn(damped, weight, valuesOf(rounded, format)), error * (1 - 1e-9));
      code = static_cast<int16_t>(code - change);
    }
}

TEST(Refine, HasNothingToGainFromAMultipleOfTheIdentity) {
  AffineFormat format{4, 32, false, false, true};
  OwnedHessian hessian = OwnedHessian::identity(96, 0.37f);
  OwnedWeight weight(9, 96);
  std::vector<float> importance(96, 1.0f);
  AffineWeight nearest = *roundToNearest(weight.view(), format, importance), rounded = sweep(weight, format, hessian);
  EXPECT_EQ(rounded.codes, nearest.codes); // the searched scales are those of the plain mean square
  std::vector<double> damped = hessian.damped(kDamping);
  double error = errorIn(damped, weight, valuesOf(nearest, format));
  ASSERT_TRUE(refine(weight.view(), format, hessian.view(), 5, rounded).ok());
  double refined = errorIn(damped, weight, valuesOf(rounded, format));
  EXPECT_LE(refined, error);
  EXPECT_GE(refined, 0.98 * error); // that of the searched scales is nearly the least
}

TEST(Refine, LeavesZerosAndColumnsWithoutInputs) {
  OwnedHessian hessian = OwnedHessian::random(64);
  for (int64_t i = 0; i < 64; ++i)
    hessian.at(5, i) = hessian.at(i, 5) = 0;
  for (const AffineFormat &format : kFormats) {
    OwnedWeight weight(6, 64);
    for (size_t i = 0; i < weight.elements.size(); i += 2)
      weight.elements[i] = 0;
    AffineWeight rounded = sweep(weight, format, hessian);
    ASSERT_TRUE(refine(weight.view(), format, hessian.view(), 3, rounded).ok());
    OwnedWeight values = valuesOf(rounded, format);
    for (int64_t row = 0; row < 6; ++row) {
      EXPECT_EQ(values.at(row, 5), 0);
      for (int64_t i = 0; i < 64; i += 2)
        ASSERT_EQ(values.at(row, i), 0);
    }
  }
}

TEST(Refine, IsTheSameForEveryNumberOfThreads) {
  OwnedHessian hessian = OwnedHessian::random(100);
  OwnedWeight weight(50, 100);
  AffineWeight alone = sweep(weight, kFormats[0], hessian), together = alone;
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  ASSERT_TRUE(refine(weight.view(), kFormats[0], hessian.view(), 2, alone).ok());
  omp_set_num_threads(3);
  ASSERT_TRUE(refine(weight.view(), kFormats[0], hessian.view(), 2, together).ok());
  omp_set_num_threads(threads);
  EXPECT_EQ(alone.codes, together.codes);
  for (size_t i = 0; i < alone.scales.size(); ++i)
    EXPECT_EQ(alone.scales[i].scale, together.scales[i].scale);
}

TEST(Refine, RefusesOtherSizesAndHessiansThatAreNotFinite) {
  OwnedHessian hessian = OwnedHessian::random(64);
  OwnedWeight weight(2, 64);
  AffineWeight rounded = sweep(weight, kFormats[0], hessian);
  OwnedHessian other = OwnedHessian::random(32);
  EXPECT_FALSE(refine(weight.view(), kFormats[0], other.view(), 1, rounded).ok());
  hessian.at(3, 4) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(refine(weight.view(), kFormats[0], hessian.view(), 1, rounded).ok());
}

} // namespace
} // namespace hone::compress
