// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.convolution.f32, hone.packed_convolution.f32 and hone.pool.f32 against loops over windows.

#include "kernel_tensor.h"
#include "packed_weight.h"

namespace hone::test {
namespace {

constexpr float kTolerance = 2e-5f; // sums of less than 400 products of elements near 1

/// Windows over one to three axes.
struct Windows {
  std::vector<int64_t> x, y, kernel, strides, dilations, low;

  std::vector<int64_t> ints(int64_t first) const {
    std::vector<int64_t> all{first};
    for (const auto &[numbers, absent] : {std::pair(&kernel, 1), {&strides, 1}, {&dilations, 1}, {&low, 0}}) {
      all.insert(all.end(), 3 - numbers->size(), absent);
      all.insert(all.end(), numbers->begin(), numbers->end());
    }
    return all;
  }

  /// Calls `body(index into x, or nothing in the padding; number of the place in the kernel)` for a position of y.
  template <typename Body> void forPlaces(const std::vector<int64_t> &output, Body body) const {
    Tensor places(kernel);
    int64_t number = 0;
    places.forEach([&](const std::vector<int64_t> &place) {
      std::optional<std::vector<int64_t>> input(std::vector<int64_t>{});
      for (size_t axis = 0; axis < kernel.size(); ++axis) {
        int64_t at = output[axis] * strides[axis] + place[axis] * dilations[axis] - low[axis];
        if (at < 0 || at >= x[axis])
          input.reset();
        if (input)
          input->push_back(at);
      }
      body(input, number++);
    });
  }
};

std::vector<int64_t> join(std::vector<int64_t> first, const std::vector<int64_t> &rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

const Windows kWindows[] = {
    {{40}, {38}, {3}, {1}, {1}, {0}},
    {{23}, {13}, {5}, {2}, {2}, {5}},
    {{7}, {1}, {7}, {1}, {1}, {0}},
    {{1, 1}, {1, 1}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {{14, 14}, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {{13, 9}, {7, 3}, {3, 2}, {2, 3}, {1, 1}, {1, 0}},
    {{6, 30}, {6, 30}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
    {{6, 30}, {3, 15}, {1, 1}, {2, 2}, {1, 1}, {0, 0}},
    {{9, 8}, {4, 5}, {2, 2}, {1, 1}, {1, 1}, {-3, -2}},
    {{5, 6}, {9, 11}, {3, 4}, {1, 1}, {1, 1}, {4, 5}},
    {{4, 7, 5}, {3, 4, 5}, {2, 3, 1}, {1, 2, 1}, {1, 1, 1}, {0, 1, 0}},
    {{30, 1}, {28, 1}, {3, 1}, {1, 1}, {1, 1}, {0, 0}},
    {{1, 9, 1}, {1, 5, 1}, {1, 3, 1}, {1, 2, 1}, {1, 1, 1}, {0, 1, 0}},
    {{4, 3}, {4, 0}, {1, 3}, {1, 1}, {1, 1}, {0, 0}},
};

constexpr Layout kConvolutionLayouts[] = {Layout::Dense, Layout::Swapped, Layout::Gaps, Layout::ChannelsLast};

constexpr int64_t kActivations[] = {0, 2, 3, 5}; // none, silu, gelu, hard swish

double activate(int64_t activation, double x) {
  switch (activation) {
  case 2:
    return x / (1 + std::exp(-x));
  case 3:
    return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
  case 5:
    return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
  default:
    return x;
  }
}

class ConvolutionKernel : public KernelTest {
protected:
  size_t next = 0; // of kActivations

  void check(const Windows &windows, int64_t groups, int64_t inputs, int64_t outputs, bool hasBias, Layout layout) {
    check(windows, groups, inputs, outputs, hasBias, layout, layout);
  }
  /// With x in a layout of its own.
  void check(const Windows &windows, int64_t groups, int64_t inputs, int64_t outputs, bool hasBias, Layout layout,
             Layout layoutOfX) {
    constexpr int64_t batch = 2;
    int64_t taps = *io::elementCount(windows.kernel), rows = groups * outputs;
    Tensor x = Tensor(join({batch, groups * inputs}, windows.x), layoutOfX).randomize(random);
    Tensor bias = hasBias ? Tensor({rows}).randomize(random) : Tensor::absent();
    PackedWeight packed({cpu::PackedFormat::F32}, rows, inputs * taps, random);
    Tensor plain({rows, inputs * taps});
    plain.forEach([&](const std::vector<int64_t> &at) { plain(at) = packed.at(at[0], at[1]); });
    Tensor expected(join({batch, rows}, windows.y));
    expected.forEach([&](const std::vector<int64_t> &index) {
      double sum = hasBias ? bias.at({index[1]}) : 0;
      int64_t group = index[1] / outputs;
      windows.forPlaces({index.begin() + 2, index.end()}, [&](const auto &input, int64_t place) {
        for (int64_t c = 0; input && c < inputs; ++c)
          sum += static_cast<double>(x.at(join({index[0], group * inputs + c}, *input))) *
                 packed.at(index[1], c * taps + place);
      });
      expected(index) = static_cast<float>(sum);
    });
    // Others with a residual, and between limits; each with the next activation.
    bool isWhole = layout != Layout::Swapped;
    Tensor residual = isWhole ? Tensor(expected.sizes, layout).randomize(random) : Tensor::absent();
    int64_t activation = kActivations[next++ % std::size(kActivations)];
    double scale = activation == 0 ? 1.0 : 1.5, shift = activation == 0 ? 0.0 : -0.25;
    std::vector<double> floats{scale, shift, isWhole ? -0.5 : -3e38, isWhole ? 1.5 : 3e38};
    expected.forEach([&](const std::vector<int64_t> &index) {
      double sum = expected.at(index) + (isWhole ? residual.at(index) : 0.0f);
      double value = activate(activation, sum) * scale + shift;
      expected(index) = static_cast<float>(isWhole ? std::clamp(value, -0.5, 1.5) : value);
    });
    std::vector<int64_t> ints = windows.ints(groups);
    ints.insert(ints.end(), {activation, /*isExact=*/0});
    std::string what = io::shapeText(expected.sizes) + " of " + std::to_string(groups) + " groups of " +
                       std::to_string(inputs) + " channels, kernel " + io::shapeText(windows.kernel) + ", activation " +
                       std::to_string(activation);
    Tensor y(expected.sizes, layout);
    run("hone.convolution.f32", {x.view(), plain.view(), bias.view(), residual.view(), y.view()}, ints, floats);
    expectClose(y, expected, kTolerance, what);
    if (groups > 1 && outputs % 16 != 0 && inputs != 1)
      return;
    Tensor z(expected.sizes, layout);
    run("hone.packed_convolution.f32", {x.view(), packed.weightView(), bias.view(), residual.view(), z.view()}, ints,
        floats);
    expectClose(z, expected, kTolerance, what + ", packed");
  }
};

TEST_P(ConvolutionKernel, Windows) {
  for (const Windows &windows : kWindows)
    for (Layout layout : kConvolutionLayouts)
      for (auto [groups, inputs, outputs] :
           {std::array<int64_t, 3>{1, 3, 20}, {1, 2, 70}, {1, 5, 3}, {2, 3, 16}, {5, 1, 1}, {18, 1, 2}, {3, 2, 5}})
        check(windows, groups, inputs, outputs, groups != 2, layout);
}

TEST_P(ConvolutionKernel, ManyStepsAreSummedInSlices) {
  for (Layout layout : kConvolutionLayouts)
    for (int64_t outputs : {33, 64}) {
      check({{8, 8}, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, 40, outputs, true, layout);
      check({{8, 30}, {8, 28}, {1, 3}, {1, 1}, {1, 1}, {0, 0}}, 1, 102, outputs, true, layout);
    }
}

TEST_P(ConvolutionKernel, ChannelsThatShareSetsOfTheCacheAreCopied) {
  check({{16, 16}, {16, 16}, {1, 1}, {1, 1}, {1, 1}, {0, 0}}, 1, 40, 17, true, Layout::Dense);
  check({{3, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}}, 4, 256, 16, true, Layout::ChannelsLast);
}

TEST_P(ConvolutionKernel, LayoutsOfInputAndResultMayDiffer) {
  for (auto [y, x] : {std::pair(Layout::ChannelsLast, Layout::Dense), {Layout::Dense, Layout::ChannelsLast}})
    for (auto [groups, inputs, outputs] : {std::array<int64_t, 3>{1, 3, 48}, {2, 20, 16}, {40, 1, 1}, {18, 1, 2}})
      for (const Windows &windows : kWindows)
        check(windows, groups, inputs, outputs, true, y, x);
}

TEST_P(ConvolutionKernel, DepthwiseAtTheEdgesOfChannelsLast) {
  for (int64_t low : {0, 1, 2, 4})
    for (int64_t stride : {1, 2, 3})
      check({{9, 20}, {5, 5}, {3, 5}, {1, stride}, {2, 1}, {1, low}}, 40, 1, 1, true, Layout::ChannelsLast);
}

TEST_P(ConvolutionKernel, DepthwiseTilesOfChannelsLast) {
  check({{20, 43}, {20, 43}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, 200, 1, 1, true, Layout::ChannelsLast);
  check({{40, 25}, {20, 25}, {7, 7}, {2, 1}, {1, 1}, {3, 3}}, 70, 1, 1, true, Layout::ChannelsLast);
  check({{6, 3}, {6, 3}, {5, 5}, {1, 1}, {1, 1}, {2, 2}}, 40, 1, 1, true, Layout::ChannelsLast);
}

// Copies with padding that are larger than what a thread keeps in its cache.
TEST_P(ConvolutionKernel, LinesAreCopiedInBands) {
  for (Layout layout : {Layout::ChannelsLast, Layout::Dense}) {
    check({{60, 120}, {60, 120}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, 8, 24, true, layout);
    check({{120, 70}, {60, 70}, {5, 3}, {2, 1}, {1, 1}, {2, 1}}, 1, 8, 20, true, layout);
  }
}

// Minimal filtering of 3 x 3 windows, with odd numbers of places, of channels and of panels, and with dilations.
TEST_P(ConvolutionKernel, WindowsByMinimalFiltering) {
  for (auto [inputs, outputs] : {std::pair<int64_t, int64_t>{16, 16}, {19, 40}, {20, 50}}) {
    check({{13, 17}, {13, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, inputs, outputs, true, Layout::ChannelsLast);
    check({{15, 16}, {13, 14}, {3, 3}, {1, 1}, {1, 1}, {0, 0}}, 1, inputs, outputs, true, Layout::ChannelsLast);
    check({{13, 23}, {11, 21}, {3, 3}, {1, 1}, {2, 3}, {1, 2}}, 1, inputs, outputs, true, Layout::ChannelsLast);
  }
}

// Sums of integers below 2^24, of which f32 has every one.
TEST_P(ConvolutionKernel, IntegersStayExact) {
  const Windows windows{{13, 17}, {13, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  constexpr int64_t inputs = 24, outputs = 20;
  auto integer = [&](int64_t least, int64_t most) {
    return static_cast<float>(std::uniform_int_distribution<int64_t>(least, most)(random));
  };
  Tensor x(join({1, inputs}, windows.x), Layout::ChannelsLast), weight({outputs, inputs * 9});
  x.forEach([&](const std::vector<int64_t> &at) { x(at) = integer(0, 255); });
  weight.forEach([&](const std::vector<int64_t> &at) { weight(at) = integer(-128, 127); });
  Tensor y(join({1, outputs}, windows.y), Layout::ChannelsLast), expected(y.sizes);
  expected.forEach([&](const std::vector<int64_t> &at) {
    double sum = 0;
    windows.forPlaces({at.begin() + 2, at.end()}, [&](const auto &input, int64_t place) {
      for (int64_t c = 0; input && c < inputs; ++c)
        sum += static_cast<double>(x.at(join({0, c}, *input))) * weight.at({at[1], c * 9 + place});
    });
    expected(at) = static_cast<float>(sum);
  });
  std::vector<int64_t> ints = windows.ints(1);
  ints.insert(ints.end(), {/*activation=*/0, /*isExact=*/1});
  run("hone.convolution.f32", {x.view(), weight.view(), Tensor::absent().view(), Tensor::absent().view(), y.view()},
      ints, {1.0, 0.0, -3e38, 3e38});
  expectClose(y, expected, 0, "a convolution of integers");
}

TEST_P(ConvolutionKernel, RowsAndPlanesOfSeveralTiles) {
  check({{2, 250}, {2, 250}, {1, 3}, {1, 1}, {1, 1}, {0, 1}}, 1, 2, 18, true, Layout::Dense);
  check({{60, 40}, {60, 40}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, 2, 3, true, Layout::Dense);
  check({{90, 70}, {45, 35}, {3, 3}, {2, 2}, {1, 1}, {1, 1}}, 17, 1, 1, true, Layout::Dense);
}

HONE_INSTANTIATE_LEVELS(ConvolutionKernel);

class PoolKernel : public KernelTest {
protected:
  void check(const Windows &windows, int64_t channels, bool isSum, Layout layout, float special) {
    Tensor x = Tensor(join({2, channels}, windows.x), layout).randomize(random);
    x(std::vector<int64_t>(x.sizes.size(), 0)) = special;
    Tensor y(join({2, channels}, windows.y), layout), expected(y.sizes);
    expected.forEach([&](const std::vector<int64_t> &index) {
      float result = isSum ? 0 : -std::numeric_limits<float>::infinity();
      windows.forPlaces({index.begin() + 2, index.end()}, [&](const auto &input, int64_t) {
        if (!input)
          return;
        float element = x.at(join({index[0], index[1]}, *input));
        if (isSum)
          result += element;
        else if (element > result || std::isnan(element))
          result = element;
      });
      expected(index) = result;
    });
    run("hone.pool.f32", {x.view(), y.view()}, windows.ints(isSum));
    expected.forEach([&](const std::vector<int64_t> &index) {
      float actual = y.at(index), wanted = expected.at(index);
      bool isClose =
          std::isnan(wanted) ? std::isnan(actual) : actual == wanted || std::abs(actual - wanted) <= kTolerance;
      ASSERT_TRUE(isClose) << io::shapeText(index) << " of " << io::shapeText(y.sizes) << ": expected " << wanted
                           << ", but got " << actual;
    });
  }
};

TEST_P(PoolKernel, Windows) {
  for (const Windows &windows : kWindows)
    for (Layout layout : kConvolutionLayouts)
      for (int64_t channels : {1, 16, 21})
        for (bool isSum : {false, true})
          check(windows, channels, isSum, layout, 1.0f);
}

TEST_P(PoolKernel, NotANumberStays) {
  for (bool isSum : {false, true})
    check({{9, 9}, {4, 4}, {3, 3}, {2, 2}, {1, 1}, {0, 0}}, 3, isSum, Layout::Dense,
          std::numeric_limits<float>::quiet_NaN());
}

HONE_INSTANTIATE_LEVELS(PoolKernel);

} // namespace
} // namespace hone::test
