// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Feed-forward blocks of packed layers against sums in double precision over the numbers that packed weights stand for.

#include "kernel_tensor.h"
#include "packed_weight.h"

namespace hone::test {
namespace {

using cpu::PackedFormat;

struct Case {
  int64_t rows, inputs, width, outputs;
  WeightKind kind;
  bool hasOthers = true; // biases and a residual
  Layout layout = Layout::Dense;
  bool hasGate = false;
};

constexpr int64_t kGelu = 3;
double gelu(double v) { return v * 0.5 * (1 + std::erf(v / std::sqrt(2.0))); }

/// The most that rounding changes numbers of a row by: 32-bit sums err by less than 1e-6 of every term, bf16 by a 256th; where weights are
/// quantized, either both sides are rounded to bf16, or the row to integers by half a step of the largest magnitude. What outliers beside
/// codebooks are added to is rounded again.
std::vector<double> roundingOf(const WeightKind &kind, const std::vector<double> &row) {
  double largest = 0;
  for (double value : row)
    largest = std::max(largest, std::abs(value));
  std::vector<double> errors;
  for (double value : row) {
    double exact = 1e-6 * std::abs(value), bf16 = std::abs(value) / 256;
    errors.push_back(kind.format == PackedFormat::Bf16 ? exact + (kind.outliers > 0 ? 2 : 1) * bf16
                     : isQuantized(kind.format)        ? exact + std::max(2 * bf16, 0.51 * largest / 127)
                                                       : exact);
  }
  return errors;
}

class PackedMlpKernel : public KernelTest {
protected:
  void check(Case test) {
    if (test.kind.isSparse)
      for (int64_t *inputs : {&test.inputs, &test.width})
        *inputs = (*inputs + 3) / 4 * 4;
    Tensor x = Tensor({test.rows, test.inputs}, test.layout).randomize(random),
           y({test.rows, test.outputs}, test.layout);
    Tensor gateBias = optional(test, {test.width}), upBias = optional(test, {test.width});
    Tensor downBias = optional(test, {test.outputs});
    Tensor residual = optional(test, {test.rows, test.outputs});
    PackedWeight gate(test.kind, test.width, test.inputs, random), up(test.kind, test.width, test.inputs, random);
    PackedWeight down(test.kind, test.outputs, test.width, random);
    std::vector<hone_tensor> operands = {x.view()};
    append(operands, gate, gateBias);
    if (!test.hasGate)
      std::fill(operands.begin() + 1, operands.end(), Tensor::absent().view());
    append(operands, up, upBias);
    append(operands, down, downBias);
    operands.insert(operands.end(), {residual.view(), y.view()});
    run(packedKernelOf("mlp", test.kind), operands, {kGelu, test.width, test.kind.group, 8, /*at_least=*/1});
    for (int64_t row = 0; row < test.rows && !HasFailure(); ++row) {
      Hidden hidden = hiddenOf(test, x, {gate, gateBias}, {up, upBias}, row);
      for (int64_t n = 0; n < test.outputs && !HasFailure(); ++n)
        compare(test, hidden, down, test.hasOthers ? downBias.at({n}) + residual.at({row, n}) : 0.0, row, n, y);
    }
  }

private:
  struct Hidden {
    std::vector<double> values, errors;
  };

  static void append(std::vector<hone_tensor> &operands, PackedWeight &weight, Tensor &bias) {
    std::vector<hone_tensor> planes = weight.views();
    operands.insert(operands.end(), planes.begin(), planes.end());
    operands.push_back(bias.view());
  }

  struct Layer {
    const PackedWeight &weight;
    const Tensor &bias;
  };

  /// Output `i` for a row of inputs, and the most that it is off by.
  static std::pair<double, double> outputOf(const Case &test, const std::vector<double> &inputs,
                                            const std::vector<double> &errors, const Layer &layer, int64_t i) {
    double sum = test.hasOthers ? layer.bias.at({i}) : 0, error = 1e-6;
    for (int64_t k = 0; k < test.inputs; ++k) {
      sum += inputs[static_cast<size_t>(k)] * layer.weight.at(i, k);
      error += errors[static_cast<size_t>(k)] * layer.weight.magnitude(i, k);
    }
    return {sum, error};
  }

  Hidden hiddenOf(const Case &test, const Tensor &x, const Layer &gate, const Layer &up, int64_t row) {
    Hidden hidden;
    std::vector<double> inputs;
    for (int64_t k = 0; k < test.inputs; ++k)
      inputs.push_back(x.at({row, k}));
    std::vector<double> errors = roundingOf(test.kind, inputs);
    for (int64_t i = 0; i < test.width; ++i) {
      auto [sum, error] = outputOf(test, inputs, errors, test.hasGate ? gate : up, i);
      double value = gelu(sum);
      error *= 1.2; // the activation has slopes up to 1.13
      if (test.hasGate) {
        auto [factor, ofFactor] = outputOf(test, inputs, errors, up, i);
        error = error * (std::abs(factor) + ofFactor) + std::abs(value) * ofFactor;
        value *= factor;
      }
      hidden.values.push_back(value);
      hidden.errors.push_back(error);
    }
    // What the activation gives is rounded again, with its errors.
    std::vector<double> most;
    for (size_t i = 0; i < hidden.values.size(); ++i)
      most.push_back(std::abs(hidden.values[i]) + hidden.errors[i]);
    errors = roundingOf(test.kind, most);
    for (size_t i = 0; i < errors.size(); ++i)
      hidden.errors[i] += errors[i];
    return hidden;
  }

  void compare(const Case &test, const Hidden &hidden, const PackedWeight &down, double others, int64_t row, int64_t n,
               const Tensor &y) {
    double expected = others, error = 1e-5;
    for (int64_t i = 0; i < test.width; ++i) {
      expected += hidden.values[static_cast<size_t>(i)] * down.at(n, i);
      error += hidden.errors[static_cast<size_t>(i)] * down.magnitude(n, i);
    }
    if (!(std::abs(y.at({row, n}) - expected) <= error))
      ADD_FAILURE() << packedKernelOf("mlp", test.kind) << (test.hasGate ? " with a gate" : "") << " group "
                    << test.kind.group << " rows " << test.rows << " inputs " << test.inputs << " width " << test.width
                    << " outputs " << test.outputs << " at " << row << ", " << n << ": expected " << expected << " ± "
                    << error << ", but got " << y.at({row, n});
  }

  Tensor optional(const Case &test, const std::vector<int64_t> &shape) {
    return test.hasOthers ? Tensor(shape, test.layout).randomize(random) : Tensor::absent();
  }
};

const WeightKind kKinds[] = {
    {PackedFormat::F32},
    {PackedFormat::F16},
    {PackedFormat::Bf16},
    {PackedFormat::U8},
    {PackedFormat::U8, 32, true, true},
    {PackedFormat::U6, 64, true, true},
    {PackedFormat::U5, 32, false, true},
    {PackedFormat::U4, 64, true, true},
    {PackedFormat::U4, 128},
    {PackedFormat::U3, 64, true, true},
    {PackedFormat::U2, 32, false, true},
    {.format = PackedFormat::Bf16, .codebook = 4},
    {.format = PackedFormat::Bf16, .codebook = 3},
    {.format = PackedFormat::Bf16, .codebook = 2},
    {.format = PackedFormat::U8, .group = 128, .hasHalfScales = true, .outliers = 0.02},
    {.format = PackedFormat::U6, .group = 64, .hasZeros = true, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::U5, .group = 32, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::U4, .group = 64, .hasZeros = true, .hasHalfScales = true, .outliers = 0.005},
    {.format = PackedFormat::U4, .group = 32, .hasHalfScales = true, .outliers = kNoOutliers},
    {.format = PackedFormat::U3, .group = 64, .hasZeros = true, .hasHalfScales = true, .outliers = 0.1},
    {.format = PackedFormat::U2, .group = 32, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::Bf16, .outliers = 0.01, .codebook = 4},
    {.format = PackedFormat::Bf16, .outliers = 0.1, .codebook = 3},
    {.format = PackedFormat::Bf16, .outliers = 0.01, .codebook = 2},
    {.format = PackedFormat::F32, .isSparse = true},
    {.format = PackedFormat::F16, .isSparse = true},
    {.format = PackedFormat::Bf16, .isSparse = true},
    {.format = PackedFormat::U8, .group = 128, .hasHalfScales = true, .isSparse = true},
    {.format = PackedFormat::U4, .group = 64, .hasHalfScales = true, .isSparse = true},
};

TEST_P(PackedMlpKernel, NumbersOfRows) {
  for (const WeightKind &kind : kKinds)
    for (int64_t rows : {1, 3, 14, 16, 17, 63, 64, 129, 300})
      for (bool hasGate : {false, true})
        check({rows, 40, 50, 36, kind, true, Layout::Dense, hasGate});
}

TEST_P(PackedMlpKernel, RaggedShapes) {
  for (const WeightKind &kind : kKinds)
    for (int64_t inputs : {1, 33})
      for (int64_t width : {1, 16, 31, 47, 65})
        for (int64_t outputs : {1, 17, 32})
          for (bool hasGate : {false, true})
            check({140, inputs, width, outputs, kind, true, Layout::Dense, hasGate});
}

TEST_P(PackedMlpKernel, MoreRowsThanACacheHolds) {
  for (const WeightKind &kind : kKinds)
    for (bool hasGate : {false, true})
      check({700, 24, 1200, 20, kind, true, Layout::Dense, hasGate});
}

// More inputs than an L1 cache holds weights of.
TEST_P(PackedMlpKernel, ManyInputs) {
  for (const WeightKind &kind : kKinds)
    check({130, 700, 80, 40, kind, true, Layout::Dense, /*hasGate=*/true});
}

TEST_P(PackedMlpKernel, LayoutsAndAbsentOperands) {
  for (const WeightKind &kind : kKinds)
    for (Layout layout : kLayouts)
      for (bool hasOthers : {false, true})
        for (int64_t rows : {5, 150})
          for (bool hasGate : {false, true})
            check({rows, 20, 36, 18, kind, hasOthers, layout, hasGate});
}

TEST_P(PackedMlpKernel, Empty) {
  for (const WeightKind &kind : kKinds) {
    check({0, 8, 8, 8, kind});
    check({200, 8, 8, 0, kind});
    check({200, 0, 8, 8, kind});
    check({200, 8, 0, 8, kind});
    check({200, 8, 0, 8, kind, true, Layout::Dense, /*hasGate=*/true});
  }
}

HONE_INSTANTIATE_LEVELS(PackedMlpKernel);

} // namespace
} // namespace hone::test
