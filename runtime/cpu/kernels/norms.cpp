// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that normalise rows: RMSNorm, LayerNorm.

#include "entry.h"

#include "parallel_for.h"
#include "rows.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// Calls `body(N, x row, y row, others...)` for every row.
template <typename Body, typename... Rows>
void forRows(const hone_tensor &x, const hone_tensor &y, Body body, Rows... others) {
  if (isAbsent(x))
    return;
  int64_t rows = countRows(x), size = x.sizes[x.rank - 1];
  parallelFor(rows, rows * size > 4096, [&](int64_t row) {
    withKnownStrides([&](auto... known) { body(size, known...); }, rowOf(x, row), rowOf(y, row), others...);
  });
}

/// The factor of element i: weight[i] + offset, 1 without a weight.
float scaleAt(Row weight, int64_t i, float offset = 0) { return weight.data ? weight[i] + offset : 1.0f; }
float shiftAt(Row bias, int64_t i) { return bias.data ? bias[i] : 0.0f; }

float sumOf(Row x, int64_t size) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i)
    sum += x[i];
  return sum;
}

/// Sum of squared distances from `center`.
float squaresOf(Row x, int64_t size, float center) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i)
    sum += (x[i] - center) * (x[i] - center);
  return sum;
}

void run(const kernels::Call<kernels::RmsNorm, kernels::NoWeight> &call) {
  float offset = call.ints.unitOffset ? 1.0f : 0.0f;
  float epsilon = static_cast<float>(call.floats.epsilon);
  auto normalize = [=](int64_t size, Row x, Row y, Row weight) {
    float factor = 1.0f / sqrtf(squaresOf(x, size, 0) / static_cast<float>(size) + epsilon);
    for (int64_t i = 0; i < size; ++i)
      y[i] = x[i] * factor * scaleAt(weight, i, offset);
  };
  forRows(call.operands.x, call.operands.y, normalize, vectorOf(call.operands.weight));
}

void run(const kernels::Call<kernels::LayerNorm, kernels::NoWeight> &call) {
  float epsilon = static_cast<float>(call.floats.epsilon);
  auto normalize = [=](int64_t size, Row x, Row y, Row weight, Row bias) {
    float mean = sumOf(x, size) / static_cast<float>(size);
    float factor = 1.0f / sqrtf(squaresOf(x, size, mean) / static_cast<float>(size) + epsilon);
    for (int64_t i = 0; i < size; ++i)
      y[i] = (x[i] - mean) * factor * scaleAt(weight, i) + shiftAt(bias, i);
  };
  forRows(call.operands.x, call.operands.y, normalize, vectorOf(call.operands.weight), vectorOf(call.operands.bias));
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/norms.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
