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

constexpr int64_t kTileRows = 6; // queries that are multiplied at once: accumulators of 512 bits are two of 256

/// The score of a query with the vector of a block, or of sixteen. `element` reads an element of it, or of them.
struct Mean {
  static constexpr int64_t kVectors = 1; // of the size of a key, that a block has

  template <typename Part, typename Read> static void add(Part &sum, Part query, int64_t d, int64_t, Read element) {
    sum += query * element(d);
  }
};

/// The largest that it can be with a key whose elements lie between bounds: the upper ones lie before the lower ones.
struct Bounds {
  static constexpr int64_t kVectors = 2;

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

  /// Whether rows have whole vectors that follow each other.
  bool areVectors(int64_t length) const {
    return rowStride == width && (step == 1 || width == 1) && length % kLanes == 0;
  }

  /// The scores of `count` queries with the pooled keys of `blocks` blocks from `first` on: [query][block], rows `room` apart with room for
  /// whole vectors. `tile` is memory for the vectors of sixteen blocks.
  void multiply(const float *queries, int64_t count, int64_t length, int64_t first, int64_t blocks, float *scores,
                int64_t room, float *tile) const {
    if (!areVectors(length)) {
      for (int64_t row = 0; row < count; ++row)
        for (int64_t i = 0; i < blocks; ++i)
          scores[row * room + i] = multiplyOne(queries + row * length, length, first + i);
      return;
    }
    for (int64_t i = 0; i < blocks; i += kLanes) {
      packSixteen(first + i, smaller(blocks - i, kLanes), Score::kVectors * length, tile);
      for (int64_t row = 0; row < count; row += kTileRows)
        multiplyRows(smaller(count - row, kTileRows), queries + row * length, length, tile, scores + row * room + i,
                     room);
    }
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

  /// Transposes the vectors of sixteen blocks: [element][block]. In place of blocks from `count` on there is the last one again.
  void packSixteen(int64_t block, int64_t count, int64_t elements, float *tile) const {
    for (int64_t d = 0; d < elements; d += kLanes) {
      Vector rows[kLanes];
      for (int64_t i = 0; i < kLanes; ++i)
        rows[i] = load(keyOf(block + smaller(i, count - 1)) + d);
      transpose(rows);
      for (int64_t i = 0; i < kLanes; ++i)
        store(tile + (d + i) * kLanes, rows[i]);
    }
  }

  /// The scores of `rows` queries, at most ROWS, with sixteen blocks.
  template <int ROWS = kTileRows>
  static void multiplyRows(int64_t rows, const float *queries, int64_t length, const float *tile, float *scores,
                           int64_t room) {
    if constexpr (ROWS > 1)
      if (rows < ROWS)
        return multiplyRows<ROWS - 1>(rows, queries, length, tile, scores, room);
    Vector sums[ROWS] = {};
    for (int64_t d = 0; d < length; ++d)
      for (int64_t r = 0; r < ROWS; ++r)
        Score::add(sums[r], (Vector)queries[r * length + d], d, length,
                   [&](int64_t at) { return load(tile + at * kLanes); });
    for (int64_t r = 0; r < ROWS; ++r)
      store(scores + r * room, sums[r]);
  }

  const float *data;
  int64_t rowStride, step, width, size;
};

template <typename Score> void selectOf(const SelectCall &call, int64_t sequence, int64_t head, int64_t query) {
  const auto &o = call.operands;
  int64_t length = o.query.sizes[3], group = o.query.sizes[1] / o.pooled.sizes[1];
  int64_t begin = boundOf(o.begin, sequence, query);
  int64_t count = larger(boundOf(o.end, sequence, query) - begin, 0), room = (count + kLanes - 1) / kLanes * kLanes;
  Scratch<float> scratch(room + group * (room + length) + Score::kVectors * length * kLanes);
  float *importance = scratch.data(), *scores = importance + room, *rows = scores + group * room;
  for (int64_t i = 0; i < room; ++i)
    importance[i] = i < count ? 0.0f : -1.0f;
  const float *from =
      floats(o.query) + sequence * o.query.strides[0] + head * group * o.query.strides[1] + query * o.query.strides[2];
  for (int64_t h = 0; h < group; ++h)
    for (int64_t d = 0; d < length; ++d)
      rows[h * length + d] =
          from[h * o.query.strides[1] + d * o.query.strides[3]] * static_cast<float>(call.floats.scale);
  PooledKeys<Score>(o.pooled, sequence, head, call.ints.size)
      .multiply(rows, group, length, begin, count, scores, room, rows + group * length);
  for (int64_t h = 0; count > 0 && h < group; ++h)
    addSoftmax(scores + h * room, count, importance);
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
