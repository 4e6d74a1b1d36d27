// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of PTX types.

#include "ptx/types.h"

#include <algorithm>
#include <array>

namespace hone::emulation {
namespace {

enum class Family : uint8_t { Predicate, Bits, Unsigned, Signed, Float, Packed };

struct Row {
  std::string_view name;
  Type type;
  uint8_t bytes;
  Family family;
};

// In the order of the enumeration.
constexpr std::array<Row, 28> kRows{{
    {"pred", Type::Pred, 4, Family::Predicate},  {"b8", Type::B8, 1, Family::Bits},
    {"b16", Type::B16, 2, Family::Bits},         {"b32", Type::B32, 4, Family::Bits},
    {"b64", Type::B64, 8, Family::Bits},         {"b128", Type::B128, 16, Family::Bits},
    {"u8", Type::U8, 1, Family::Unsigned},       {"u16", Type::U16, 2, Family::Unsigned},
    {"u32", Type::U32, 4, Family::Unsigned},     {"u64", Type::U64, 8, Family::Unsigned},
    {"s8", Type::S8, 1, Family::Signed},         {"s16", Type::S16, 2, Family::Signed},
    {"s32", Type::S32, 4, Family::Signed},       {"s64", Type::S64, 8, Family::Signed},
    {"u16x2", Type::U16x2, 4, Family::Packed},   {"s16x2", Type::S16x2, 4, Family::Packed},
    {"f16", Type::F16, 2, Family::Float},        {"f16x2", Type::F16x2, 4, Family::Packed},
    {"bf16", Type::BF16, 2, Family::Float},      {"bf16x2", Type::BF16x2, 4, Family::Packed},
    {"f32", Type::F32, 4, Family::Float},        {"f32x2", Type::F32x2, 8, Family::Packed},
    {"f64", Type::F64, 8, Family::Float},        {"tf32", Type::TF32, 4, Family::Float},
    {"e4m3", Type::E4M3, 1, Family::Packed},     {"e5m2", Type::E5M2, 1, Family::Packed},
    {"e4m3x2", Type::E4M3x2, 2, Family::Packed}, {"e5m2x2", Type::E5M2x2, 2, Family::Packed},
}};

const Row &rowOf(Type type) { return kRows[static_cast<size_t>(type)]; }

} // namespace

std::optional<Type> typeNamed(std::string_view name) {
  const auto *row = std::find_if(kRows.begin(), kRows.end(), [&](const Row &r) { return r.name == name; });
  if (row == kRows.end())
    return std::nullopt;
  return row->type;
}

unsigned bytesOf(Type type) { return rowOf(type).bytes; }
bool isFloat(Type type) { return rowOf(type).family == Family::Float; }
bool isSigned(Type type) { return rowOf(type).family == Family::Signed; }
bool isInteger(Type type) {
  Family family = rowOf(type).family;
  return family == Family::Bits || family == Family::Unsigned || family == Family::Signed;
}

} // namespace hone::emulation
