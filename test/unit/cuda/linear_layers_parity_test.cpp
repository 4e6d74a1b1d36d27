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

struct Case {
  int64_t rows, inputs;
  std::vector<int64_t> outputs; // of each layer; gated layers have one number
  Quantization quantization = {};
  int32_t type = HONE_F32; // of everything but the weights
  Layout layout = Layout::Dense;
  bool hasBias = true;
  int64_t activation = 0;
  Layout weightLayout = Layout::Aligned;
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
    int64_t unit = format() == "affine3" ? 32 : format() == "affine2" ? 16 : isQuantized() ? 8 : 1;
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

  std::vector<int64_t> intsOf(const Case &test, std::vector<int64_t> ints) const {
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

  /// `call` gives y of x. A row has the same bits whatever the number of rows up to eight.
  template <typename Call> void checkRows(const Case &test, Call call) {
    Tensor x({test.rows, inputsOf(test)});
    x.randomize(random);
    Tensor expected = call(x);
    for (int64_t rows = 1; rows < test.rows; rows += 3) {
      Tensor some({rows, inputsOf(test)});
      some.forEach([&](const std::vector<int64_t> &index) { some.set(index, x.at(index)); });
      Tensor y = call(some);
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
    check({2, 64, {0, 0, 0}, kinds().front()});
  }
};

class SiblingLinearParity : public LinearLayersParity {
protected:
  void check(const Case &test) {
    Tensor x({test.rows, inputsOf(test)}, test.type, test.layout);
    x.randomize(random);
    std::vector<Layer> layers;
    std::vector<Tensor> ys;
    for (int64_t outputs : test.outputs) {
      layers.push_back(makeLayer(test, outputs));
      ys.emplace_back(std::vector<int64_t>{test.rows, outputs}, test.type, test.layout);
    }
    std::vector<Tensor *> operands = {&x};
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
    run(operands, ys.size(), intsOf(test, {}));
    double relativeError = productError(format(), test.type, test.rows);
    for (size_t i = 0; i < layers.size(); ++i)
      compare(test, ys[i], [&](int64_t row, int64_t output) { return layers[i].sum(x, row, output, relativeError); });
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

TEST_P(SiblingLinearParity, RowsAreIndependent) {
  Case test = {8, 264, {40, 17}, kinds().back()};
  Layer first = makeLayer(test, 40), second = makeLayer(test, 17);
  checkRows(test, [&](Tensor &x) {
    Tensor absent = Tensor::absent(), y({x.sizes[0], 40}), z({x.sizes[0], 17});
    std::vector<Tensor *> operands(first.weight.planes().size() + 2, &absent);
    operands.front() = &x;
    append(operands, first);
    append(operands, second);
    operands.insert(operands.end(), {&absent, &y, &z});
    run(operands, 2, intsOf(test, {}));
    return z;
  });
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
    Tensor x({test.rows, inputsOf(test)}, test.type, test.layout),
        y({test.rows, test.outputs.front()}, test.type, test.layout);
    x.randomize(random);
    Layer gate = makeLayer(test, test.outputs.front()), up = makeLayer(test, test.outputs.front());
    std::vector<Tensor *> operands = {&x};
    append(operands, gate);
    append(operands, up);
    operands.push_back(&y);
    run(operands, 1, intsOf(test, {test.activation}));
    double relativeError = productError(format(), test.type, test.rows);
    compare(test, y, [&](int64_t row, int64_t output) {
      Layer::Sum g = gate.sum(x, row, output, relativeError), u = up.sum(x, row, output, relativeError);
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

TEST_P(GatedLinearParity, RowsAreIndependent) {
  Case test = {8, 264, {40}, kinds().back()};
  Layer gate = makeLayer(test, 40), up = makeLayer(test, 40);
  checkRows(test, [&](Tensor &x) {
    Tensor y({x.sizes[0], 40});
    std::vector<Tensor *> operands = {&x};
    append(operands, gate);
    append(operands, up);
    operands.push_back(&y);
    run(operands, 1, intsOf(test, {2}));
    return y;
  });
}

TEST_P(GatedLinearParity, SplitK) {
  device->takeLaunched();
  check({1, 32800, {24}, kinds().front(), HONE_BF16, Layout::Dense, true, 2});
  EXPECT_THAT(device->takeLaunched(), testing::Contains(testing::AnyOf("reduce_epilogue", "gemv_stream_bf16_6")));
}

INSTANTIATE_TEST_SUITE_P(Linear, SiblingLinearParity,
                         testing::Values("cuda.sibling_linear.f32", "cuda.sibling_linear.f16",
                                         "cuda.sibling_linear.bf16", "cuda.sibling_linear.affine8",
                                         "cuda.sibling_linear.affine4", "cuda.sibling_linear.affine3",
                                         "cuda.sibling_linear.affine2"));
INSTANTIATE_TEST_SUITE_P(Linear, GatedLinearParity,
                         testing::Values("cuda.gated_linear.f32", "cuda.gated_linear.f16", "cuda.gated_linear.bf16",
                                         "cuda.gated_linear.affine8", "cuda.gated_linear.affine4",
                                         "cuda.gated_linear.affine3", "cuda.gated_linear.affine2"));

} // namespace
} // namespace hone::test
