// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// f32 tensors in several memory layouts, for comparing kernels with plain loops on every ISA of this machine.

#ifndef HONE_TEST_UNIT_RUNTIME_KERNEL_TENSOR_H
#define HONE_TEST_UNIT_RUNTIME_KERNEL_TENSOR_H

#include "cpu/kernel_table.h"
#include "hone/io/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>

namespace hone::test {

/// How a tensor lies in memory: dense, the last two axes swapped, with a gap after every element of every axis, or with its second axis
/// last, as channels of [N, H, W, C] are.
enum class Layout { Dense, Swapped, Gaps, ChannelsLast };
constexpr Layout kLayouts[] = {Layout::Dense, Layout::Swapped, Layout::Gaps};

/// Elements are NaN until they are written, so that reading a gap or leaving an output out is seen.
class Tensor {
public:
  explicit Tensor(std::vector<int64_t> shape, Layout layout = Layout::Dense) : sizes(std::move(shape)) {
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    if (layout == Layout::Swapped && order.size() >= 2)
      std::swap(order[order.size() - 1], order[order.size() - 2]);
    if (layout == Layout::ChannelsLast && order.size() >= 2)
      std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    strides.resize(sizes.size());
    int64_t stride = layout == Layout::Gaps ? 2 : 1;
    for (size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = stride;
      stride *= std::max<int64_t>(sizes[order[i]], 1) + (layout == Layout::Gaps ? 1 : 0);
    }
    memory.assign(static_cast<size_t>(stride), std::numeric_limits<float>::quiet_NaN());
  }

  static Tensor absent() { return Tensor({0}); }

  Tensor &randomize(std::mt19937 &random, float scale = 1) {
    std::normal_distribution<float> distribution(0, scale);
    forEach([&](const std::vector<int64_t> &index) { (*this)(index) = distribution(random); });
    return *this;
  }

  float &operator()(const std::vector<int64_t> &index) {
    return memory[static_cast<size_t>(std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0}))];
  }
  float at(const std::vector<int64_t> &index) const { return const_cast<Tensor &>(*this)(index); }

  /// Reads with indices of a broadcast shape: axes of size 1 repeat, absent leading axes are ignored.
  float broadcastAt(std::vector<int64_t> index) const {
    index.erase(index.begin(), index.end() - static_cast<int64_t>(sizes.size()));
    for (size_t axis = 0; axis < sizes.size(); ++axis)
      if (sizes[axis] == 1)
        index[axis] = 0;
    return at(index);
  }

  template <typename Body>
  void forEach(Body body) const {
    std::vector<int64_t> index(sizes.size(), 0);
    for (int64_t left = *io::elementCount(sizes); left > 0; --left) {
      body(index);
      for (size_t axis = index.size(); axis-- > 0 && ++index[axis] == sizes[axis];)
        index[axis] = 0;
    }
  }

  hone_tensor view() {
    hone_tensor tensor = {};
    tensor.data = memory.data();
    tensor.dtype = HONE_F32;
    tensor.rank = static_cast<int32_t>(sizes.size());
    std::ranges::copy(sizes, tensor.sizes);
    std::ranges::copy(strides, tensor.strides);
    return tensor;
  }

  std::vector<int64_t> sizes, strides;

private:
  std::vector<float> memory;
};

/// |actual - expected| ≤ tolerance · (1 + |expected|) everywhere. f32 sums of K products err by about K · 6e-8.
/// To the nearest bf16, of two the one that is even.
inline float roundToBf16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u);
}

inline Tensor roundToBf16(const Tensor &tensor) {
  Tensor rounded(tensor.sizes);
  rounded.forEach([&](const std::vector<int64_t> &index) { rounded(index) = roundToBf16(tensor.at(index)); });
  return rounded;
}

inline void expectClose(const Tensor &actual, const Tensor &expected, float tolerance, const std::string &what) {
  bool failed = false;
  expected.forEach([&](const std::vector<int64_t> &index) {
    float a = actual.at(index), e = expected.at(index);
    if (failed || a == e || std::abs(a - e) <= tolerance * (1 + std::abs(e))) // infinities are equal
      return;
    failed = true;
    ADD_FAILURE() << what << ": at " << io::shapeText(index) << " of " << io::shapeText(expected.sizes) << " expected "
                  << e << ", but got " << a;
  });
}

/// A view of what is given for each sequence; absent where the list is empty.
inline hone_tensor listOf(const std::vector<int64_t> &values) {
  hone_tensor tensor = {};
  tensor.data = const_cast<int64_t *>(values.data());
  tensor.dtype = HONE_I64;
  tensor.rank = 1;
  tensor.sizes[0] = static_cast<int64_t>(values.size());
  tensor.strides[0] = 1;
  return tensor;
}

/// Runs every case on every ISA that this machine has.
class KernelTest : public testing::TestWithParam<cpu::Isa> {
protected:
  void run(std::string_view name, std::vector<hone_tensor> operands, std::vector<int64_t> ints = {},
           std::vector<double> floats = {}) {
    hone_kernel_fn kernel = cpu::findKernel(name, GetParam());
    ASSERT_NE(kernel, nullptr) << name;
    kernel(nullptr, operands.data(), ints.data(), floats.data());
  }

  std::mt19937 random{1};
};

inline std::string isaParameterName(const testing::TestParamInfo<cpu::Isa> &info) {
  return std::string(cpu::isaName(info.param));
}

#define HONE_INSTANTIATE_LEVELS(Suite)                                                                                 \
  INSTANTIATE_TEST_SUITE_P(Codes, Suite, testing::ValuesIn(cpu::supportedIsas().begin(), cpu::supportedIsas().end()),  \
                           isaParameterName)

} // namespace hone::test

#endif // HONE_TEST_UNIT_RUNTIME_KERNEL_TENSOR_H
