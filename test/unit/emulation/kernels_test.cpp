// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels as a compiler makes them of CUDA C++, against the same computed by plain loops.

#include "device.h"

#include <bit>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

namespace hone::test {
namespace {

using testing::Each;
using testing::ElementsAreArray;
using Shape = Device::Shape;

/// Numbers that look random, between -1 and 1.
std::vector<float> numbers(size_t count, uint32_t seed = 1) {
  std::vector<float> values(count);
  for (float &value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<int32_t>(seed)) / 2147483648.0f;
  }
  return values;
}

struct Kernels : testing::Test {
  Device device;
  void SetUp() override { device.loadFile("kernels.ptx"); }
};

TEST_F(Kernels, AddsVectors) {
  constexpr int kCount = 1000; // no multiple of a block, nor of a warp
  std::vector<float> a = numbers(kCount, 1);
  std::vector<float> b = numbers(kCount, 2);
  DevicePointer c = device.allocate(kCount * sizeof(float));
  ASSERT_EQ(device.launch("vector_add", {{8, 1, 1}, {128, 1, 1}}, device.upload(a), device.upload(b), c, kCount), 0);
  for (int i = 0; i < kCount; ++i)
    a[i] += b[i];
  EXPECT_THAT(device.download<float>(c, kCount), ElementsAreArray(a));
}

TEST_F(Kernels, SumsRowsByShufflesAndABarrier) {
  constexpr int kRows = 7;
  constexpr int kColumns = 777;
  std::vector<float> x(kRows * kColumns);
  // Integers: their sums are exact in any order.
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i * 7 % 101);
  DevicePointer y = device.allocate(kRows * sizeof(float));
  for (unsigned threads : {32u, 96u, 256u, 1024u}) {
    ASSERT_EQ(device.launch("row_sum", {{kRows, 1, 1}, {threads, 1, 1}}, device.upload(x), y, kColumns), 0);
    std::vector<float> sums = device.download<float>(y, kRows);
    for (int row = 0; row < kRows; ++row)
      EXPECT_EQ(sums[row], std::accumulate(&x[row * kColumns], &x[row * kColumns] + kColumns, 0.0f)) << threads;
  }
}

TEST_F(Kernels, LanesPartAndMeet) {
  constexpr int kCount = 96;
  std::vector<unsigned> x(kCount);
  std::iota(x.begin(), x.end(), 1u);
  std::vector<unsigned> expected;
  for (unsigned value : x) {
    unsigned steps = 0;
    for (unsigned v = value; v != 1; ++steps)
      v = v % 2 == 0 ? v / 2 : 3 * v + 1;
    expected.push_back(steps);
  }
  DevicePointer steps = device.allocate(kCount * sizeof(unsigned));
  DevicePointer turns = device.allocate(kCount * sizeof(unsigned));
  ASSERT_EQ(device.launch("collatz", {{1, 1, 1}, {kCount, 1, 1}}, device.upload(x), steps, turns, kCount), 0);
  EXPECT_THAT(device.download<unsigned>(steps, kCount), ElementsAreArray(expected));
  EXPECT_THAT(device.download<unsigned>(turns, kCount), Each(32u)); // all are together again after the loop
}

TEST_F(Kernels, MultipliesThroughSharedMemory) {
  constexpr int kM = 37;
  constexpr int kN = 50;
  constexpr int kK = 41;
  std::vector<float> a = numbers(kM * kK, 3);
  std::vector<float> b = numbers(kK * kN, 4);
  DevicePointer c = device.allocate(kM * kN * sizeof(float));
  ASSERT_EQ(device.launch("matmul", {{4, 3, 1}, {16, 16, 1}}, device.upload(a), device.upload(b), c, kM, kN, kK), 0);
  std::vector<float> expected(kM * kN);
  for (int i = 0; i < kM; ++i)
    for (int j = 0; j < kN; ++j)
      for (int k = 0; k < kK; ++k)
        expected[i * kN + j] = std::fma(a[i * kK + k], b[k * kN + j], expected[i * kN + j]);
  EXPECT_THAT(device.download<float>(c, kM * kN), ElementsAreArray(expected)); // in the kernel's order: the same bits
}

TEST_F(Kernels, CountsAtomically) {
  constexpr int kCount = 20000;
  std::vector<uint8_t> x(kCount);
  for (int i = 0; i < kCount; ++i)
    x[i] = static_cast<uint8_t>(i * i % 251);
  std::vector<unsigned> expected(256);
  float sum = 0;
  for (uint8_t value : x)
    ++expected[value], sum += value;
  DevicePointer counts = device.upload(std::vector<unsigned>(256));
  DevicePointer total = device.upload(std::vector<float>(1));
  DevicePointer most = device.upload(std::vector<unsigned>(1));
  ASSERT_EQ(device.launch("histogram", {{32, 1, 1}, {256, 1, 1}, 1024}, device.upload(x), counts, total, most, kCount),
            0);
  EXPECT_THAT(device.download<unsigned>(counts, 256), ElementsAreArray(expected));
  EXPECT_EQ(device.download<float>(total, 1)[0], sum); // below 2^24: exact in any order
  EXPECT_EQ(device.download<unsigned>(most, 1)[0], *std::max_element(x.begin(), x.end()));
}

TEST_F(Kernels, TheLastBlockSeesAll) {
  constexpr unsigned kBlocks = 200;
  DevicePointer ticket = device.upload(std::vector<unsigned>(1));
  DevicePointer partial = device.allocate(kBlocks * sizeof(unsigned));
  DevicePointer result = device.upload(std::vector<unsigned>(1));
  ASSERT_EQ(device.launch("last_block", {{kBlocks, 1, 1}, {64, 1, 1}}, ticket, partial, result), 0);
  EXPECT_EQ(device.download<unsigned>(result, 1)[0], kBlocks * (kBlocks + 1) / 2);
}

TEST_F(Kernels, LanesOfAWarpTakeALockInTurn) {
  DevicePointer lock = device.upload(std::vector<int>(1));
  DevicePointer value = device.upload(std::vector<int>(1));
  ASSERT_EQ(device.launch("locked", {{4, 1, 1}, {64, 1, 1}}, lock, value), 0);
  EXPECT_EQ(device.download<int>(value, 1)[0], 256);
}

TEST_F(Kernels, TakesStructuresAndLocalArrays) {
  struct Big {
    double d[3];
    int i;
    char c;
  };
  constexpr int kThreads = 40;
  DevicePointer out = device.allocate(kThreads * sizeof(double));
  Big big{{1.5, -2.25, 3.0}, 17, 3};
  ASSERT_EQ(device.launch("parameters", {{1, 1, 1}, {kThreads, 1, 1}}, big, static_cast<short>(-9), 1ull << 40, out),
            0);
  std::vector<double> results = device.download<double>(out, kThreads);
  for (int k = 0; k < kThreads; ++k) {
    double local[8];
    for (int i = 0; i < 8; ++i)
      local[(i * 3 + k) % 8] = i * big.d[i % 3];
    double sum = 0;
    for (int i = 0; i < 8; ++i)
      sum = std::fma(local[(i + k) % 8], i + 1, sum);
    double factor = 1 << k % 4;
    EXPECT_EQ(results[k], sum + big.i + big.c - 9 + static_cast<double>(1ull << 40) + factor + (k == 0 ? 5 : 0)) << k;
  }
  DevicePointer counter = 0;
  size_t bytes = 0;
  void *module = nullptr;
  ASSERT_EQ(device.call("cuModuleLoadData", &module, static_cast<const void *>(Device::input("kernels.ptx").c_str())),
            0);
  ASSERT_EQ(device.call("cuModuleGetGlobal_v2", &counter, &bytes, module, "counter"), 0);
  EXPECT_EQ(bytes, sizeof(int));
  EXPECT_EQ(device.download<int>(counter, 1)[0], 5); // each module has variables of its own
}

TEST_F(Kernels, CallsFunctionsWhereLanesPart) {
  constexpr int kThreads = 50;
  constexpr int kLength = 6;
  std::vector<float> x(kThreads + kLength);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = i % 11 == 7 ? -1.0f : static_cast<float>(i);
  DevicePointer sums = device.allocate(kThreads * sizeof(double));
  DevicePointer counts = device.allocate(kThreads * sizeof(int));
  DevicePointer chosen = device.allocate(kThreads * sizeof(int));
  ASSERT_EQ(device.launch("calls", {{1, 1, 1}, {kThreads, 1, 1}}, device.upload(x), kLength, sums, counts, chosen), 0);
  std::vector<double> sum = device.download<double>(sums, kThreads);
  std::vector<int> count = device.download<int>(counts, kThreads);
  std::vector<int> choice = device.download<int>(chosen, kThreads);
  for (int k = 0; k < kThreads; ++k) {
    double expected = 0.5;
    int counted = 100;
    for (int i = 0; k % 3 != 0 && i < kLength; ++i) {
      if (x[k + i] < 0) {
        expected -= 1;
        break;
      }
      expected += x[k + i];
      ++counted;
    }
    EXPECT_EQ(sum[k], expected) << k;
    EXPECT_EQ(count[k], counted) << k;
    int v = k + 1000;
    int choices[] = {v * 3, v ^ 0x55, v - 100, std::popcount(static_cast<unsigned>(v)), v << 2, v, -v, v / 7, 8, 9};
    EXPECT_EQ(choice[k], choices[k % 10]) << k;
  }
}

TEST_F(Kernels, ComputesFunctions) {
  constexpr int kCount = 300;
  std::vector<float> x = numbers(kCount, 5);
  for (float &value : x)
    value *= 8;
  DevicePointer y = device.allocate(12 * kCount * sizeof(float));
  ASSERT_EQ(device.launch("functions", {{3, 1, 1}, {128, 1, 1}}, device.upload(x), y, kCount), 0);
  std::vector<float> results = device.download<float>(y, 12 * kCount);
  for (int i = 0; i < kCount; ++i) {
    double v = x[i];
    float hundred = x[i] * 100.0f;
    double expected[] = {std::exp(v),
                         std::log(std::fabs(v)),
                         std::sin(static_cast<double>(hundred)),
                         std::tanh(v),
                         std::erf(v),
                         std::sqrt(std::fabs(v)),
                         1 / v,
                         std::floor(v) + (v < 0 ? 0 : std::trunc(v)),
                         std::pow(std::fabs(v), static_cast<double>(1.7f)),
                         std::fmod(v, static_cast<double>(0.7f)),
                         std::cbrt(v),
                         1 / std::sqrt(std::fabs(v))};
    // CUDA's functions promise at most 4 units in the last place here, and their code is what runs.
    for (int f = 0; f < 12; ++f)
      EXPECT_NEAR(results[f * kCount + i], expected[f], 4 * 0x1p-23 * std::max(std::fabs(expected[f]), 1e-3))
          << f << " of " << v;
  }
}

TEST_F(Kernels, ComputesWithHalves) {
  constexpr int kCount = 128;
  std::vector<float> x = numbers(kCount, 6);
  DevicePointer h = device.allocate(2 * kCount);
  DevicePointer b = device.allocate(2 * kCount);
  DevicePointer h2 = device.allocate(4 * kCount);
  DevicePointer b2 = device.allocate(4 * kCount);
  ASSERT_EQ(device.launch("halves", {{4, 1, 1}, {32, 1, 1}}, device.upload(x), h, b, h2, b2, kCount), 0);
  auto halves = device.download<_Float16>(h, kCount);
  auto pairs = device.download<_Float16>(h2, 2 * kCount);
  auto brains = device.download<uint16_t>(b, kCount);
  auto widen = [](uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); };
  for (int i = 0; i < kCount; ++i) {
    auto v = static_cast<_Float16>(x[i]);
    double exact = static_cast<double>(v) * static_cast<double>(v) + static_cast<double>(static_cast<_Float16>(0.1f));
    EXPECT_EQ(halves[i], static_cast<_Float16>(exact)); // 22 bits and 11 bits: the sum is exact in double
    auto twice = static_cast<_Float16>(v + v);
    auto square = static_cast<_Float16>(v * v);
    EXPECT_EQ(pairs[2 * i], std::max(twice, square));
    EXPECT_EQ(pairs[2 * i + 1], std::max(static_cast<_Float16>(-twice), square));
    EXPECT_NEAR(widen(brains[i]), x[i] * x[i] + 0.1f, 0x1p-7); // 8 bits of each number
  }
}

TEST_F(Kernels, ComputesWithWideIntegers) {
  std::vector<int64_t> x = {1,   -1, 77, -123456789012345, 0x7fffffffffffffff, 0x123456789abcdef0, -0x7ffffffffffffff0,
                            4096};
  const auto count = static_cast<int>(x.size());
  DevicePointer y = device.allocate(6 * x.size() * sizeof(uint64_t));
  ASSERT_EQ(device.launch("wide", {{1, 1, 1}, {32, 1, 1}}, device.upload(x), y, count), 0);
  std::vector<uint64_t> results = device.download<uint64_t>(y, 6 * x.size());
  for (int i = 0; i < count; ++i) {
    int64_t v = x[i];
    auto u = static_cast<uint64_t>(v);
    auto triple = static_cast<int64_t>(u * 3);
    EXPECT_EQ(results[i], static_cast<uint64_t>(static_cast<__int128>(v) * triple >> 64));
    EXPECT_EQ(results[count + i], static_cast<uint64_t>(v / 7 + v % 13));
    uint64_t reversed = 0;
    for (int bit = 0; bit < 64; ++bit)
      reversed |= (u >> bit & 1) << (63 - bit);
    uint64_t counts = static_cast<uint64_t>(std::countl_zero(u)) ^ static_cast<uint64_t>(std::popcount(u)) ^
                      static_cast<uint64_t>(u == 0 ? 0 : std::countr_zero(u) + 1);
    EXPECT_EQ(results[2 * count + i], reversed ^ counts);
    auto low = static_cast<uint32_t>(u);
    auto high = static_cast<uint32_t>(u >> 32);
    auto byte = [&](int k) { return static_cast<uint32_t>(u >> 8 * k & 255); };
    uint32_t permuted = byte(3) | byte(7) << 8 | byte(1) << 16 | byte(5) << 24;
    uint32_t funnel = static_cast<uint32_t>((u << (low & 31)) >> 32);
    EXPECT_EQ(results[3 * count + i], static_cast<uint64_t>(permuted + funnel)) << i;
    int32_t dot = 5;
    for (int k = 0; k < 4; ++k)
      dot += static_cast<int8_t>(low >> 8 * k) * static_cast<int8_t>(high >> 8 * k);
    int64_t apart = std::abs(static_cast<int64_t>(static_cast<int32_t>(low)) - static_cast<int32_t>(high)) + 7;
    EXPECT_EQ(results[4 * count + i], static_cast<uint64_t>(static_cast<uint32_t>(dot) + static_cast<uint32_t>(apart)));
    // The signed number is extended to 128 bits.
    auto product = static_cast<unsigned __int128>(static_cast<__int128>(v)) * ~u;
    EXPECT_EQ(results[5 * count + i], static_cast<uint64_t>(product >> 37));
  }
}

} // namespace
} // namespace hone::test
