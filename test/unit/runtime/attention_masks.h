// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of attention by name, and random lists of blocks, trees and positions with what they mean, key by key.

#ifndef HONE_TEST_UNIT_RUNTIME_ATTENTION_MASKS_H
#define HONE_TEST_UNIT_RUNTIME_ATTENTION_MASKS_H

#include "kernel_tensor.h"

#include "hone/kernels/arguments.h"

namespace hone::test {

/// Operands that are not set are absent.
using AttentionOperands = kernels::Attention::Operands<kernels::NoWeight>;

inline AttentionOperands attentionOf(hone_tensor query, hone_tensor key, hone_tensor value, hone_tensor out) {
  AttentionOperands operands = {};
  operands.query = query, operands.key = key, operands.value = value, operands.out = out;
  return operands;
}

inline std::vector<hone_tensor> listOperands(const AttentionOperands &operands) {
  return {&operands.query, &operands.out + 1};
}

/// What decides beside an interval which keys queries see. Without blockKeys there are no lists.
struct MaskCase {
  int64_t blockKeys = 0, blockQueries = 1, listHeads = 1, listed = 3;
  bool isTree = false, hasPositions = false;
  bool hasLags = false; // the last keys of some sequences are none of theirs
};

/// Dense integers.
class IntegerTensor {
public:
  explicit IntegerTensor(std::vector<int64_t> shape) : sizes(std::move(shape)) {
    int64_t count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
    values.assign(static_cast<size_t>(count), 0);
  }

  int64_t &operator()(std::initializer_list<int64_t> index) {
    int64_t offset = 0, axis = 0;
    for (int64_t each : index)
      offset = offset * sizes[static_cast<size_t>(axis++)] + each;
    return values[static_cast<size_t>(offset)];
  }

  hone_tensor view() {
    hone_tensor tensor = {};
    tensor.data = values.data();
    tensor.dtype = HONE_I64;
    tensor.rank = static_cast<int32_t>(sizes.size());
    int64_t stride = 1;
    for (size_t axis = sizes.size(); axis-- > 0; stride *= sizes[axis]) {
      tensor.sizes[axis] = sizes[axis];
      tensor.strides[axis] = stride;
    }
    return tensor;
  }

  std::vector<int64_t> sizes, values;
};

class Masks {
public:
  Masks(const MaskCase &of, int64_t batch, int64_t heads, int64_t queries, int64_t keys, std::mt19937 &random)
      : test(of), heads(heads), queries(queries), keys(keys), positions({test.hasPositions ? batch : 0, keys}),
        lags({test.hasLags ? batch : 0}), lists({test.blockKeys > 0 ? batch : 0, test.listHeads,
                                                 (queries + test.blockQueries - 1) / test.blockQueries, test.listed}),
        ancestors({test.isTree ? batch : 0, queries, (queries + 63) / 64}) {
    auto below = [&](int64_t count) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(std::max<int64_t>(count, 1)));
    };
    for (size_t i = 0; i < positions.values.size(); ++i) // a compacted cache: positions have gaps, and some are dead
      positions.values[i] = below(5) == 0 ? -1 : static_cast<int64_t>(i) % keys * 2 + below(2);
    for (size_t b = 0; b < lags.values.size(); ++b) // one sequence is the longest
      lags.values[b] = b == 0 ? 0 : below(keys - queries + 1);
    fillLists(below);
    for (int64_t b = 0; test.isTree && b < batch; ++b)
      for (int64_t i = 0; i < queries; ++i) {
        if (int64_t parent = i == 0 ? -1 : below(i); parent >= 0)
          for (int64_t word = 0; word < ancestors.sizes[2]; ++word)
            ancestors({b, i, word}) = ancestors({b, parent, word});
        ancestors({b, i, i / 64}) |= static_cast<int64_t>(uint64_t{1} << i % 64);
      }
  }

  template <typename Operands> void setOperands(Operands &operands) {
    operands.keyPositions = positions.view();
    operands.lags = lags.view();
    operands.blocks = lists.view();
    operands.ancestors = ancestors.view();
  }

  int64_t keyPosition(int64_t b, int64_t j) { return test.hasPositions && j >= 0 ? positions({b, j}) : j; }
  int64_t queryPosition(int64_t b, int64_t i) { return keyPosition(b, keyCount(b) - queries + i); }
  int64_t keyCount(int64_t b) { return keys - (test.hasLags ? lags({b}) : 0); }

  /// Whether lists, tree, positions and the number of its sequence's keys show the key; causality, windows and ranges are left to the caller.
  bool sees(int64_t b, int64_t h, int64_t i, int64_t j) {
    bool isListed = test.blockKeys == 0;
    for (int64_t t = 0; !isListed && t < test.listed; ++t)
      isListed = lists({b, h / (heads / test.listHeads), i / test.blockQueries, t}) == j / test.blockKeys;
    int64_t draft = j - (keyCount(b) - queries);
    bool isAncestor = !test.isTree || draft < 0 || (ancestors({b, i, draft / 64}) >> draft % 64 & 1) != 0;
    return j < keyCount(b) && isListed && isAncestor && keyPosition(b, j) >= 0;
  }

private:
  /// Different blocks in any order; some places are empty.
  template <typename Below> void fillLists(Below below) {
    if (lists.values.empty())
      return;
    int64_t count = (keys + test.blockKeys - 1) / test.blockKeys;
    std::vector<int64_t> all(static_cast<size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    for (size_t i = 0; i < lists.values.size(); ++i) {
      if (i % static_cast<size_t>(test.listed) == 0)
        for (int64_t n = count; n > 1; --n)
          std::swap(all[static_cast<size_t>(n - 1)], all[static_cast<size_t>(below(n))]);
      size_t place = i % static_cast<size_t>(test.listed);
      lists.values[i] = place < all.size() && below(4) != 0 ? all[place] : -1;
    }
  }

  MaskCase test;
  int64_t heads, queries, keys;
  IntegerTensor positions, lags;
  IntegerTensor lists;
  IntegerTensor ancestors;
};

} // namespace hone::test

#endif // HONE_TEST_UNIT_RUNTIME_ATTENTION_MASKS_H
