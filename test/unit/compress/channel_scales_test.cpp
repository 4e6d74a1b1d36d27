// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scales of channels: what rounding loses with them, by plain loops, and where there is nothing to gain.

#include "Matrices.h"
#include "hone/Compress/ChannelScales.h"
#include "hone/Compress/Rounding.h"

#include <gmock/gmock.h>

namespace hone::compress {
namespace {

constexpr AffineFormat kFormat{4, 32, false, false, true};

/// A weight some of whose columns are a hundred times as large as others.
OwnedWeight makeUneven(int64_t rows, int64_t columns, unsigned seed) {
  OwnedWeight weight(rows, columns, seed);
  for (int64_t i = 0; i < rows * columns; ++i)
    weight.elements[i] *= i % columns % 5 == 0 ? 1.0f : 0.01f;
  return weight;
}

/// The sum over all elements of H_jj · (w - rounded(w · s) / s)².
double errorOf(const OwnedWeight &weight, std::span<const float> hessians, std::span<const float> scales) {
  OwnedWeight scaled = weight;
  for (int64_t i = 0; i < weight.rows * weight.columns; ++i)
    scaled.elements[i] *= scales[i % weight.columns];
  OwnedWeight rounded = scaled;
  writeValues(*roundToNearest(scaled.view(), kFormat), kFormat, rounded.view());
  double sum = 0;
  for (int64_t row = 0; row < weight.rows; ++row)
    for (int64_t j = 0; j < weight.columns; ++j) {
      double error = weight.at(row, j) - static_cast<double>(rounded.at(row, j)) / scales[j];
      sum += hessians[j] * error * error;
    }
  return sum;
}

TEST(FindChannelScales, GainsWhatItSays) {
  OwnedWeight a = makeUneven(40, 96, 1), b = makeUneven(20, 96, 2);
  std::vector<float> hessians = makeRandom(96, 3);
  for (int64_t j = 0; j < 96; ++j) // small columns are those of large inputs
    hessians[j] = (hessians[j] * hessians[j] + 0.1f) * (j % 5 == 0 ? 1.0f : 1e4f);
  std::vector<Weight> weights = {a.view(), b.view()};
  ChannelScales found = findChannelScales(weights, kFormat, hessians);
  std::vector<float> ones(96, 1.0f);
  double before = errorOf(a, hessians, ones) + errorOf(b, hessians, ones);
  double after = errorOf(a, hessians, found.scales) + errorOf(b, hessians, found.scales);
  EXPECT_NEAR(after / before, found.error, 1e-3 * found.error);
  EXPECT_LT(found.error, 0.1);
  double logarithms = 0;
  for (float scale : found.scales) {
    EXPECT_TRUE(std::isfinite(scale) && scale > 0);
    logarithms += std::log(scale);
  }
  EXPECT_NEAR(logarithms, 0, 1e-3);
}

TEST(FindChannelScales, NeverLoses) {
  for (unsigned seed = 1; seed < 6; ++seed) {
    OwnedWeight weight(17, 64, seed);
    std::vector<float> hessians = makeRandom(64, seed + 50), ones(64, 1.0f);
    for (float &hessian : hessians)
      hessian *= hessian;
    Weight view = weight.view();
    ChannelScales found = findChannelScales({&view, 1}, kFormat, hessians);
    EXPECT_LE(found.error, 1);
    EXPECT_LE(errorOf(weight, hessians, found.scales), errorOf(weight, hessians, ones) * (1 + 1e-5));
  }
}

TEST(FindChannelScales, LeavesChannelsWithoutInputsOrWeights) {
  OwnedWeight weight = makeUneven(12, 64, 4);
  std::vector<float> hessians(64, 2.0f);
  hessians[7] = 0;
  for (int64_t row = 0; row < 12; ++row)
    weight.elements[row * 64 + 9] = 0;
  Weight view = weight.view();
  ChannelScales found = findChannelScales({&view, 1}, kFormat, hessians);
  EXPECT_EQ(found.scales[7], 1);
  EXPECT_EQ(found.scales[9], 1);
}

TEST(FindChannelScales, TakesNothing) {
  std::vector<float> zeros(8, 0.0f), ones(8, 1.0f);
  OwnedWeight weight(3, 8);
  Weight view = weight.view();
  EXPECT_EQ(findChannelScales({&view, 1}, kFormat, zeros).scales, ones);
  EXPECT_EQ(findChannelScales({}, kFormat, ones).scales, ones);
  EXPECT_TRUE(findChannelScales({}, kFormat, {}).scales.empty());
}

} // namespace
} // namespace hone::compress
