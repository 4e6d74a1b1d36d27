// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms on the device against plain loops in double precision.

#include "parity.h"

namespace hone::test {
namespace {

const std::vector<int64_t> kShapes[] = {{1}, {7}, {3, 5}, {2, 3, 33}, {4, 128}, {2, 1000}, {1, 5000}, {0, 8}, {2, 0}};
constexpr int32_t kTypes[] = {HONE_F32, HONE_F16, HONE_BF16};
constexpr Layout kLayouts[] = {Layout::Dense, Layout::Swapped, Layout::Gaps};

/// Calls body(shape, type, layout) for shapes in f32, and for a small one in every type and layout.
template <typename Body> void forEachCase(Body body) {
  for (const std::vector<int64_t> &shape : kShapes)
    body(shape, HONE_F32, Layout::Dense);
  for (int32_t type : kTypes)
    for (Layout layout : kLayouts)
      body(std::vector<int64_t>{2, 3, 40}, type, layout);
}

class RowsParity : public ParityTest {
protected:
  using Row = std::vector<double>;

  /// Compares y with what `function` makes of each row of x. Sums of squares in f32 err by less than 1e-6.
  template <typename Function> void compare(const Tensor &x, const Tensor &y, Function function) {
    bool failed = false;
    x.forEach([&](const std::vector<int64_t> &index) {
      if (failed || index.back() != 0)
        return;
      Row row(static_cast<size_t>(x.sizes.back()));
      std::vector<int64_t> at = index;
      for (size_t i = 0; i < row.size(); ++i)
        at.back() = static_cast<int64_t>(i), row[i] = x.at(at);
      Row expected = function(row);
      for (size_t i = 0; i < row.size() && !failed; ++i) {
        at.back() = static_cast<int64_t>(i);
        failed = !(std::abs(y.at(at) - expected[i]) <= (2e-6 + roundingOf(y.dtype)) * (1 + std::abs(expected[i])));
        EXPECT_FALSE(failed) << kernel() << " row of " << row.size() << " type " << y.dtype << " element " << i
                             << ": expected " << expected[i] << ", but got " << y.at(at);
      }
    });
  }

  Tensor vectorOf(const Tensor &x, bool exists) {
    return exists ? Tensor({x.sizes.back()}, x.dtype).randomize(random) : Tensor::absent();
  }

  /// The norm of a row: RMS, or with the mean subtracted. Weight and bias may be absent.
  static Row normOf(const Row &row, bool isRms, const Tensor &weight, const Tensor &bias, double unitOffset = 0) {
    double mean = 0, squares = 0;
    for (double v : row)
      mean += isRms ? 0 : v / static_cast<double>(row.size());
    for (double v : row)
      squares += (v - mean) * (v - mean) / static_cast<double>(row.size());
    Row result;
    for (size_t i = 0; i < row.size(); ++i) {
      std::vector<int64_t> at = {static_cast<int64_t>(i)};
      double w = weight.count() > 0 ? weight.at(at) + unitOffset : 1, b = bias.count() > 0 ? bias.at(at) : 0;
      result.push_back((row[i] - mean) / std::sqrt(squares + 1e-5) * w + b);
    }
    return result;
  }
};

class NormParity : public RowsParity {};

TEST_P(NormParity, FollowsItsFormula) {
  bool isRms = kernel() == "cuda.rms_norm.f32";
  for (bool hasWeight : {true, false})
    for (int64_t unitOffset : {0, 1})
      forEachCase([&](const std::vector<int64_t> &shape, int32_t type, Layout layout) {
        Tensor x(shape, type, layout), y(shape, type, layout);
        x.randomize(random, 3);
        Tensor weight = vectorOf(x, hasWeight), bias = vectorOf(x, hasWeight && !isRms);
        if (isRms)
          run({&x, &weight, &y}, 1, {unitOffset}, {1e-5});
        else
          run({&x, &weight, &bias, &y}, 1, {}, {1e-5});
        compare(x, y, [&](const Row &row) {
          return normOf(row, isRms, weight, bias, isRms ? static_cast<double>(unitOffset) : 0);
        });
      });
}

class AddNormParity : public RowsParity {};

/// The sum is rounded to its type, and the norm is that of the rounded sum.
TEST_P(AddNormParity, FollowsItsFormula) {
  bool isRms = kernel() == "cuda.add_rms_norm.f32";
  for (bool hasWeight : {true, false})
    forEachCase([&](const std::vector<int64_t> &shape, int32_t type, Layout layout) {
      Tensor x(shape, type, layout), r(shape, type), sum(shape, type, layout), y(shape, type, layout);
      x.randomize(random, 3), r.randomize(random, 3);
      Tensor weight = vectorOf(x, hasWeight), bias = vectorOf(x, hasWeight && !isRms);
      if (isRms)
        run({&x, &r, &weight, &sum, &y}, 2, {0}, {1e-5});
      else
        run({&x, &r, &weight, &bias, &sum, &y}, 2, {}, {1e-5});
      sum.forEach([&](const std::vector<int64_t> &index) {
        double expected = x.at(index) + r.at(index);
        EXPECT_NEAR(sum.at(index), expected, roundingOf(type) * std::abs(expected));
      });
      compare(sum, y, [&](const Row &row) { return normOf(row, isRms, weight, bias); });
    });
}

INSTANTIATE_TEST_SUITE_P(AddNorm, AddNormParity, testing::Values("cuda.add_rms_norm.f32", "cuda.add_layer_norm.f32"));

INSTANTIATE_TEST_SUITE_P(Norm, NormParity, testing::Values("cuda.rms_norm.f32", "cuda.layer_norm.f32"));

} // namespace
} // namespace hone::test
