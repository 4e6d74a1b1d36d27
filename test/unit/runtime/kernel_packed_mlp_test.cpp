// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pairs of packed layers against sums in double precision over the numbers that packed weights stand for.

#include "kernel_tensor.h"
#include "packed_weight.h"

namespace hone::test {
namespace {

using cpu::PackedFormat;

struct Case {
  int64_t rows, inputs, width, outputs;
  PackedFormat format;
  bool hasOthers = true; // biases and a residual
  Layout layout = Layout::Dense;
};

constexpr int64_t kGelu = 3;
double gelu(double v) { return v * 0.5 * (1 + std::erf(v / std::sqrt(2.0))); }

const char *kernelOf(PackedFormat format) {
  return format == PackedFormat::F32   ? "hone.packed_mlp.f32"
         : format == PackedFormat::F16 ? "hone.packed_mlp.f16"
                                       : "hone.packed_mlp.bf16";
}

/// What rounding may change a number by, as a part of it.
double roundingOf(PackedFormat format) { return format == PackedFormat::Bf16 ? 1.0 / 256 : 1e-6; }

class PackedMlpKernel : public KernelTest {
protected:
  void check(const Case &test) {
    Tensor x = Tensor({test.rows, test.inputs}, test.layout).randomize(random),
           y({test.rows, test.outputs}, test.layout);
    Tensor upBias = optional(test, {test.width}), downBias = optional(test, {test.outputs});
    Tensor residual = optional(test, {test.rows, test.outputs});
    PackedWeight up({test.format}, test.width, test.inputs, random),
        down({test.format}, test.outputs, test.width, random);
    run(kernelOf(test.format),
        {x.view(), up.weightView(), upBias.view(), down.weightView(), downBias.view(), residual.view(), y.view()},
        {kGelu, test.width});
    for (int64_t row = 0; row < test.rows && !HasFailure(); ++row) {
      Hidden hidden = hiddenOf(test, x, up, upBias, row);
      for (int64_t n = 0; n < test.outputs && !HasFailure(); ++n)
        compare(test, hidden, down, test.hasOthers ? downBias.at({n}) + residual.at({row, n}) : 0.0, row, n, y);
    }
  }

private:
  struct Hidden {
    std::vector<double> values, errors;
  };

  Hidden hiddenOf(const Case &test, const Tensor &x, const PackedWeight &up, const Tensor &bias, int64_t row) {
    Hidden hidden;
    for (int64_t i = 0; i < test.width; ++i) {
      double sum = test.hasOthers ? bias.at({i}) : 0, error = 1e-6;
      for (int64_t k = 0; k < test.inputs; ++k) {
        double product = static_cast<double>(x.at({row, k})) * up.at(i, k);
        sum += product;
        error += std::abs(product) * roundingOf(test.format);
      }
      hidden.values.push_back(gelu(sum));
      // The activation has slopes up to 1.13; what it gives is rounded again.
      hidden.errors.push_back(1.2 * error + std::abs(gelu(sum)) * roundingOf(test.format));
    }
    return hidden;
  }

  void compare(const Case &test, const Hidden &hidden, const PackedWeight &down, double others, int64_t row, int64_t n,
               const Tensor &y) {
    double expected = others, error = 1e-5;
    for (int64_t i = 0; i < test.width; ++i) {
      expected += hidden.values[static_cast<size_t>(i)] * down.at(n, i);
      error += hidden.errors[static_cast<size_t>(i)] * std::abs(down.at(n, i));
    }
    if (!(std::abs(y.at({row, n}) - expected) <= error))
      ADD_FAILURE() << kernelOf(test.format) << " rows " << test.rows << " inputs " << test.inputs << " width "
                    << test.width << " outputs " << test.outputs << " at " << row << ", " << n << ": expected "
                    << expected << " ± " << error << ", but got " << y.at({row, n});
  }

  Tensor optional(const Case &test, const std::vector<int64_t> &shape) {
    return test.hasOthers ? Tensor(shape, test.layout).randomize(random) : Tensor::absent();
  }
};

const PackedFormat kFormats[] = {PackedFormat::F32, PackedFormat::F16, PackedFormat::Bf16};

TEST_P(PackedMlpKernel, NumbersOfRows) {
  for (PackedFormat format : kFormats)
    for (int64_t rows : {1, 3, 14, 16, 17, 63, 64, 129, 300})
      check({rows, 40, 50, 36, format});
}

TEST_P(PackedMlpKernel, RaggedShapes) {
  for (PackedFormat format : kFormats)
    for (int64_t inputs : {1, 33})
      for (int64_t width : {1, 16, 31, 47, 65})
        for (int64_t outputs : {1, 17, 32})
          check({140, inputs, width, outputs, format});
}

TEST_P(PackedMlpKernel, MoreRowsThanACacheHolds) {
  for (PackedFormat format : kFormats)
    check({700, 24, 1200, 20, format});
}

TEST_P(PackedMlpKernel, LayoutsAndAbsentOperands) {
  for (PackedFormat format : kFormats)
    for (Layout layout : kLayouts)
      for (bool hasOthers : {false, true})
        for (int64_t rows : {5, 150})
          check({rows, 20, 36, 18, format, hasOthers, layout});
}

TEST_P(PackedMlpKernel, Empty) {
  for (PackedFormat format : kFormats) {
    check({0, 8, 8, 8, format});
    check({200, 8, 8, 0, format});
    check({200, 0, 8, 8, format});
    check({200, 8, 0, 8, format});
  }
}

HONE_INSTANTIATE_LEVELS(PackedMlpKernel);

} // namespace
} // namespace hone::test
