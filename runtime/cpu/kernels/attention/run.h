// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A call of a kernel of attention: blocks of query rows, and split-KV over a long cache, over the threads.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_RUN_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_RUN_H

#include "../../cache_prefetch.h"
#include "../parts.h"
#include "../tasks.h"
#include "block.h"
#include "kv_blocked_keys.h"
#include "row_keys.h"

#include <omp.h>

namespace {

/// Keys of a part where a cache is divided. Parts have fixed places, whatever the numbers of rows and of threads, and are
/// merged from the first to the last, so that results do not depend on these numbers.
constexpr int64_t kSplitKeys = 4096;

/// Whether the last keys of the paths of a tree are gathered. Tiles of AMX have no gathered keys, but floats are multiplied by vectors.
#ifdef __AMX_BF16__
template <typename Keys> constexpr bool kGathersPaths = false;
template <> constexpr bool kGathersPaths<RowKeys<F32Cache>> = true;
template <> constexpr bool kGathersPaths<BlockedKeys<F32Cache>> = true;
#else
template <typename Keys> constexpr bool kGathersPaths = true;
#endif

/// How the rows of a sequence and key head are divided into blocks, and keys into parts. A prompt has work for all
/// threads without parts.
struct Division {
  int64_t sequenceHeads, rows, blockRows, blocks, parts;

  explicit Division(const Attention &attention)
      : sequenceHeads(attention.batch() * attention.keyHeads()), rows(attention.group() * attention.queries()),
        blockRows(attention.hasIndependentRows() && attention.hasLists() ? rowsOfList(attention.group())
                                                                         : chooseBlockRows(sequenceHeads, rows)),
        blocks((rows + blockRows - 1) / blockRows), parts(1) {
    if (attention.hasIndependentRows())
      parts = larger((attention.keys() + kSplitKeys - 1) / kSplitKeys, 1);
  }

  int64_t count() const { return sequenceHeads * blocks * parts; }

  /// Rows of a block: many for reuse of keys, fewer where threads would be idle.
  static int64_t chooseBlockRows(int64_t sequenceHeads, int64_t rows) {
    int64_t block = kBlockQueries, threads = omp_get_max_threads();
    while (block > kGemvRows && sequenceHeads * ((rows + block - 1) / block) < threads)
      block /= 2;
    return smaller(block, larger(rows, 1));
  }

  /// Rows of a block where each query has lists: those of one query alone, as the steps of a block are made of all that
  /// is listed for its rows.
  static int64_t rowsOfList(int64_t group) {
    int64_t block = smaller(group, kBlockQueries);
    while (group % block != 0)
      --block;
    return block;
  }
};

/// Sums of parts of the keys, [sequence and key head][block][part][row].
class PartialRows {
public:
  PartialRows(const Division &division, int64_t width)
      : division(division), rows(division.parts == 1 ? 0 : division.count() * division.blockRows),
        values(division.parts == 1 ? 0 : division.count() * division.blockRows * width) {
    for (int64_t i = 0; division.parts > 1 && i < division.count() * division.blockRows; ++i)
      rows.data()[i].values = values.data() + i * width;
  }

  PartialRow *of(int64_t task) const { return rows.data() + task * division.blockRows; }

private:
  const Division &division;
  Scratch<PartialRow> rows;
  Scratch<float> values;
};

template <typename Keys> class AttentionRun {
public:
  explicit AttentionRun(const Attention &attention)
      : attention(attention), division(attention), partial(division, toLanes(attention.valueSize())) {}

  void run() const {
    if (isAbsent(attention.out) && !attention.hasLse())
      return;
    if (attention.hasIndependentRows() && attention.hasLists())
      prefetchListed();
    Tasks parts(division.count()), wholes(division.parts == 1 ? 0 : division.count() / division.parts);
    Parts threads;
#pragma omp parallel
    threads.run(
        [&] {
          Block<Keys> block(attention);
          runTasks(&block, parts, wholes);
        },
        [&] { runTasks(nullptr, parts, wholes); });
    threads.finish();
  }

private:
  /// `block` is null for a thread that has no memory for one.
  void runTasks(Block<Keys> *block, Tasks &parts, Tasks &wholes) const {
    for (int64_t task; block && parts.take(task);)
      runPart(*block, task);
    if (division.parts > 1) {
#pragma omp barrier
      for (int64_t task; block && wholes.take(task);)
        mergeSplits(*block, task * division.parts);
    }
  }

  /// Where the cache may lie on a disk, the blocks that are listed for all rows are read together.
  void prefetchListed() const {
    hone::cpu::CachePrefetcher *prefetcher = hone::cpu::cachePrefetcher();
    const hone::kernels::Visibility &visibility = attention.visibility;
    if (!prefetcher || !visibility.blocks.data)
      return;
    int64_t perList = visibility.listHeads >= attention.group() ? attention.group() : 1; // rows of a query
    for (int64_t sequence = 0; sequence < attention.batch(); ++sequence)
      for (int64_t head = 0; head < attention.keyHeads(); ++head)
        for (int64_t row = 0; row < attention.group() * attention.queries(); row += perList)
          for (int64_t place = 0; place < visibility.listed; ++place)
            prefetchBlock(*prefetcher, sequence, head,
                          hone::kernels::elementOf(visibility.blocks, sequence,
                                                   attention.headOf(head, row) / visibility.listHeads,
                                                   attention.queryOf(row) / visibility.blockQueries, place));
  }

  void prefetchBlock(hone::cpu::CachePrefetcher &prefetcher, int64_t sequence, int64_t head, int64_t block) const {
    int64_t size = attention.visibility.blockKeys, end = smaller((block + 1) * size, attention.keys());
    if (block < 0 || block * size >= end)
      return;
    prefetcher.prefetch(attention.key, sequence, head, block * size, end);
    prefetcher.prefetch(attention.value, sequence, head, block * size, end);
  }

  /// Blocks are taken from the last, whose causal rows see most keys, to the first.
  void runKeys(Block<Keys> &block, int64_t task, int64_t firstKey, int64_t endKey) const {
    int64_t index = task / division.parts, sequenceHead = index / division.blocks;
    int64_t first = (division.blocks - 1 - index % division.blocks) * division.blockRows;
    block.run(sequenceHead / attention.keyHeads(), sequenceHead % attention.keyHeads(), first,
              smaller(division.blockRows, division.rows - first), firstKey, endKey);
  }

  void runPart(Block<Keys> &block, int64_t task) const {
    if (division.parts == 1) {
      runKeys(block, task, 0, attention.keys());
      return block.writeRows();
    }
    int64_t first = task % division.parts * kSplitKeys;
    runKeys(block, task, first, smaller(first + kSplitKeys, attention.keys()));
    block.writePartial(partial.of(task));
  }

  void mergeSplits(Block<Keys> &block, int64_t task) const {
    runKeys(block, task, 0, 0);
    block.merge(partial.of(task), division.parts, division.blockRows);
    block.writeRows();
  }

  const Attention &attention;
  Division division;
  PartialRows partial;
};

template <typename Keys> void run(const hone::kernels::Call<hone::kernels::Attention, hone::kernels::NoWeight> &call) {
  AttentionRun<Keys>(Attention(call, kGathersPaths<Keys>)).run();
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_RUN_H
