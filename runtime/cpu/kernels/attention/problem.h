// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments of attention, and which keys a query sees.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_PROBLEM_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_PROBLEM_H

#include "hone/kernels/arguments.h"

#include "../rows.h"

namespace {

/// An optional list with an element a sequence.
struct PerSequence {
  const int64_t *data = nullptr;
  int64_t stride = 0;

  int64_t at(int64_t sequence, int64_t fallback) const { return data ? data[sequence * stride] : fallback; }
};

inline PerSequence perSequence(const hone_tensor &tensor) {
  if (isAbsent(tensor))
    return {};
  return {static_cast<const int64_t *>(tensor.data), tensor.strides[0]};
}

inline int64_t offsetOf(const hone_tensor &tensor, int64_t a, int64_t b, int64_t c) {
  return a * tensor.strides[0] + b * tensor.strides[1] + c * tensor.strides[2];
}

struct Attention {
  const hone_tensor &query, &key, &value, &bias;
  Row alibi, sinks;
  PerSequence keyBegin, keyEnd, prefix;
  const hone_tensor &out;
  bool causal;
  int64_t window;
  float scale, softcap;

  explicit Attention(const hone::kernels::Call<hone::kernels::Attention, hone::kernels::NoWeight> &call)
      : query(call.operands.query), key(call.operands.key), value(call.operands.value), bias(call.operands.bias),
        alibi(vectorOf(call.operands.alibi)), sinks(vectorOf(call.operands.sinks)),
        keyBegin(perSequence(call.operands.keyBegin)), keyEnd(perSequence(call.operands.keyEnd)),
        prefix(perSequence(call.operands.prefix)), out(call.operands.out), causal(call.ints.causal != 0),
        window(call.ints.window), scale(static_cast<float>(call.floats.scale)),
        softcap(static_cast<float>(call.floats.softcap)) {}

  int64_t batch() const { return query.sizes[0]; }
  int64_t heads() const { return query.sizes[1]; }
  int64_t queries() const { return query.sizes[2]; }
  int64_t size() const { return query.sizes[3]; }
  int64_t keyHeads() const { return key.sizes[1]; }
  int64_t keys() const { return key.sizes[2]; }
  int64_t valueSize() const { return value.sizes[3]; }
  int64_t group() const { return heads() / keyHeads(); }

  /// Keys that query i of sequence b may see: [begin, end).
  void visible(int64_t b, int64_t i, int64_t &begin, int64_t &end) const {
    int64_t position = keys() - queries() + i;
    begin = larger(0, keyBegin.at(b, 0));
    end = smaller(keys(), keyEnd.at(b, keys()));
    if (causal)
      end = smaller(end, larger(position + 1, prefix.at(b, 0)));
    if (window >= 0)
      begin = larger(begin, position - window + 1);
  }

  /// Address and stride of the bias of a row, or null.
  Row biasRow(int64_t b, int64_t head, int64_t i) const {
    if (isAbsent(bias))
      return {nullptr, 0};
    auto one = [this](int32_t axis, int64_t index) { return bias.sizes[axis] == 1 ? 0 : index; };
    return {floats(bias) + offsetOf(bias, one(0, b), one(1, head), one(2, i)),
            bias.sizes[3] == 1 ? 0 : bias.strides[3]};
  }
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_PROBLEM_H
