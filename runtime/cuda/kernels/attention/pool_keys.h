// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pooled keys of blocks: arguments, and which keys an element is the mean of.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ATTENTION_POOL_KEYS_H
#define HONE_RUNTIME_CUDA_KERNELS_ATTENTION_POOL_KEYS_H

#include "../row_view.h"
#include "hone/kernels/visibility.h"

namespace hone::cuda {

struct PoolKeysArguments {
  MatrixView keys;                  // [B, Hk, Sk, D]
  RowView pooled;                   // [B, Hk, fresh, W], f32
  kernels::IntegerView<1> keyBegin; // of a sequence, or absent
  int64_t heads, positions, fresh;  // positions is Sk
  int64_t tiles;                    // of the elements of one sequence and head
  int32_t size, width, blockSize;   // D, W and keys of a block
};

/// A thread block has 32 elements, which the next of its rows follow, and a warp each so many of their keys.
constexpr int32_t kPoolElements = 32, kPoolWarps = 8;

/// The keys begin … end - 1 and the element of them that an element of a pooled row is the mean of; the element is `size` or
/// more where it is 0.
struct PooledElement {
  int64_t begin, end, element;
};

/// Of column `column` of the row for a position; `keyBegin` is the first key of its sequence.
HONE_HOST_DEVICE constexpr PooledElement pooledElement(int64_t position, int64_t column, int64_t blockSize,
                                                       int64_t width, int64_t keyBegin) {
  int64_t block = position / blockSize, end = block * blockSize, begin = block > 0 ? end - blockSize : 0;
  begin = begin < keyBegin ? keyBegin : begin;
  return {begin, end, (position - end) * width + column};
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ATTENTION_POOL_KEYS_H
