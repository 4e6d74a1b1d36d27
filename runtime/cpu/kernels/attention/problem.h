// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments of attention, and which keys a query sees.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_PROBLEM_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_PROBLEM_H

#include "hone/kernels/arguments.h"
#include "hone/kernels/visibility.h"

#include "../rows.h"

namespace {

inline int64_t offsetOf(const hone_tensor &tensor, int64_t a, int64_t b, int64_t c) {
  return a * tensor.strides[0] + b * tensor.strides[1] + c * tensor.strides[2];
}

/// The first key or value of a sequence and head.
template <typename Element> const Element *firstElementOf(const hone_tensor &tensor, int64_t sequence, int64_t head) {
  return static_cast<const Element *>(tensor.data) + offsetOf(tensor, sequence, head, 0);
}

/// Up to so many queries a sequence, as decoding and verification have, what a row gives is bit-equal whatever other
/// rows and sequences are in the call: which keys are added up together, and in which order, follows from their indices
/// alone. What a row does not see adds exact zeros.
/// Of more queries, which are a prompt, keys are divided as is fastest.
constexpr int64_t kIndependentQueries = 64;

struct Attention {
  const hone_tensor &query, &key, &value, &bias;
  Row alibi, sinks;
  hone::kernels::Visibility visibility;
  const hone_tensor &lse, &out;
  float scale, softcap;
  float skip = 0; // nothing is skipped
  bool gathersPaths = false; // where rows are those of chains

  Attention(const hone::kernels::Call<hone::kernels::Attention, hone::kernels::NoWeight> &call, bool gathersPaths)
      : query(call.operands.query), key(call.operands.key), value(call.operands.value), bias(call.operands.bias),
        alibi(vectorOf(call.operands.alibi)), sinks(vectorOf(call.operands.sinks)),
        visibility(hone::kernels::visibilityOf(call.operands, call.ints)), lse(call.operands.lse),
        out(call.operands.out), scale(static_cast<float>(call.floats.scale)),
        softcap(static_cast<float>(call.floats.softcap)), skip(static_cast<float>(call.floats.skip)),
        gathersPaths(gathersPaths) {}

  /// That of whose gradients a call asks: `lse` is what divides, and the gradient lies where the result did.
  explicit Attention(const hone::kernels::Call<hone::kernels::AttentionGradient, hone::kernels::NoWeight> &call)
      : query(call.operands.query), key(call.operands.key), value(call.operands.value), bias(call.operands.bias),
        alibi(vectorOf(call.operands.alibi)), sinks{nullptr, 0},
        visibility(hone::kernels::visibilityOf(call.operands, call.ints)), lse(call.operands.lse),
        out(call.operands.gradient), scale(static_cast<float>(call.floats.scale)),
        softcap(static_cast<float>(call.floats.softcap)) {}

  int64_t batch() const { return query.sizes[0]; }
  int64_t heads() const { return query.sizes[1]; }
  int64_t queries() const { return query.sizes[2]; }
  int64_t size() const { return query.sizes[3]; }
  int64_t keyHeads() const { return key.sizes[1]; }
  int64_t keys() const { return key.sizes[2]; }
  int64_t valueSize() const { return value.sizes[3]; }
  int64_t group() const { return heads() / keyHeads(); }

  bool hasIndependentRows() const { return queries() <= kIndependentQueries; }
  /// Whether bits say which keys a row sees.
  bool isMasked() const { return hone::kernels::isMasked(visibility) && !hasPaths(); }
  /// Whether rows are those of chains whose last keys are gathered (tree_paths.h): in a tree, where nothing else goes by the number of a key.
  bool hasPaths() const {
    return gathersPaths && visibility.ancestors.data && hasIndependentRows() && queries() <= keys() && !hasLists() &&
           !visibility.keyPositions.data && !visibility.keyEnd.data && !visibility.prefix.data &&
           visibility.window < 0 && isAbsent(bias) && !alibi.data;
  }
  /// The draft tokens that a query of a tree sees, as bits.
  uint64_t pathOf(int64_t sequence, int64_t query) const {
    auto word = static_cast<uint64_t>(hone::kernels::elementOf(visibility.ancestors, sequence, query, int64_t{0}));
    int64_t last = visibility.isCausal ? query : queries() - 1;
    return word & ~uint64_t{0} >> (63 - last);
  }
  bool hasLists() const { return visibility.blockKeys > 0; } // of blocks of keys
  bool hasLse() const { return !isAbsent(lse); }

  /// Query heads that share a key head are rows of it: row r is query r / group of head r % group of those.
  int64_t headOf(int64_t keyHead, int64_t row) const { return keyHead * group() + row % group(); }
  int64_t queryOf(int64_t row) const { return row / group(); }
  /// Where a row lies in a tensor of queries or outputs.
  Row rowAt(const hone_tensor &tensor, int64_t sequence, int64_t keyHead, int64_t row) const {
    return {floats(tensor) + offsetOf(tensor, sequence, headOf(keyHead, row), queryOf(row)), tensor.strides[3]};
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
