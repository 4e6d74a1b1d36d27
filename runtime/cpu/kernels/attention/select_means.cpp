// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks of keys that blocks of queries see, by mean queries and mean keys. Keys are read twice: for the mean of all, and for means and
// similarities without it. Mean keys of sixteen blocks are a panel, whose products with a mean query are a vector.

#include "../entry.h"

#include "../parallel_for.h"
#include "../scratch.h"
#include "block_importance.h"
#include "key_elements.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

using SelectCall = kernels::Call<kernels::SelectMeans, kernels::NoWeight>;

enum Threshold { kLeastBlocks, kShare, kSimilarity }; // columns of thresholds

/// Sums over vectors of a block and over the units of their directions.
struct BlockSums {
  float *sums, *units;
  int64_t length, count = 0;

  void clear() {
    for (int64_t d = 0; d < length; ++d)
      sums[d] = units[d] = 0;
    count = 0;
  }

  /// `element(d)` is that of a vector.
  template <typename Element> void add(Element element) {
    float square = 0;
    for (int64_t d = 0; d < length; ++d)
      square += element(d) * element(d);
    float scale = square > 0 ? 1 / __builtin_sqrtf(square) : 0;
    for (int64_t d = 0; d < length; ++d) {
      sums[d] += element(d);
      units[d] += scale * element(d);
    }
    ++count;
  }

  /// The square of the norm of the mean direction: the mean cosine of all pairs of vectors.
  float similarity() const {
    float square = 0, share = 1 / static_cast<float>(larger(count, 1));
    for (int64_t d = 0; d < length; ++d)
      square += units[d] * share * (units[d] * share);
    return square;
  }
};

template <typename Keys> class Selection {
public:
  explicit Selection(const SelectCall &call)
      : call(call), lists(call), o(call.operands), queries(o.query.sizes[2]), keys(o.keys.sizes[2]),
        length(o.query.sizes[3]), size(call.ints.size), group(o.query.sizes[1] / o.keys.sizes[1]),
        places(o.blocks.sizes[3]), room((places + kLanes - 1) / kLanes * kLanes),
        sequenceHeads(lists.areSelected() ? o.keys.sizes[0] * o.keys.sizes[1] : 0), sums(sequenceHeads * room * length),
        panels(sequenceHeads * room * length), similarities(sequenceHeads * room), means(sequenceHeads * length) {}

  void run() {
    int64_t all = sequenceHeads * places;
    parallelFor(all, true, [&](int64_t i) { addKeys(i / places, i % places); });
    for (int64_t head = 0; head < sequenceHeads; ++head)
      average(head);
    parallelFor(all, true, [&](int64_t i) { poolKeys(i / places, i % places); });
    lists.fill([&](int64_t sequenceHead, int64_t block, int64_t begin, int64_t end, List list) {
      return select(sequenceHead, block, begin, end, list);
    });
  }

private:
  Keys keysOf(int64_t sequenceHead) const {
    int64_t heads = o.keys.sizes[1];
    return Keys(o.keys, sequenceHead / heads * o.keys.strides[0] + sequenceHead % heads * o.keys.strides[1]);
  }
  int64_t firstKeyOf(int64_t sequenceHead) const { return lists.firstKeyOf(sequenceHead / o.keys.sizes[1]); }

  /// Calls `body` with the number of each key of a block.
  template <typename Body> void forKeys(int64_t sequenceHead, int64_t block, Body body) const {
    int64_t end = smaller((block + 1) * size, keys);
    for (int64_t key = larger(block * size, firstKeyOf(sequenceHead)); key < end; ++key)
      body(key);
  }

  void addKeys(int64_t sequenceHead, int64_t block) const {
    float *to = sums.data() + (sequenceHead * room + block) * length;
    for (int64_t d = 0; d < length; ++d)
      to[d] = 0;
    Keys from = keysOf(sequenceHead);
    forKeys(sequenceHead, block, [&](int64_t key) {
      for (int64_t d = 0; d < length; ++d)
        to[d] += from.at(key, d);
    });
  }

  /// The mean of all keys of a head.
  void average(int64_t sequenceHead) const {
    float *mean = means.data() + sequenceHead * length;
    auto count = static_cast<float>(larger(keys - firstKeyOf(sequenceHead), 1));
    for (int64_t d = 0; d < length; ++d) {
      float sum = 0;
      for (int64_t block = 0; block < places; ++block)
        sum += sums.data()[(sequenceHead * room + block) * length + d];
      mean[d] = sum / count;
    }
  }

  /// Element d of the mean key of a block is in row d of the block's panel.
  void poolKeys(int64_t sequenceHead, int64_t block) const {
    const float *mean = means.data() + sequenceHead * length;
    Scratch<float> scratch(3 * length);
    float *centred = scratch.data() + 2 * length;
    BlockSums pooled{scratch.data(), scratch.data() + length, length};
    pooled.clear();
    Keys from = keysOf(sequenceHead);
    forKeys(sequenceHead, block, [&](int64_t key) {
      for (int64_t d = 0; d < length; ++d)
        centred[d] = from.at(key, d) - mean[d];
      pooled.add([&](int64_t d) { return centred[d]; });
    });
    similarities.data()[sequenceHead * room + block] = pooled.similarity();
    float *panel = panels.data() + (sequenceHead * room + block / kLanes * kLanes) * length + block % kLanes;
    for (int64_t d = 0; d < length; ++d)
      panel[d * kLanes] = pooled.sums[d] / static_cast<float>(larger(pooled.count, 1));
  }

  float thresholdOf(int64_t sequenceHead, Threshold threshold) const {
    int64_t row = o.thresholds.sizes[0] == 1 ? 0 : sequenceHead % o.keys.sizes[1];
    return floats(o.thresholds)[row * o.thresholds.strides[0] + threshold * o.thresholds.strides[1]];
  }

  int64_t select(int64_t sequenceHead, int64_t block, int64_t begin, int64_t end, List list) const {
    int64_t last =
        keys - queries + smaller((block + 1) * call.ints.queries, queries); // the key after those that are seen
    int64_t first = firstKeyOf(sequenceHead) / size, visible = smaller((larger(last, 0) + size - 1) / size, places);
    Scratch<float> scratch(3 * room + 2 * length);
    float *importance = scratch.data(), *scores = importance + room, *values = scores + room;
    for (int64_t i = 0; i < room; ++i)
      importance[i] = 0;
    BlockSums pooled{values + room, values + room + length, length};
    for (int64_t head = 0; head < group; ++head) {
      poolQueries(sequenceHead, head, block, pooled);
      if (pooled.similarity() < thresholdOf(sequenceHead, kSimilarity))
        return listAll(begin, end, list);
      score(sequenceHead, pooled, first, visible, scores);
      if (greatestOf(scores, visible) > -__builtin_inff())
        addSoftmax(scores, visible, importance);
    }
    return listBlocks(sequenceHead, begin, end, first, visible, importance, values, list);
  }

  /// Sums over the queries of a block of a query head.
  void poolQueries(int64_t sequenceHead, int64_t head, int64_t block, BlockSums &pooled) const {
    int64_t heads = o.keys.sizes[1], end = smaller((block + 1) * call.ints.queries, queries);
    const float *from = floats(o.query) + sequenceHead / heads * o.query.strides[0] +
                        (sequenceHead % heads * group + head) * o.query.strides[1];
    pooled.clear();
    for (int64_t query = block * call.ints.queries; query < end; ++query) {
      const float *at = from + query * o.query.strides[2];
      pooled.add([&](int64_t d) { return at[d * o.query.strides[3]]; });
    }
  }

  /// scores[n] of the blocks from `first` to `visible`, minus infinity before them, where blocks are not similar, and up to a whole vector.
  void score(int64_t sequenceHead, const BlockSums &query, int64_t first, int64_t visible, float *scores) const {
    float scale = static_cast<float>(call.floats.scale) / static_cast<float>(larger(query.count, 1));
    float least = thresholdOf(sequenceHead, kSimilarity);
    for (int64_t n = 0; n < visible; n += kLanes) {
      const float *panel = panels.data() + (sequenceHead * room + n) * length;
      Vector sum = 0;
      for (int64_t d = 0; d < length; ++d)
        sum += scale * query.sums[d] * load(panel + d * kLanes);
      store(scores + n, sum);
      for (int64_t i = n; i < n + kLanes; ++i)
        if (i < first || i >= visible || similarities.data()[sequenceHead * room + i] < least)
          scores[i] = -__builtin_inff();
    }
  }

  int64_t listBlocks(int64_t sequenceHead, int64_t begin, int64_t end, int64_t first, int64_t visible,
                     const float *importance, float *values, List list) const {
    float total = 0;
    Seen seen{0, 0};
    for (int64_t i = 0; i < room; ++i)
      values[i] = -1;
    int64_t taken = 0;
    for (int64_t n = 0; n < places; ++n) {
      total += importance[n];
      if (n < begin || n >= end)
        seen.importance += importance[n], seen.blocks += n >= first && n < visible ? 1.0f : 0.0f;
      else if (similarities.data()[sequenceHead * room + n] < thresholdOf(sequenceHead, kSimilarity))
        list[taken++] = n;
      else
        values[n - begin] = importance[n];
    }
    seen.blocks += static_cast<float>(taken);
    auto shareOf = [&](Threshold threshold, float all) {
      float share = thresholdOf(sequenceHead, threshold);
      return share >= 1 ? __builtin_inff() : share * all;
    };
    Seen goal{shareOf(kShare, total), shareOf(kLeastBlocks, static_cast<float>(larger(visible - first, 0)))};
    return taken + listGreatest(values, larger(end - begin, 0), begin, seen, goal, {&list[taken], list.stride});
  }

  const SelectCall &call;
  BlockLists<SelectCall> lists;
  decltype(SelectCall::operands) o;
  int64_t queries, keys, length, size, group;
  int64_t places, room; // blocks of keys, and those of whole panels
  int64_t sequenceHeads;
  Scratch<float> sums;         // [sequence and head][block][element], of keys
  Scratch<float> panels;       // [sequence and head][panel][element][16], mean keys
  Scratch<float> similarities; // [sequence and head][block]
  Scratch<float> means;        // [sequence and head][element], of all keys
};

template <typename Keys> void run(const SelectCall &call) {
  if (!isAbsent(call.operands.blocks))
    Selection<Keys>(call).run();
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/select_means.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
