// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed weights lie as cpu/packing/layout.h says.

#include "cpu/packing/pack_linear.h"

#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace hone::cpu {
namespace {

template <typename Element> std::vector<Element> pack(PackedFormat format, const LinearShape &shape) {
  std::vector<Element> weight(static_cast<size_t>(shape.outputs * shape.inputs));
  std::iota(weight.begin(), weight.end(), Element{1});
  std::vector<Element> packed(static_cast<size_t>(packedLinearBytes(format, shape)) / sizeof(Element), 99);
  packLinearWeight(format, shape, {weight.data(), shape.inputs, 1},
                   {reinterpret_cast<uint8_t *>(packed.data()), packed.size() * sizeof(Element)});
  return packed;
}

TEST(PackLinear, FloatsLieInputByInput) {
  std::vector<float> packed = pack<float>(PackedFormat::F32, {17, 3});
  ASSERT_EQ(packed.size(), 2u * 3 * 16);
  EXPECT_EQ(packed[1 * 16 + 5], 5 * 3 + 1 + 1);    // output 5, input 1
  EXPECT_EQ(packed[(3 + 2) * 16], 16 * 3 + 2 + 1); // output 16, input 2
  EXPECT_EQ(packed[(3 + 2) * 16 + 1], 0);          // no output 17
}

TEST(PackLinear, Bf16LiesInPairsOfInputs) {
  std::vector<uint16_t> packed = pack<uint16_t>(PackedFormat::Bf16, {16, 33});
  ASSERT_EQ(packed.size(), 16u * 64);
  EXPECT_EQ(packed[(3 * 16 + 2) * 2 + 1], 2 * 33 + 7 + 1); // output 2, input 7
  EXPECT_EQ(packed[(16 * 16 + 2) * 2], 2 * 33 + 32 + 1);
  EXPECT_EQ(packed[(16 * 16 + 2) * 2 + 1], 0); // no input 33
}

TEST(PackLinear, BytesLieInQuadsOfInputs) {
  std::vector<uint8_t> packed = pack<uint8_t>(PackedFormat::U8, {2, 70, 32});
  ASSERT_EQ(packed.size(), 16u * 128);
  EXPECT_EQ(packed[(2 * 16 + 1) * 4 + 3], 70 + 11 + 1); // output 1, input 11
  EXPECT_EQ(packed[(18 * 16 + 1) * 4 + 3], 0);          // no input 75
}

TEST(PackLinear, NibblesOfInputsFourApartShareAByte) {
  std::vector<uint8_t> packed = pack<uint8_t>(PackedFormat::U4, {1, 14});
  ASSERT_EQ(packed.size(), 16u * 32);
  EXPECT_EQ(packed[1], 0x62);          // inputs 1 and 5
  EXPECT_EQ(packed[16 * 4 + 1], 0xea); // inputs 9 and 13
  EXPECT_EQ(packed[16 * 4 + 2], 0x0b); // input 10 alone
}

TEST(PackLinear, ATransposedWeightPacksAlike) {
  std::vector<float> weight = {1, 2, 3, 4, 5, 6}, transposed = {1, 4, 2, 5, 3, 6};
  std::vector<uint8_t> first(static_cast<size_t>(packedLinearBytes(PackedFormat::F32, {2, 3}))), second(first.size());
  packLinearWeight(PackedFormat::F32, {2, 3}, {weight.data(), 3, 1}, first);
  packLinearWeight(PackedFormat::F32, {2, 3}, {transposed.data(), 1, 2}, second);
  EXPECT_EQ(first, second);
}

TEST(PackLinear, ScalesOfAPanelLieGroupByGroup) {
  LinearShape shape = {17, 40, 32}; // two groups
  std::vector<float> scales(34);
  std::iota(scales.begin(), scales.end(), 0.0f);
  auto sizes = packedScaleShape(PackedFormat::U4, shape);
  EXPECT_EQ(sizes, (std::array<int64_t, 3>{2, 2, 16}));
  std::vector<float> packed(64, -1);
  packLinearScales(PackedFormat::U4, shape, sizeof(float), scales.data(),
                   {reinterpret_cast<uint8_t *>(packed.data()), packed.size() * sizeof(float)});
  EXPECT_EQ(packed[16 + 3], 7); // output 3, group 1
  EXPECT_EQ(packed[32], 32);    // output 16, group 0
  EXPECT_EQ(packed[32 + 1], 0); // no output 17
  EXPECT_EQ(linearGroups(shape), 2);
}

TEST(PackLinear, FourBitsTakeFourAndAQuarter) {
  LinearShape shape = {896, 896, 64};
  auto sizes = packedScaleShape(PackedFormat::U4, shape);
  int64_t bytes = packedLinearBytes(PackedFormat::U4, shape) + sizes[0] * sizes[1] * sizes[2] * 2;
  EXPECT_EQ(bytes * 8.0 / (896 * 896), 4.25);
}

} // namespace
} // namespace hone::cpu
