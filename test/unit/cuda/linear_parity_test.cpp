// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers on the device against sums in double precision over the dequantized weights.

#include "../activation.h"
#include "linear_weight.h"
#include "parity.h"

namespace hone::test {
namespace {

struct Case {
  std::vector<int64_t> rows; // leading sizes of x
  int64_t inputs, outputs;
  Quantization quantization = {};
  int32_t type = HONE_F32; // of everything but the weight
  Layout layout = Layout::Dense;
  bool hasEpilogue = false;
  int64_t activation = 0;
  Layout weightLayout = Layout::Aligned;
  bool hasFactor = true, hasResidual = true; // of an epilogue
};

class LinearParity : public ParityTest {
protected:
  bool isQuantized() const { return LinearWeight::isQuantized(format()); }

  void check(Case test) {
    int64_t unit = stored() == Stored::TwoOfFour ? 32 : LinearWeight::inputsOfWords(format());
    test.inputs = (test.inputs + unit - 1) / unit * unit;
    std::vector<int64_t> xShape = test.rows, yShape = test.rows;
    xShape.push_back(test.inputs);
    yShape.push_back(test.outputs);
    Tensor x(xShape, test.type, test.layout), y(yShape, test.type, test.layout);
    x.randomize(random);
    Tensor bias = optional(test, {test.outputs}), factor = optional(test, yShape, test.hasFactor),
           residual = optional(test, yShape, test.hasResidual);
    LinearWeight weight(format(), stored(), test.outputs, test.inputs, test.quantization, test.weightLayout, random);
    std::vector<Tensor *> operands = weight.planes();
    operands.insert(operands.begin(), &x);
    std::vector<int64_t> ints = {test.activation};
    if (isQuantized())
      ints.insert(ints.end(), {test.quantization.group, test.quantization.isSigned});
    operands.insert(operands.end(), {&bias, &factor, &residual, &y});
    run(operands, 1, ints);
    compare(test, x, weight, bias, factor, residual, y);
  }

  void compare(const Case &test, const Tensor &x, const LinearWeight &weight, const Tensor &bias, const Tensor &factor,
               const Tensor &residual, const Tensor &y) {
    std::vector<double> xRows; // decoded once
    x.forEach([&](const std::vector<int64_t> &index) { xRows.push_back(x.at(index)); });
    int64_t rows = std::accumulate(test.rows.begin(), test.rows.end(), int64_t{1}, std::multiplies<>());
    double relative = productError(format(), test.type, rows);
    bool failed = false;
    int64_t number = 0; // of the output, in the order of forEach
    y.forEach([&](const std::vector<int64_t> &index) {
      const double *xRow = xRows.data() + number++ / test.outputs * test.inputs;
      if (failed)
        return;
      double sum = test.hasEpilogue ? bias.at({index.back()}) : 0, products = 0;
      for (int64_t k = 0; k < test.inputs; ++k) {
        double product = xRow[k] * weight.at(index.back(), k);
        sum += product;
        products += std::abs(product);
      }
      double error = 1e-6 + relative * products;
      double expected = activate(sum, test.activation);
      if (test.hasEpilogue) {
        double scale = test.hasFactor ? factor.at(index) : 1;
        expected = expected * scale + (test.hasResidual ? residual.at(index) : 0);
        error = error * (1 + std::abs(scale)) + 1e-5;
      }
      error = 1.2 * error + roundingOf(test.type) * std::abs(expected); // activations have slopes up to 1.13
      if (std::abs(y.at(index) - expected) <= error)
        return;
      failed = true;
      ADD_FAILURE() << kernel() << " type " << test.type << " group " << test.quantization.group << " rows "
                    << y.count() << " inputs " << test.inputs << " outputs " << test.outputs << " layout "
                    << static_cast<int>(test.layout) << " output " << index.back() << ": expected " << expected << " ± "
                    << error << ", but got " << y.at(index);
    });
  }

  Stored stored() const {
    if (kernel().find(".outliers.") != std::string::npos)
      return Stored::Outliers;
    return kernel().find(".sparse_linear.") != std::string::npos ? Stored::TwoOfFour : Stored::Whole;
  }

  std::string format() const { return kernel().substr(kernel().rfind('.') + 1); }

  Tensor optional(const Case &test, const std::vector<int64_t> &shape, bool isGiven = true) {
    return test.hasEpilogue && isGiven ? Tensor(shape, test.type, test.layout).randomize(random) : Tensor::absent();
  }

  std::vector<Quantization> kinds() const {
    if (!isQuantized())
      return {{}};
    return {{0},
            {0, true, HONE_F16},
            {0, true, HONE_F32, true},
            {32, true, HONE_F16},
            {32, false, HONE_F32},
            {64, true, HONE_F32},
            {64, false, HONE_F16},
            {128, true, HONE_F16}};
  }
};

TEST_P(LinearParity, EveryRowCount) {
  for (int64_t rows : {1, 2, 3, 7, 8, 9, 16, 17, 32})
    check({{rows}, 136, 40, kinds().back()});
}

TEST_P(LinearParity, EveryQuantization) {
  for (const Quantization &kind : kinds())
    for (int32_t type : {HONE_F32, HONE_BF16})
      for (int64_t rows : {1, 9})
        check({{rows}, 296, 33, kind, type});
}

TEST_P(LinearParity, RaggedShapes) {
  for (int64_t inputs : {1, 5, 31, 64, 129, 260})
    for (int64_t outputs : {1, 16, 17, 47})
      check({{inputs % 2 ? 1 : 3}, inputs, outputs, kinds()[static_cast<size_t>(outputs) % kinds().size()]});
}

TEST_P(LinearParity, TypesAndLayouts) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
    for (Layout layout : {Layout::Dense, Layout::Swapped, Layout::Gaps})
      for (int64_t activation : {0, 1, 2, 3, 4})
        check({{2, 3}, 72, 36, kinds().back(), type, layout, activation != 1, activation});
}

TEST_P(LinearParity, LayoutsOfWeights) {
  for (Layout layout : {Layout::Dense, Layout::Swapped, Layout::Gaps})
    for (int64_t inputs : {40, 43})
      for (int64_t rows : {2, 40})
        check({{rows}, inputs, 19, kinds().back(), HONE_F32, Layout::Dense, false, 0, layout});
}

/// Operands whose neighbours are elements of a column, as those of gradients.
TEST_P(LinearParity, Columns) {
  for (int64_t rows : {5, 40, 70}) {
    device->takeLaunched();
    check({{rows}, 43, 139, kinds().back(), HONE_F32, Layout::Swapped, false, 0, Layout::Swapped});
    std::set<std::string> launched = device->takeLaunched();
    EXPECT_TRUE(launched.contains(rows > 32 ? "planes_of_columns" : "copy_columns")) << rows;
  }
}

TEST_P(LinearParity, LongRows) {
  for (int64_t rows : {1, 4, 12})
    check({{rows}, 4104, 33, kinds().front()});
}

TEST_P(LinearParity, Gemm) {
  for (int64_t rows : {33, 64, 65, 150})
    for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
      check({{rows},
             rows == 65 ? 200 : 77,
             rows == 150 ? 17 : 140,
             kinds()[static_cast<size_t>(rows) % kinds().size()],
             type,
             rows == 33 ? Layout::Gaps : Layout::Dense,
             rows < 65,
             rows < 65 ? 2 : 0});
}

/// Few outputs and many inputs: split-K.
TEST_P(LinearParity, GemvSplitK) {
  device->takeLaunched();
  for (int64_t rows : {1, 12})
    check({{rows}, 32800, 24, kinds().front(), rows == 1 ? HONE_F32 : HONE_BF16, Layout::Dense, rows == 1, 2});
  EXPECT_TRUE(device->takeLaunched().contains("reduce_epilogue"));
}

/// Few output tiles and many inputs: split-K, unless the device has too few SMs for it.
TEST_P(LinearParity, GemmSplitK) {
  for (int32_t multiprocessors : {132, 1}) {
    int32_t before = device->pretendMultiprocessors(multiprocessors);
    device->takeLaunched();
    check({{40}, 1000, 24, kinds().back(), HONE_F32, Layout::Gaps, true, 2});
    check({{70}, 520, 140, kinds().front(), HONE_BF16});
    // There is no split-K for 2:4 weights.
    EXPECT_EQ(device->takeLaunched().contains("reduce_epilogue"), multiprocessors > 1 && stored() != Stored::TwoOfFour);
    device->pretendMultiprocessors(before);
  }
}

/// Products by cuBLASLt: with its own epilogue, with reduce_epilogue after it, and layers that our own kernel
/// computes all the same.
TEST_P(LinearParity, GemmByLibrary) {
  if (!device->useLibrary(true))
    GTEST_SKIP() << "the machine has no cuBLASLt";
  int64_t before = device->productsOfLibrary();
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
    for (int64_t activation : {0, 1, 2, 3, 4})
      for (bool hasFactor : {false, true}) {
        Case test = {{40}, 72, 24, kinds().back(), type, Layout::Dense, activation != 3, activation};
        test.hasFactor = hasFactor;
        test.hasResidual = hasFactor || activation == 0;
        check(test);
      }
  check({{33}, 77, 40, kinds().front(), HONE_F32, Layout::Gaps, true, 2});
  check({{2, 40}, 64, 24, kinds().back(), HONE_F32, Layout::Gaps, true, 4});
  check({{150}, 77, 17, kinds().back(), HONE_F32});
  check({{40}, 0, 50, {}, HONE_F32, Layout::Dense, true});
  int64_t products = device->productsOfLibrary() - before;
  EXPECT_TRUE(stored() == Stored::TwoOfFour ? products == 0 : products >= 30) << products;
  device->useLibrary(false);
}

/// Sessions with prompts of all lengths keep a bounded number of plans, and a plan in use stays usable.
TEST(Products, ForgetPlansWhereThereAreMany) {
  std::string reason;
  TestDevice *device = TestDevice::get(reason);
  if (!device || !device->useLibrary(true))
    GTEST_SKIP() << "the machine has no cuBLASLt";
  device->useLibrary(false);
  std::unique_ptr<rt::cuda::Products> products = rt::cuda::Products::create();
  ASSERT_NE(products, nullptr);
  char *memory = static_cast<char *>(device->acquire(256));
  auto planOf = [&](int64_t rows) {
    return products->plan(
        {memory, memory, nullptr, nullptr, memory, rows, 64, 64, 64, 64, 64, 64, HONE_BF16, HONE_BF16, 0});
  };
  std::shared_ptr<rt::cuda::ProductPlan> first = planOf(33);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(planOf(33), first);
  for (int64_t rows = 34; rows < 1034; ++rows)
    ASSERT_NE(planOf(rows), nullptr) << rows;
  EXPECT_LE(products->plansKept(), rt::cuda::Products::kMostPlans);
  EXPECT_TRUE(first->isUsable);
  EXPECT_NE(planOf(33), first) << "it was forgotten";
  products->release();
  device->release(memory);
}

TEST_P(LinearParity, GemmInBatches) { check({{2, 40}, 64, 24, kinds().back(), HONE_F32, Layout::Gaps, true, 4}); }

/// So many outputs that each SM of a large GPU has several blocks, which then have two tiles of outputs.
TEST_P(LinearParity, ManyOutputs) { check({{1}, 64, 17000, kinds().back(), HONE_BF16}); }

TEST_P(LinearParity, Empty) {
  check({{0}, 64, 50});
  check({{2}, 64, 0});
  check({{2}, 0, 50, {}, HONE_F32, Layout::Dense, true});
  check({{40}, 0, 50, {}, HONE_F32, Layout::Dense, true});
}

/// Layers that fill a device of one SM, as large layers fill a whole one.
class LargeLinearParity : public LinearParity {
protected:
  void SetUp() override {
    LinearParity::SetUp();
    if (device)
      multiprocessors = device->pretendMultiprocessors(1);
  }
  void TearDown() override {
    if (device)
      device->pretendMultiprocessors(multiprocessors);
  }

  /// `isClustered`: whether blocks form clusters of two.
  void checkOnHopper(const Case &test, bool isClustered = false) {
    device->takeLaunched();
    check(test);
    std::set<std::string> names = device->takeLaunched();
    std::string name = stored() == Stored::TwoOfFour ? "hopper_sparse_gemm_" : "hopper_gemm_";
    name += isClustered ? "cluster2_" : "";
    EXPECT_EQ(names.contains(name + "f16") || names.contains(name + "bf16"), device->limits().chip == 90);
  }

private:
  int32_t multiprocessors = 0;
};

TEST_P(LargeLinearParity, TypesShapesAndEpilogues) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16}) {
    checkOnHopper({{65}, 72, 20, kinds().back(), type, Layout::Dense, true, 2});
    checkOnHopper({{2, 33}, 64, 18, kinds().back(), type, Layout::Gaps, true, 4});
  }
}

/// Whole staging tiles with an epilogue of a bias.
TEST_P(LargeLinearParity, OnlyBias) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
    checkOnHopper({{67}, 24, 72, kinds().back(), type, Layout::Dense, true, 0, Layout::Aligned, false, false});
}

TEST_P(LargeLinearParity, ManyTiles) {
  checkOnHopper({{130}, 40, 260, kinds().front(), HONE_BF16}, true);
  checkOnHopper({{260}, 8, 260, kinds().front(), HONE_BF16});
}

/// More steps than pipeline stages.
TEST_P(LargeLinearParity, ManyInputs) {
  checkOnHopper({{70}, 680, 24, kinds().back(), HONE_F32});
  checkOnHopper({{140}, 680, 12, kinds().back(), HONE_F32}, true);
}

/// Tiles for 2:4 weights have more rows.
class LargeSparseLinearParity : public LargeLinearParity {};

TEST_P(LargeSparseLinearParity, TypesShapesAndEpilogues) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16}) {
    checkOnHopper({{129}, 96, 20, kinds().back(), type, Layout::Dense, true, 2});
    checkOnHopper({{2, 65}, 32, 18, kinds().back(), type, Layout::Gaps, true, 4});
  }
}

TEST_P(LargeSparseLinearParity, OnlyBias) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
    checkOnHopper({{131}, 32, 72, kinds().back(), type, Layout::Dense, true, 0, Layout::Aligned, false, false});
}

TEST_P(LargeSparseLinearParity, ManyTiles) {
  checkOnHopper({{258}, 32, 200, kinds().front(), HONE_BF16}, true);
  checkOnHopper({{129}, 32, 386, kinds().front(), HONE_BF16});
}

/// More steps than pipeline stages, also of the other planes.
TEST_P(LargeSparseLinearParity, ManyInputs) {
  checkOnHopper({{130}, 800, 9, kinds().back(), HONE_F32});
  checkOnHopper({{129}, 160, 193, kinds().back(), HONE_F32}, true);
}

/// The kernel for all chips computes what would leave most of a tile empty.
TEST_P(LargeSparseLinearParity, FewerRows) {
  device->takeLaunched();
  check({{128}, 64, 24, kinds().back(), HONE_BF16});
  EXPECT_TRUE(device->takeLaunched().contains("sparse_gemm_bf16_128") || format() == "f32" || format() == "f16");
}

INSTANTIATE_TEST_SUITE_P(Linear, LargeSparseLinearParity,
                         testing::Values("cuda.sparse_linear.f32", "cuda.sparse_linear.f16", "cuda.sparse_linear.bf16",
                                         "cuda.sparse_linear.affine4"));
INSTANTIATE_TEST_SUITE_P(Linear, LargeLinearParity,
                         testing::Values("cuda.linear.f32", "cuda.linear.f16", "cuda.linear.bf16",
                                         "cuda.linear.affine4"));
INSTANTIATE_TEST_SUITE_P(Linear, LinearParity,
                         testing::Values("cuda.linear.f32", "cuda.linear.f16", "cuda.linear.bf16",
                                         "cuda.linear.affine8", "cuda.linear.affine6", "cuda.linear.affine5",
                                         "cuda.linear.affine4", "cuda.linear.affine3", "cuda.linear.affine2",
                                         "cuda.linear.outliers.affine8", "cuda.linear.outliers.affine6",
                                         "cuda.linear.outliers.affine5", "cuda.linear.outliers.affine4",
                                         "cuda.linear.outliers.affine3", "cuda.linear.outliers.affine2",
                                         "cuda.sparse_linear.f32", "cuda.sparse_linear.f16", "cuda.sparse_linear.bf16",
                                         "cuda.sparse_linear.affine8", "cuda.sparse_linear.affine4"));

} // namespace
} // namespace hone::test
