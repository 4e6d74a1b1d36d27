// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types of PTX instructions and registers.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone::emulation {

enum class Type : uint8_t {
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  U16x2,
  S16x2,
  F16,
  F16x2,
  BF16,
  BF16x2,
  F32,
  F32x2,
  F64,
  TF32,
  E4M3,
  E5M2,
  E4M3x2,
  E5M2x2,
};

/// The type that a modifier names, without its dot ("u32", "bf16x2"), or none.
std::optional<Type> typeNamed(std::string_view name);

/// Bytes of one lane of a value of the type; 4 for predicates, which are masks of a warp.
unsigned bytesOf(Type type);

/// Whether an immediate of the type is written as a number with a fraction (also as its bits).
bool isFloat(Type type);
bool isSigned(Type type);
/// Bits, signed or unsigned integers, of any width; not predicates and not packed pairs.
bool isInteger(Type type);

} // namespace hone::emulation
