// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of experts on the device against sums in double precision over the dequantized weights.

#include "../activation.h"
#include "linear_weight.h"
#include "parity.h"

namespace hone::test {
namespace {

/// The routing of rows: to random experts, to the same ones, or also to some that do not exist.
enum class Choices { Random, Same, Missing };

enum Form : int64_t { kPlain, kHalves, kAlternate, kSeparate };

struct Case {
  int64_t rows, choices, experts, inputs, width;
  Form form = kSeparate;
  Quantization quantization = {};
  int32_t type = HONE_F32; // of everything but weights
  Choices how = Choices::Random;
  bool hasBiases = true;
  Layout layout = Layout::Dense;
  int32_t idType = HONE_I64;

  int64_t pairs() const { return rows * choices; }
  int64_t upRows() const { return form == kHalves || form == kAlternate ? 2 * width : width; }
  bool isGemm() const { return pairs() > 32 * experts; }
};

constexpr int64_t kSilu = 2;

class ExpertParity : public ParityTest {
protected:
  std::string format() const { return kernel().substr(kernel().rfind('.') + 1); }
  bool isQuantized() const { return LinearWeight::isQuantized(format()); }

  /// Rows of quantized values are whole words.
  void fillWords(Case &test) const {
    if (!isQuantized())
      return;
    test.inputs = (test.inputs + 31) / 32 * 32;
    test.width = (test.width + 31) / 32 * 32;
  }

  Tensor chooseIds(const Case &test) {
    Tensor ids({test.rows, test.choices}, test.idType, test.layout);
    std::uniform_int_distribution<int64_t> any(0, test.experts - 1), missing(-2, test.experts + 1);
    ids.forEach([&](const std::vector<int64_t> &at) {
      int64_t id = test.how == Choices::Same      ? at[1] % test.experts
                   : test.how == Choices::Missing ? missing(random)
                                                  : any(random);
      ids.set(at, static_cast<double>(id));
    });
    return ids;
  }

  static bool exists(const Case &test, const Tensor &ids, const std::vector<int64_t> &at) {
    return ids.at(at) >= 0 && ids.at(at) < static_cast<double>(test.experts);
  }

  static Tensor groupsOf(const Case &test, const Tensor &ids) {
    Tensor groups({test.experts + 1 + test.pairs()}, HONE_I32);
    int64_t count = 0;
    for (int64_t expert = 0; expert < test.experts; ++expert) {
      groups.set({expert}, static_cast<double>(count));
      ids.forEach([&](const std::vector<int64_t> &at) {
        if (ids.at(at) == static_cast<double>(expert))
          groups.set({test.experts + 1 + count++}, static_cast<double>(at[0] * test.choices + at[1]));
      });
    }
    groups.set({test.experts}, static_cast<double>(count));
    return groups;
  }

  LinearWeight probabilityOf(const Case &test, int64_t outputs, int64_t inputs) {
    return {format(), Stored::Whole, test.experts * outputs, inputs, test.quantization, Layout::Aligned, random};
  }

  Tensor biasOf(const Case &test, int64_t outputs) {
    return test.hasBiases ? Tensor({test.experts, outputs}, test.type, test.layout).randomize(random)
                          : Tensor::absent();
  }

  void append(std::vector<Tensor *> &operands, LinearWeight *weight, Tensor &bias) {
    std::vector<Tensor *> planes(isQuantized() ? 3 : 1, &nothing);
    if (weight)
      planes = weight->planes();
    operands.insert(operands.end(), planes.begin(), planes.end());
    operands.push_back(&bias);
  }

  std::vector<int64_t> withQuantization(const Case &test, std::vector<int64_t> ints) const {
    if (isQuantized())
      ints.insert(ints.end(), {test.quantization.group, test.quantization.isSigned});
    return ints;
  }

  struct Sum {
    double value = 0, error = 0;
  };

  /// The relative error of a product, which depends on how many rows an expert has, as in linear_parity_test.cpp.
  double productError(const Case &test) const {
    constexpr double kExact = 1e-6, kSplit = 1.53e-5;
    bool isBf16 = test.type == HONE_BF16;
    if (format() == "f16" && test.type == HONE_F16)
      return kExact;
    if (!test.isGemm())
      return format() == "f32" || format() == "f16" || isBf16 ? kExact : kExact + kSplit;
    if (format() == "bf16" || (isQuantized() && isBf16))
      return isBf16 ? kExact + (isQuantized() ? roundingOf(HONE_BF16) : 0) : kExact + kSplit;
    return kExact + 3 * kSplit;
  }

  /// The row of x times row `n` of the weight.
  Sum multiply(const Case &test, const Tensor &x, std::vector<int64_t> row, int64_t inputs, const LinearWeight &weight,
               int64_t n, double bias) const {
    Sum sum = {bias, 1e-6};
    row.push_back(0);
    for (int64_t k = 0; k < inputs; ++k) {
      row.back() = k;
      double product = x.at(row) * weight.at(n, k);
      sum.value += product;
      sum.error += productError(test) * std::abs(product);
    }
    return sum;
  }

  void compare(const Case &test, double actual, const Sum &expected, const std::vector<int64_t> &at) {
    double error = expected.error + (1e-6 + roundingOf(test.type)) * std::abs(expected.value);
    if (std::abs(actual - expected.value) <= error)
      return;
    ADD_FAILURE() << kernel() << " type " << test.type << " group " << test.quantization.group << " rows " << test.rows
                  << " choices " << test.choices << " experts " << test.experts << " inputs " << test.inputs
                  << " width " << test.width << " form " << test.form << " at " << testing::PrintToString(at)
                  << ": expected " << expected.value << " ± " << error << ", but got " << actual;
  }

  Tensor nothing = Tensor::absent();
};

class ExpertHiddenParity : public ExpertParity {
protected:
  void check(Case test) {
    fillWords(test);
    Tensor x({test.rows, test.inputs}, test.type, test.layout),
        ids = chooseIds(test), groups = groupsOf(test, ids),
        hidden({test.rows, test.choices, test.width}, test.type, test.layout);
    x.randomize(random);
    LinearWeight up = probabilityOf(test, test.upRows(), test.inputs),
                 gate = probabilityOf(test, test.width, test.inputs);
    Tensor upBias = biasOf(test, test.upRows()), gateBias = biasOf(test, test.width);
    std::vector<Tensor *> operands = {&x, &groups};
    append(operands, &up, upBias);
    append(operands, test.form == kSeparate ? &gate : nullptr, test.form == kSeparate ? gateBias : nothing);
    operands.push_back(&hidden);
    run(operands, 1, withQuantization(test, {kSilu, test.form == kSeparate ? 0 : test.form, test.experts}));
    hidden.forEach([&](const std::vector<int64_t> &at) {
      if (HasFailure() || !exists(test, ids, {at[0], at[1]}))
        return;
      auto expert = static_cast<int64_t>(ids.at({at[0], at[1]}));
      auto product = [&](const LinearWeight &weight, const Tensor &bias, int64_t all, int64_t n) {
        return multiply(test, x, {at[0]}, test.inputs, weight, expert * all + n,
                        test.hasBiases ? bias.at({expert, n}) : 0);
      };
      int64_t i = at[2], width = test.width, rows = test.upRows();
      if (test.form == kPlain)
        return compare(test, hidden.at(at), activated(product(up, upBias, rows, i)), at);
      bool areHalves = test.form == kHalves, isFused = test.form != kSeparate;
      Sum gated = isFused ? product(up, upBias, rows, areHalves ? i : 2 * i) : product(gate, gateBias, width, i);
      Sum upper = product(up, upBias, rows, !isFused ? i : areHalves ? width + i : 2 * i + 1);
      compare(test, hidden.at(at), times(activated(gated), upper), at);
    });
  }

private:
  /// The activation has slopes up to 1.1.
  static Sum activated(const Sum &sum) { return {activate(sum.value, kSilu), 1.1 * sum.error + 1e-6}; }
  static Sum times(const Sum &a, const Sum &b) {
    return {a.value * b.value, a.error * std::abs(b.value) + b.error * std::abs(a.value) + a.error * b.error + 1e-6};
  }
};

class ExpertSumParity : public ExpertParity {
protected:
  /// The inputs are `width` elements a pair, the outputs `inputs`.
  void check(Case test) {
    fillWords(test);
    Tensor hidden({test.rows, test.choices, test.width}, test.type, test.layout),
        ids = chooseIds(test), weights({test.rows, test.choices}, test.type, test.layout), groups = groupsOf(test, ids),
        y({test.rows, test.inputs}, test.type, test.layout);
    hidden.randomize(random), weights.randomize(random);
    LinearWeight down = probabilityOf(test, test.inputs, test.width);
    Tensor bias = biasOf(test, test.inputs);
    std::vector<Tensor *> operands = {&hidden, &ids, &weights, &groups};
    append(operands, &down, bias);
    operands.push_back(&y);
    run(operands, 1, withQuantization(test, {test.experts}));
    y.forEach([&](const std::vector<int64_t> &at) {
      Sum expected = {0, 1e-6};
      for (int64_t t = 0; t < test.choices && !HasFailure(); ++t) {
        if (!exists(test, ids, {at[0], t}))
          continue;
        auto expert = static_cast<int64_t>(ids.at({at[0], t}));
        Sum one = multiply(test, hidden, {at[0], t}, test.width, down, expert * test.inputs + at[1],
                           test.hasBiases ? bias.at({expert, at[1]}) : 0);
        double weight = weights.at({at[0], t});
        expected.value += weight * one.value;
        expected.error += std::abs(weight) * (one.error + 1e-6 * std::abs(one.value));
      }
      if (!HasFailure())
        compare(test, y.at(at), expected, at);
    });
  }
};

/// Quantized values with and without zeros, signs and groups; floats have none.
std::vector<Quantization> kindsOf(bool isQuantized) {
  if (!isQuantized)
    return {{}};
  return {{0, true, HONE_F32, true}, {32, true, HONE_F16}, {64, false, HONE_F32}};
}

template <typename Check> void checkRowCounts(bool isQuantized, Check check) {
  for (const Quantization &kind : kindsOf(isQuantized))
    for (int64_t rows : {1, 2, 7, 40})
      check({rows, 2, 4, 64, 48, kSeparate, kind});
}

template <typename Check> void checkGemm(bool isQuantized, Check check) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
    check({150, 2, 3, 72, 40, kHalves, kindsOf(isQuantized).back(), type});
  check({130, 1, 2, 64, 136, kSeparate, kindsOf(isQuantized).front(), HONE_F32, Choices::Same});
  check({90, 2, 3, 64, 24, kAlternate, kindsOf(isQuantized).front(), HONE_F32, Choices::Missing});
}

template <typename Check> void checkOthers(bool isQuantized, Check check) {
  Quantization kind = kindsOf(isQuantized)[isQuantized];
  for (Form form : {kPlain, kHalves, kAlternate})
    for (bool hasBiases : {false, true})
      check({5, 3, 6, 40, 24, form, kind, HONE_F32, Choices::Random, hasBiases});
  for (int32_t type : {HONE_F16, HONE_BF16})
    for (int64_t rows : {1, 12})
      check({rows, 2, 3, 64, 40, kHalves, kind, type});
  for (Layout layout : {Layout::Gaps, Layout::Swapped})
    check({6, 2, 3, 40, 24, kSeparate, kind, HONE_F32, Choices::Random, true, layout, HONE_I32});
  check({12, 3, 4, 32, 24, kSeparate, kind, HONE_F32, Choices::Missing});
  check({7, 1, 1, 32, 24, kAlternate, kind});
  check({3, 4, 70, 32, 24, kSeparate, kind});
  check({0, 2, 3, 8, 8, kHalves, kind});
  check({3, 0, 3, 8, 8, kHalves, kind});
}

TEST_P(ExpertHiddenParity, RowCounts) {
  checkRowCounts(isQuantized(), [&](const Case &test) { check(test); });
}
TEST_P(ExpertHiddenParity, Gemm) {
  checkGemm(isQuantized(), [&](const Case &test) { check(test); });
}
TEST_P(ExpertHiddenParity, FormsTypesAndLayouts) {
  checkOthers(isQuantized(), [&](const Case &test) { check(test); });
}
TEST_P(ExpertSumParity, RowCounts) {
  checkRowCounts(isQuantized(), [&](const Case &test) { check(test); });
}
TEST_P(ExpertSumParity, Gemm) {
  checkGemm(isQuantized(), [&](const Case &test) { check(test); });
}
TEST_P(ExpertSumParity, FormsTypesAndLayouts) {
  checkOthers(isQuantized(), [&](const Case &test) { check(test); });
}

class ExpertGroupsParity : public ExpertParity {};

TEST_P(ExpertGroupsParity, EveryPairIsItsExperts) {
  for (int64_t experts : {1, 3, 8, 9, 70})
    for (int64_t rows : {0, 1, 5, 33, 100})
      for (Choices how : {Choices::Random, Choices::Same, Choices::Missing}) {
        Case test = {rows, 2, experts, 8, 8};
        test.how = how;
        test.idType = rows % 2 ? HONE_I32 : HONE_I64;
        test.layout = rows == 33 ? Layout::Gaps : Layout::Dense;
        Tensor ids = chooseIds(test), expected = groupsOf(test, ids), groups({expected.count()}, HONE_I32);
        run({&ids, &groups}, 1, {experts});
        EXPECT_EQ(groups.memory, expected.memory) << experts << " experts, " << rows << " rows";
      }
}

INSTANTIATE_TEST_SUITE_P(Experts, ExpertHiddenParity,
                         testing::Values("cuda.expert_hidden.f32", "cuda.expert_hidden.f16", "cuda.expert_hidden.bf16",
                                         "cuda.expert_hidden.affine8", "cuda.expert_hidden.affine6",
                                         "cuda.expert_hidden.affine5", "cuda.expert_hidden.affine4",
                                         "cuda.expert_hidden.affine3", "cuda.expert_hidden.affine2"));
INSTANTIATE_TEST_SUITE_P(Experts, ExpertSumParity,
                         testing::Values("cuda.expert_sum.f32", "cuda.expert_sum.f16", "cuda.expert_sum.bf16",
                                         "cuda.expert_sum.affine8", "cuda.expert_sum.affine6",
                                         "cuda.expert_sum.affine5", "cuda.expert_sum.affine4",
                                         "cuda.expert_sum.affine3", "cuda.expert_sum.affine2"));
INSTANTIATE_TEST_SUITE_P(Experts, ExpertGroupsParity, testing::Values("cuda.expert_groups"));

} // namespace
} // namespace hone::test
