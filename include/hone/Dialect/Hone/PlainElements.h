//===- PlainElements.h - elements of a plain array as floats ------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversion between f32 and the 16-bit floats by bits, to nearest, ties to even, exact for every value.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_PLAINELEMENTS_H
#define HONE_DIALECT_HONE_PLAINELEMENTS_H

#include "mlir/IR/BuiltinTypes.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace hone {

/// Reads and writes elements of an array of f32, f16 or bf16.
class PlainElements {
public:
  explicit PlainElements(mlir::Type type) : kind(type.isF32() ? F32 : type.isF16() ? F16 : BF16) {}

  float load(llvm::ArrayRef<char> bytes, int64_t index) const {
    if (kind == F32)
      return get<float>(bytes, index);
    if (kind == F16)
      return static_cast<float>(get<_Float16>(bytes, index));
    return std::bit_cast<float>(static_cast<uint32_t>(get<uint16_t>(bytes, index)) << 16);
  }

  void store(llvm::MutableArrayRef<char> bytes, int64_t index, float value) const {
    if (kind == F32)
      set(bytes, index, value);
    else if (kind == F16)
      set(bytes, index, static_cast<_Float16>(value));
    else
      set(bytes, index, roundToBf16(value));
  }

private:
  enum { F32, F16, BF16 } kind;

  template <typename T>
  static T get(llvm::ArrayRef<char> bytes, int64_t index) {
    T element;
    std::memcpy(&element, bytes.data() + index * sizeof(T), sizeof(T));
    return element;
  }

  template <typename T>
  static void set(llvm::MutableArrayRef<char> bytes, int64_t index, T element) {
    std::memcpy(bytes.data() + index * sizeof(T), &element, sizeof(T));
  }

  /// A NaN keeps its sign and upper payload and becomes quiet.
  static uint16_t roundToBf16(float value) {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    if (value != value)
      return static_cast<uint16_t>((bits >> 16) | 0x40);
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};

} // namespace hone

#endif // HONE_DIALECT_HONE_PLAINELEMENTS_H
