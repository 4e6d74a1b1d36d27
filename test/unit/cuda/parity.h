// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors of any type and layout for parity tests, and their fixture: kernels of the table, named by the test's
// parameter, against plain loops in double precision.

#ifndef HONE_TEST_UNIT_CUDA_PARITY_H
#define HONE_TEST_UNIT_CUDA_PARITY_H

#include "test_device.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>

namespace hone::test {

/// The layout of a tensor: dense, the last two axes swapped, a gap after every element of every axis, dense rows that
/// begin at multiples of 16 bytes, or dense with the second axis inside of the third.
enum class Layout { Dense, Swapped, Gaps, Aligned, HeadsInside };

inline int64_t bytesOf(int32_t dtype) {
  return dtype == HONE_F32 || dtype == HONE_I32 ? 4 : dtype == HONE_I64 ? 8 : dtype == HONE_U8 ? 1 : 2;
}

inline uint64_t encode(double value, int32_t dtype) {
  auto f = static_cast<float>(value);
  switch (dtype) {
  case HONE_F32:
    return std::bit_cast<uint32_t>(f);
  case HONE_F16:
    return std::bit_cast<uint16_t>(static_cast<_Float16>(f));
  case HONE_BF16: {
    auto bits = std::bit_cast<uint32_t>(f); // to nearest even
    return std::isnan(f) ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  }
  default:
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

inline double decode(uint64_t bits, int32_t dtype) {
  switch (dtype) {
  case HONE_F32:
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  case HONE_F16:
    return std::bit_cast<_Float16>(static_cast<uint16_t>(bits));
  case HONE_BF16:
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  case HONE_I32:
    return static_cast<int32_t>(bits);
  case HONE_I64:
    return static_cast<double>(static_cast<int64_t>(bits));
  default:
    return static_cast<double>(bits);
  }
}

/// Bytes are 0xff until they are written, which is NaN in every type, so that reads of gaps and missing outputs are
/// detected.
class Tensor {
public:
  explicit Tensor(std::vector<int64_t> shape, int32_t dtype = HONE_F32, Layout layout = Layout::Dense)
      : sizes(std::move(shape)), strides(sizes.size()), dtype(dtype) {
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    if (layout == Layout::Swapped && order.size() >= 2)
      std::swap(order[order.size() - 1], order[order.size() - 2]);
    if (layout == Layout::HeadsInside && order.size() == 4)
      std::swap(order[1], order[2]);
    int64_t stride = layout == Layout::Gaps ? 2 : 1;
    for (size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = stride;
      stride *= std::max<int64_t>(sizes[order[i]], 1) + (layout == Layout::Gaps ? 1 : 0);
      if (layout == Layout::Aligned && i + 1 == order.size())
        stride = (stride + 15) / 16 * 16;
    }
    memory.assign(static_cast<size_t>(stride * bytesOf(dtype)), 0xff);
    if (layout == Layout::Aligned && sizes.size() >= 2)
      clearPadding();
  }

  static Tensor absent() { return Tensor({0}); }

  Tensor &randomize(std::mt19937 &random, double scale = 1) {
    std::normal_distribution<double> distribution(0, scale);
    forEach([&](const std::vector<int64_t> &index) { set(index, distribution(random)); });
    return *this;
  }

  void set(const std::vector<int64_t> &index, double value) {
    uint64_t bits = encode(value, dtype);
    std::memcpy(memory.data() + offsetOf(index) * bytesOf(dtype), &bits, static_cast<size_t>(bytesOf(dtype)));
  }
  double at(const std::vector<int64_t> &index) const {
    uint64_t bits = 0;
    std::memcpy(&bits, memory.data() + offsetOf(index) * bytesOf(dtype), static_cast<size_t>(bytesOf(dtype)));
    return decode(bits, dtype);
  }

  void copyElement(const std::vector<int64_t> &index, const Tensor &from) {
    int64_t byte = offsetOf(index) * bytesOf(dtype);
    std::copy_n(from.memory.begin() + byte, bytesOf(dtype), memory.begin() + byte);
  }

  int64_t count() const { return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()); }

  template <typename Body>
  void forEach(Body body) const {
    std::vector<int64_t> index(sizes.size(), 0);
    for (int64_t left = count(); left > 0; --left) {
      body(index);
      for (size_t axis = index.size(); axis-- > 0 && ++index[axis] == sizes[axis];)
        index[axis] = 0;
    }
  }

  /// The tensor with its data at `data`.
  hone_tensor view(void *data) const {
    hone_tensor tensor = {};
    tensor.data = data;
    tensor.dtype = dtype;
    tensor.rank = static_cast<int32_t>(sizes.size());
    std::ranges::copy(sizes, tensor.sizes);
    std::ranges::copy(strides, tensor.strides);
    return tensor;
  }

  std::vector<int64_t> sizes, strides;
  std::vector<int64_t> starts; // by index of the first axis, how many elements later it is than strides say; empty: 0
  int32_t dtype;
  std::vector<uint8_t> memory;

private:
  int64_t offsetOf(const std::vector<int64_t> &index) const {
    int64_t start = starts.empty() ? 0 : starts[static_cast<size_t>(index[0])];
    return std::inner_product(index.begin(), index.end(), strides.begin(), start);
  }
  void clearPadding() {
    std::ranges::fill(memory, uint8_t{0});
    forEach([&](const std::vector<int64_t> &index) {
      std::memset(memory.data() + offsetOf(index) * bytesOf(dtype), 0xff, static_cast<size_t>(bytesOf(dtype)));
    });
  }
};

/// The relative rounding error of a type: half a unit in the last place.
inline double roundingOf(int32_t dtype) { return dtype == HONE_F32 ? 6e-8 : dtype == HONE_F16 ? 4.9e-4 : 3.91e-3; }

/// Tests that are skipped where there is no device.
template <typename Parameter> class DeviceTest : public testing::TestWithParam<Parameter> {
protected:
  void SetUp() override {
    std::string reason;
    device = TestDevice::get(reason);
    if (!device)
      GTEST_SKIP() << reason;
  }

  TestDevice *device = nullptr;
};

/// The parameter is the name of a kernel; TableTest.EveryKernelHasAParityTest looks for it there.
class ParityTest : public DeviceTest<const char *> {
protected:
  std::string kernel() const { return GetParam(); }

  /// Calls the kernel with all operands on the device; outputs are read back, and their gaps must be unchanged.
  void run(const std::vector<Tensor *> &operands, size_t outputs, const std::vector<int64_t> &ints,
           const std::vector<double> &floats = {}) {
    std::vector<hone_tensor> views;
    for (Tensor *operand : operands)
      views.push_back(operand->view(device->upload(operand->memory)));
    int64_t held = device->piecesHeld();
    device->call(kernel(), views, ints, floats);
    device->wait();
    EXPECT_EQ(device->piecesHeld(), held) << kernel() << " keeps memory";
    for (size_t i = 0; i < operands.size(); ++i) {
      if (i + outputs >= operands.size())
        readBack(*operands[i], views[i].data);
      device->release(views[i].data);
    }
  }

  std::mt19937 random{7};

private:
  void readBack(Tensor &tensor, void *memory) {
    std::vector<uint8_t> before = tensor.memory;
    device->download(memory, tensor.memory);
    Tensor expected = tensor;
    expected.memory = before;
    tensor.forEach([&](const std::vector<int64_t> &index) { expected.copyElement(index, tensor); });
    EXPECT_TRUE(tensor.memory == expected.memory) << kernel() << " writes outside of its output";
  }
};

} // namespace hone::test

#endif // HONE_TEST_UNIT_CUDA_PARITY_H
