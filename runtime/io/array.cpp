// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Owned tensors and copies between strided views.

#include "hone/io/array.h"

#include <algorithm>
#include <cstring>

namespace hone::io {
namespace {

constexpr size_t kAlignment = 64;

std::span<const int64_t> sizesOf(const hone_tensor &tensor) { return {tensor.sizes, static_cast<size_t>(tensor.rank)}; }

/// Axes from `axis` on are dense in both views, so that they move as one block.
bool denseFrom(const hone_tensor &from, const hone_tensor &to, int32_t axis) {
  int64_t expected = 1;
  for (int32_t i = from.rank; i-- > axis;) {
    if (from.sizes[i] != 1 && (from.strides[i] != expected || to.strides[i] != expected))
      return false;
    expected *= from.sizes[i];
  }
  return true;
}

void copyFrom(const hone_tensor &from, const hone_tensor &to, int32_t axis, int32_t denseAxis, int64_t bytes,
              const char *source, char *target) {
  if (axis == denseAxis) {
    int64_t block = bytes;
    for (int32_t i = axis; i < from.rank; ++i)
      block *= from.sizes[i];
    std::memcpy(target, source, static_cast<size_t>(block));
    return;
  }
  for (int64_t i = 0; i < from.sizes[axis]; ++i)
    copyFrom(from, to, axis + 1, denseAxis, bytes, source + i * from.strides[axis] * bytes,
             target + i * to.strides[axis] * bytes);
}

} // namespace

Array::Memory Array::allocateAny(size_t bytes) {
  void *block = nullptr; // as large as asked for, so that a sanitizer knows where it ends
  if (posix_memalign(&block, kAlignment, std::max<size_t>(bytes, 1)) != 0)
    return {nullptr, {nullptr}};
  return {static_cast<char *>(block), {block}};
}

/// There is no aligned_alloc of zeros; what calloc maps is not touched.
Array::Memory Array::allocateZeros(size_t bytes) {
  size_t room = bytes + kAlignment;
  void *block = std::calloc(room, 1), *aligned = block;
  return {static_cast<char *>(block ? std::align(kAlignment, bytes, aligned, room) : nullptr), {block}};
}

absl::StatusOr<Array> Array::create(hone_dtype dtype, std::vector<int64_t> shape) {
  return over(dtype, std::move(shape), allocateAny);
}

absl::StatusOr<Array> Array::zeros(hone_dtype dtype, std::vector<int64_t> shape) {
  return over(dtype, std::move(shape), allocateZeros);
}

absl::StatusOr<Array> Array::over(hone_dtype dtype, std::vector<int64_t> shape, Memory (*allocate)(size_t bytes)) {
  if (shape.size() > HONE_MAX_RANK)
    return invalid("unsupported rank ", shape.size(), "; supported: up to ", HONE_MAX_RANK);
  std::optional<int64_t> bytes = tensorBytes(dtype, shape);
  if (!bytes)
    return invalid("cannot hold a tensor of type ", dtypeName(dtype), " and shape ", shapeText(shape));
  Array array;
  array.memory = allocate(static_cast<size_t>(*bytes));
  if (!array.memory)
    return absl::ResourceExhaustedError(cat("cannot allocate ", *bytes, " bytes: out of memory"));
  array.elementType = dtype;
  array.elements = *elementCount(shape);
  array.sizes = std::move(shape);
  return array;
}

absl::StatusOr<Array> Array::copyOf(const hone_tensor &tensor) {
  std::span<const int64_t> sizes = sizesOf(tensor);
  HONE_ASSIGN_OR_RETURN(Array array, create(static_cast<hone_dtype>(tensor.dtype), {sizes.begin(), sizes.end()}));
  copyElements(tensor, array.view());
  return array;
}

hone_tensor Array::view() const { return denseView(memory.get(), elementType, sizes); }

absl::Status Array::reinterpret(hone_dtype dtype) {
  if (dtypeBytes(dtype) != dtypeBytes(elementType))
    return invalid("cannot read elements of ", dtypeName(elementType), " as ", dtypeName(dtype), ": the sizes differ");
  elementType = dtype;
  return absl::OkStatus();
}

hone_tensor denseView(void *data, hone_dtype dtype, std::span<const int64_t> sizes) {
  hone_tensor tensor = {};
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.rank = static_cast<int32_t>(sizes.size());
  std::ranges::copy(sizes, tensor.sizes);
  std::ranges::copy(rowMajorStrides(sizes), tensor.strides);
  return tensor;
}

bool isDense(const hone_tensor &tensor) { return denseFrom(tensor, tensor, 0); }

int64_t elementCount(const hone_tensor &tensor) {
  int64_t count = 1;
  for (int64_t size : sizesOf(tensor))
    count *= size;
  return count;
}

void copyElements(const hone_tensor &from, const hone_tensor &to) {
  if (elementCount(from) == 0)
    return;
  int32_t denseAxis = from.rank;
  while (denseAxis > 0 && denseFrom(from, to, denseAxis - 1))
    --denseAxis;
  copyFrom(from, to, 0, denseAxis, dtypeBytes(static_cast<hone_dtype>(from.dtype)),
           static_cast<const char *>(from.data), static_cast<char *>(to.data));
}

} // namespace hone::io
