// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms and rotary embedding against their formulas; names of kernels.

#include "kernel_tensor.h"

namespace hone::test {
namespace {

constexpr float kTolerance = 5e-6f; // rows of at most 300 elements near 1

using Index = std::vector<int64_t>;
const std::vector<int64_t> kShapes[] = {{1}, {7}, {16}, {2, 33}, {3, 1, 64}, {2, 3, 300}, {0, 5}, {4, 0}};

class RowKernel : public KernelTest {
protected:
  /// Calls `body(row, N)` with a function that reads element i of the row.
  template <typename Body>
  static void forRows(const Tensor &x, Body body) {
    x.forEach([&](const Index &index) {
      if (index.back() == 0)
        body(
            [&](int64_t i) {
              Index place = index;
              place.back() = i;
              return static_cast<double>(x.at(place));
            },
            x.sizes.back(), index);
    });
  }

  static Index replaceLast(Index index, int64_t i) {
    index.back() = i;
    return index;
  }
};

TEST_P(RowKernel, RmsNorm) {
  for (const auto &shape : kShapes)
    for (Layout layout : kLayouts)
      for (int64_t unitOffset : {0, 1})
        for (bool weighted : {true, false}) {
          Tensor x = Tensor(shape, layout).randomize(random), y(shape, layout), expected(shape);
          Tensor w = weighted ? Tensor({shape.back()}).randomize(random) : Tensor::absent();
          run("hone.rms_norm.f32", {x.view(), w.view(), y.view()}, {unitOffset}, {1e-5});
          forRows(x, [&](auto at, int64_t size, const Index &index) {
            double squares = 0;
            for (int64_t i = 0; i < size; ++i)
              squares += at(i) * at(i);
            for (int64_t i = 0; i < size; ++i) {
              double weight = weighted ? w.at({i}) + static_cast<double>(unitOffset) : 1;
              expected(replaceLast(index, i)) =
                  static_cast<float>(at(i) / std::sqrt(squares / static_cast<double>(size) + 1e-5) * weight);
            }
          });
          expectClose(y, expected, kTolerance, "rms_norm");
        }
}

TEST_P(RowKernel, LayerNorm) {
  for (const auto &shape : kShapes)
    for (Layout layout : kLayouts)
      for (bool affine : {true, false}) {
        Tensor x = Tensor(shape, layout).randomize(random), y(shape, layout), expected(shape);
        Tensor w = affine ? Tensor({shape.back()}).randomize(random) : Tensor::absent();
        Tensor bias = affine ? Tensor({shape.back()}).randomize(random) : Tensor::absent();
        run("hone.layer_norm.f32", {x.view(), w.view(), bias.view(), y.view()}, {}, {1e-5});
        forRows(x, [&](auto at, int64_t size, const Index &index) {
          double mean = 0, variance = 0;
          for (int64_t i = 0; i < size; ++i)
            mean += at(i) / static_cast<double>(size);
          for (int64_t i = 0; i < size; ++i)
            variance += (at(i) - mean) * (at(i) - mean) / static_cast<double>(size);
          for (int64_t i = 0; i < size; ++i) {
            double normal = (at(i) - mean) / std::sqrt(variance + 1e-5);
            expected(replaceLast(index, i)) = static_cast<float>(affine ? normal * w.at({i}) + bias.at({i}) : normal);
          }
        });
        expectClose(y, expected, 2 * kTolerance, "layer_norm");
      }
}

TEST_P(RowKernel, WorksInPlace) {
  Tensor x = Tensor({3, 20}).randomize(random), y({3, 20}), w = Tensor({20}).randomize(random);
  run("hone.rms_norm.f32", {x.view(), w.view(), y.view()}, {0}, {1e-6});
  run("hone.rms_norm.f32", {x.view(), w.view(), x.view()}, {0}, {1e-6});
  expectClose(x, y, 0, "in place");
}

TEST_P(RowKernel, Rope) {
  for (Layout layout : kLayouts)
    for (int64_t interleaved : {0, 1})
      for (int64_t pairs : {0, 1, 5, 8})
        for (int64_t tables : {1, 2}) {
          Tensor x = Tensor({2, 3, 5, 17}, layout).randomize(random), y({2, 3, 5, 17}, layout), expected({2, 3, 5, 17});
          Tensor cos = Tensor({tables, 5, pairs}, layout).randomize(random);
          Tensor sin = Tensor({tables, 5, pairs}, layout).randomize(random);
          run("hone.rope.f32", {x.view(), cos.view(), sin.view(), y.view()}, {interleaved});
          expected.forEach([&](const Index &index) {
            int64_t d = index[3];
            if (d >= 2 * pairs) {
              expected(index) = x.at(index);
              return;
            }
            int64_t pair = interleaved ? d / 2 : d % pairs, distance = interleaved ? 1 : pairs;
            bool first = interleaved ? d % 2 == 0 : d < pairs;
            float c = cos.broadcastAt({index[0], index[2], pair}), s = sin.broadcastAt({index[0], index[2], pair});
            float other = x.at(replaceLast(index, first ? d + distance : d - distance));
            expected(index) = x.at(index) * c + (first ? -other : other) * s;
          });
          expectClose(y, expected, kTolerance, "rope");
        }
}

HONE_INSTANTIATE_LEVELS(RowKernel);

TEST(KernelNames, AreFound) {
  EXPECT_EQ(cpu::findKernel("hone.nothing.f32"), nullptr);
  for (std::string_view name : cpu::kernelNames())
    EXPECT_NE(cpu::findKernel(name), nullptr) << name;
  EXPECT_TRUE(std::ranges::is_sorted(cpu::kernelNames()));
}

} // namespace
} // namespace hone::test
