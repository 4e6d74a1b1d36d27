// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of element types and checked shape arithmetic.

#include "hone/io/dtype.h"

#include <algorithm>

namespace hone::io {
namespace {

struct DtypeRow {
  hone_dtype dtype;
  std::string_view name;
  int64_t bytes;
};

constexpr DtypeRow kDtypes[] = {
    {HONE_F32, "f32", 4},
    {HONE_F16, "f16", 2},
    {HONE_BF16, "bf16", 2},
    {HONE_F64, "f64", 8},
    {HONE_I8, "i8", 1},
    {HONE_I16, "i16", 2},
    {HONE_I32, "i32", 4},
    {HONE_I64, "i64", 8},
    {HONE_U8, "u8", 1},
    {HONE_U16, "u16", 2},
    {HONE_U32, "u32", 4},
    {HONE_U64, "u64", 8},
    {HONE_BOOL, "bool", 1},
    {HONE_F8E4M3FN, "f8e4m3fn", 1},
    {HONE_F8E4M3FNUZ, "f8e4m3fnuz", 1},
    {HONE_F8E5M2, "f8e5m2", 1},
    {HONE_F8E5M2FNUZ, "f8e5m2fnuz", 1},
    {HONE_F8E8M0, "f8e8m0", 1},
    {HONE_I4, "i4", 1},
    {HONE_U4, "u4", 1},
    {HONE_C64, "c64", 8},
    {HONE_C128, "c128", 16},
    {HONE_F4E2M1, "f4e2m1", 1},
    {HONE_I2, "i2", 1},
    {HONE_U2, "u2", 1},
};

const DtypeRow *find(hone_dtype dtype) {
  const auto *row = std::ranges::find(kDtypes, dtype, &DtypeRow::dtype);
  return row == std::end(kDtypes) ? nullptr : row;
}

} // namespace

std::string_view dtypeName(hone_dtype dtype) {
  const DtypeRow *row = find(dtype);
  return row ? row->name : "unknown";
}

std::optional<hone_dtype> dtypeFromName(std::string_view name) {
  const auto *row = std::ranges::find(kDtypes, name, &DtypeRow::name);
  if (row == std::end(kDtypes))
    return std::nullopt;
  return row->dtype;
}

int64_t dtypeBytes(hone_dtype dtype) {
  const DtypeRow *row = find(dtype);
  return row ? row->bytes : 0;
}

bool isDtype(int64_t number) {
  return std::ranges::any_of(kDtypes, [number](const DtypeRow &row) { return row.dtype == number; });
}

std::optional<int64_t> elementCount(std::span<const int64_t> sizes) {
  // One zero empties the tensor however large the others are, yet strides are built from the others: bound them all.
  constexpr int64_t limit = int64_t{1} << 62;
  int64_t product = 1;
  bool empty = false;
  for (int64_t size : sizes) {
    if (size < 0)
      return std::nullopt;
    empty |= size == 0;
    int64_t factor = std::max<int64_t>(size, 1);
    if (product > limit / factor)
      return std::nullopt;
    product *= factor;
  }
  return empty ? 0 : product;
}

std::optional<int64_t> tensorBytes(hone_dtype dtype, std::span<const int64_t> sizes) {
  std::optional<int64_t> count = elementCount(sizes);
  int64_t bytes = dtypeBytes(dtype);
  int64_t total = 0;
  if (!count || bytes == 0 || __builtin_mul_overflow(*count, bytes, &total))
    return std::nullopt;
  return total;
}

std::vector<int64_t> rowMajorStrides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t axis = sizes.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * std::max<int64_t>(sizes[axis], 1);
  return strides;
}

std::string shapeText(std::span<const int64_t> sizes) {
  std::string text = "[";
  for (int64_t size : sizes) {
    if (text.size() > 1)
      text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

} // namespace hone::io
