//===- visibility.h - which keys the queries of an attention see ------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one description that compiler, CPU kernels and CUDA kernels take: an interval of keys, and optionally a list of
// blocks, the ancestors in a tree of draft tokens, and positions that differ from the keys' indices. A key is visible if
// all of them show it. `hone.attention` says what each means.
//
// Host and device code include this, and sources of kernels for every ISA: nothing of the C++ library is included, and
// what has code is static.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_KERNELS_VISIBILITY_H
#define HONE_KERNELS_VISIBILITY_H

#include "hone/runtime/program.h"

#include <stdint.h>

#ifdef __CUDACC__
#define HONE_KERNELS_SHARED __host__ __device__ inline
#else
#define HONE_KERNELS_SHARED inline
#endif

namespace hone::kernels {

//===----------------------------------------------------------------------===//
// What a pattern shows, as the compiler knows it
//===----------------------------------------------------------------------===//

/// A pattern of attention as kernels take it: the integers that they are called with, and which of the pattern's
/// operands is what; -1 where there is none.
struct PatternVisibility {
  bool isCausal = false;
  int64_t window = -1;                     // positions that a query sees up to its own; -1: all
  int64_t blockKeys = 0, blockQueries = 0; // keys of a listed block, and queries that share a list; 0 without lists
  int prefix = -1, blocks = -1, ancestors = -1;
};

//===----------------------------------------------------------------------===//
// What a kernel is called with
//===----------------------------------------------------------------------===//

/// Integers by RANK indices. Strides count elements and are 0 along axes of size one; data is null where absent.
template <int RANK> struct IntegerView {
  const int64_t *data;
  int64_t strides[RANK];
};

/// Keys begin … end - 1; none where the end is not after the begin.
struct KeyInterval {
  int64_t begin, end;
};

/// Which keys the queries of a call see.
struct Visibility {
  int64_t queries, keys;
  int64_t window; // -1: none
  int32_t isCausal;
  IntegerView<1> keyBegin, keyEnd, prefix; // of a sequence
  IntegerView<1> lags;                     // of a sequence: of the last keys, how many are none of its own
  IntegerView<2> keyPositions;             // of a sequence and key; negative where nobody sees the key
  IntegerView<4> blocks;                   // of a sequence, list head, block of queries and place; -1 is none
  int64_t blockKeys, blockQueries,
      listed;               // keys of a block, queries that share a list, its places; blockKeys 0: no lists
  int64_t listHeads;        // query heads that share a list
  IntegerView<3> ancestors; // of a sequence, query and word of 64 draft tokens
};

namespace {

template <typename... Indices>
HONE_KERNELS_SHARED int64_t elementOf(const IntegerView<sizeof...(Indices)> &view, Indices... indices) {
  int64_t all[] = {indices...}, offset = 0;
  for (int axis = 0; axis < static_cast<int>(sizeof...(Indices)); ++axis)
    offset += all[axis] * view.strides[axis];
  return view.data[offset];
}

/// `tensor` by its first RANK axes. One without elements is absent, as one of rank 0 is.
template <int RANK> IntegerView<RANK> viewIntegers(const hone_tensor &tensor) {
  IntegerView<RANK> view = {};
  for (int32_t axis = 0; axis < tensor.rank; ++axis)
    if (tensor.sizes[axis] == 0)
      return view;
  if (tensor.rank == 0)
    return view;
  view.data = static_cast<const int64_t *>(tensor.data);
  for (int axis = 0; axis < RANK && axis < tensor.rank; ++axis)
    view.strides[axis] = tensor.sizes[axis] == 1 ? 0 : tensor.strides[axis];
  return view;
}

/// The visibility of a call, by the names that signatures of attention have in common.
template <typename Operands, typename Integers>
Visibility visibilityOf(const Operands &operands, const Integers &integers) {
  Visibility visibility = {};
  visibility.queries = operands.query.sizes[2];
  visibility.keys = operands.key.sizes[2];
  visibility.window = integers.window;
  visibility.isCausal = integers.causal != 0;
  visibility.keyBegin = viewIntegers<1>(operands.keyBegin);
  visibility.keyEnd = viewIntegers<1>(operands.keyEnd);
  visibility.prefix = viewIntegers<1>(operands.prefix);
  visibility.lags = viewIntegers<1>(operands.lags);
  visibility.keyPositions = viewIntegers<2>(operands.keyPositions);
  visibility.blocks = viewIntegers<4>(operands.blocks);
  visibility.blockKeys = integers.blockKeys;
  visibility.blockQueries = integers.blockQueries;
  if (visibility.blocks.data) {
    visibility.listed = operands.blocks.sizes[3];
    visibility.listHeads = operands.query.sizes[1] / operands.blocks.sizes[1];
  }
  visibility.ancestors = viewIntegers<3>(operands.ancestors);
  return visibility;
}

HONE_KERNELS_SHARED int64_t elementOr(const IntegerView<1> &view, int64_t sequence, int64_t absent) {
  return view.data ? view.data[sequence * view.strides[0]] : absent;
}

/// How many keys a sequence has.
HONE_KERNELS_SHARED int64_t keyCountOf(const Visibility &visibility, int64_t sequence) {
  return visibility.keys - elementOr(visibility.lags, sequence, 0);
}

/// The key that is the query's own: queries are the last keys of their sequence.
HONE_KERNELS_SHARED int64_t ownKeyOf(const Visibility &visibility, int64_t sequence, int64_t query) {
  return keyCountOf(visibility, sequence) - visibility.queries + query;
}

HONE_KERNELS_SHARED int64_t keyPositionOf(const Visibility &visibility, int64_t sequence, int64_t key) {
  return visibility.keyPositions.data && key >= 0 ? elementOf(visibility.keyPositions, sequence, key) : key;
}

HONE_KERNELS_SHARED int64_t queryPositionOf(const Visibility &visibility, int64_t sequence, int64_t query) {
  return keyPositionOf(visibility, sequence, ownKeyOf(visibility, sequence, query));
}

/// Whether more than an interval decides what a query sees.
HONE_KERNELS_SHARED bool isMasked(const Visibility &visibility) {
  return visibility.blockKeys > 0 || visibility.ancestors.data || visibility.keyPositions.data;
}

/// The keys outside of which a query sees none, and all of which it sees unless `isMasked`.
HONE_KERNELS_SHARED KeyInterval intervalOf(const Visibility &visibility, int64_t sequence, int64_t query) {
  int64_t begin = elementOr(visibility.keyBegin, sequence, 0);
  int64_t count = keyCountOf(visibility, sequence), end = elementOr(visibility.keyEnd, sequence, count);
  KeyInterval interval = {begin > 0 ? begin : 0, end < count ? end : count};
  if (visibility.keyPositions.data) // which need not ascend
    return interval;
  int64_t position = ownKeyOf(visibility, sequence, query);
  if (visibility.isCausal) {
    int64_t prefix = elementOr(visibility.prefix, sequence, 0), last = position + 1 > prefix ? position + 1 : prefix;
    interval.end = interval.end < last ? interval.end : last;
  }
  if (visibility.window >= 0 && position - visibility.window + 1 > interval.begin)
    interval.begin = position - visibility.window + 1;
  return interval;
}

/// The first of the keys that are draft tokens: all earlier ones are seen by every query of a tree.
HONE_KERNELS_SHARED int64_t firstDraftOf(const Visibility &visibility, int64_t sequence) {
  return ownKeyOf(visibility, sequence, 0);
}

HONE_KERNELS_SHARED bool isAncestor(const Visibility &visibility, int64_t sequence, int64_t query, int64_t key) {
  int64_t draft = key - firstDraftOf(visibility, sequence);
  return draft < 0 || (elementOf(visibility.ancestors, sequence, query, draft / 64) >> draft % 64 & 1) != 0;
}

/// Whether the positions of a query and a key, where they are given, let the one see the other.
HONE_KERNELS_SHARED bool seesPosition(const Visibility &visibility, int64_t sequence, int64_t position, int64_t key) {
  int64_t other = elementOf(visibility.keyPositions, sequence, key);
  if (other < 0)
    return false;
  if (visibility.isCausal && other > position && other >= elementOr(visibility.prefix, sequence, 0))
    return false;
  return visibility.window < 0 || other > position - visibility.window;
}

/// Number `place` of the blocks that are listed for a query of a head, or -1.
HONE_KERNELS_SHARED int64_t listedBlock(const Visibility &visibility, int64_t sequence, int64_t head, int64_t query,
                                        int64_t place) {
  return elementOf(visibility.blocks, sequence, head / visibility.listHeads, query / visibility.blockQueries, place);
}

/// Whether a key of the query's interval that lies in one of its blocks, if it has a list, is seen.
HONE_KERNELS_SHARED bool seesOfListed(const Visibility &visibility, int64_t sequence, int64_t query, int64_t key) {
  return (!visibility.ancestors.data || isAncestor(visibility, sequence, query, key)) &&
         (!visibility.keyPositions.data ||
          seesPosition(visibility, sequence, queryPositionOf(visibility, sequence, query), key));
}

/// The definition: whether a query of a head sees a key.
HONE_KERNELS_SHARED bool seesKey(const Visibility &visibility, int64_t sequence, int64_t head, int64_t query,
                                 int64_t key) {
  KeyInterval interval = intervalOf(visibility, sequence, query);
  bool isListed = visibility.blockKeys == 0;
  for (int64_t place = 0; !isListed && place < visibility.listed; ++place)
    isListed = listedBlock(visibility, sequence, head, query, place) == key / visibility.blockKeys;
  return key >= interval.begin && key < interval.end && isListed && seesOfListed(visibility, sequence, query, key);
}

//===----------------------------------------------------------------------===//
// Sets of keys as bits
//===----------------------------------------------------------------------===//

/// Sets the bits [begin, end) of words.
inline void setBits(uint64_t *words, int64_t begin, int64_t end) {
  for (; begin < end && begin % 64 != 0; ++begin)
    words[begin / 64] |= uint64_t{1} << begin % 64;
  for (; begin + 64 <= end; begin += 64)
    words[begin / 64] = ~uint64_t{0};
  for (; begin < end; ++begin)
    words[begin / 64] |= uint64_t{1} << begin % 64;
}

/// Makes bit j of `words` say whether the query sees key j, for the keys of `range`, whose words it overwrites: `seesKey` for
/// all of them, in time that grows with the keys that are listed. `range` begins at a multiple of 64.
inline void markVisible(const Visibility &visibility, int64_t sequence, int64_t head, int64_t query, KeyInterval range,
                        uint64_t *words) {
  for (int64_t word = range.begin / 64; word * 64 < range.end; ++word)
    words[word] = 0;
  KeyInterval seen = intervalOf(visibility, sequence, query);
  seen = {seen.begin > range.begin ? seen.begin : range.begin, seen.end < range.end ? seen.end : range.end};
  auto mark = [&](int64_t begin, int64_t end) {
    setBits(words, begin > seen.begin ? begin : seen.begin, end < seen.end ? end : seen.end);
  };
  if (visibility.blockKeys == 0)
    mark(seen.begin, seen.end);
  for (int64_t place = 0; visibility.blockKeys > 0 && place < visibility.listed; ++place) {
    int64_t block = listedBlock(visibility, sequence, head, query, place);
    if (block >= 0 && block <= visibility.keys / visibility.blockKeys)
      mark(block * visibility.blockKeys, (block + 1) * visibility.blockKeys);
  }
  int64_t first = visibility.keyPositions.data ? seen.begin : firstDraftOf(visibility, sequence);
  if (!visibility.keyPositions.data && !visibility.ancestors.data)
    return;
  for (int64_t key = first > seen.begin ? first : seen.begin; key < seen.end; ++key)
    if ((words[key / 64] >> key % 64 & 1) != 0 && !seesOfListed(visibility, sequence, query, key))
      words[key / 64] &= ~(uint64_t{1} << key % 64);
}

} // namespace

} // namespace hone::kernels

#endif // HONE_KERNELS_VISIBILITY_H
