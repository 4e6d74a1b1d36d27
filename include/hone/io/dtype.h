// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names and sizes of element types, and arithmetic on shapes that cannot overflow unseen.

#ifndef HONE_IO_DTYPE_H
#define HONE_IO_DTYPE_H

#include "hone/runtime/program.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone::io {

/// The word of a manifest for `dtype` ("f32"); "unknown" for a number that is none.
std::string_view dtypeName(hone_dtype dtype);

/// The inverse of dtypeName.
std::optional<hone_dtype> dtypeFromName(std::string_view name);

/// Bytes of one element in memory (sub-byte types take a byte each); 0 for a number that is no type.
int64_t dtypeBytes(hone_dtype dtype);

/// True for a number that is one of hone_dtype's.
bool isDtype(int64_t number);

/// Product of the sizes; nothing where a size is negative or the product exceeds 2^62.
std::optional<int64_t> elementCount(std::span<const int64_t> sizes);

/// Bytes of a dense tensor; nothing as for elementCount.
std::optional<int64_t> tensorBytes(hone_dtype dtype, std::span<const int64_t> sizes);

/// Strides of the dense row-major layout, counted in elements. A size of 0 counts as 1, as in numpy.
std::vector<int64_t> rowMajorStrides(std::span<const int64_t> sizes);

/// "[2, 3, 4]".
std::string shapeText(std::span<const int64_t> sizes);

} // namespace hone::io

#endif // HONE_IO_DTYPE_H
