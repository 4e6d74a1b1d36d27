// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indices and tables lie as hone/cpu/packing/pack_codebook.h says.

#include "hone/cpu/packing/pack_codebook.h"

#include <gtest/gtest.h>
#include <vector>

namespace hone::cpu {
namespace {

size_t sizeOf(const std::array<int64_t, 4> &sizes) {
  return static_cast<size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]);
}

/// Indices that differ by output and input, and numbers that say whose they are, packed.
struct Packed {
  LinearShape shape;
  std::vector<uint8_t> chosen, indices, tables;
  std::vector<uint16_t> numbers;

  Packed(int64_t bits, const LinearShape &shape)
      : shape(shape), indices(sizeOf(packedIndexPlane(bits, shape)), 99),
        tables(sizeOf(packedTablePlane(bits, shape)), 99) {
    for (int64_t n = 0; n < shape.outputs; ++n) {
      for (int64_t k = 0; k < shape.inputs; ++k)
        chosen.push_back(static_cast<uint8_t>((7 * n + 3 * k + 1) & ((1 << bits) - 1)));
      for (int64_t index = 0; index < 1 << bits; ++index)
        numbers.push_back(static_cast<uint16_t>(n << 8 | index));
    }
    packCodebookIndices(bits, shape, chosen.data(), indices);
    packCodebookTables(bits, shape, numbers.data(), tables);
  }
};

TEST(PackCodebook, FourBitsAreASixteenOfFourOutputsInHalfALine) {
  Packed packed(4, {17, 40});
  ASSERT_EQ(packed.indices.size(), 2u * 2 * 4 * 64); // panels, steps, lines
  auto chosen = [&](int64_t n, int64_t k) { return packed.chosen[static_cast<size_t>(n * 40 + k)]; };
  // Output 6 is the second of quarter 2: its inputs 3 and 19 share a byte.
  EXPECT_EQ(packed.indices[2 * 64 + 1 * 16 + 3], chosen(6, 3) | chosen(6, 19) << 4);
  EXPECT_EQ(packed.indices[(4 + 2) * 64 + 1 * 16 + 7], chosen(6, 39)); // no input 55
  ASSERT_EQ(packed.tables.size(), 2u * 4 * 2 * 64);
  EXPECT_EQ(packed.tables[(2 * 2 + 0) * 64 + 1 * 16 + 9], 9);
  EXPECT_EQ(packed.tables[(2 * 2 + 1) * 64 + 1 * 16 + 9], 6);
}

TEST(PackCodebook, TablesOfThreeBitsAreOneRegister) {
  Packed packed(3, {3, 32});
  ASSERT_EQ(packed.indices.size(), 3u * 64);
  ASSERT_EQ(packed.tables.size(), 4u * 64);
  EXPECT_EQ(packed.tables[2 * 64 + 5], 5);
  EXPECT_EQ(packed.tables[2 * 64 + 8 + 5], 2); // output 2
  EXPECT_EQ(packed.tables[3 * 64 + 5], 0);     // no output 3
}

TEST(PackCodebook, TwoBitsAreFourSixteensOfALine) {
  Packed packed(2, {17, 40});
  ASSERT_EQ(packed.indices.size(), 2u * 2 * 2 * 64); // panels, steps, lines
  auto chosen = [&](int64_t n, int64_t k) { return packed.chosen[static_cast<size_t>(n * 40 + k)]; };
  // Outputs 6 and 7 are the second of quarters 2 and 3: their inputs 3 and 19 share a byte.
  EXPECT_EQ(packed.indices[64 + 1 * 16 + 3],
            chosen(6, 3) | chosen(6, 19) << 2 | chosen(7, 3) << 4 | chosen(7, 19) << 6);
  ASSERT_EQ(packed.tables.size(), 2u * 4 * 64);
  EXPECT_EQ(packed.tables[2 * 64 + 1 * 16 + 3], 3);
  EXPECT_EQ(packed.tables[2 * 64 + 1 * 16 + 4], 0); // no centroid 4
  EXPECT_EQ(packed.tables[2 * 64 + 1 * 16 + 8 + 3], 6);
}

TEST(PackCodebook, ComesBack) {
  for (int64_t bits : {2, 3, 4})
    for (int64_t outputs : {1, 4, 16, 37})
      for (int64_t inputs : {1, 31, 32, 100}) {
        Packed packed(bits, {outputs, inputs});
        for (int64_t n = 0; n < outputs; ++n)
          for (int64_t k = 0; k < inputs; ++k)
            ASSERT_EQ(loadCodebookNumber(bits, packed.shape, packed.indices, packed.tables, n, k),
                      n << 8 | packed.chosen[static_cast<size_t>(n * inputs + k)])
                << bits << " bits, " << n << ", " << k;
      }
}

} // namespace
} // namespace hone::cpu
