// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pooled keys of blocks, and bounds of their elements, from keys in any cache. The rows of a block are made one by one or at once, with the
// same sums.

#include "../entry.h"

#include "../parallel_for.h"
#include "key_elements.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// Element d of the vector of a block, which has keys [begin, end).
struct Mean {
  static int64_t elements(int64_t keySize) { return keySize; }

  template <typename Keys> static float of(const Keys &keys, int64_t, int64_t d, int64_t begin, int64_t end) {
    float sum = 0;
    for (int64_t key = begin; key < end; ++key)
      sum += keys.at(key, d);
    return sum / static_cast<float>(larger(end - begin, 1));
  }
};

/// The largest of each element, then the smallest.
struct Bounds {
  static int64_t elements(int64_t keySize) { return 2 * keySize; }

  template <typename Keys> static float of(const Keys &keys, int64_t keySize, int64_t d, int64_t begin, int64_t end) {
    float sign = d < keySize ? 1.0f : -1.0f, most = -__builtin_inff();
    for (int64_t key = begin; key < end; ++key) {
      float element = sign * keys.at(key, d < keySize ? d : d - keySize);
      most = element > most ? element : most;
    }
    return begin < end ? sign * most : 0;
  }
};

template <typename Keys, typename Pooling> void run(const kernels::Call<kernels::PoolKeys, kernels::NoWeight> &call) {
  const hone_tensor &keys = call.operands.keys, &keyBegin = call.operands.keyBegin, &pooled = call.operands.pooled;
  if (isAbsent(pooled))
    return;
  int64_t heads = pooled.sizes[1], fresh = pooled.sizes[2], width = pooled.sizes[3], keySize = keys.sizes[3];
  int64_t size = call.ints.size, first = keys.sizes[2] - fresh, rows = countRows(pooled);
  parallelFor(rows, rows * width * size > 4096, [&](int64_t row) {
    int64_t sequence = row / (heads * fresh), head = row / fresh % heads, position = first + row % fresh;
    Row to = rowOf(pooled, row);
    int64_t end = position / size * size, begin = larger(end - size, 0);
    if (!isAbsent(keyBegin))
      begin = larger(begin, static_cast<const int64_t *>(keyBegin.data)[sequence * keyBegin.strides[0]]);
    Keys from(keys, sequence * keys.strides[0] + head * keys.strides[1]);
    for (int64_t j = 0; j < width; ++j) {
      int64_t d = position % size * width + j;
      to[j] = d < Pooling::elements(keySize) ? Pooling::of(from, keySize, d, begin, end) : 0;
    }
  });
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/pool_keys.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
