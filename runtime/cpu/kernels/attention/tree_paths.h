// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Queries that are nodes of a tree of draft tokens, as those of chains: of each, the last keys of the cache and those of its path are
// gathered in their order, and are worked on as the keys of a chain are, to the last bit.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_TREE_PATHS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_TREE_PATHS_H

#include "../scratch.h"
#include "row_block.h"

namespace {

/// The first of the keys of a sequence that are gathered; none are where rows are of no tree. `step` is how many keys are worked on at a time.
inline int64_t firstGathered(const Attention &attention, int64_t sequence, int64_t step) {
  return attention.hasPaths() ? hone::kernels::firstDraftOf(attention.visibility, sequence) / step * step : INT64_MAX;
}

/// Calls body(first, count) for the rows of each query.
template <typename Body> void forEachQuery(const RowBlock &of, Body body) {
  for (int64_t first = 0, count; first < of.count; first += count) {
    for (count = 1; first + count < of.count && of.rows[first + count].query == of.rows[first].query;)
      ++count;
    body(first, count);
  }
}

/// `count` of the rows, from number `first` on.
inline RowBlock partOf(const RowBlock &of, int64_t first, int64_t count) {
  RowBlock part = of;
  part.rows += first;
  part.count = count;
  part.queries += first * of.queryStride;
  part.sums += first * of.sumStride;
  return part;
}

/// Calls body(key, place) for the tokens of a query's path: the number of the key, and of the one that it would be in a chain.
template <typename Body> void forEachOfPath(const Attention &attention, int64_t sequence, int64_t query, Body body) {
  int64_t place = hone::kernels::firstDraftOf(attention.visibility, sequence), first = place;
  for (uint64_t word = attention.pathOf(sequence, query); word != 0; word &= word - 1)
    body(first + __builtin_ctzll(word), place++);
}

/// Memory for the gathered keys or values of a query, in a layout of blocks (packing/cache_blocks.h) of one sequence and head.
template <typename Layout, typename Element> class GatheredBlocks {
public:
  /// `blockElements` are those of `blockKeys` positions, which are moved at once; steps have `step` positions.
  GatheredBlocks(const Attention &attention, const Layout &layout, int64_t size, int64_t blockKeys,
                 int64_t blockElements, int64_t step)
      : attention(attention), layout(layout), size(size), blockKeys(blockKeys), blockElements(blockElements),
        step(step), elements(attention.hasPaths()
                                 ? (step + (kIndependentQueries + step - 1) / step * step) / blockKeys * blockElements
                                 : 0),
        memory(elements) {
    for (int64_t i = 0; i < elements; ++i)
      memory.data()[i] = 0; // what no query sees is multiplied with 0, and has to be a number
  }

  /// Takes those of a query from `all` of its sequence and head; where the first of them is.
  const Element *take(const Element *all, int64_t sequence, int64_t query) const {
    Element *to = memory.data();
    int64_t draft = hone::kernels::firstDraftOf(attention.visibility, sequence);
    int64_t first = firstGathered(attention, sequence, step);
    int64_t held = (draft - first + blockKeys - 1) / blockKeys * blockElements;
    __builtin_memcpy(to, all + first / blockKeys * blockElements, static_cast<size_t>(held) * sizeof(Element));
    forEachOfPath(attention, sequence, query,
                  [&](int64_t key, int64_t place) { copyPosition(all, key, to, place - first); });
    return to;
  }

private:
  void copyPosition(const Element *from, int64_t key, Element *to, int64_t place) const {
    const Element *source = from + layout.ofPosition(key);
    Element *target = to + layout.ofPosition(place);
    for (int64_t d = 0; d < size; ++d)
      target[layout.ofElement(d)] = source[layout.ofElement(d)];
    if constexpr (requires { layout.ofScale(key); })
      copyNumbers(from, key, to, place);
  }

  /// Steps and bases, of two bytes each.
  void copyNumbers(const Element *from, int64_t key, Element *to, int64_t place) const {
    __builtin_memcpy(to + layout.ofScale(place), from + layout.ofScale(key), 2);
    if (layout.perByte > 1)
      __builtin_memcpy(to + layout.ofBase(place), from + layout.ofBase(key), 2);
  }

  const Attention &attention;
  Layout layout;
  int64_t size, blockKeys, blockElements, step, elements;
  Scratch<Element> memory;
};

/// The same for keys or values that lie as rows, which may be strided.
template <typename Element> class GatheredRows {
public:
  GatheredRows(const Attention &attention, const hone_tensor &all)
      : attention(attention), all(all),
        memory(attention.hasPaths() ? (kBlockKeys + kIndependentQueries) * all.sizes[3] : 0) {}

  /// Takes those of a query of a sequence and head; a tensor of one of each.
  hone_tensor take(int64_t sequence, int64_t head, int64_t query) const {
    int64_t draft = hone::kernels::firstDraftOf(attention.visibility, sequence), size = all.sizes[3];
    int64_t first = firstGathered(attention, sequence, kBlockKeys);
    auto copy = [&](int64_t key, int64_t place) { copyRow(sequence, head, key, place - first); };
    for (int64_t key = first; key < draft; ++key)
      copy(key, key);
    forEachOfPath(attention, sequence, query, copy);
    hone_tensor rows = all;
    rows.data = memory.data();
    rows.strides[2] = size;
    rows.strides[3] = 1;
    return rows;
  }

private:
  void copyRow(int64_t sequence, int64_t head, int64_t key, int64_t place) const {
    const Element *from = static_cast<const Element *>(all.data) + offsetOf(all, sequence, head, key);
    Element *to = memory.data() + place * all.sizes[3];
    for (int64_t d = 0; d < all.sizes[3]; ++d)
      to[d] = from[d * all.strides[3]];
  }

  const Attention &attention;
  const hone_tensor &all;
  Scratch<Element> memory; // [key][element]
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_TREE_PATHS_H
