// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Softmax over a row of scores of blocks, the greatest of what they come to, and lists of those.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_IMPORTANCE_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_IMPORTANCE_H

#include "../parallel_for.h"
#include "../vector_exp.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

inline int64_t boundOf(const hone_tensor &bounds, int64_t sequence, int64_t query) {
  int64_t row = bounds.sizes[0] == 1 ? 0 : sequence;
  return static_cast<const int64_t *>(bounds.data)[row * bounds.strides[0] + query * bounds.strides[1]];
}

/// The greatest of `count` values and of what fills the last vector; minus infinity where there are none.
inline float greatestOf(const float *values, int64_t count) {
  Vector most = -__builtin_inff();
  for (int64_t i = 0; i < count; i += kLanes)
    most = __builtin_elementwise_max(most, load(values + i));
  return __builtin_reduce_max(most);
}

/// Adds the softmax of `scores`, of which there are `count` and room for whole vectors, to `importance`.
inline void addSoftmax(float *scores, int64_t count, float *importance) {
  for (int64_t i = count; i % kLanes != 0; ++i)
    scores[i] = -__builtin_inff();
  float greatest = greatestOf(scores, count);
  Vector sum = 0;
  for (int64_t i = 0; i < count; i += kLanes) {
    Vector e = boundedExp(load(scores + i) - greatest);
    store(scores + i, e);
    sum += e;
  }
  float total = sumLanes(sum);
  for (int64_t i = 0; i < count; i += kLanes)
    store(importance + i, load(importance + i) + load(scores + i) / total);
}

/// The number of the greatest of `count` values, the first of equal ones, which becomes -1, as what fills the last vector is; `count` where
/// none is left. Values are not negative.
inline int64_t takeGreatest(float *values, int64_t count) {
  float greatest = greatestOf(values, count);
  int64_t i = greatest < 0 ? count : 0;
  while (i < count && __builtin_reduce_or(load(values + i) == greatest) == 0)
    i += kLanes;
  while (i < count && values[i] != greatest)
    ++i;
  if (i < count)
    values[i] = -1;
  return i;
}

/// The places of a list.
struct List {
  int64_t *data;
  int64_t stride;
  int64_t &operator[](int64_t i) const { return data[i * stride]; }
};

/// Lists the blocks from `begin` to `end`; how many they are.
inline int64_t listAll(int64_t begin, int64_t end, List list) {
  for (int64_t n = begin; n < end; ++n)
    list[n - begin] = n;
  return larger(end - begin, 0);
}

/// What a list and the blocks that are seen without it have so far, or are to have: importance, and a number of blocks.
struct Seen {
  float importance, blocks;

  bool isLess(const Seen &goal) const { return importance < goal.importance || blocks < goal.blocks; }
};

/// Appends to `list` the numbers `begin + i` of the greatest of `count` values, in the order of takeGreatest, until `seen` is at least
/// `goal`; how many those are.
inline int64_t listGreatest(float *values, int64_t count, int64_t begin, Seen seen, const Seen &goal, List list) {
  int64_t taken = 0;
  while (seen.isLess(goal)) {
    float greatest = greatestOf(values, count);
    int64_t i = takeGreatest(values, count);
    if (i == count)
      break;
    seen.importance += greatest, seen.blocks += 1;
    list[taken++] = begin + i;
  }
  return taken;
}

/// Lists of blocks for blocks of queries. Of a call with few queries all candidates are listed.
template <typename Call> class BlockLists {
public:
  static constexpr int64_t kFewQueries = 64;

  explicit BlockLists(const Call &call) : o(call.operands), queries(o.query.sizes[2]) {}

  bool areSelected() const { return queries > kFewQueries; }

  int64_t firstKeyOf(int64_t sequence) const {
    if (isAbsent(o.keyBegin))
      return 0;
    return larger(static_cast<const int64_t *>(o.keyBegin.data)[sequence * o.keyBegin.strides[0]], 0);
  }

  /// Fills each list: `select(sequence and head, block of queries, begin, end, list)` selects of the blocks from `begin` to `end`, and says
  /// how many.
  template <typename Select> void fill(Select select) const {
    int64_t blocks = o.blocks.sizes[2];
    // Later blocks see more keys: early and late ones alternate, so that threads have as much work.
    parallelFor(countRows(o.blocks), areSelected(), [&](int64_t row) {
      int64_t place = row % blocks;
      fillOne(row / blocks, place % 2 == 0 ? place / 2 : blocks - 1 - place / 2, select);
    });
  }

private:
  template <typename Select> void fillOne(int64_t sequenceHead, int64_t block, Select select) const {
    const hone_tensor &blocks = o.blocks;
    int64_t heads = o.keys.sizes[1], sequence = sequenceHead / heads, places = blocks.sizes[3];
    int64_t begin = larger(boundOf(o.begin, sequence, block), 0),
            end = smaller(boundOf(o.end, sequence, block), places);
    List list{static_cast<int64_t *>(blocks.data) + sequence * blocks.strides[0] +
                  sequenceHead % heads * blocks.strides[1] + block * blocks.strides[2],
              blocks.strides[3]};
    int64_t taken = areSelected() ? select(sequenceHead, block, begin, end, list) : listAll(begin, end, list);
    for (; taken < places; ++taken)
      list[taken] = -1;
  }

  decltype(Call::operands) o;
  int64_t queries;
};

} // namespace
} // namespace hone::cpu::HONE_ISA_NAMESPACE

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCK_IMPORTANCE_H
