// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Softmax over a row of scores of blocks, and the greatest of what they come to.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_IMPORTANCE_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_IMPORTANCE_H

#include "../vector_exp.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

inline int64_t boundOf(const hone_tensor &bounds, int64_t sequence, int64_t query) {
  int64_t row = bounds.sizes[0] == 1 ? 0 : sequence;
  return static_cast<const int64_t *>(bounds.data)[row * bounds.strides[0] + query * bounds.strides[1]];
}

/// The greatest of `count` values and of what fills the last vector; minus infinity where there are none.
inline float greatestOf(const float *values, int64_t count) {
  Vector most = -__builtin_inff();
  for (int64_t i = 0; i < count; i += kLanes)
    most = __builtin_elementwise_max(most, load(values + i));
  return __builtin_reduce_max(most);
}

/// Adds the softmax of `scores`, of which there are `count` and room for whole vectors, to `importance`.
inline void addSoftmax(float *scores, int64_t count, float *importance) {
  for (int64_t i = count; i % kLanes != 0; ++i)
    scores[i] = -__builtin_inff();
  float greatest = greatestOf(scores, count);
  Vector sum = 0;
  for (int64_t i = 0; i < count; i += kLanes) {
    Vector e = boundedExp(load(scores + i) - greatest);
    store(scores + i, e);
    sum += e;
  }
  float total = sumLanes(sum);
  for (int64_t i = 0; i < count; i += kLanes)
    store(importance + i, load(importance + i) + load(scores + i) / total);
}

/// The number of the greatest of `count` values, the first of equal ones, which becomes -1, as what fills the last vector is; `count` where none
/// is left. Values are not negative.
inline int64_t takeGreatest(float *values, int64_t count) {
  float greatest = greatestOf(values, count);
  int64_t i = greatest < 0 ? count : 0;
  while (i < count && __builtin_reduce_or(load(values + i) == greatest) == 0)
    i += kLanes;
  while (i < count && values[i] != greatest)
    ++i;
  if (i < count)
    values[i] = -1;
  return i;
}

} // namespace
} // namespace hone::cpu::HONE_ISA_NAMESPACE

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_IMPORTANCE_H
