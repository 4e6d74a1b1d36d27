// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pooled keys of blocks, from keys in any cache. The rows of a block are made one by one or at once, with the same sums.

#include "../entry.h"

#include "../parallel_for.h"
#include "kv_quantized_cache.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// The keys of one sequence and head as BlockedKeyLayout has them.
template <typename Cache> struct FloatKeys {
  const typename Cache::Element *data;
  BlockedKeyLayout layout;

  FloatKeys(const hone_tensor &keys, int64_t offset)
      : data(static_cast<const typename Cache::Element *>(keys.data) + offset),
        layout(Cache::kBlockWord, keys.sizes[3]) {}

  float at(int64_t position, int64_t d) const {
    return Cache::load1(data + layout.ofPosition(position) + layout.ofElement(d));
  }
};

/// And as QuantizedKeyLayout has them.
template <typename Cache> struct IntegerKeys {
  const uint8_t *data;
  QuantizedKeyLayout layout;

  IntegerKeys(const hone_tensor &keys, int64_t offset)
      : data(static_cast<const uint8_t *>(keys.data) + offset), layout(Cache::kBits, keys.sizes[3]) {}

  float at(int64_t position, int64_t d) const {
    uint8_t byte = data[layout.ofPosition(position) + layout.ofElement(d)];
    float step = number(layout.ofScale(position));
    if constexpr (Cache::kIsSigned)
      return step * static_cast<float>(static_cast<int8_t>(byte));
    else
      return number(layout.ofBase(position)) + step * static_cast<float>(byte >> layout.shiftOf(d) & 15);
  }

private:
  float number(int64_t offset) const { return Bf16Cache::load1(reinterpret_cast<const uint16_t *>(data + offset)); }
};

template <typename Keys> void run(const kernels::Call<kernels::PoolKeys, kernels::NoWeight> &call) {
  const hone_tensor &keys = call.operands.keys, &keyBegin = call.operands.keyBegin, &pooled = call.operands.pooled;
  if (isAbsent(pooled))
    return;
  int64_t heads = pooled.sizes[1], fresh = pooled.sizes[2], width = pooled.sizes[3];
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
      float sum = 0;
      for (int64_t key = begin; d < keys.sizes[3] && key < end; ++key)
        sum += from.at(key, d);
      to[j] = sum / static_cast<float>(larger(end - begin, 1));
    }
  });
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/pool_keys.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
