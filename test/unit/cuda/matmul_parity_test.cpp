// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of several matrices on the device against sums in double precision.

#include "parity.h"

namespace hone::test {
namespace {

class MatmulParity : public ParityTest {
protected:
  struct Shape {
    std::vector<int64_t> a, b, c;
  };

  void check(const Shape &shape, int32_t type = HONE_F32, Layout aLayout = Layout::Dense,
             Layout bLayout = Layout::Dense, Layout cLayout = Layout::Dense) {
    for (bool accumulates : {false, true})
      check(shape, type, aLayout, bLayout, cLayout, accumulates);
  }

  void check(const Shape &shape, int32_t type, Layout aLayout, Layout bLayout, Layout cLayout, bool accumulates) {
    Tensor a(shape.a, type, aLayout), b(shape.b, type, bLayout), c(shape.c, type, cLayout);
    a.randomize(random), b.randomize(random);
    if (accumulates)
      c.randomize(random);
    Tensor before = c;
    run({&a, &b, &c}, 1, {accumulates});
    int64_t inputs = shape.a.back(), failures = 0;
    c.forEach([&](const std::vector<int64_t> &index) {
      double sum = accumulates ? before.at(index) : 0, products = std::abs(sum);
      for (int64_t k = 0; k < inputs; ++k) {
        double product = at(a, index, index[index.size() - 2], k) * at(b, index, k, index.back());
        sum += product;
        products += std::abs(product);
      }
      if (double error = 1e-6 * (1 + products) + roundingOf(type) * std::abs(sum);
          std::abs(c.at(index) - sum) > error && !failures++)
        ADD_FAILURE() << "row " << index[index.size() - 2] << " column " << index.back() << " of " << inputs
                      << " inputs: expected " << sum << " ± " << error << ", but got " << c.at(index);
    });
  }

  /// The element of the matrix that belongs to that of c with this index.
  static double at(const Tensor &tensor, const std::vector<int64_t> &index, int64_t row, int64_t column) {
    std::vector<int64_t> place(tensor.sizes.size());
    size_t more = index.size() - place.size();
    for (size_t axis = 0; axis + 2 < place.size(); ++axis)
      place[axis] = tensor.sizes[axis] == 1 ? 0 : index[axis + more];
    place[place.size() - 2] = row;
    place.back() = column;
    return tensor.at(place);
  }
};

TEST_P(MatmulParity, RaggedShapes) {
  for (int64_t rows : {1, 17, 64, 65})
    for (int64_t inputs : {0, 1, 15, 33})
      check({{3, rows, inputs}, {3, inputs, 70}, {3, rows, 70}});
}

TEST_P(MatmulParity, RepeatedMatrices) {
  check({{2, 3, 5, 20}, {3, 20, 7}, {2, 3, 5, 7}});
  check({{2, 1, 5, 20}, {1, 3, 20, 7}, {2, 3, 5, 7}});
  check({{5, 20}, {2, 20, 7}, {2, 5, 7}});
}

TEST_P(MatmulParity, TypesAndLayouts) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
    for (Layout a : {Layout::Dense, Layout::Swapped, Layout::Gaps})
      for (Layout b : {Layout::Dense, Layout::Swapped})
        check({{2, 66, 20}, {2, 20, 9}, {2, 66, 9}}, type, a, b, type == HONE_F32 ? Layout::Gaps : Layout::Swapped);
}

TEST_P(MatmulParity, Empty) {
  check({{2, 0, 4}, {2, 4, 5}, {2, 0, 5}});
  check({{0, 3, 4}, {0, 4, 5}, {0, 3, 5}});
}

INSTANTIATE_TEST_SUITE_P(Matmul, MatmulParity, testing::Values("cuda.matmul.f32"));

} // namespace
} // namespace hone::test
