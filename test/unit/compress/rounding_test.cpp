// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rounding to nearest and GPTQ in every format of #hone.affine: where they are the same, and what the second gains.

#include "Matrices.h"
#include "hone/Compress/Rounding.h"

#include <gmock/gmock.h>

#include <limits>
#include <omp.h>

namespace hone::compress {
namespace {

using testing::HasSubstr;

std::vector<AffineFormat> formats() {
  std::vector<AffineFormat> all;
  for (int64_t bits : {2, 3, 4, 5, 6, 8})
    for (int64_t group : {0, 32, 48, 64, 256})
      for (int flags = 0; flags < 8; ++flags)
        all.push_back({bits, group, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0});
  return all;
}

std::string nameOf(const AffineFormat &format) {
  return io::cat(format.bits, " bits, group ", format.group, format.hasZeros ? ", zeros" : "",
                 format.isSigned ? ", signed" : "", format.hasHalfScales ? ", f16" : "");
}

OwnedWeight valuesOf(const AffineWeight &rounded, const AffineFormat &format) {
  OwnedWeight values(rounded.rows, rounded.columns);
  writeValues(rounded, format, values.view());
  return values;
}

bool areSame(const AffineWeight &a, const AffineWeight &b) {
  for (size_t i = 0; i < a.scales.size(); ++i)
    if (a.scales[i].scale != b.scales[i].scale || a.scales[i].zero != b.scales[i].zero)
      return false;
  return a.codes == b.codes && a.scales.size() == b.scales.size();
}

/// What rounding to nearest is: no other code is nearer.
TEST(RoundToNearest, IsNearest) {
  OwnedWeight weight(7, 150);
  for (const AffineFormat &format : formats()) {
    auto rounded = roundToNearest(weight.view(), format);
    ASSERT_TRUE(rounded.ok()) << rounded.status();
    for (int64_t row = 0; row < 7; ++row)
      for (int64_t k = 0; k < 150; ++k) {
        AffineScale scale = rounded->scales[row * rounded->groups + k / format.width(150)];
        int64_t code = rounded->codes[row * 150 + k];
        float error = std::abs(scale.valueOf(code) - weight.at(row, k));
        ASSERT_TRUE(code >= format.lowest() && code <= format.highest());
        for (int64_t other = format.lowest(); other <= format.highest(); ++other)
          ASSERT_LE(error, std::abs(scale.valueOf(other) - weight.at(row, k)) + 1e-6f) << nameOf(format);
      }
  }
}

TEST(RoundWithCompensation, IsNearestForAMultipleOfTheIdentity) {
  for (int64_t columns : {150, 512}) {
    auto factor = InverseFactor::create(OwnedHessian::identity(columns, 0.37f).view());
    ASSERT_TRUE(factor.ok()) << factor.status();
    for (const AffineFormat &format : formats()) {
      OwnedWeight weight(9, columns);
      for (int manner = 0; manner < 4; ++manner) {
        bool isStatic = manner & 1, isSearched = manner & 2; // by the plain mean square then
        std::vector<float> importance(isSearched ? columns : 0, 1.0f);
        auto expected = roundToNearest(weight.view(), format, importance);
        ASSERT_TRUE(expected.ok()) << expected.status();
        OwnedWeight copy = weight;
        auto rounded = roundWithCompensation(copy.view(), format, *factor, isStatic, isSearched);
        ASSERT_TRUE(rounded.ok()) << rounded.status();
        EXPECT_TRUE(areSame(*rounded, *expected)) << nameOf(format);
        EXPECT_EQ(copy.elements, valuesOf(*expected, format).elements) << nameOf(format);
      }
    }
  }
}

TEST(RoundWithCompensation, LosesLessThanNearest) {
  OwnedHessian hessian = OwnedHessian::random(256);
  auto plain = InverseFactor::create(hessian.view());
  auto ordered = InverseFactor::create(hessian.view(), orderByDiagonal(hessian.view()));
  ASSERT_TRUE(plain.ok() && ordered.ok());
  for (const AffineFormat &format : formats()) {
    OwnedWeight weight(12, 256);
    OwnedWeight rough = valuesOf(*roundToNearest(weight.view(), format), format);
    double nearest = relativeOutputError(weight.view(), rough.view(), hessian.view());
    for (int manner = 0; manner < 3; ++manner) { // as they come, with static scales, with those in act-order
      OwnedWeight copy = weight;
      auto rounded = roundWithCompensation(copy.view(), format, manner == 2 ? *ordered : *plain, manner > 0);
      ASSERT_TRUE(rounded.ok()) << rounded.status();
      EXPECT_EQ(copy.elements, valuesOf(*rounded, format).elements);
      EXPECT_LT(relativeOutputError(weight.view(), copy.view(), hessian.view()), nearest)
          << nameOf(format) << ", " << manner;
    }
  }
}

/// Scales of a group are fitted to what the sweep has made of its elements, wherever blocks of columns end.
TEST(RoundWithCompensation, FitsScalesToCorrectedElements) {
  constexpr int64_t columns = 192;
  AffineFormat format{4, 48, false, false, false};
  OwnedWeight weight(5, columns), copy = weight;
  OwnedHessian hessian = OwnedHessian::random(columns);
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok());
  auto rounded = roundWithCompensation(copy.view(), format, *factor, false);
  ASSERT_TRUE(rounded.ok());
  // Plain loops, which spread every error over all columns at once.
  for (int64_t row = 0; row < 5; ++row) {
    std::vector<double> w(weight.elements.begin() + row * columns, weight.elements.begin() + (row + 1) * columns);
    AffineScale scale;
    for (int64_t i = 0; i < columns; ++i) {
      if (i % 48 == 0)
        scale = *fitScale(format, std::vector<float>(w.begin() + i, w.begin() + i + 48));
      float value = scale.valueOf(roundToCode(format, scale, static_cast<float>(w[i])));
      EXPECT_NEAR(copy.at(row, i), value, 1e-6f * std::abs(value)) << row << ", " << i;
      double error = (w[i] - value) / factor->diagonal(i);
      for (int64_t k = i; k < columns; ++k)
        w[k] -= error * factor->row(i)[k - i];
    }
  }
}

TEST(RoundWithCompensation, KeepsZeros) {
  OwnedHessian hessian = OwnedHessian::random(128);
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok());
  for (const AffineFormat &format : formats()) {
    OwnedWeight weight(4, 128);
    for (size_t i = 0; i < weight.elements.size(); i += 2)
      weight.elements[i] = 0;
    auto rounded = roundWithCompensation(weight.view(), format, *factor, false);
    ASSERT_TRUE(rounded.ok());
    std::vector<float> values = valuesOf(*rounded, format).elements;
    for (size_t i = 0; i < values.size(); i += 2)
      ASSERT_EQ(values[i], 0) << nameOf(format);
  }
}

TEST(RoundWithCompensation, ClearsColumnsWithoutInputs) {
  OwnedHessian hessian = OwnedHessian::random(32);
  for (int64_t i = 0; i < 32; ++i)
    hessian.at(4, i) = hessian.at(i, 4) = 0;
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok());
  AffineFormat format{4, 0, false, false, true};
  OwnedWeight weight(3, 32);
  for (int64_t row = 0; row < 3; ++row)
    weight.elements[row * 32 + 4] = 100; // which no scale has to reach
  auto rounded = roundWithCompensation(weight.view(), format, *factor, false);
  ASSERT_TRUE(rounded.ok());
  for (int64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(weight.at(row, 4), 0);
    EXPECT_LT(std::abs(rounded->scales[row].scale), 1);
  }
}

TEST(Rounding, RefusesRowsWithoutAFiniteScale) {
  auto factor = InverseFactor::create(OwnedHessian::random(64).view());
  ASSERT_TRUE(factor.ok());
  for (float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30f}) {
    OwnedWeight weight(40, 64);
    weight.elements[31 * 64 + 5] = weight.elements[37 * 64] = value;
    AffineFormat format{4, 32, false, false, true};
    absl::Status nearest = roundToNearest(weight.view(), format).status();
    absl::Status compensated = roundWithCompensation(weight.view(), format, *factor, false).status();
    for (const absl::Status &status : {nearest, compensated})
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("cannot quantize row 31: its elements are not all finite, or too large for scales of f16"));
  }
}

TEST(RoundWithCompensation, IsTheSameForEveryNumberOfThreads) {
  auto factor = InverseFactor::create(OwnedHessian::random(200).view());
  ASSERT_TRUE(factor.ok());
  OwnedWeight weight(50, 200), copy = weight;
  AffineFormat format{4, 64, true, false, true};
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  auto alone = roundWithCompensation(weight.view(), format, *factor, false);
  omp_set_num_threads(3);
  auto together = roundWithCompensation(copy.view(), format, *factor, false);
  omp_set_num_threads(threads);
  ASSERT_TRUE(alone.ok() && together.ok());
  EXPECT_TRUE(areSame(*alone, *together));
}

TEST(Rounding, TakesEmptyWeights) {
  auto factor = InverseFactor::create({{}, 0});
  ASSERT_TRUE(factor.ok());
  for (int64_t group : {0, 32}) {
    OwnedWeight weight(3, 0);
    AffineFormat format{4, group, false, false, true};
    auto nearest = roundToNearest(weight.view(), format),
         rounded = roundWithCompensation(weight.view(), format, *factor, false);
    ASSERT_TRUE(nearest.ok() && rounded.ok());
    EXPECT_EQ(rounded->scales.size(), group ? 0u : 3u);
    EXPECT_TRUE(areSame(*nearest, *rounded));
  }
}

} // namespace
} // namespace hone::compress
