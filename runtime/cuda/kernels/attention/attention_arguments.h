// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention: the kernel arguments, which keys a query sees, and split-KV.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ATTENTION_ATTENTION_ARGUMENTS_H
#define HONE_RUNTIME_CUDA_KERNELS_ATTENTION_ATTENTION_ARGUMENTS_H

#include "../host_device.h"
#include "hone/kernels/visibility.h"

namespace hone::cuda {

using kernels::KeyInterval;

/// A tensor of four axes (sequence, head, position, element); strides count elements, and are 0 along broadcast axes.
struct View4 {
  char *data;
  int32_t dtype;
  int32_t isVector; // 1: elements are contiguous, and every position begins at a multiple of 16 bytes
  int64_t strides[4];

  HONE_HOST_DEVICE int64_t offset(int64_t sequence, int64_t head, int64_t position) const {
    return sequence * strides[0] + head * strides[1] + position * strides[2];
  }
};

/// An element for each head; data is null where absent.
template <typename Element> struct ListView {
  const Element *data;
  int64_t stride;

  HONE_HOST_DEVICE Element at(int64_t i, Element absent) const { return data ? data[i * stride] : absent; }
};

struct AttentionArguments {
  View4 query, key, value, bias, out; // bias.data null where absent
  ListView<float> alibi, sinks;       // of query heads
  kernels::Visibility visibility;
  float *lse; // null where absent; strides of sequences, heads and queries
  int64_t lseStrides[3];
  int64_t sequences, queryHeads, kvHeads, queries, keys;
  int64_t firstWithBias;  // earlier keys have no bias; its data are offset accordingly
  int32_t headsPerKvHead; // query heads that share a KV head
  int32_t size, valueSize, splits;
  int64_t splitKeys; // keys of a split, or of listed blocks
  float scale, softcap;
  /// Split-KV, with more than one split: for every row (sequence, head, query) and split the unnormalized output,
  /// [valueSize] elements, and after all of these the running maximum and the sum of exponentials relative to it.
  float *partial;

  HONE_HOST_DEVICE int64_t rows() const { return sequences * queryHeads * queries; }
  HONE_HOST_DEVICE bool isMasked() const { return kernels::isMasked(visibility); }
  /// Keys that a row goes through: all, or those of the blocks that are listed.
  HONE_HOST_DEVICE int64_t candidates() const {
    return visibility.blockKeys > 0 ? visibility.listed * visibility.blockKeys : keys;
  }
};

constexpr int32_t kMostSplits = 128;
constexpr int32_t kMergeThreads = kMostSplits; // one for each split

/// Where keys are many for a block, and the latency at the begin and the end of a split is exposed.
constexpr int32_t kLeastSplitKeys = 256;

/// Split-KV: how many blocks divide the keys of rows, so that `blocks` blocks of rows fill every SM with `residents`
/// of them. A split has `least` keys at least.
HONE_HOST_DEVICE constexpr int32_t kvSplits(int64_t blocks, int64_t keys, int32_t multiprocessors, int32_t residents,
                                            int32_t least) {
  if (blocks == 0)
    return 1;
  int64_t wanted = divideUp(int64_t{residents} * multiprocessors, blocks), most = divideUp(keys, least);
  int64_t splits = wanted < most ? wanted : most;
  return static_cast<int32_t>(splits < 1 ? 1 : splits > kMostSplits ? kMostSplits : splits);
}

/// The keys of a split, whole tiles of `tile` keys.
HONE_HOST_DEVICE constexpr int64_t keysPerSplit(int64_t keys, int32_t splits, int32_t tile) {
  return roundUp(divideUp(keys, splits), tile);
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ATTENTION_ATTENTION_ARGUMENTS_H
