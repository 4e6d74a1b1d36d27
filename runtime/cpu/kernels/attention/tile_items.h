// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order in which tiles of query rows attend to steps of keys by AMX: a software pipeline of tile products and
// online softmax. While vectors compute the softmax of one item, tiles multiply the keys of the next and the values of
// the previous one.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_TILE_ITEMS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_TILE_ITEMS_H

#include "row_block.h"

#include <utility>

namespace {

/// A tile of rows and a step of keys.
template <typename Step> struct TileItem {
  int64_t index = -1, tile = 0;
  bool exists = false, isFirst = false; // of the step
  Step step;
  int64_t keyParts = 0, valueColumns = 0; // that are multiplied
};

/// All items of a block whose rows see keys of the step: all tiles of a step, then those of the next.
template <typename Steps> class TileItems {
public:
  TileItems(const RowBlock &block, const Steps &steps, int64_t height) : block(block), steps(steps), height(height) {}

  int64_t tiles() const { return (block.count + height - 1) / height; }
  int64_t rowsOf(int64_t tile) const { return smaller(height, block.count - tile * height); }

  template <typename Item> void findFirst(Item &item) const { find(item, -1, tiles()); }
  template <typename Item> void findAfter(const Item &before, Item &item) const {
    find(item, before.index, before.tile);
  }

private:
  /// The item after tile `tile` of step `index`.
  template <typename Item> void find(Item &item, int64_t index, int64_t tile) const {
    item.exists = item.isFirst = false;
    if (index >= 0 && index < steps.count())
      item.step = steps[index];
    for (; index < steps.count(); item.isFirst = true) {
      while (index >= 0 && ++tile < tiles())
        if (block.seesStep(tile * height, rowsOf(tile), item.step)) {
          item.exists = true;
          item.index = index;
          item.tile = tile;
          item.keyParts = item.valueColumns = 0;
          return;
        }
      tile = -1;
      if (++index < steps.count())
        item.step = steps[index];
    }
    item.index = index;
  }

  const RowBlock &block;
  const Steps &steps;
  int64_t height;
};

/// Works on all items. `worker` takes the keys of a step and the values of another, begins an item, exponentiates its
/// rows, prefetches what comes, advances `part` of `parts` with the products of the next item's keys and the last one's
/// values, and finishes both.
template <typename Item, typename Worker, typename Steps> void runItems(Worker &worker, const TileItems<Steps> &items) {
  Item three[3];
  Item *last = &three[0], *item = &three[1], *next = &three[2];
  auto startsStep = [](const Item &some) { return some.exists && some.isFirst; };
  items.findFirst(*item);
  if (startsStep(*item))
    worker.takeKeys(item->step);
  worker.advance(*item, *last, 1, 1);
  while (item->exists || last->exists) {
    items.findAfter(*item, *next);
    if (startsStep(*next))
      worker.takeKeys(next->step);
    if (startsStep(*last))
      worker.takeValues(last->step);
    worker.begin(*item);
    for (int64_t r = 0, rows = item->exists ? items.rowsOf(item->tile) : 1; r < rows; ++r) {
      if (item->exists)
        worker.exponentiate(*item, r);
      worker.prefetch(*item, 2 * r + 1, 2 * rows);
      worker.advance(*next, *last, r + 1, rows);
      worker.prefetch(*item, 2 * r + 2, 2 * rows);
    }
    worker.finish(*item, *last);
    std::swap(last, item);
    std::swap(item, next);
  }
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_TILE_ITEMS_H
