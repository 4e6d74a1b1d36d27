// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.matmul and hone.linear over f32 against three loops, of factors as they are, or rounded to bf16 where they may be.

#include "cpu/bf16_rate.h"
#include "kernel_tensor.h"

namespace hone::test {
namespace {

constexpr float kTolerance = 2e-5f; // K stays below 300 and elements near 1

/// Whether the ISA has dot products or tiles of bf16.
bool hasBf16(cpu::Isa isa) {
  return (isa == cpu::Isa::Avx512Bf16 && cpu::hasFastBf16Products()) || isa == cpu::Isa::Amx;
}

class MatmulKernel : public KernelTest {
protected:
  void check(std::vector<int64_t> aShape, std::vector<int64_t> bShape, std::vector<int64_t> cShape,
             bool mayRound = false) {
    bool isRounded = mayRound && hasBf16(GetParam());
    for (Layout aLayout : kLayouts)
      for (Layout bLayout : kLayouts)
        for (Layout cLayout : kLayouts) {
          Tensor a = Tensor(aShape, aLayout).randomize(random), b = Tensor(bShape, bLayout).randomize(random);
          Tensor expected(cShape);
          reference(isRounded ? roundToBf16(a) : a, isRounded ? roundToBf16(b) : b, expected);
          for (bool accumulates : {false, true}) {
            Tensor c(cShape, cLayout), sum = expected;
            if (accumulates) {
              c.randomize(random);
              sum.forEach([&](const std::vector<int64_t> &index) { sum(index) += c.at(index); });
            }
            run(mayRound ? "hone.matmul.bf16" : "hone.matmul.f32", {a.view(), b.view(), c.view()}, {accumulates});
            expectClose(c, sum, kTolerance,
                        (accumulates ? "+ " : "") + io::shapeText(aShape) + " x " + io::shapeText(bShape));
          }
        }
  }

  /// So many rows and columns that the product is in bf16 where the ISA has that.
  void checkRounded(std::vector<int64_t> aShape, std::vector<int64_t> bShape, std::vector<int64_t> cShape) {
    check(std::move(aShape), std::move(bShape), std::move(cShape), /*mayRound=*/true);
  }

  static void reference(const Tensor &a, const Tensor &b, Tensor &c) {
    c.forEach([&](const std::vector<int64_t> &index) {
      std::vector<int64_t> left = index, right = index;
      double sum = 0;
      for (int64_t k = 0; k < a.sizes.back(); ++k) {
        left[left.size() - 1] = k;
        right[right.size() - 2] = k;
        sum += static_cast<double>(matrixAt(a, left)) * matrixAt(b, right);
      }
      c(index) = static_cast<float>(sum);
    });
  }

  /// Only leading axes are repeated: a matrix of one row stays one of one row.
  static float matrixAt(const Tensor &tensor, std::vector<int64_t> index) {
    index.erase(index.begin(), index.end() - static_cast<int64_t>(tensor.sizes.size()));
    for (size_t axis = 0; axis + 2 < tensor.sizes.size(); ++axis)
      if (tensor.sizes[axis] == 1)
        index[axis] = 0;
    return tensor.at(index);
  }
};

TEST_P(MatmulKernel, Matrices) {
  for (int64_t m : {1, 2, 3, 4, 5, 18})
    for (int64_t n : {1, 16, 67, 130})
      for (int64_t k : {1, 7, 39})
        check({m, k}, {k, n}, {m, n});
}

TEST_P(MatmulKernel, ManyRows) {
  for (int64_t n : {16, 33})
    for (int64_t k : {1, 70})
      check({150, k}, {k, n}, {150, n});
  check({2, 150, 40}, {2, 40, 50}, {2, 150, 50});
}

TEST_P(MatmulKernel, ProductsOfBf16) {
  for (int64_t m : {33, 150})
    for (int64_t k : {1, 70})
      checkRounded({m, k}, {k, 50}, {m, 50});
  checkRounded({3, 40, 40}, {3, 40, 50}, {3, 40, 50});
  checkRounded({12, 40, 24}, {12, 24, 36}, {12, 40, 36});
}

TEST_P(MatmulKernel, EmptyMatrices) {
  check({0, 3}, {3, 4}, {0, 4});
  check({3, 4}, {4, 0}, {3, 0});
  check({3, 0}, {0, 5}, {3, 5});
  check({0, 2, 3}, {3, 4}, {0, 2, 4});
}

TEST_P(MatmulKernel, BatchesAreRepeated) {
  check({2, 3, 5, 7}, {2, 3, 7, 9}, {2, 3, 5, 9});
  check({2, 3, 5, 7}, {7, 9}, {2, 3, 5, 9});
  check({5, 7}, {2, 3, 7, 9}, {2, 3, 5, 9});
  check({2, 1, 5, 7}, {1, 3, 7, 9}, {2, 3, 5, 9});
  check({3, 5, 7}, {2, 1, 7, 9}, {2, 3, 5, 9});
  check({16, 1, 7}, {16, 7, 9}, {16, 1, 9});
  check({12, 20, 24}, {12, 24, 20}, {12, 20, 20});
}

TEST_P(MatmulKernel, ARepeatedOperandMayHaveStrideZero) {
  Tensor a = Tensor({1, 7}).randomize(random), b = Tensor({7, 9}).randomize(random);
  Tensor c({6, 9}), wide({6, 7}), expected({6, 9});
  hone_tensor view = a.view();
  view.sizes[0] = 6;
  view.strides[0] = 0;
  run("hone.matmul.f32", {view, b.view(), c.view()}, {0});
  wide.forEach([&](const std::vector<int64_t> &index) { wide(index) = a.at({0, index[1]}); });
  reference(wide, b, expected);
  expectClose(c, expected, kTolerance, "stride 0");
}

HONE_INSTANTIATE_LEVELS(MatmulKernel);

class LinearKernel : public KernelTest {
protected:
  void check(std::vector<int64_t> xShape, int64_t outputs, bool transposed, bool hasBias, Layout layout) {
    int64_t inputs = xShape.back();
    std::vector<int64_t> yShape = xShape;
    yShape.back() = outputs;
    Tensor x = Tensor(xShape, layout).randomize(random);
    Tensor w = Tensor(transposed ? std::vector{outputs, inputs} : std::vector{inputs, outputs}).randomize(random);
    Tensor bias = hasBias ? Tensor({outputs}).randomize(random) : Tensor::absent(), y(yShape, layout), expected(yShape);
    run("hone.linear.f32", {x.view(), w.view(), bias.view(), y.view()}, {transposed});
    expected.forEach([&](std::vector<int64_t> index) {
      int64_t n = index.back();
      double sum = hasBias ? bias.at({n}) : 0;
      std::vector<int64_t> row = index;
      for (int64_t k = 0; k < inputs; ++k) {
        row.back() = k;
        sum += static_cast<double>(x.at(row)) * (transposed ? w.at({n, k}) : w.at({k, n}));
      }
      expected(index) = static_cast<float>(sum);
    });
    expectClose(y, expected, kTolerance, io::shapeText(xShape) + " to " + std::to_string(outputs));
  }
};

TEST_P(LinearKernel, RowsOfAnyNumberOfAxes) {
  std::vector<int64_t> shapes[] = {{19},       {1, 19},       {4, 19}, {9, 19}, {1, 1, 64},
                                   {2, 3, 64}, {2, 3, 4, 33}, {0, 8},  {3, 0}};
  for (const std::vector<int64_t> &shape : shapes)
    for (int64_t outputs : {1, 50, 128})
      for (bool transposed : {false, true})
        for (bool hasBias : {false, true})
          for (Layout layout : kLayouts)
            check(shape, outputs, transposed, hasBias, layout);
}

HONE_INSTANTIATE_LEVELS(LinearKernel);

} // namespace
} // namespace hone::test
