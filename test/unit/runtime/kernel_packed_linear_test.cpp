// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The packed linear kernels against sums in double precision over the numbers that packed weights stand for.

#include "../activation.h"
#include "kernel_tensor.h"
#include "packed_weight.h"

namespace hone::test {
namespace {

using cpu::PackedFormat;

struct Case {
  std::vector<int64_t> rows; // leading sizes of x
  int64_t inputs, outputs;
  WeightKind kind;
  int64_t bits = 8; // of activations; where weights are quantized
  Layout layout = Layout::Dense;
  bool hasEpilogue = false;
  int64_t activation = 0;
  bool isLeast = false; // of bits: the kernel may keep more
};

class PackedLinearKernel : public KernelTest {
protected:
  void check(Case test) {
    if (test.kind.isSparse)
      test.inputs = (test.inputs + 3) / 4 * 4;
    std::vector<int64_t> xShape = test.rows, yShape = test.rows;
    xShape.push_back(test.inputs);
    yShape.push_back(test.outputs);
    Tensor x = Tensor(xShape, test.layout).randomize(random), y(yShape, test.layout);
    Tensor bias = optional(test, {test.outputs}), factor = optional(test, yShape), residual = optional(test, yShape);
    PackedWeight weight(test.kind, test.outputs, test.inputs, random);
    std::vector<hone_tensor> operands = {x.view()};
    std::vector<hone_tensor> planes = weight.views();
    operands.insert(operands.end(), planes.begin(), planes.end());
    std::vector<int64_t> ints = {test.activation};
    if (isQuantized(test.kind.format))
      ints.insert(ints.end(), {test.kind.group, test.bits, test.isLeast});
    operands.insert(operands.end(), {bias.view(), factor.view(), residual.view(), y.view()});
    run(packedKernelOf("linear", test.kind), operands, ints);
    for (int64_t row = 0, rows = *io::elementCount(test.rows); row < rows; ++row)
      if (!compareRow(test, x, weight, bias, factor, residual, row, y))
        return;
  }

  /// False, with a message, where y is farther from the exact sum than rounding explains.
  bool compareRow(const Case &test, const Tensor &x, const PackedWeight &weight, const Tensor &bias,
                  const Tensor &factor, const Tensor &residual, int64_t row, const Tensor &y) {
    std::vector<int64_t> index = indexOf(test.rows, row);
    std::vector<double> values(static_cast<size_t>(test.inputs));
    for (int64_t k = 0; k < test.inputs; ++k) {
      index.back() = k;
      values[static_cast<size_t>(k)] = x.at(index);
    }
    std::vector<double> errors = roundingOf(test, values);
    for (int64_t n = 0; n < test.outputs; ++n) {
      double sum = test.hasEpilogue ? bias.at({n}) : 0, error = 1e-6;
      for (size_t k = 0; k < values.size(); ++k) {
        sum += values[k] * weight.at(n, static_cast<int64_t>(k));
        error += errors[k] * weight.magnitude(n, static_cast<int64_t>(k));
      }
      double expected = activate(sum, test.activation);
      index.back() = n;
      if (test.hasEpilogue) {
        expected = expected * factor.at(index) + residual.at(index);
        error = error * (1 + std::abs(factor.at(index))) + 1e-5;
      }
      if (std::abs(y.at(index) - expected) <= 1.2 * error) // activations have slopes up to 1.13
        continue;
      ADD_FAILURE() << packedKernelOf("linear", test.kind) << " group " << test.kind.group << " bits " << test.bits
                    << " rows " << io::shapeText(test.rows) << " inputs " << test.inputs << " outputs " << test.outputs
                    << " layout " << static_cast<int>(test.layout) << " at " << io::shapeText(index) << ": expected "
                    << expected << " ± " << error << ", but got " << y.at(index);
      return false;
    }
    return true;
  }

  /// Index of a row of leading sizes, with an axis more for its elements.
  static std::vector<int64_t> indexOf(const std::vector<int64_t> &sizes, int64_t row) {
    std::vector<int64_t> index(sizes.size() + 1);
    for (size_t axis = sizes.size(); axis-- > 0; row /= sizes[axis])
      index[axis] = row % sizes[axis];
    return index;
  }

  /// Whether the kernel rounds both x and weights to bf16 in place of x to integers.
  static bool isUnpacked(const Case &test) {
    bool isBytes = test.kind.format == PackedFormat::U8 && !test.kind.isSparse;
    return GetParam() == cpu::Isa::Amx && test.isLeast && test.bits == 8 &&
           (!isBytes || test.kind.group > 0 || test.kind.outliers > 0) && *io::elementCount(test.rows) > 64;
  }

  /// The most that rounding changes each of x: f32 sums err by less than 1e-6 of every term, bf16 has 8 bits, integers half a step
  /// of the largest magnitude that shares their scale.
  static std::vector<double> roundingOf(const Case &test, const std::vector<double> &x) {
    bool isInteger = isQuantized(test.kind.format) && !isUnpacked(test);
    double relative = 1e-6; // of f32
    if (test.kind.format == PackedFormat::Bf16)
      relative += 1.0 / (test.kind.outliers > 0 ? 128 : 256); // what outliers are added to is rounded again
    else if (isQuantized(test.kind.format) && !isInteger)
      relative += 1.0 / 128;
    auto chunk = static_cast<size_t>(test.kind.group > 0 ? test.kind.group : test.bits == 16 ? 128 : 512);
    std::vector<double> errors(x.size());
    double largest = 0; // of a chunk
    for (size_t k = 0; k < x.size(); ++k) {
      if (isInteger && k % chunk == 0) {
        largest = 0;
        for (size_t j = k; j < std::min(x.size(), k + chunk); ++j)
          largest = std::max(largest, std::abs(x[j]));
      }
      errors[k] = relative * std::abs(x[k]) + 0.51 * largest / (test.bits == 16 ? 32512 : 127);
    }
    return errors;
  }

  Tensor optional(const Case &test, const std::vector<int64_t> &shape) {
    return test.hasEpilogue ? Tensor(shape, test.layout).randomize(random) : Tensor::absent();
  }
};

const WeightKind kKinds[] = {
    {PackedFormat::F32},
    {PackedFormat::F16},
    {PackedFormat::Bf16},
    {PackedFormat::U8},
    {PackedFormat::U8, 0, true},
    {PackedFormat::U8, 32, true, true},
    {PackedFormat::U8, 128},
    {PackedFormat::U6, 32, true, true},
    {PackedFormat::U6, 64, false, true},
    {PackedFormat::U6, 128, true},
    {PackedFormat::U6},
    {PackedFormat::U5, 32, false, true},
    {PackedFormat::U5, 64, true, true},
    {PackedFormat::U5, 128},
    {PackedFormat::U5, 0, true},
    {PackedFormat::U4, 32, false, true},
    {PackedFormat::U4, 64, true, true},
    {PackedFormat::U4, 128, true},
    {PackedFormat::U4},
    {PackedFormat::U3, 32, true, true},
    {PackedFormat::U3, 64, false, true},
    {PackedFormat::U3, 128, true},
    {PackedFormat::U3},
    {PackedFormat::U2, 32, false, true},
    {PackedFormat::U2, 64, true, true},
    {PackedFormat::U2, 128},
    {PackedFormat::U2, 0, true},
    {.format = PackedFormat::F32, .isSparse = true},
    {.format = PackedFormat::F16, .isSparse = true},
    {.format = PackedFormat::Bf16, .isSparse = true},
    {.format = PackedFormat::U8, .isSparse = true},
    {.format = PackedFormat::U8, .group = 128, .hasHalfScales = true, .isSparse = true},
    {.format = PackedFormat::U4, .isSparse = true},
    {.format = PackedFormat::U4, .group = 32, .hasZeros = true, .isSparse = true},
    {.format = PackedFormat::U4, .group = 64, .hasHalfScales = true, .isSparse = true},
    {.format = PackedFormat::U8, .group = 0, .hasZeros = true, .hasHalfScales = false, .outliers = 0.02},
    {.format = PackedFormat::U6, .group = 64, .hasZeros = true, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::U5, .group = 32, .hasZeros = false, .hasHalfScales = true, .outliers = 0.02},
    {.format = PackedFormat::U4, .group = 64, .hasZeros = true, .hasHalfScales = true, .outliers = 0.005},
    {.format = PackedFormat::U4, .group = 32, .hasZeros = false, .hasHalfScales = true, .outliers = 0.2},
    {.format = PackedFormat::U3, .group = 64, .hasZeros = true, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::U2, .group = 32, .hasZeros = false, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::Bf16, .codebook = 4},
    {.format = PackedFormat::Bf16, .codebook = 3},
    {.format = PackedFormat::Bf16, .codebook = 2},
    {.format = PackedFormat::Bf16, .outliers = 0.01, .codebook = 4},
    {.format = PackedFormat::Bf16, .outliers = 0.1, .codebook = 3},
    {.format = PackedFormat::Bf16, .outliers = 0.01, .codebook = 2},
};

TEST_P(PackedLinearKernel, EveryKindOfWeightAndNumberOfRows) {
  for (const WeightKind &kind : kKinds)
    for (int64_t bits : isQuantized(kind.format) ? std::vector<int64_t>{8, 16} : std::vector<int64_t>{0})
      for (int64_t rows : {1, 2, 3, 5, 8, 13, 16, 17, 31, 40})
        check({{rows}, 200, 50, kind, bits});
}

TEST_P(PackedLinearKernel, RaggedShapes) {
  for (const WeightKind &kind : kKinds)
    for (int64_t rows : {1, 7, 33})
      for (int64_t inputs : {1, 31, 64, 129})
        for (int64_t outputs : {1, 16, 17, 47})
          check({{rows}, inputs, outputs, kind, rows % 2 ? 8 : 16});
}

TEST_P(PackedLinearKernel, LongRowsInSlices) {
  for (const WeightKind &kind : kKinds)
    for (int64_t rows : {1, 4, 33})
      check({{rows}, 1100, 33, kind, 16});
}

TEST_P(PackedLinearKernel, ManyRowsByQuantizedWeights) {
  for (const WeightKind &kind : kKinds)
    if (isQuantized(kind.format))
      for (int64_t rows : {64, 65, 130})
        for (bool isLeast : {false, true})
          for (int64_t inputs : {13, 2700})
            check({{rows}, inputs, 49, kind, 8, Layout::Dense, true, 3, isLeast});
}

// On ISAs with tiles weights with outliers become those a few tiles at a time: columns lie at both ends of what is unpacked at once, and
// numbers of rows at both ends of what is multiplied so.
TEST_P(PackedLinearKernel, OutliersAtEdgesOfWhatIsUnpacked) {
  for (const WeightKind &kind : kKinds)
    if (kind.outliers > 0)
      for (int64_t rows : {16, 17, 32, 33, 63, 64, 65})
        for (int64_t inputs : {31, 33, 320, 321, 672, 1023})
          check({{rows}, inputs, 40, kind, 8, Layout::Dense, false, 0, /*isLeast=*/true});
}

TEST_P(PackedLinearKernel, NoOutliersAtAll) {
  for (WeightKind kind : kKinds)
    if (kind.outliers > 0)
      for (int64_t rows : {1, 17, 64}) {
        kind.outliers = kNoOutliers;
        check({{rows}, 90, 40, kind, 8, Layout::Dense, false, 0, /*isLeast=*/true});
      }
}

TEST_P(PackedLinearKernel, MoreRowsThanATaskHas) {
  for (const WeightKind &kind : kKinds)
    check({{530}, 64, 17, kind});
}

TEST_P(PackedLinearKernel, ManyRowsByFloats) {
  for (PackedFormat format : {PackedFormat::F32, PackedFormat::F16})
    for (int64_t rows : {80, 127, 128, 300})
      for (int64_t inputs : {1, 31, 33, 600})
        for (int64_t outputs : {1, 16, 47})
          check({{rows}, inputs, outputs, {format}, 0, kLayouts[rows % std::size(kLayouts)], rows % 2 == 0, 3});
}

TEST_P(PackedLinearKernel, MoreOutputsThanACacheHolds) {
  for (bool hasEpilogue : {false, true})
    check({{1100}, 33, 1008, {PackedFormat::Bf16}, 0, Layout::Dense, hasEpilogue});
}

TEST_P(PackedLinearKernel, LayoutsAndRanks) {
  std::vector<int64_t> shapes[] = {{}, {3}, {2, 3}, {2, 3, 9}};
  for (const WeightKind &kind : kKinds)
    for (const std::vector<int64_t> &shape : shapes)
      for (Layout layout : kLayouts)
        check({shape, 70, 36, kind, 8, layout, true});
}

TEST_P(PackedLinearKernel, Activations) {
  for (const WeightKind &kind : kKinds)
    for (int64_t activation : {1, 2, 3, 4})
      for (bool hasEpilogue : {false, true})
        check({{5}, 64, 50, kind, 16, Layout::Dense, hasEpilogue, activation});
}

TEST_P(PackedLinearKernel, Empty) {
  for (const WeightKind &kind : kKinds) {
    check({{0}, 64, 50, kind});
    check({{2}, 64, 0, kind});
    check({{2}, 0, 50, kind, 8, Layout::Dense, true});
  }
}

TEST_P(PackedLinearKernel, AnOutlierRoundsOnlyItsGroup) {
  Tensor x({1, 256}), y({1, 16}), none = Tensor::absent();
  x.forEach([&](const std::vector<int64_t> &index) { x(index) = index[1] == 0 ? 1e6f : 0.01f; });
  PackedWeight weight({PackedFormat::U8, 128}, 16, 256, random);
  run("hone.packed_linear.u8",
      {x.view(), weight.weightView(), weight.scalesView(), weight.zerosView(), none.view(), none.view(), none.view(),
       y.view()},
      {0, 128, 8, 0});
  for (int64_t n = 0; n < 16; ++n) {
    double far = 0;
    for (int64_t k = 128; k < 256; ++k)
      far += 0.01 * weight.at(n, k);
    EXPECT_NEAR(y.at({0, n}) - 1e6 * weight.at(n, 0), far, 0.2); // f32 has steps of 0.06 at a million
  }
}

// Tiles of bf16 multiply floats in parts (split_floats.h), none of which can be left out: without the third, products alone err by 2^-19.
// A sum of f32 is rounded as often as it has terms, by up to 2^-24 of what it has reached.
TEST_P(PackedLinearKernel, ManyRowsOfFloatsRoundAsFloats) {
  for (PackedFormat format : {PackedFormat::F32, PackedFormat::F16})
    for (int64_t inputs : {1, 300, 4864}) {
      constexpr int64_t rows = 300, outputs = 32;
      Tensor x = Tensor({rows, inputs}).randomize(random), y({rows, outputs}), none = Tensor::absent();
      PackedWeight weight({format}, outputs, inputs, random);
      run(packedKernelOf("linear", {format}),
          {x.view(), weight.weightView(), none.view(), none.view(), none.view(), y.view()}, {0});
      double errors = 0, squares = 0;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t n = 0; n < outputs; ++n) {
          double sum = 0;
          for (int64_t k = 0; k < inputs; ++k)
            sum += static_cast<double>(x.at({row, k})) * weight.at(n, k);
          errors += (y.at({row, n}) - sum) * (y.at({row, n}) - sum);
          squares += sum * sum;
        }
      double root = std::sqrt(static_cast<double>(inputs));
      EXPECT_LT(std::sqrt(errors / squares), (1 + root / 2) / (1 << 24)) << static_cast<int>(format) << " " << inputs;
    }
}

HONE_INSTANTIATE_LEVELS(PackedLinearKernel);

} // namespace
} // namespace hone::test
