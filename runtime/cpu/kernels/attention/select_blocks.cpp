// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks of keys that matter most to each query. What a query selects is computed alone, whatever else is in the call.

#include "../entry.h"

#include "../parallel_for.h"
#include "../scratch.h"
#include "../transpose.h"
#include "block_importance.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

using SelectCall = kernels::Call<kernels::SelectBlocks, kernels::NoWeight>;

/// The score of a query with the vector of a block. `element` reads an element of that, or sixteen.
struct Mean {
  template <typename Part, typename Read> static void add(Part &sum, Part query, int64_t d, int64_t, Read element) {
    sum += query * element(d);
  }
};

/// The largest that it can be with a key whose elements lie between bounds: the upper ones lie before the lower ones.
struct Bounds {
  template <typename Part, typename Read>
  static void add(Part &sum, Part query, int64_t d, int64_t length, Read element) {
    Part high = query * element(d), low = query * element(length + d);
    sum += high > low ? high : low;
  }
};

/// The pooled keys of one sequence and KV head: rows of `width` elements, `size` rows a block.
template <typename Score> class PooledKeys {
public:
  PooledKeys(const hone_tensor &pooled, int64_t sequence, int64_t head, int64_t size)
      : data(floats(pooled) + sequence * pooled.strides[0] + head * pooled.strides[1]), rowStride(pooled.strides[2]),
        step(pooled.strides[3]), width(pooled.sizes[3]), size(size) {}

  /// The scores of `query` with the pooled keys of `count` blocks from `first` on; there is room for whole vectors.
  void multiply(const float *query, int64_t length, int64_t first, int64_t count, float *products) const {
    bool isDense = rowStride == width && (step == 1 || width == 1);
    if (isDense && length % kLanes == 0)
      for (int64_t i = 0; i < count; i += kLanes)
        store(products + i, multiplySixteen(query, length, first + i, smaller(count - i, kLanes)));
    else
      for (int64_t i = 0; i < count; ++i)
        products[i] = multiplyOne(query, length, first + i);
  }

private:
  /// The pooled key of a block is the rows of the next one.
  const float *keyOf(int64_t block) const { return data + (block + 1) * size * rowStride; }

  float multiplyOne(const float *query, int64_t length, int64_t block) const {
    const float *key = keyOf(block);
    float sum = 0;
    for (int64_t d = 0; d < length; ++d)
      Score::add(sum, query[d], d, length, [&](int64_t i) { return key[i / width * rowStride + i % width * step]; });
    return sum;
  }

  /// Of blocks from `count` on, the product of the last again.
  Vector multiplySixteen(const float *query, int64_t length, int64_t block, int64_t count) const {
    Vector sums[kLanes] = {};
    const float *keys[kLanes];
    for (int64_t i = 0; i < kLanes; ++i)
      keys[i] = keyOf(block + smaller(i, count - 1));
    for (int64_t d = 0; d < length; d += kLanes) {
      Vector part = load(query + d);
      for (int64_t i = 0; i < kLanes; ++i)
        Score::add(sums[i], part, d, length, [&](int64_t at) { return load(keys[i] + at); });
    }
    transpose(sums);
    Vector total = sums[0];
    for (int64_t i = 1; i < kLanes; ++i)
      total += sums[i];
    return total;
  }

  const float *data;
  int64_t rowStride, step, width, size;
};

template <typename Score> void selectOf(const SelectCall &call, int64_t sequence, int64_t head, int64_t query) {
  const auto &o = call.operands;
  int64_t length = o.query.sizes[3], group = o.query.sizes[1] / o.pooled.sizes[1];
  int64_t begin = boundOf(o.begin, sequence, query);
  int64_t count = larger(boundOf(o.end, sequence, query) - begin, 0), room = (count + kLanes - 1) / kLanes * kLanes;
  Scratch<float> scratch(2 * room + length);
  float *importance = scratch.data(), *scores = importance + room, *row = scores + room;
  for (int64_t i = 0; i < room; ++i)
    importance[i] = i < count ? 0.0f : -1.0f;
  PooledKeys<Score> pooled(o.pooled, sequence, head, call.ints.size);
  for (int64_t h = head * group; count > 0 && h < (head + 1) * group; ++h) {
    const float *from =
        floats(o.query) + sequence * o.query.strides[0] + h * o.query.strides[1] + query * o.query.strides[2];
    for (int64_t d = 0; d < length; ++d)
      row[d] = from[d * o.query.strides[3]] * static_cast<float>(call.floats.scale);
    pooled.multiply(row, length, begin, count, scores);
    addSoftmax(scores, count, importance);
  }
  const hone_tensor &blocks = o.blocks;
  int64_t *list = static_cast<int64_t *>(blocks.data) + sequence * blocks.strides[0] + head * blocks.strides[1] +
                  query * blocks.strides[2];
  for (int64_t place = 0; place < blocks.sizes[3]; ++place) {
    int64_t taken = takeGreatest(importance, count);
    list[place * blocks.strides[3]] = taken < count ? begin + taken : -1;
  }
}

template <typename Score> void run(const SelectCall &call) {
  const hone_tensor &blocks = call.operands.blocks;
  if (isAbsent(blocks))
    return;
  int64_t heads = blocks.sizes[1], queries = blocks.sizes[2], rows = countRows(blocks);
  int64_t work = rows * call.operands.pooled.sizes[2] / call.ints.size * call.operands.query.sizes[3];
  parallelFor(rows, work > 4096, [&](int64_t row) {
    selectOf<Score>(call, row / (heads * queries), row / queries % heads, row % queries);
  });
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/select_blocks.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
