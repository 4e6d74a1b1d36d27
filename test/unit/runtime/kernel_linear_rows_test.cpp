// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What packed layers give a row is the same to the last bit whether it is alone, as in decoding, or one of several, as in
// verification, and whatever the number of threads.

#include "kernel_tensor.h"
#include "packed_weight.h"

#include <bit>
#include <functional>
#include <omp.h>

namespace hone::test {
namespace {

using cpu::PackedFormat;

constexpr int64_t kMostRows = 33, kGelu = 3, kSilu = 2;

/// Each format, alone and with what kernels treat separately.
const WeightKind kKinds[] = {
    {PackedFormat::F32},
    {PackedFormat::F16},
    {PackedFormat::Bf16},
    {PackedFormat::U8},
    {PackedFormat::U8, 32, true, true},
    {PackedFormat::U6, 64, true, true},
    {PackedFormat::U5, 32, false, true},
    {PackedFormat::U8, 128},
    {PackedFormat::U4, 32, false, true},
    {PackedFormat::U4, 64, true, true},
    {PackedFormat::U4},
    {PackedFormat::U3, 64, true, true},
    {PackedFormat::U2, 32, false, true},
    {.format = PackedFormat::Bf16, .codebook = 4},
    {.format = PackedFormat::Bf16, .codebook = 3},
    {.format = PackedFormat::Bf16, .codebook = 2},
    {.format = PackedFormat::U8, .group = 128, .hasHalfScales = true, .outliers = 0.02},
    {.format = PackedFormat::U6, .group = 64, .hasZeros = true, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::U5, .group = 32, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::U4, .group = 64, .hasZeros = true, .hasHalfScales = true, .outliers = 0.005},
    {.format = PackedFormat::U3, .group = 64, .hasZeros = true, .hasHalfScales = true, .outliers = 0.1},
    {.format = PackedFormat::U2, .group = 32, .hasHalfScales = true, .outliers = 0.01},
    {.format = PackedFormat::Bf16, .outliers = 0.01, .codebook = 4},
    {.format = PackedFormat::Bf16, .outliers = 0.1, .codebook = 3},
    {.format = PackedFormat::Bf16, .outliers = 0.01, .codebook = 2},
    {.format = PackedFormat::F32, .isSparse = true},
    {.format = PackedFormat::F16, .isSparse = true},
    {.format = PackedFormat::Bf16, .isSparse = true},
    {.format = PackedFormat::U8, .group = 128, .hasHalfScales = true, .isSparse = true},
    {.format = PackedFormat::U4, .group = 64, .hasHalfScales = true, .isSparse = true},
};

class LinearRows : public KernelTest {
protected:
  /// Of floats and codebooks, tiles of bf16 add up in another order than vectors.
  static std::vector<WeightKind> getKinds() {
    std::vector<WeightKind> kinds;
    for (const WeightKind &kind : kKinds) {
      bool isOfTiles = kind.format == PackedFormat::Bf16 || kind.codebook > 0;
      if (GetParam() != cpu::Isa::Amx || !isOfTiles)
        kinds.push_back(kind);
    }
    return kinds;
  }
  void TearDown() override { omp_set_num_threads(threads); }

  /// `call` computes rows [begin, end) and writes them to `y` as rows from 0 on.
  void check(const std::string &name, int64_t outputs,
             const std::function<void(int64_t begin, int64_t end, hone_tensor y)> &call) {
    Tensor expected({kMostRows, outputs});
    omp_set_num_threads(1);
    for (int64_t row = 0; row < kMostRows; ++row)
      call(row, row + 1, rowsOf(expected, row, row + 1));
    bool isEqual = true;
    for (int64_t count = 1; count <= kMostRows && isEqual; ++count)
      for (int threadCount : {1, 2}) {
        omp_set_num_threads(threadCount);
        int64_t first = threadCount == 1 ? 0 : kMostRows - count;
        Tensor y({count, outputs});
        call(first, first + count, y.view());
        isEqual = isEqual && compare(name, first, y, expected);
      }
  }

  static hone_tensor rowsOf(Tensor &tensor, int64_t begin, int64_t end) {
    hone_tensor view = tensor.view();
    view.data = static_cast<float *>(view.data) + begin * view.strides[0];
    view.sizes[0] = end - begin;
    return view;
  }

  static void append(std::vector<hone_tensor> &operands, PackedWeight &weight, Tensor &bias) {
    std::vector<hone_tensor> planes = weight.views();
    operands.insert(operands.end(), planes.begin(), planes.end());
    operands.push_back(bias.view());
  }

  static std::string expertKernelOf(std::string_view layer, const WeightKind &kind) {
    std::string family = kind.isSparse ? "hone.sparse_" : "hone.";
    return kernelOf(family + std::string(layer) + (kind.outliers > 0 ? ".outliers" : ""), kind);
  }

private:
  static bool compare(const std::string &name, int64_t first, const Tensor &actual, const Tensor &expected) {
    bool hasFailed = false;
    actual.forEach([&](const std::vector<int64_t> &index) {
      float a = actual.at(index), e = expected.at({first + index[0], index[1]});
      if (hasFailed || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(e))
        return;
      hasFailed = true;
      ADD_FAILURE() << name << ": at " << io::shapeText(index) << " of " << actual.sizes[0] << " rows expected " << e
                    << ", but got " << a;
    });
    return !hasFailed;
  }

  int threads = omp_get_max_threads();
};

TEST_P(LinearRows, Linear) {
  for (const WeightKind &kind : getKinds())
    for (int64_t inputs : {72, 1100})
      for (int64_t bits : {8, 16}) {
        if (!isQuantized(kind.format) && bits == 16)
          continue;
        constexpr int64_t outputs = 150;
        Tensor x = Tensor({kMostRows, inputs}).randomize(random), bias = Tensor({outputs}).randomize(random);
        Tensor factor = Tensor({kMostRows, outputs}).randomize(random), none = Tensor::absent();
        PackedWeight weight(kind, outputs, inputs, random);
        check(packedKernelOf("linear", kind), outputs, [&](int64_t begin, int64_t end, hone_tensor y) {
          std::vector<hone_tensor> operands = {rowsOf(x, begin, end)};
          append(operands, weight, bias);
          operands.insert(operands.end(), {rowsOf(factor, begin, end), none.view(), y});
          std::vector<int64_t> ints = {kGelu};
          if (isQuantized(kind.format))
            ints.insert(ints.end(), {kind.group, bits, /*at_least=*/1});
          run(packedKernelOf("linear", kind), operands, ints);
        });
      }
}

TEST_P(LinearRows, Mlp) {
  for (const WeightKind &kind : getKinds())
    for (bool hasGate : {false, true}) {
      constexpr int64_t inputs = 160, width = 700, outputs = 80;
      Tensor x = Tensor({kMostRows, inputs}).randomize(random),
             residual = Tensor({kMostRows, outputs}).randomize(random);
      Tensor bias = Tensor({width}).randomize(random), downBias = Tensor({outputs}).randomize(random);
      PackedWeight gate(kind, width, inputs, random), up(kind, width, inputs, random);
      PackedWeight down(kind, outputs, width, random);
      check(packedKernelOf("mlp", kind), outputs, [&](int64_t begin, int64_t end, hone_tensor y) {
        std::vector<hone_tensor> operands = {rowsOf(x, begin, end)};
        append(operands, gate, bias);
        if (!hasGate)
          std::fill(operands.begin() + 1, operands.end(), Tensor::absent().view());
        append(operands, up, bias);
        append(operands, down, downBias);
        operands.insert(operands.end(), {rowsOf(residual, begin, end), y});
        run(packedKernelOf("mlp", kind), operands, {kGelu, width, kind.group, 8, /*at_least=*/1});
      });
    }
}

// The number of rows of an expert depends on the others: here all have the same experts, or each some of four.
TEST_P(LinearRows, Experts) {
  for (const WeightKind &kind : getKinds())
    for (int64_t experts : {2, 4}) {
      constexpr int64_t choices = 2, inputs = 72, width = 192;
      Tensor x = Tensor({kMostRows, inputs}).randomize(random), bias = Tensor({experts, 2 * width}).randomize(random);
      Tensor hidden = Tensor({kMostRows, choices, width}).randomize(random),
             downBias = Tensor({experts, inputs}).randomize(random);
      Tensor weights = Tensor({kMostRows, choices}).randomize(random), none = Tensor::absent();
      std::vector<int64_t> ids;
      for (int64_t i = 0; i < kMostRows * choices; ++i)
        ids.push_back(static_cast<int64_t>(random()) % experts);
      auto idsOf = [&](int64_t begin, int64_t end) {
        return io::denseView(ids.data() + begin * choices, HONE_I64, std::array<int64_t, 2>{end - begin, choices});
      };
      PackedWeight up(kind, experts * 2 * width, inputs, random), down(kind, experts * inputs, width, random);
      check(expertKernelOf("expert_hidden", kind), choices * width, [&](int64_t begin, int64_t end, hone_tensor y) {
        std::vector<hone_tensor> operands = {rowsOf(x, begin, end), idsOf(begin, end)};
        append(operands, up, bias);
        size_t planes = operands.size() - 2;
        operands.insert(operands.end(), planes, none.view());
        operands.push_back(io::denseView(y.data, HONE_F32, std::array<int64_t, 3>{end - begin, choices, width}));
        run(expertKernelOf("expert_hidden", kind), operands, {kSilu, /*fused=*/1, experts, kind.group, 8, 1});
      });
      check(expertKernelOf("expert_sum", kind), inputs, [&](int64_t begin, int64_t end, hone_tensor y) {
        std::vector<hone_tensor> operands = {rowsOf(hidden, begin, end), idsOf(begin, end),
                                             rowsOf(weights, begin, end)};
        append(operands, down, downBias);
        operands.push_back(y);
        run(expertKernelOf("expert_sum", kind), operands, {experts, kind.group, 8, 1});
      });
    }
}

HONE_INSTANTIATE_LEVELS(LinearRows);

} // namespace
} // namespace hone::test
