// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over keys and values that lie as rows, sixty-four at a time: by tiles where there are some, else keys are
// transposed and what is no float is copied into floats.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROW_KEYS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROW_KEYS_H

#include "../scratch.h"
#include "products.h"
#include "tile_keys.h"
#include "tree_paths.h"

namespace {

constexpr int64_t kStepRows = 4;                 // of a small-M block, those scored at a time
constexpr int64_t kGroupRows = kMostProductRows; // whose values are left out together
static_assert((kBlockQueries + kGroupRows - 1) / kGroupRows < 32);

template <typename Cache> class RowKeys {
public:
  RowKeys(const Attention &attention, int64_t mostRows)
      : attention(attention), paddedSize(toLanes(attention.size())), paddedValue(toLanes(attention.valueSize())),
        memory(mostRows * kBlockKeys + kBlockKeys * (paddedSize + larger(paddedSize, paddedValue))),
        scores(memory.data()), transposedKeys(scores + mostRows * kBlockKeys),
        copiedRows(transposedKeys + kBlockKeys * paddedSize), tiles(attention, mostRows),
        gatheredKeys(attention, attention.key), gatheredValues(attention, attention.value) {}

  /// Adds keys [begin, end) to the sums of rows, as far as they are visible.
  void run(const RowBlock &of, int64_t begin, int64_t end) {
    if (tiles.takes())
      return tiles.run(of, KeyBlocks(of.seen, begin, end));
    block = &of;
    gathered = firstGathered(attention, of.sequence, kBlockKeys);
    from = {attention.key, attention.value, of.sequence, of.head, 0};
    addBlocks({of.seen, begin, smaller(end, gathered)}, /*prefetches=*/true);
    if (end > gathered)
      forEachQuery(of, [&](int64_t first, int64_t count) { addPath(of, first, count, larger(begin, gathered), end); });
  }

private:
  /// Where keys and values are read, the first of which is number `origin`.
  struct Source {
    hone_tensor key, value;
    int64_t sequence, head, origin;
  };

  CacheRows<Cache> keysAt(int64_t key) const { return {from.key, from.sequence, from.head, key - from.origin}; }
  CacheRows<Cache> valuesAt(int64_t key) const { return {from.value, from.sequence, from.head, key - from.origin}; }

  /// Adds the gathered ones of keys [begin, end) to the sums of a query's rows.
  void addPath(const RowBlock &of, int64_t first, int64_t count, int64_t begin, int64_t end) {
    RowBlock part = partOf(of, first, count);
    block = &part;
    int64_t query = part.rows[0].query;
    from = {gatheredKeys.take(of.sequence, of.head, query), gatheredValues.take(of.sequence, of.head, query), 0, 0,
            gathered};
    addBlocks({of.seen, begin, smaller(end, part.rows[0].end)}, /*prefetches=*/false);
  }

  void addBlocks(const KeyBlocks &blocks, bool prefetches) {
    Prefetch<Cache> next(from.key, from.value, from.sequence, from.head, advancesOfBlock());
    isPrefetched = prefetches;
    if (prefetches && block->count >= kGemvRows)
      keysAt(blocks.firstKey(0)).prefetch(blocks.keyCount(0));
    for (int64_t i = 0; i < blocks.count(); ++i)
      if (blocks.keyCount(i) > 0)
        addKeys(blocks, i, next);
  }

  int64_t scoredRows() const { return block->count < kGemvRows ? kStepRows : block->count; }
  int64_t advancesOfBlock() const {
    bool turns = keysAt(from.origin).canTranspose();
    int64_t steps = turns ? attention.size() / CacheRows<Cache>::kPerBlock : 1;
    return kBlockKeys / kLanes * (steps + 2) + (block->count + scoredRows() - 1) / scoredRows() + block->count;
  }

  void addKeys(const KeyBlocks &blocks, int64_t index, Prefetch<Cache> &next) {
    int64_t first = blocks.firstKey(index), keyCount = blocks.keyCount(index);
    CacheRows<Cache> keys = keysAt(first), values = valuesAt(first);
    int64_t step = scoredRows();
    if (isPrefetched && block->count < kGemvRows)
      next.begin(blocks, index);
    else if (isPrefetched)
      prefetchMany(blocks, index);
    for (int64_t j = 0; j < keyCount; j += kLanes)
      transposeKeys(keys, j, smaller(kLanes, keyCount - j), next);
    for (int64_t r = 0; r < block->count; r += step) {
      multiply({block->queries + r * paddedSize, paddedSize, transposedKeys, kBlockKeys, paddedSize,
                scores + r * kBlockKeys, kBlockKeys, false},
               smaller(step, block->count - r), toLanes(keyCount));
      next.advance();
    }
    uint32_t kept = 0; // groups of kGroupRows rows that have weights, as bits
    for (int64_t r = 0; r < block->count; ++r) {
      kept |= static_cast<uint32_t>(softmaxRow(r, first, keyCount)) << r / kGroupRows;
      next.advance();
    }
    addValues(values, keyCount, kept, next);
  }

  /// Many rows work long on a block: its values and the next one's keys have time to come.
  void prefetchMany(const KeyBlocks &blocks, int64_t index) const {
    valuesAt(blocks.firstKey(index)).prefetch(blocks.keyCount(index));
    keysAt(blocks.firstKey(index + 1)).prefetch(blocks.keyCount(index + 1));
  }

  /// transposedKeys[d][j] = key j, element d, for 16 keys
  void transposeKeys(const CacheRows<Cache> &keys, int64_t j, int64_t some, Prefetch<Cache> &next) {
    if (keys.canTranspose()) {
      for (int64_t part = 0; part < attention.size() / CacheRows<Cache>::kPerBlock; ++part) {
        keys.transposeBlock(j, some, part, transposedKeys + j, kBlockKeys);
        next.advance();
      }
      return;
    }
    keys.copy(j, some, copiedRows, paddedSize);
    transposeFloats(copiedRows, paddedSize, some, paddedSize, transposedKeys + j, kBlockKeys);
    next.advance();
  }

  /// sums += scores · values, of the rows of groups that are kept. Small-M scores leave time to copy values where they
  /// are needed; large-M ones have all at once.
  void addValues(const CacheRows<Cache> &values, int64_t keyCount, uint32_t kept, Prefetch<Cache> &next) {
    int64_t step = block->count < kGemvRows ? kLanes : kBlockKeys;
    for (int64_t j = 0; j < keyCount; j += step) {
      int64_t some = smaller(step, keyCount - j);
      bool areFloats = values.areFloats();
      if (!areFloats && kept != 0)
        values.copy(j, some, copiedRows, paddedValue);
      next.advance();
      forEachRun(kept, [&](int64_t first, int64_t rows) {
        multiply({scores + first * kBlockKeys + j, kBlockKeys, areFloats ? values.floatRow(j) : copiedRows,
                  areFloats ? values.rowStride() : paddedValue, some, block->sums + first * paddedValue, paddedValue,
                  true},
                 rows, paddedValue);
      });
      next.advance();
    }
  }

  /// Calls `of(first, count)` for the rows of each run of groups that are kept.
  template <typename Run> void forEachRun(uint32_t kept, Run of) const {
    for (int64_t group = 0; kept >> group != 0;) {
      group += __builtin_ctz(kept >> group);
      int64_t groups = __builtin_ctzll(~(uint64_t{kept} >> group)), first = group * kGroupRows;
      of(first, smaller(groups * kGroupRows, block->count - first));
      group += groups;
    }
  }

  /// Whether the row has weights in the block.
  bool softmaxRow(int64_t r, int64_t first, int64_t keyCount) {
    float *score = scores + r * kBlockKeys;
    block->rows[r].adjust(score, first, keyCount, attention.softcap);
    RowStep step = block->rows[r].exponentiate(score, first, keyCount);
    if (step.correction == 1.0f)
      return step.hasWeights;
    for (int64_t d = 0; d < paddedValue; d += kLanes)
      store(block->sums + r * paddedValue + d, load(block->sums + r * paddedValue + d) * step.correction);
    return step.hasWeights;
  }

  const Attention &attention;
  int64_t paddedSize, paddedValue;
  Scratch<float> memory;
  float *scores, *transposedKeys, *copiedRows;
  TileKeys<Cache> tiles;
  int64_t gathered = 0; // the first key that is gathered
  GatheredRows<typename Cache::Element> gatheredKeys, gatheredValues;
  const RowBlock *block = nullptr;
  Source from = {};
  bool isPrefetched = true;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROW_KEYS_H
