// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed weights lie as hone/cpu/packing/layout.h says.

#include "hone/cpu/packing/pack_linear.h"
#include "hone/cpu/packing/panel_block.h"

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

TEST(PackLinear, CrumbsOfFourQuadsShareAByte) {
  std::vector<uint8_t> packed = pack<uint8_t>(PackedFormat::U2, {2, 62});
  ASSERT_EQ(packed.size(), 16u * 16);
  // Output 0 has codes 1 + k, of which two bits count: 2, 6, 10 and 14 of inputs 1, 5, 9 and 13 end in 2.
  EXPECT_EQ(packed[1], 0b10101010);
  EXPECT_EQ(packed[4 + 1], 0);                   // output 1 begins with 63
  EXPECT_EQ(packed[3 * 64 + 1], 0b10101010);     // inputs 49, 53, 57 and 61
  EXPECT_EQ(packed[3 * 64 + 2], 0b111111);       // input 62 is not there
  EXPECT_EQ(packed[3 * 64 + 4 + 1], 0);          // output 1
  EXPECT_EQ(packed[3 * 64 + 4 + 2], 0b00010101); // codes 63 + 50, 54 and 58
}

TEST(PackLinear, EightQuadsOfThreeBitsShareThreeLines) {
  std::vector<uint8_t> codes(32), packed(static_cast<size_t>(packedLinearBytes(PackedFormat::U3, {1, 32})));
  for (size_t k = 0; k < codes.size(); ++k)
    codes[k] = static_cast<uint8_t>(k / 4 * 5 % 8); // 0 5 2 7 4 1 6 3, by quads
  packLinearWeight(PackedFormat::U3, {1, 32}, {codes.data(), 32, 1}, packed);
  ASSERT_EQ(packed.size(), 64u * 6); // inputs are padded to 64
  for (size_t j = 0; j < 4; ++j) {
    EXPECT_EQ(packed[j], 0b10'101'000);        // quads 0 and 1, two bits of quad 6
    EXPECT_EQ(packed[64 + j], 0b11'111'010);   // quads 2 and 3, two bits of quad 7
    EXPECT_EQ(packed[128 + j], 0b0'1'001'100); // quads 4 and 5, a bit of quad 6 and one of quad 7
  }
  EXPECT_EQ(packed[4], 0); // no output 1
}

TEST(PackLinear, EightQuadsOfFiveBitsShareFiveLines) {
  std::vector<uint8_t> codes(32), packed(static_cast<size_t>(packedLinearBytes(PackedFormat::U5, {1, 32})));
  for (size_t k = 0; k < codes.size(); ++k)
    codes[k] = static_cast<uint8_t>(k / 4 * 5 % 32); // 0 5 10 15 20 25 30 3, by quads
  packLinearWeight(PackedFormat::U5, {1, 32}, {codes.data(), 32, 1}, packed);
  ASSERT_EQ(packed.size(), 64u * 10); // inputs are padded to 64
  for (size_t j = 0; j < 4; ++j) {
    EXPECT_EQ(packed[j], 0b001'00000);        // quad 0, three bits of quad 5
    EXPECT_EQ(packed[64 + j], 0b110'00101);   // quad 1, three bits of quad 6
    EXPECT_EQ(packed[128 + j], 0b011'01010);  // quad 2, three bits of quad 7
    EXPECT_EQ(packed[192 + j], 0b0'11'01111); // quad 3, two bits of quad 5, one of quad 7
    EXPECT_EQ(packed[256 + j], 0b0'11'10100); // quad 4, two bits of quad 6, one of quad 7
  }
  EXPECT_EQ(packed[4], 0); // no output 1
}

TEST(PackLinear, FourQuadsOfSixBitsShareThreeLines) {
  std::vector<uint8_t> codes(16), packed(static_cast<size_t>(packedLinearBytes(PackedFormat::U6, {1, 16})));
  for (size_t k = 0; k < codes.size(); ++k)
    codes[k] = static_cast<uint8_t>(k / 4 * 19 % 64); // 0 19 38 57, by quads
  packLinearWeight(PackedFormat::U6, {1, 16}, {codes.data(), 16, 1}, packed);
  ASSERT_EQ(packed.size(), 64u * 12); // inputs are padded to 64
  for (size_t j = 0; j < 4; ++j) {
    EXPECT_EQ(packed[j], 0b01'000000);       // quad 0, the lowest bits of quad 3
    EXPECT_EQ(packed[64 + j], 0b10'010011);  // quad 1
    EXPECT_EQ(packed[128 + j], 0b11'100110); // quad 2
  }
  EXPECT_EQ(packed[4], 0); // no output 1
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

TEST(PackLinear, AScaleForSixtyFourInputsTakesAQuarterOfABit) {
  LinearShape shape = {896, 896, 64};
  for (PackedFormat format :
       {PackedFormat::U8, PackedFormat::U6, PackedFormat::U5, PackedFormat::U4, PackedFormat::U3, PackedFormat::U2}) {
    auto sizes = packedScaleShape(format, shape);
    int64_t bytes = packedLinearBytes(format, shape) + sizes[0] * sizes[1] * sizes[2] * 2;
    EXPECT_EQ(static_cast<double>(bytes) * 8 / (896 * 896), bitLayoutOf(format)->bits + 0.25);
  }
}

TEST(PanelBlock, ScalesLieBeforeTheirCodes) {
  // Codes of 14336 bytes a panel, and their scales: 225 lines.
  PanelBlock block(std::array<int64_t, 2>{14336, 32});
  EXPECT_EQ(block.offsets[1], 0);
  EXPECT_EQ(block.offsets[0], 64);
  EXPECT_EQ(block.bytes, 225 * 64);
}

TEST(PanelBlock, ArraysOfALineAndMoreBeginAtLines) {
  // Codes, scales of 17 groups and their zero points.
  PanelBlock block(std::array<int64_t, 3>{8704, 544, 272});
  EXPECT_EQ(block.offsets, (std::array<int64_t, kMostPlanes>{896, 320, 0, 0}));
  // Codes, scales and zero points for an output each.
  PanelBlock small(std::array<int64_t, 3>{1024, 32, 16});
  EXPECT_EQ(small.offsets, (std::array<int64_t, kMostPlanes>{64, 16, 0, 0}));
}

TEST(PanelBlock, LinesAreOdd) {
  EXPECT_EQ(PanelBlock(std::array<int64_t, 2>{192, 64}).bytes, 5 * 64);
  EXPECT_EQ(PanelBlock(std::array<int64_t, 2>{128, 64}).bytes, 3 * 64);
  EXPECT_EQ(PanelBlock(std::array<int64_t, 2>{0, 0}).bytes, 0);
}

} // namespace
} // namespace hone::cpu
