// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention: what host and device say to each other, which keys a query sees, and how keys are divided among blocks.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ATTENTION_ATTENTION_ARGUMENTS_H
#define HONE_RUNTIME_CUDA_KERNELS_ATTENTION_ATTENTION_ARGUMENTS_H

#include "../host_device.h"

namespace hone::cuda {

/// A tensor of four axes (sequence, head, position, number); strides count elements, and are 0 along repeated axes.
struct View4 {
  char *data;
  int32_t dtype;
  int32_t isVector; // 1: numbers lie side by side, and every position begins at a multiple of 16 bytes
  int64_t strides[4];

  HONE_HOST_DEVICE int64_t offset(int64_t sequence, int64_t head, int64_t position) const {
    return sequence * strides[0] + head * strides[1] + position * strides[2];
  }
};

/// One number for each head or sequence; data is null where absent.
template <typename Element> struct ListView {
  const Element *data;
  int64_t stride;

  HONE_HOST_DEVICE Element at(int64_t i, Element absent) const { return data ? data[i * stride] : absent; }
};

/// Keys begin … end - 1.
struct KeyRange {
  int64_t begin, end;
};

struct AttentionArguments {
  View4 query, key, value, bias, out;         // bias.data null where absent
  ListView<float> alibi, sinks;               // of query heads
  ListView<int64_t> keyBegin, keyEnd, prefix; // of sequences
  int64_t sequences, queryHeads, keyHeads, queries, keys;
  int64_t window;        // -1: none
  int64_t firstWithBias; // earlier keys have no bias; its data begin where theirs would lie
  int32_t size, valueSize, causal, splits;
  int64_t splitKeys; // keys of a split
  float scale, softcap;
  /// Where there is more than one split: for every row (sequence, head, query) and split the sum of its weighted values, [valueSize]
  /// numbers, and behind all of them the largest logit and the sum of weights, relative to it.
  float *partial;

  HONE_HOST_DEVICE int64_t rows() const { return sequences * queryHeads * queries; }
};

/// The keys that the query at position `position` sees; an end before the begin is none.
HONE_HOST_DEVICE constexpr KeyRange visibleKeys(int64_t position, int64_t keys, bool causal, int64_t window,
                                                int64_t keyBegin, int64_t keyEnd, int64_t prefix) {
  KeyRange range = {keyBegin > 0 ? keyBegin : 0, keyEnd < keys ? keyEnd : keys};
  if (causal) {
    int64_t last = position + 1 > prefix ? position + 1 : prefix;
    range.end = range.end < last ? range.end : last;
  }
  if (window >= 0 && position - window + 1 > range.begin)
    range.begin = position - window + 1;
  return range;
}

/// How many blocks share the keys of rows, so that `blocks` blocks of rows fill the device `residents` times; pieces are no shorter
/// than 256 keys, for which a block would otherwise wait at its beginning and at its end.
HONE_HOST_DEVICE constexpr int32_t splitsOf(int64_t blocks, int64_t keys, int32_t multiprocessors, int32_t residents) {
  if (blocks == 0)
    return 1;
  int64_t wanted = divideUp(int64_t{residents} * multiprocessors, blocks), most = divideUp(keys, 256);
  int64_t splits = wanted < most ? wanted : most;
  return static_cast<int32_t>(splits < 1 ? 1 : splits > 128 ? 128 : splits);
}

/// Keys of a split, whole tiles of `tile` keys.
HONE_HOST_DEVICE constexpr int64_t keysOfSplit(int64_t keys, int32_t splits, int32_t tile) {
  return roundUp(divideUp(keys, splits), tile);
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ATTENTION_ATTENTION_ARGUMENTS_H
