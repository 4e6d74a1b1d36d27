// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of experts against sums in double precision over the numbers that packed weights stand for.

#include "kernel_tensor.h"
#include "packed_weight.h"

namespace hone::test {
namespace {

using cpu::PackedFormat;

/// How rows choose experts: at random, all the same ones, or some that do not exist.
enum class Choices { Random, Same, Missing };

struct Case {
  int64_t rows, choices, experts, inputs, width;
  WeightKind kind;
  int64_t fused = 0; // as the kernel numbers it; 3: a gate of its own, 4: none
  bool hasBiases = true;
  Choices how = Choices::Random;
  Layout layout = Layout::Dense;
};

constexpr int64_t kSeparate = 3, kPlain = 4, kSilu = 2;

double silu(double v) { return v / (1 + std::exp(-v)); }

/// Rounding changes a number of a row by so much at most: 32-bit sums err by less than 1e-6 of every term, bf16 by a 256th; where
/// weights are quantized, by half a step of 8 bits of the largest magnitude, or with bf16 on both sides by two 256ths.
double roundingOf(PackedFormat format, double value, double largest) {
  double exact = 1e-6 * std::abs(value), bf16 = std::abs(value) / 256;
  if (format == PackedFormat::Bf16)
    return exact + bf16;
  return isQuantized(format) ? exact + std::max(2 * bf16, 0.51 * largest / 127) : exact;
}

struct Sum {
  double value = 0, error = 0;
};

class ExpertKernels : public KernelTest {
protected:
  void check(const Case &test) {
    std::vector<int64_t> ids = choose(test);
    checkHidden(test, ids);
    checkSum(test, ids);
  }

private:
  void checkHidden(const Case &test, const std::vector<int64_t> &ids) {
    bool isFused = test.fused == 1 || test.fused == 2, isSeparate = test.fused == kSeparate;
    int64_t rows = test.width * (isFused ? 2 : 1);
    Tensor x = Tensor({test.rows, test.inputs}, test.layout).randomize(random),
           hidden({test.rows, test.choices, test.width}, test.layout);
    PackedWeight up(test.kind, test.experts * rows, test.inputs, random),
        gate(test.kind, test.experts * test.width, test.inputs, random);
    Tensor upBias = biasOf(test, rows), gateBias = biasOf(test, test.width);
    std::vector<hone_tensor> operands = {x.view(), viewOf(test, ids)};
    append(operands, up, true, upBias);
    append(operands, gate, isSeparate, gateBias);
    operands.push_back(hidden.view());
    run(kernelOf(layerOf(test, "expert_hidden"), test.kind), operands,
        {kSilu, isFused ? test.fused : 0, test.experts, test.kind.group, 8, 1});
    for (size_t choice = 0; choice < ids.size() && !HasFailure(); ++choice) {
      int64_t row = static_cast<int64_t>(choice) / test.choices, t = static_cast<int64_t>(choice) % test.choices;
      std::vector<double> inputs;
      for (int64_t k = 0; k < test.inputs; ++k)
        inputs.push_back(x.at({row, k}));
      for (int64_t i = 0; i < test.width && !HasFailure(); ++i) {
        Sum expected;
        if (exists(test, ids[choice])) {
          auto product = [&](const PackedWeight &weight, const Tensor &bias, int64_t all, int64_t n) {
            return multiply(test, inputs, weight, ids[choice] * all + n,
                            test.hasBiases ? bias.at({ids[choice], n}) : 0);
          };
          int64_t upRow = test.fused == 1 ? test.width + i : test.fused == 2 ? 2 * i + 1 : i;
          expected = product(up, upBias, rows, upRow);
          if (test.fused == kPlain)
            expected = activate(expected);
          else if (isSeparate)
            expected = times(activate(product(gate, gateBias, test.width, i)), expected);
          else
            expected = times(activate(product(up, upBias, rows, test.fused == 1 ? i : 2 * i)), expected);
        }
        compare("expert_hidden", test, hidden.at({row, t, i}), expected, row, i);
      }
    }
  }

  void checkSum(const Case &test, const std::vector<int64_t> &ids) {
    Tensor hidden = Tensor({test.rows, test.choices, test.width}, test.layout).randomize(random),
           weights = Tensor({test.rows, test.choices}, test.layout).randomize(random),
           y({test.rows, test.inputs}, test.layout);
    PackedWeight down(test.kind, test.experts * test.inputs, test.width, random);
    Tensor bias = biasOf(test, test.inputs);
    std::vector<hone_tensor> operands = {hidden.view(), viewOf(test, ids), weights.view()};
    append(operands, down, true, bias);
    operands.push_back(y.view());
    run(kernelOf(layerOf(test, "expert_sum"), test.kind), operands, {test.experts, test.kind.group, 8, 1});
    for (int64_t row = 0; row < test.rows && !HasFailure(); ++row)
      for (int64_t n = 0; n < test.inputs && !HasFailure(); ++n) {
        Sum expected{0, 1e-6};
        for (int64_t t = 0; t < test.choices; ++t) {
          int64_t id = ids[static_cast<size_t>(row * test.choices + t)];
          if (!exists(test, id))
            continue;
          std::vector<double> inputs;
          for (int64_t i = 0; i < test.width; ++i)
            inputs.push_back(hidden.at({row, t, i}));
          Sum one = multiply(test, inputs, down, id * test.inputs + n, test.hasBiases ? bias.at({id, n}) : 0);
          expected.value += weights.at({row, t}) * one.value;
          expected.error += std::abs(weights.at({row, t})) * one.error;
        }
        compare("expert_sum", test, y.at({row, n}), expected, row, n);
      }
  }

  static std::string layerOf(const Case &test, std::string_view layer) {
    return (test.kind.isSparse ? "hone.sparse_" : "hone.") + std::string(layer) +
           (test.kind.outliers > 0 ? ".outliers" : "");
  }

  static bool exists(const Case &test, int64_t id) { return id >= 0 && id < test.experts; }

  std::vector<int64_t> choose(const Case &test) {
    std::vector<int64_t> ids;
    std::uniform_int_distribution<int64_t> any(0, test.experts - 1), missing(-2, test.experts + 1);
    for (int64_t row = 0; row < test.rows; ++row)
      for (int64_t t = 0; t < test.choices; ++t)
        ids.push_back(test.how == Choices::Same      ? t % test.experts
                      : test.how == Choices::Missing ? missing(random)
                                                     : any(random));
    return ids;
  }

  static hone_tensor viewOf(const Case &test, const std::vector<int64_t> &ids) {
    hone_tensor tensor = listOf(ids);
    tensor.rank = 2;
    tensor.sizes[0] = test.rows;
    tensor.sizes[1] = tensor.strides[0] = test.choices;
    tensor.strides[1] = 1;
    return tensor;
  }

  Tensor biasOf(const Case &test, int64_t rows) {
    return test.hasBiases ? Tensor({test.experts, rows}, test.layout).randomize(random) : Tensor::absent();
  }

  static void append(std::vector<hone_tensor> &operands, PackedWeight &weight, bool isThere, Tensor &bias) {
    std::vector<hone_tensor> planes = weight.views();
    if (!isThere)
      std::ranges::fill(planes, hone_tensor{});
    operands.insert(operands.end(), planes.begin(), planes.end());
    operands.push_back(bias.view());
  }

  static Sum multiply(const Case &test, const std::vector<double> &inputs, const PackedWeight &weight, int64_t row,
                      double bias) {
    double largest = 0;
    for (double input : inputs)
      largest = std::max(largest, std::abs(input));
    Sum sum{bias, 1e-6};
    for (size_t k = 0; k < inputs.size(); ++k) {
      double element = weight.at(row, static_cast<int64_t>(k));
      sum.value += inputs[k] * element;
      // Outliers beside codebooks are added to what is rounded again.
      double rounding = roundingOf(test.kind.format, inputs[k], largest);
      sum.error += (test.kind.codebook > 0 && test.kind.outliers > 0 ? 2 : 1) * rounding *
                   weight.magnitude(row, static_cast<int64_t>(k));
    }
    return sum;
  }

  /// The activation has slopes up to 1.1.
  static Sum activate(const Sum &sum) { return {silu(sum.value), 1.1 * sum.error + 1e-6}; }
  static Sum times(const Sum &a, const Sum &b) {
    return {a.value * b.value, a.error * std::abs(b.value) + b.error * std::abs(a.value) + a.error * b.error + 1e-6};
  }

  void compare(std::string_view layer, const Case &test, double actual, const Sum &expected, int64_t row, int64_t n) {
    double error = expected.error + 1e-6 * std::abs(expected.value);
    if (!(std::abs(actual - expected.value) <= error))
      ADD_FAILURE() << kernelOf(layerOf(test, layer), test.kind) << " group " << test.kind.group << " rows "
                    << test.rows << " choices " << test.choices << " experts " << test.experts << " inputs "
                    << test.inputs << " width " << test.width << " fused " << test.fused << " at " << row << ", " << n
                    << ": expected " << expected.value << " ± " << error << ", but got " << actual;
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
    {PackedFormat::U4, 32},
    {PackedFormat::U3, 64, true, true},
    {PackedFormat::U2, 32, false, true},
    {.format = PackedFormat::Bf16, .codebook = 4},
    {.format = PackedFormat::Bf16, .codebook = 3},
    {.format = PackedFormat::Bf16, .codebook = 2},
    {.format = PackedFormat::U8, .hasZeros = true, .outliers = 0.02},
    {.format = PackedFormat::U6, .group = 64, .hasZeros = true, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::U5, .group = 32, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::U4, .group = 32, .hasHalfScales = true, .outliers = 0.2},
    {.format = PackedFormat::U3, .group = 64, .hasZeros = true, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::U2, .group = 32, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::Bf16, .outliers = 0.01, .codebook = 4},
    {.format = PackedFormat::Bf16, .outliers = 0.1, .codebook = 3},
    {.format = PackedFormat::Bf16, .outliers = 0.01, .codebook = 2},
};

/// Inputs are multiples of four.
const WeightKind kSparseKinds[] = {
    {.format = PackedFormat::F32, .isSparse = true},
    {.format = PackedFormat::F16, .isSparse = true},
    {.format = PackedFormat::Bf16, .isSparse = true},
    {.format = PackedFormat::U8, .group = 32, .hasHalfScales = true, .isSparse = true},
    {.format = PackedFormat::U4, .group = 64, .hasZeros = true, .hasHalfScales = true, .isSparse = true},
};

TEST_P(ExpertKernels, NumbersOfRows) {
  for (const WeightKind &kind : kKinds)
    for (int64_t rows : {1, 2, 5, 40, 150})
      for (int64_t fused : {int64_t(1), int64_t(2), kSeparate, kPlain})
        check({rows, 2, 4, 32, 48, kind, fused});
}

/// Experts whose rows begin within a panel.
TEST_P(ExpertKernels, RaggedShapes) {
  for (const WeightKind &kind : kKinds)
    for (int64_t inputs : {1, 33})
      for (int64_t width : {1, 7, 17, 40})
        for (int64_t fused : {int64_t(1), int64_t(2), kSeparate})
          check({9, 2, 3, inputs, width, kind, fused});
}

TEST_P(ExpertKernels, TwoOfFour) {
  for (const WeightKind &kind : kSparseKinds)
    for (int64_t rows : {1, 5, 70})
      for (int64_t fused : {int64_t(1), int64_t(2), kSeparate, kPlain}) {
        check({rows, 2, 4, 32, 48, kind, fused});
        check({rows, 2, 3, 36, 20, kind, fused, true, Choices::Missing}); // rows that begin within a panel
      }
}

TEST_P(ExpertKernels, OneExpertOrAll) {
  for (const WeightKind &kind : kKinds) {
    check({7, 1, 1, 32, 24, kind, 1});
    check({7, 4, 4, 32, 24, kind, 1, true, Choices::Same});
    check({70, 1, 5, 32, 24, kind, 2, true, Choices::Same});
    check({12, 3, 4, 20, 24, kind, kSeparate, true, Choices::Missing});
  }
}

TEST_P(ExpertKernels, LayoutsAndAbsentOperands) {
  for (const WeightKind &kind : kKinds)
    for (Layout layout : kLayouts)
      for (bool hasBiases : {false, true})
        check({6, 2, 3, 20, 18, kind, 1, hasBiases, Choices::Random, layout});
}

TEST_P(ExpertKernels, Empty) {
  for (const WeightKind &kind : kKinds) {
    check({0, 2, 3, 8, 8, kind, 1});
    check({3, 0, 3, 8, 8, kind, 1});
  }
}

HONE_INSTANTIATE_LEVELS(ExpertKernels);

} // namespace
} // namespace hone::test
