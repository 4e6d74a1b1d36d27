// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Walking the rows (the last axis) of strided tensors, and vectorizable mathematics. Everything here is static, so that
// each ISA keeps its own.

#ifndef HONE_RUNTIME_CPU_KERNELS_ROWS_H
#define HONE_RUNTIME_CPU_KERNELS_ROWS_H

#include "hone/runtime/program.h"

#include <math.h>

namespace {

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/// The bytes from one panel of a packed weight to the next, in one of its planes (packing/panel_block.h).
inline int64_t panelBytesOf(const hone_tensor &plane) {
  int64_t bytes = plane.dtype == HONE_F32 ? 4 : plane.dtype == HONE_F16 || plane.dtype == HONE_BF16 ? 2 : 1;
  return plane.strides[0] * bytes;
}

/// True for a tensor without elements; an operand of rank 0 is absent too, as no kernel takes scalars.
inline bool isAbsent(const hone_tensor &tensor) {
  if (tensor.rank == 0)
    return true;
  for (int32_t axis = 0; axis < tensor.rank; ++axis)
    if (tensor.sizes[axis] == 0)
      return true;
  return false;
}

/// Product of all sizes but the last `inner`.
inline int64_t countRows(const hone_tensor &tensor, int32_t inner = 1) {
  int64_t rows = 1;
  for (int32_t axis = 0; axis + inner < tensor.rank; ++axis)
    rows *= tensor.sizes[axis];
  return rows;
}

/// Offset of the first element of a row, counted in elements; rows number all axes but the last `inner`.
inline int64_t rowOffset(const hone_tensor &tensor, int64_t row, int32_t inner = 1) {
  int64_t offset = 0;
  for (int32_t axis = tensor.rank - inner; axis-- > 0;) {
    offset += row % tensor.sizes[axis] * tensor.strides[axis];
    row /= tensor.sizes[axis];
  }
  return offset;
}

inline float *floats(const hone_tensor &tensor) { return static_cast<float *>(tensor.data); }

/// A row with its stride; a broadcast row has stride 0.
struct Row {
  float *data;
  int64_t stride;
  float &operator[](int64_t i) const { return data[i * stride]; }
};

inline Row rowOf(const hone_tensor &tensor, int64_t row) {
  return {floats(tensor) + rowOffset(tensor, row), tensor.strides[tensor.rank - 1]};
}

/// Calls `body(rows...)`; where the rows that exist all have stride 1, with rows of which the compiler knows that.
template <typename Body, typename... Rows> void withKnownStrides(const Body &body, Rows... rows) {
  if (((rows.stride == 1 || !rows.data) && ...))
    body(Row{rows.data, 1}...);
  else
    body(rows...);
}

/// A vector operand, or null where absent.
inline Row vectorOf(const hone_tensor &tensor) {
  if (isAbsent(tensor))
    return {nullptr, 0};
  return {floats(tensor), tensor.strides[tensor.rank - 1]};
}

/// e^x to 2 units in the last place, by range reduction by ln 2 in two parts and the polynomial of Cephes' expf
/// (Moshier, 1984); exact 0 below -87.34 and infinity above 88.73, NaN for NaN.
inline float vectorExp(float x) {
  float clamped = x > -87.336544f ? x : -87.336544f;
  clamped = clamped < 88.722839f ? clamped : 88.722839f;
  float n = (clamped * 1.44269504f + 12582912.0f) - 12582912.0f; // 1.5 · 2^23: near it floats are integers
  float r = clamped - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // 2^n as two factors: n reaches 128, which one exponent field cannot hold.
  int32_t whole = static_cast<int32_t>(n), half = whole >> 1;
  int32_t low = (half + 127) << 23, high = (whole - half + 127) << 23;
  float lowFactor, highFactor;
  __builtin_memcpy(&lowFactor, &low, sizeof low);
  __builtin_memcpy(&highFactor, &high, sizeof high);
  float y = p * lowFactor * highFactor;
  y = x < -87.336544f ? 0.0f : y;
  y = x > 88.722839f ? __builtin_inff() : y;
  return x == x ? y : x;
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ROWS_H
