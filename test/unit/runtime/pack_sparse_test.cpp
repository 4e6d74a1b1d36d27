// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kept elements lie as hone/cpu/packing/pack_sparse.h says.

#include "hone/cpu/packing/pack_sparse.h"

#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace hone::cpu {
namespace {

/// Kept elements 1, 2, 3, … , and indices 0, 1, 2, 3, 0, …, packed.
template <typename Element> struct Packed {
  std::vector<Element> values;
  std::vector<uint8_t> indices;

  Packed(PackedFormat format, const LinearShape &shape) {
    std::vector<Element> kept(static_cast<size_t>(shape.outputs * shape.inputs / 2));
    std::iota(kept.begin(), kept.end(), Element{1});
    std::vector<uint8_t> places(kept.size());
    for (size_t i = 0; i < places.size(); ++i)
      places[i] = i % 4;
    values.assign(sizeOf(packedSparseShape(format, shape)), 99);
    indices.assign(sizeOf(packedIndexShape(format, shape)), 99);
    packSparseLinear(format, shape, kept.data(), places.data(),
                     {reinterpret_cast<uint8_t *>(values.data()), values.size() * sizeof(Element)}, indices);
  }

  static size_t sizeOf(const std::array<int64_t, 4> &sizes) {
    return static_cast<size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]);
  }
};

TEST(PackSparse, FloatsLieInTwoLinesOfFourInputs) {
  Packed<float> packed(PackedFormat::F32, {17, 36});
  ASSERT_EQ(packed.values.size(), 2u * 32 * 16);              // half of 64 inputs
  EXPECT_EQ(packed.values[(2 * 2 + 1) * 16 + 5], 5 * 18 + 6); // output 5, the second of inputs 8 to 11
  EXPECT_EQ(packed.values[(16 * 2 + 8 * 2) * 16], 16 * 18 + 17);
  EXPECT_EQ(packed.values[(16 * 2 + 8 * 2) * 16 + 1], 0); // no output 17
}

TEST(PackSparse, Bf16LiesInPairsWithIndicesInTheirPlace) {
  Packed<uint16_t> packed(PackedFormat::Bf16, {2, 12});
  ASSERT_EQ(packed.values.size(), 32u * 8);
  EXPECT_EQ(packed.values[(2 * 16 + 1) * 2 + 1], 6 + 6); // output 1, the second of inputs 8 to 11
  ASSERT_EQ(packed.indices.size(), 64u);
  // Output 0 has indices 0 1, 2 3, 0 1: the first ones in the low half of its word.
  EXPECT_EQ(packed.indices[0], 0 | 2 << 2 | 0 << 4);
  EXPECT_EQ(packed.indices[2], 1 | 3 << 2 | 1 << 4);
  EXPECT_EQ(packed.indices[4], 2 | 0 << 2 | 2 << 4); // output 1 goes on
}

TEST(PackSparse, BytesOfEightInputsHaveIndicesInTheirPlace) {
  Packed<uint8_t> packed(PackedFormat::U8, {1, 16});
  ASSERT_EQ(packed.values.size(), 16u * 32);
  EXPECT_EQ(packed.values[16 * 4 + 2], 7);  // the first of inputs 12 to 15
  EXPECT_EQ(packed.indices[2], 2 | 2 << 2); // the third of eight, and of eight more
  EXPECT_EQ(packed.indices[3], 3 | 3 << 2);
}

TEST(PackSparse, NibblesOfInputsEightApartShareAByte) {
  Packed<uint8_t> packed(PackedFormat::U4, {1, 28});
  ASSERT_EQ(packed.values.size(), 16u * 16);
  EXPECT_EQ(packed.values[1], 0x62);          // the second of inputs 0 to 3 and of 8 to 11
  EXPECT_EQ(packed.values[16 * 4 + 1], 0xea); // of 16 to 19 and of 24 to 27
  EXPECT_EQ(packed.values[16 * 4 + 2], 0x0b); // of 20 to 23, and no input 28
}

} // namespace
} // namespace hone::cpu
