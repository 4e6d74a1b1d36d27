// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that normalise rows: RMSNorm, LayerNorm, softmax.

#include "kernels.h"

#include "rows.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// Calls `body(N, x row, y row, others...)` for every row.
template <typename Body, typename... Rows>
void forRows(const hone_tensor &x, const hone_tensor &y, Body body, Rows... others) {
  if (isAbsent(x))
    return;
  int64_t rows = countRows(x), size = x.sizes[x.rank - 1];
#pragma omp parallel for schedule(static) if (rows * size > 4096)
  for (int64_t row = 0; row < rows; ++row)
    withKnownStrides([&](auto... known) { body(size, known...); }, rowOf(x, row), rowOf(y, row), others...);
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

/// A maximum does not depend on the order, but the compiler may not know that of NaN: lanes say it.
float maximumOf(Row x, int64_t size) {
  constexpr int64_t width = 16;
  float lanes[width];
  for (float &lane : lanes)
    lane = -__builtin_inff();
  int64_t i = 0;
  for (; i + width <= size; i += width)
    for (int64_t lane = 0; lane < width; ++lane)
      lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
  for (; i < size; ++i)
    lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
  for (float lane : lanes)
    lanes[0] = lane > lanes[0] ? lane : lanes[0];
  return lanes[0];
}

} // namespace

void rmsNormF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *attributes) {
  float offset = ints[0] ? 1.0f : 0.0f;
  float epsilon = static_cast<float>(attributes[0]);
  auto normalize = [=](int64_t size, Row x, Row y, Row weight) {
    float factor = 1.0f / sqrtf(squaresOf(x, size, 0) / static_cast<float>(size) + epsilon);
    for (int64_t i = 0; i < size; ++i)
      y[i] = x[i] * factor * scaleAt(weight, i, offset);
  };
  forRows(operands[0], operands[2], normalize, vectorOf(operands[1]));
}

void layerNormF32(hone_call *, const hone_tensor *operands, const int64_t *, const double *attributes) {
  float epsilon = static_cast<float>(attributes[0]);
  auto normalize = [=](int64_t size, Row x, Row y, Row weight, Row bias) {
    float mean = sumOf(x, size) / static_cast<float>(size);
    float factor = 1.0f / sqrtf(squaresOf(x, size, mean) / static_cast<float>(size) + epsilon);
    for (int64_t i = 0; i < size; ++i)
      y[i] = (x[i] - mean) * factor * scaleAt(weight, i) + shiftAt(bias, i);
  };
  forRows(operands[0], operands[3], normalize, vectorOf(operands[1]), vectorOf(operands[2]));
}

void softmaxF32(hone_call *, const hone_tensor *operands, const int64_t *, const double *) {
  forRows(operands[0], operands[1], [](int64_t size, Row x, Row y) {
    float largest = maximumOf(x, size), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < size; ++i) {
      y[i] = vectorExp(x[i] - largest);
      sum += y[i];
    }
    float factor = 1.0f / sum;
    for (int64_t i = 0; i < size; ++i)
      y[i] *= factor;
  });
}

} // namespace hone::cpu::HONE_ISA_NAMESPACE
