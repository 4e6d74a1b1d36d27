// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a call of linear attention asks, and the rows of its operands as dense memory that is filled up with zeros.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_ATTENTION_PROBLEM_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_ATTENTION_PROBLEM_H

#include "hone/kernels/arguments.h"

#include "../rows.h"
#include "../vector_exp.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

using Call = kernels::Call<kernels::LinearAttention, kernels::NoWeight>;

inline int64_t roundUp(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

/// A call whose outputs have elements.
struct Problem {
  explicit Problem(const Call &call)
      : o(call.operands), tokens(o.out.sizes[1]), heads(o.next.sizes[1]), group(o.out.sizes[2] / heads),
        keySize(o.next.sizes[2]), valueSize(o.next.sizes[3]), keyRoom(roundUp(keySize, kLanes)),
        valueRoom(roundUp(valueSize, kLanes)), scale(static_cast<float>(call.floats.scale)),
        isGated(!isAbsent(o.decay)), isDelta(!isAbsent(o.beta)), isGatedByElement(isGated && o.decay.sizes[3] > 1) {}

  const kernels::LinearAttention::Operands<kernels::NoWeight> &o;
  int64_t tokens, heads, group; // query heads that share a state
  int64_t keySize, valueSize;
  int64_t keyRoom, valueRoom; // the sizes in whole vectors
  float scale;
  bool isGated, isDelta, isGatedByElement;
};

/// Copies `count` elements to dense memory, times `factor`; those up to `room` become zeros.
inline void copyIn(float *to, const float *from, int64_t stride, int64_t count, int64_t room, float factor = 1) {
  int64_t i = 0;
  if (stride == 1)
    for (; i + kLanes <= count; i += kLanes)
      store(to + i, load(from + i) * factor);
  for (; i < count; ++i)
    to[i] = from[i * stride] * factor;
  for (; i < room; ++i)
    to[i] = 0;
}

inline void copyOut(float *to, int64_t stride, const float *from, int64_t count) {
  int64_t i = 0;
  if (stride == 1)
    for (; i + kLanes <= count; i += kLanes)
      store(to + i, load(from + i));
  for (; i < count; ++i)
    to[i * stride] = from[i];
}

/// The state of one sequence and head.
struct HeadState {
  const hone_tensor *tensor = nullptr;
  float *data = nullptr; // null where there is none

  HeadState() = default;
  HeadState(const hone_tensor &tensor, int64_t sequence, int64_t head)
      : tensor(&tensor),
        data(isAbsent(tensor) ? nullptr : floats(tensor) + sequence * tensor.strides[0] + head * tensor.strides[1]) {}

  /// The columns [first, first + count) of row `d`, 0 where there is no state, and zeros up to `room`.
  void readRow(float *to, int64_t d, int64_t first, int64_t count, int64_t room) const {
    int64_t step = data ? tensor->strides[3] : 0;
    copyIn(to, data ? data + d * rowStride() + first * step : to, step, data ? count : 0, room);
  }

  void writeRow(const float *from, int64_t d, int64_t first, int64_t count) const {
    int64_t step = tensor->strides[3];
    copyOut(data + d * rowStride() + first * step, step, from, count);
  }

  int64_t rowStride() const { return tensor->strides[2]; }
  /// Whether rows are whole vectors in memory.
  bool isDense() const { return data && tensor->strides[3] == 1 && tensor->sizes[3] % kLanes == 0; }
};

inline float *rowAt(const hone_tensor &tensor, int64_t sequence, int64_t token, int64_t head) {
  return floats(tensor) + sequence * tensor.strides[0] + token * tensor.strides[1] + head * tensor.strides[2];
}

/// The row [sequence, token, head] of a tensor.
inline void readRow(float *to, const hone_tensor &tensor, int64_t sequence, int64_t token, int64_t head, int64_t room,
                    float factor = 1) {
  copyIn(to, rowAt(tensor, sequence, token, head), tensor.strides[3], tensor.sizes[3], room, factor);
}

/// What a token multiplies the state with: one number, or one for each of `room` elements of keys.
inline float readDecay(const Problem &problem, int64_t sequence, int64_t token, int64_t head) {
  return problem.isGated ? vectorExp(*rowAt(problem.o.decay, sequence, token, head)) : 1.0f;
}

inline void readDecays(float *to, const Problem &problem, int64_t sequence, int64_t token, int64_t head) {
  if (!problem.isGatedByElement) {
    float decay = readDecay(problem, sequence, token, head);
    for (int64_t d = 0; d < problem.keyRoom; ++d)
      to[d] = decay;
    return;
  }
  readRow(to, problem.o.decay, sequence, token, head, problem.keyRoom);
  constexpr float most = 88; // of boundedExp
  for (int64_t d = 0; d < problem.keyRoom; d += kLanes) {
    Vector x = load(to + d), e = boundedExp(x > most ? most : x);
    store(to + d, x > most ? __builtin_inff() : e);
  }
}

/// How much of an update a token makes.
inline float readBeta(const Problem &problem, int64_t sequence, int64_t token, int64_t head) {
  const hone_tensor &beta = problem.o.beta;
  int64_t column = beta.sizes[2] == 1 ? 0 : head;
  return floats(beta)[sequence * beta.strides[0] + token * beta.strides[1] + column * beta.strides[2]];
}

} // namespace
} // namespace hone::cpu::HONE_ISA_NAMESPACE

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_ATTENTION_PROBLEM_H
