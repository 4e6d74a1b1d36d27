// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks of keys that blocks of queries see, by sums over antidiagonals. A group of keys is a row of floats, the keys one after the
// other, and one of queries likewise, from the last to the first, so that a sum is the product of two rows.

#include "../entry.h"

#include "../parallel_for.h"
#include "../scratch.h"
#include "block_importance.h"
#include "key_elements.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

using SelectCall = kernels::Call<kernels::SelectAntidiagonals, kernels::NoWeight>;

/// Of no more queries all blocks are listed.
constexpr int64_t kFewQueries = 64;
constexpr int64_t kTile = 4; // rows of queries and of keys that are multiplied at once

template <typename Keys> class Selection {
public:
  explicit Selection(const SelectCall &call)
      : call(call), o(call.operands), queries(o.query.sizes[2]), keys(o.keys.sizes[2]), length(o.query.sizes[3]),
        stride(call.ints.stride), group(o.query.sizes[1] / o.keys.sizes[1]), depth(roundUp(stride * length, kLanes)),
        groups(roundUp(keys, stride) / stride),
        vectors(queries > kFewQueries ? o.keys.sizes[0] * o.keys.sizes[1] * groups * depth : 0) {}

  void run() {
    int64_t heads = o.keys.sizes[1];
    if (queries > kFewQueries)
      parallelFor(o.keys.sizes[0] * heads * groups, true, [&](int64_t i) { takeKeys(i / groups, i % groups); });
    parallelFor(countRows(o.blocks), queries > kFewQueries,
                [&](int64_t row) { select(row / o.blocks.sizes[2], row % o.blocks.sizes[2]); });
  }

private:
  static int64_t roundUp(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

  float *vectorOf(int64_t sequenceHead, int64_t number) const {
    return vectors.data() + (sequenceHead * groups + number) * depth;
  }

  int64_t firstKeyOf(int64_t sequence) const {
    if (isAbsent(o.keyBegin))
      return 0;
    return larger(static_cast<const int64_t *>(o.keyBegin.data)[sequence * o.keyBegin.strides[0]], 0);
  }

  void takeKeys(int64_t sequenceHead, int64_t number) const {
    int64_t heads = o.keys.sizes[1], first = firstKeyOf(sequenceHead / heads);
    Keys from(o.keys, sequenceHead / heads * o.keys.strides[0] + sequenceHead % heads * o.keys.strides[1]);
    float *to = vectorOf(sequenceHead, number);
    for (int64_t i = 0; i < depth; ++i) {
      int64_t position = number * stride + i / length;
      to[i] = i < stride * length && position >= first && position < keys ? from.at(position, i % length) : 0;
    }
  }

  /// Group `number` of the queries of a head, scaled.
  void takeQueries(int64_t sequence, int64_t head, int64_t number, float *to) const {
    const float *from = floats(o.query) + sequence * o.query.strides[0] + head * o.query.strides[1];
    float scale = static_cast<float>(call.floats.scale) / static_cast<float>(stride);
    for (int64_t i = 0; i < depth; ++i) {
      int64_t query = (number + 1) * stride - 1 - i / length;
      bool exists = i < stride * length && query < queries;
      to[i] = exists ? from[query * o.query.strides[2] + i % length * o.query.strides[3]] * scale : 0;
    }
  }

  /// products[row][key group] of kTile rows, `room` apart, with all groups of keys; there is memory for whole tiles of them.
  void multiply(const float *rows, int64_t sequenceHead, float *products, int64_t room) const {
    for (int64_t j = 0; j < groups; j += kTile) {
      Vector sums[kTile][kTile] = {};
      const float *with[kTile];
      for (int64_t i = 0; i < kTile; ++i)
        with[i] = vectorOf(sequenceHead, smaller(j + i, groups - 1));
      for (int64_t d = 0; d < depth; d += kLanes)
        for (int64_t r = 0; r < kTile; ++r)
          for (int64_t i = 0; i < kTile; ++i)
            sums[r][i] += load(rows + r * depth + d) * load(with[i] + d);
      for (int64_t r = 0; r < kTile; ++r)
        for (int64_t i = 0; i < kTile; ++i)
          products[r * room + j + i] = sumLanes(sums[r][i]);
    }
  }

  /// Adds up, for each group of keys, what the groups of queries of block `block` attend to it.
  void addImportance(int64_t sequenceHead, int64_t block, float *importance) const {
    int64_t heads = o.keys.sizes[1], firstGroup = block * call.ints.queries / stride, first = keys - queries;
    int64_t end = smaller((block + 1) * call.ints.queries, queries), count = roundUp(end, stride) / stride - firstGroup;
    int64_t room = roundUp(groups, kLanes), rows = count * group, begin = firstKeyOf(sequenceHead / heads) / stride;
    Scratch<float> scratch(kTile * (depth + room));
    float *products = scratch.data() + kTile * depth;
    for (int64_t row = 0; row < rows; row += kTile) {
      for (int64_t r = 0; r < smaller(kTile, rows - row); ++r)
        takeQueries(sequenceHead / heads, sequenceHead % heads * group + (row + r) / count,
                    firstGroup + (row + r) % count, scratch.data() + r * depth);
      for (int64_t i = smaller(kTile, rows - row) * depth; i < kTile * depth; ++i)
        scratch.data()[i] = 0;
      multiply(scratch.data(), sequenceHead, products, room);
      for (int64_t r = 0; r < smaller(kTile, rows - row); ++r) {
        int64_t own = first + (firstGroup + (row + r) % count + 1) * stride - 1; // key of the last query
        int64_t visible = smaller(own / stride + 1, groups);
        for (int64_t j = 0; j < smaller(begin, visible); ++j)
          products[r * room + j] = -__builtin_inff();
        if (begin < visible)
          addSoftmax(products + r * room, visible, importance);
      }
    }
  }

  void select(int64_t sequenceHead, int64_t block) const {
    const hone_tensor &blocks = o.blocks;
    int64_t heads = o.keys.sizes[1], sequence = sequenceHead / heads, places = blocks.sizes[3];
    int64_t begin = larger(boundOf(o.begin, sequence, block), 0),
            end = smaller(boundOf(o.end, sequence, block), places);
    int64_t *list = static_cast<int64_t *>(blocks.data) + sequence * blocks.strides[0] +
                    sequenceHead % heads * blocks.strides[1] + block * blocks.strides[2];
    int64_t taken = queries > kFewQueries ? listShare(sequenceHead, block, begin, end, list) : 0;
    for (; queries <= kFewQueries && begin + taken < end; ++taken)
      list[taken * blocks.strides[3]] = begin + taken;
    for (; taken < places; ++taken)
      list[taken * blocks.strides[3]] = -1;
  }

  /// Lists blocks from `begin` to `end` until those that are seen have the share; how many they are is the result.
  int64_t listShare(int64_t sequenceHead, int64_t block, int64_t begin, int64_t end, int64_t *list) const {
    int64_t places = o.blocks.sizes[3], perBlock = call.ints.size / stride, count = larger(end - begin, 0), taken = 0;
    int64_t room = roundUp(groups, kLanes), candidates = roundUp(count, kLanes);
    Scratch<float> scratch(room + candidates);
    float *importance = scratch.data(), *values = importance + room, total = 0, seen = 0;
    for (int64_t i = 0; i < room; ++i)
      importance[i] = 0;
    for (int64_t i = 0; i < candidates; ++i)
      values[i] = -1;
    addImportance(sequenceHead, block, importance);
    for (int64_t n = 0; n < places; ++n) {
      float sum = 0;
      for (int64_t j = n * perBlock; j < smaller((n + 1) * perBlock, groups); ++j)
        sum += importance[j];
      total += sum;
      if (n >= begin && n < end)
        values[n - begin] = sum;
      else
        seen += sum;
    }
    while (call.floats.share == 1 || seen < static_cast<float>(call.floats.share) * total) { // all of it are all blocks
      float greatest = greatestOf(values, count);
      int64_t i = takeGreatest(values, count);
      if (i == count)
        break;
      seen += greatest;
      list[taken++ * o.blocks.strides[3]] = begin + i;
    }
    return taken;
  }

  const SelectCall &call;
  decltype(SelectCall::operands) o;
  int64_t queries, keys, length, stride, group, depth, groups; // elements of a group, and groups of keys
  Scratch<float> vectors;                                      // [sequence and head][group of keys][element]
};

template <typename Keys> void run(const SelectCall &call) {
  if (!isAbsent(call.operands.blocks))
    Selection<Keys>(call).run();
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/select_antidiagonals.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
