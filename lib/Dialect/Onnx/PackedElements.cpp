// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A packed tensor is a stream of bits, in which an element may lie in two bytes.

#include "hone/Dialect/Onnx/PackedElements.h"

using namespace mlir;

namespace hone::onnxir {

std::optional<unsigned> getPackedBits(Type element) {
  if (!element.isIntOrFloat())
    return std::nullopt;
  unsigned bits = element.getIntOrFloatBitWidth();
  return bits > 1 && bits < 8 ? std::optional(bits) : std::nullopt;
}

int64_t getPackedBytes(int64_t count, unsigned bits) {
  // Whole groups of eight elements first, so that no product passes 64 bits.
  return count / 8 * bits + (count % 8 * bits + 7) / 8;
}

std::string packElements(llvm::StringRef bytes, unsigned bits) {
  std::string packed(getPackedBytes(bytes.size(), bits), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = static_cast<unsigned char>(bytes[i]) & ((1u << bits) - 1), shift = i * bits % 8;
    size_t byte = i * bits / 8;
    packed[byte] |= static_cast<char>(value << shift);
    if (shift + bits > 8)
      packed[byte + 1] |= static_cast<char>(value >> (8 - shift));
  }
  return packed;
}

std::string unpackElements(llvm::StringRef packed, int64_t count, unsigned bits, bool isSigned) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    unsigned shift = i * bits % 8;
    size_t byte = i * bits / 8;
    unsigned pair = static_cast<unsigned char>(packed[byte]);
    if (shift + bits > 8)
      pair |= static_cast<unsigned char>(packed[byte + 1]) << 8;
    unsigned value = (pair >> shift) & ((1u << bits) - 1);
    bool negative = isSigned && (value >> (bits - 1));
    bytes[i] = static_cast<char>(negative ? static_cast<int>(value) - (1 << bits) : static_cast<int>(value));
  }
  return bytes;
}

} // namespace hone::onnxir
