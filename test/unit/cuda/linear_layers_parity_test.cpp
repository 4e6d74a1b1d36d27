// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several linear layers of one x on the device, siblings and gated ones, against sums in double precision over the
// dequantized weights.

#include "../activation.h"
#include "linear_weight.h"
#include "parity.h"

#include <gmock/gmock.h>

namespace hone::test {
namespace {

/// The RMSNorm of x before the layers.
enum class Norm { None, Weight, UnitOffset };

constexpr double kEpsilon = 0.25; // which counts beside squares of about 1

struct Case {
  int64_t rows, inputs;
  std::vector<int64_t> outputs; // of each layer; gated layers have one number
  Quantization quantization = {};
  int32_t type = HONE_F32; // of everything but the weights
  Layout layout = Layout::Dense;
  bool hasBias = true;
  int64_t activation = 0;
  Layout weightLayout = Layout::Aligned;
  Norm norm = Norm::None;
  int32_t normType = HONE_F32; // of its weight
};

/// A layer and what it is expected to give.
struct Layer {
  LinearWeight weight;
  Tensor bias;
  int64_t inputs;

  struct Sum {
    double value, error;
  };
  Sum sum(const Tensor &x, int64_t row, int64_t output, double relativeError) const {
    double value = bias.count() > 0 ? bias.at({output}) : 0, products = 0;
    for (int64_t k = 0; k < inputs; ++k) {
      double product = x.at({row, k}) * weight.at(output, k);
      value += product;
      products += std::abs(product);
    }
    return {value, 1e-6 + relativeError * products};
  }
};

class LinearLayersParity : public ParityTest {
protected:
  std::string format() const { return kernel().substr(kernel().rfind('.') + 1); }
  bool isQuantized() const { return LinearWeight::isQuantized(format()); }

  int64_t inputsOf(const Case &test) const { // of whole words
    int64_t unit = LinearWeight::inputsOfWords(format());
    return (test.inputs + unit - 1) / unit * unit;
  }

  Layer makeLayer(const Case &test, int64_t outputs) {
    LinearWeight weight(format(), Stored::Whole, outputs, inputsOf(test), test.quantization, test.weightLayout, random);
    Tensor bias = test.hasBias ? Tensor({outputs}, test.type, test.layout).randomize(random) : Tensor::absent();
    return {std::move(weight), std::move(bias), inputsOf(test)};
  }

  static void append(std::vector<Tensor *> &operands, Layer &layer) {
    std::ranges::copy(layer.weight.planes(), std::back_inserter(operands));
    operands.push_back(&layer.bias);
  }

  /// x, and what the layers multiply in f32: its norm with a weight, if there is one.
  struct NormedInput {
    Tensor x, weight, normed;
    double error; // relative to the sum of products, of the rounding of what is multiplied to the type of x
  };

  NormedInput makeInput(const Case &test) {
    NormedInput input = {Tensor({test.rows, inputsOf(test)}, test.type, test.layout), Tensor::absent(),
                         Tensor({test.rows, inputsOf(test)}), 0};
    input.x.randomize(random);
    if (test.norm != Norm::None) {
      input.weight = Tensor({inputsOf(test)}, test.normType).randomize(random);
      input.error = 1e-6 + roundingOf(test.type);
    }
    for (int64_t row = 0; row < test.rows; ++row) {
      double squares = 0;
      for (int64_t k = 0; k < inputsOf(test); ++k)
        squares += input.x.at({row, k}) * input.x.at({row, k});
      double factor = 1 / std::sqrt(squares / static_cast<double>(inputsOf(test)) + kEpsilon);
      for (int64_t k = 0; k < inputsOf(test); ++k)
        input.normed.set({row, k}, test.norm == Norm::None
                                       ? input.x.at({row, k})
                                       : input.x.at({row, k}) * factor *
                                             (input.weight.at({k}) + (test.norm == Norm::UnitOffset ? 1 : 0)));
    }
    return input;
  }

  /// `ints`: those of the kernel before that of the norm.
  std::vector<int64_t> intsOf(const Case &test, std::vector<int64_t> ints) const {
    ints.push_back(test.norm == Norm::UnitOffset);
    if (isQuantized())
      ints.insert(ints.end(), {test.quantization.group, test.quantization.isSigned});
    return ints;
  }

  /// `expect`: the value and error of a row and output.
  template <typename Expect> void compare(const Case &test, const Tensor &y, Expect expect) const {
    for (int64_t row = 0; row < y.sizes[0]; ++row)
      for (int64_t output = 0; output < y.sizes[1]; ++output) {
        auto [value, error] = expect(row, output);
        error = 1.2 * error + roundingOf(test.type) * std::abs(value); // activations have slopes up to 1.13
        ASSERT_NEAR(y.at({row, output}), value, error)
            << kernel() << " type " << test.type << " group " << test.quantization.group << " rows " << test.rows
            << " inputs " << test.inputs << " outputs " << y.sizes[1] << " row " << row << " output " << output;
      }
  }

  /// `call` gives y of x and the weight of a norm. A row has the same bits whatever the number of rows up to eight.
  template <typename Call> void checkRows(const Case &test, Call call) {
    Tensor x({test.rows, inputsOf(test)});
    x.randomize(random);
    Tensor weight = test.norm == Norm::None ? Tensor::absent() : Tensor({inputsOf(test)}).randomize(random);
    Tensor expected = call(x, weight);
    for (int64_t rows = 1; rows < test.rows; rows += 3) {
      Tensor some({rows, inputsOf(test)});
      some.forEach([&](const std::vector<int64_t> &index) { some.set(index, x.at(index)); });
      Tensor y = call(some, weight);
      y.forEach([&](const std::vector<int64_t> &index) {
        EXPECT_EQ(y.at(index), expected.at(index)) << rows << " rows, row " << index[0] << " output " << index[1];
      });
    }
  }

  std::vector<Quantization> kinds() const {
    if (!isQuantized())
      return {{}};
    return {{0}, {0, true, HONE_F16, true}, {32, true, HONE_F16}, {64, false, HONE_F32}, {128, true, HONE_F16}};
  }

  static Case withNorm(Case test, Norm norm, int32_t type = HONE_F32) {
    test.norm = norm;
    test.normType = type;
    return test;
  }

  /// The last has rows of which one is held in shared memory, and eight are not.
  std::vector<Case> casesOfRows() const {
    Case plain = {8, 264, {}, kinds().back()}, wide = {8, 8200, {}, kinds().back()};
    return {plain, withNorm(plain, Norm::Weight), withNorm(wide, Norm::UnitOffset)};
  }

  /// Shapes, formats and layouts that launches of one kernel have to cover.
  template <typename Check> void checkAll(Check check) {
    for (int64_t rows : {1, 7, 9, 32, 33})
      check({rows, 136, {40, 17, 8}, kinds().back()});
    for (const Quantization &kind : kinds())
      for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
        check(
            {3, 296, {33, 16, 70}, kind, type, type == HONE_F16 ? Layout::Gaps : Layout::Dense, type != HONE_BF16, 2});
    for (int64_t activation : {1, 3, 4})
      check({10, 72, {36, 19, 4}, kinds().front(), HONE_F32, Layout::Swapped, true, activation});
    check({2, 43, {19, 20, 21}, kinds().back(), HONE_F32, Layout::Dense, true, 2, Layout::Gaps});
    check({2, 1032, {48, 16, 16}, kinds().front(), HONE_BF16});
    check({0, 64, {20, 20, 20}, kinds().front()});
    for (int64_t rows : {1, 3, 8, 12, 33})
      for (Norm norm : {Norm::Weight, Norm::UnitOffset})
        check(withNorm({rows, 296, {33, 16, 70}, kinds().back(), HONE_F32, Layout::Dense, true, 2}, norm));
    for (int32_t type : {HONE_F16, HONE_BF16})
      check(withNorm({3, 296, {33, 16, 70}, kinds().back(), type, Layout::Gaps, true, 2}, Norm::Weight, type));
    check(withNorm({3, 43, {33, 16, 70}, kinds().back(), HONE_F32, Layout::Dense, true, 2}, Norm::Weight));
    check(withNorm({2, 64, {33, 16, 70}, kinds().back(), HONE_F32, Layout::Dense, true, 2}, Norm::Weight, HONE_BF16));
    // Rows that shared memory does not hold.
    check(withNorm({8, 8200, {33, 16, 17}, kinds().back(), HONE_F32, Layout::Dense, true, 2}, Norm::Weight));
    check(withNorm({0, 64, {20, 20, 20}, kinds().front()}, Norm::Weight));
    check({2, 64, {0, 0, 0}, kinds().front()});
  }
};

class SiblingLinearParity : public LinearLayersParity {
protected:
  void check(const Case &test) {
    NormedInput input = makeInput(test);
    std::vector<Layer> layers;
    std::vector<Tensor> ys;
    for (int64_t outputs : test.outputs) {
      layers.push_back(makeLayer(test, outputs));
      ys.emplace_back(std::vector<int64_t>{test.rows, outputs}, test.type, test.layout);
    }
    std::vector<Tensor *> operands = {&input.x, &input.weight};
    Tensor absent = Tensor::absent();
    bool areTwo = layers.size() == 2; // the second and the third
    if (areTwo)
      operands.insert(operands.end(), layers.front().weight.planes().size() + 1, &absent);
    for (Layer &layer : layers)
      append(operands, layer);
    if (areTwo)
      operands.push_back(&absent);
    for (Tensor &y : ys)
      operands.push_back(&y);
    run(operands, ys.size(), intsOf(test, {}), {kEpsilon});
    double relativeError = productError(format(), test.type, test.rows) + input.error;
    for (size_t i = 0; i < layers.size(); ++i)
      compare(test, ys[i],
              [&](int64_t row, int64_t output) { return layers[i].sum(input.normed, row, output, relativeError); });
  }
};

TEST_P(SiblingLinearParity, ShapesAndTypes) {
  checkAll([&](Case test) {
    test.activation = 0;
    check(test);
  });
}

TEST_P(SiblingLinearParity, Two) {
  for (int64_t rows : {1, 12, 40})
    check({rows, 64, {24, 50}, kinds().back(), HONE_BF16, Layout::Gaps, rows == 1});
  check({1, 64, {24, 0}, kinds().back()});
}

/// One launch up to 32 rows, if no layer needs another; a layer without outputs has no blocks.
TEST_P(SiblingLinearParity, IsOneLaunch) {
  for (int64_t rows : {1, 12}) {
    device->takeLaunched();
    check({rows, 128, {24, 0, 50}, kinds().back(), format() == "bf16" ? HONE_BF16 : HONE_F32});
    EXPECT_THAT(device->takeLaunched(), testing::ElementsAre(testing::AnyOf(testing::HasSubstr("_siblings_"),
                                                                            testing::StartsWith("gemv_stream_"))));
  }
}

/// Persistent GEMV of f32 has the norm in its launch; all others have one more before.
TEST_P(SiblingLinearParity, NormIsPartOfTheLaunch) {
  for (int32_t type : {HONE_F32, HONE_BF16}) {
    device->takeLaunched();
    check(withNorm({2, 128, {24, 50}, kinds().back(), type}, Norm::Weight));
    bool isPart = format() == "bf16" && type == HONE_F32;
    EXPECT_EQ(std::ranges::count(device->takeLaunched(), "rms_norm_4"), isPart ? 0 : 1) << type;
  }
}

TEST_P(SiblingLinearParity, RowsAreIndependent) {
  for (const Case &test : casesOfRows()) {
    Layer first = makeLayer(test, 40), second = makeLayer(test, 17);
    checkRows(test, [&](Tensor &x, Tensor &weight) {
      Tensor absent = Tensor::absent(), y({x.sizes[0], 40}), z({x.sizes[0], 17});
      std::vector<Tensor *> operands = {&x, &weight};
      operands.insert(operands.end(), first.weight.planes().size() + 1, &absent);
      append(operands, first);
      append(operands, second);
      operands.insert(operands.end(), {&absent, &y, &z});
      run(operands, 2, intsOf(test, {}), {kEpsilon});
      return z;
    });
  }
}

/// Few outputs and many inputs: one by one, as split-K is faster.
TEST_P(SiblingLinearParity, SplitK) {
  device->takeLaunched();
  check({1, 32800, {24, 8}, kinds().front(), HONE_BF16});
  EXPECT_THAT(device->takeLaunched(), testing::Contains(testing::AnyOf("reduce_epilogue", "gemv_stream_bf16_6")));
}

class GatedLinearParity : public LinearLayersParity {
protected:
  void check(const Case &test) {
    NormedInput input = makeInput(test);
    Tensor y({test.rows, test.outputs.front()}, test.type, test.layout);
    Layer gate = makeLayer(test, test.outputs.front()), up = makeLayer(test, test.outputs.front());
    std::vector<Tensor *> operands = {&input.x, &input.weight};
    append(operands, gate);
    append(operands, up);
    operands.push_back(&y);
    run(operands, 1, intsOf(test, {test.activation}), {kEpsilon});
    double relativeError = productError(format(), test.type, test.rows) + input.error;
    compare(test, y, [&](int64_t row, int64_t output) {
      Layer::Sum g = gate.sum(input.normed, row, output, relativeError),
                 u = up.sum(input.normed, row, output, relativeError);
      double factor = activate(g.value, test.activation);
      return Layer::Sum{factor * u.value, g.error * std::abs(u.value) + u.error * std::abs(factor) + g.error * u.error};
    });
  }
};

TEST_P(GatedLinearParity, ShapesAndTypes) {
  checkAll([&](const Case &test) { check(test); });
}

TEST_P(GatedLinearParity, IsOneLaunch) {
  for (int64_t rows : {1, 12}) {
    device->takeLaunched();
    check({rows, 128, {50}, kinds().back(), format() == "bf16" ? HONE_BF16 : HONE_F32, Layout::Dense, true, 2});
    EXPECT_THAT(device->takeLaunched(), testing::ElementsAre(testing::AnyOf(testing::HasSubstr("_gated_"),
                                                                            testing::StartsWith("gemv_stream_"))));
  }
}

TEST_P(GatedLinearParity, NormIsPartOfTheLaunch) {
  for (int64_t rows : {8, 9}) {
    device->takeLaunched();
    check(withNorm({rows, 128, {50}, kinds().back()}, Norm::UnitOffset));
    bool isPart = format() == "bf16" && rows == 8;
    EXPECT_EQ(std::ranges::count(device->takeLaunched(), "rms_norm_4"), isPart ? 0 : 1) << rows;
  }
}

TEST_P(GatedLinearParity, RowsAreIndependent) {
  for (const Case &test : casesOfRows()) {
    Layer gate = makeLayer(test, 40), up = makeLayer(test, 40);
    checkRows(test, [&](Tensor &x, Tensor &weight) {
      Tensor y({x.sizes[0], 40});
      std::vector<Tensor *> operands = {&x, &weight};
      append(operands, gate);
      append(operands, up);
      operands.push_back(&y);
      run(operands, 1, intsOf(test, {2}), {kEpsilon});
      return y;
    });
  }
}

TEST_P(GatedLinearParity, SplitK) {
  device->takeLaunched();
  check({1, 32800, {24}, kinds().front(), HONE_BF16, Layout::Dense, true, 2});
  EXPECT_THAT(device->takeLaunched(), testing::Contains(testing::AnyOf("reduce_epilogue", "gemv_stream_bf16_6")));
}

INSTANTIATE_TEST_SUITE_P(Linear, SiblingLinearParity,
                         testing::Values("cuda.sibling_linear.f32", "cuda.sibling_linear.f16",
                                         "cuda.sibling_linear.bf16", "cuda.sibling_linear.affine8",
                                         "cuda.sibling_linear.affine6", "cuda.sibling_linear.affine5",
                                         "cuda.sibling_linear.affine4", "cuda.sibling_linear.affine3",
                                         "cuda.sibling_linear.affine2"));
INSTANTIATE_TEST_SUITE_P(Linear, GatedLinearParity,
                         testing::Values("cuda.gated_linear.f32", "cuda.gated_linear.f16", "cuda.gated_linear.bf16",
                                         "cuda.gated_linear.affine8", "cuda.gated_linear.affine6",
                                         "cuda.gated_linear.affine5", "cuda.gated_linear.affine4",
                                         "cuda.gated_linear.affine3", "cuda.gated_linear.affine2"));

} // namespace
} // namespace hone::test
