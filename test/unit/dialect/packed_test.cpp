// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements below eight bits: packing loses nothing, in the order of bits that ONNX fixes.

#include "hone/Dialect/Onnx/PackedElements.h"

#include "gmock/gmock.h"

namespace hone::onnxir {
namespace {

TEST(PackedElements, LowBitsComeFirst) {
  EXPECT_EQ(packElements(std::string("\x01\x02\x03", 3), 4), std::string("\x21\x03", 2));
  EXPECT_EQ(packElements(std::string("\x01\x02\x03", 3), 2), std::string("\x39", 1));
  // 000001 000010 000011 000100, the last in the highest bits of 24.
  EXPECT_EQ(packElements(std::string("\x01\x02\x03\x04", 4), 6), std::string("\x81\x30\x10", 3));
}

TEST(PackedElements, SignedOnesComeBackExtended) {
  EXPECT_EQ(unpackElements("\x8f", 2, 4, /*isSigned=*/true), "\xff\xf8");
  EXPECT_EQ(unpackElements("\x8f", 2, 4, /*isSigned=*/false), "\x0f\x08");
}

TEST(PackedElements, ComeBackForEveryCount) {
  for (unsigned bits : {2u, 4u, 6u})
    for (int64_t count = 0; count < 40; ++count) {
      std::string bytes;
      for (int64_t i = 0; i < count; ++i)
        bytes.push_back(static_cast<char>((i * 37 + 5) & ((1 << bits) - 1)));
      std::string packed = packElements(bytes, bits);
      EXPECT_EQ(static_cast<int64_t>(packed.size()), (count * bits + 7) / 8);
      EXPECT_EQ(static_cast<int64_t>(packed.size()), getPackedBytes(count, bits));
      EXPECT_EQ(unpackElements(packed, count, bits, /*isSigned=*/false), bytes);
    }
}

} // namespace
} // namespace hone::onnxir
