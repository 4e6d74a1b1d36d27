// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The keys that rows see, as bits, where more than an interval decides that.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_MARKED_KEYS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_MARKED_KEYS_H

#include "../scratch.h"
#include "row_block.h"

namespace {

class MarkedKeys {
public:
  MarkedKeys(const Attention &attention, int64_t mostRows)
      : attention(attention), words(attention.isMasked() ? (attention.keys() + 63) / 64 : 0),
        memory(words * (mostRows + 1)), numbers(attention.hasLists() ? words * 64 / kLanes : 0) {}

  /// Says of rows of one sequence which keys of `range`, which begins at a multiple of 64, they see: the bits, and narrower
  /// intervals. The result is what all of them see.
  SeenKeys mark(int64_t sequence, QueryRow *rows, int64_t count, hone::kernels::KeyInterval range) const {
    if (words == 0)
      return {};
    uint64_t *all = memory.data();
    for (int64_t word = range.begin / 64; word * 64 < range.end; ++word)
      all[word] = 0;
    for (int64_t r = 0; r < count; ++r) {
      uint64_t *own = memory.data() + (r + 1) * words;
      if (r > 0 && isAlike(rows[r - 1], rows[r]))
        copyMarks(rows[r - 1], rows[r]);
      else
        markRow(sequence, rows[r], range, own);
      for (int64_t word = range.begin / 64; word * 64 < range.end; ++word)
        all[word] |= rows[r].seen[word];
    }
    return {all, attention.hasLists() ? numbers.data() : nullptr};
  }

private:
  /// Rows of one query see the same keys unless each head has its lists.
  bool isAlike(const QueryRow &a, const QueryRow &b) const {
    int64_t heads = attention.hasLists() ? larger(attention.visibility.listHeads, 1) : attention.heads();
    return a.query == b.query && a.head / heads == b.head / heads;
  }

  static void copyMarks(const QueryRow &from, QueryRow &to) {
    to.seen = from.seen;
    to.begin = from.begin;
    to.end = from.end;
    to.wholeBegin = from.wholeBegin;
    to.wholeEnd = from.wholeEnd;
    to.keyPositions = from.keyPositions;
  }

  void markRow(int64_t sequence, QueryRow &row, hone::kernels::KeyInterval range, uint64_t *own) const {
    const hone::kernels::Visibility &visibility = attention.visibility;
    hone::kernels::markVisible(visibility, sequence, row.head, row.query, range, own);
    row.seen = own;
    if (visibility.keyPositions.data)
      row.keyPositions = {visibility.keyPositions.data + sequence * visibility.keyPositions.strides[0],
                          {visibility.keyPositions.strides[1]}};
    // All queries of a tree see the keys before it.
    bool hasWhole = !attention.hasLists() && !visibility.keyPositions.data;
    row.wholeEnd = hasWhole ? smaller(row.end, hone::kernels::firstDraftOf(visibility, sequence)) : row.wholeBegin;
    row.begin = range.end;
    row.end = range.begin;
    for (int64_t word = range.begin / 64; word * 64 < range.end; ++word)
      if (own[word] != 0) {
        row.begin = smaller(row.begin, word * 64 + __builtin_ctzll(own[word]));
        row.end = word * 64 + 64 - __builtin_clzll(own[word]);
      }
  }

  const Attention &attention;
  int64_t words;            // of a row; 0 where intervals decide
  Scratch<uint64_t> memory; // of what all see, then of each row
  Scratch<int64_t> numbers;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_MARKED_KEYS_H
