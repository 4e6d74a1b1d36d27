// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over keys and values in blocks: by tiles where there are some, else by vectors.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_KEYS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_KEYS_H

#include "kv_blocked_tiles.h"

namespace {

template <typename Cache> class BlockedKeys {
public:
  BlockedKeys(const Attention &attention, int64_t mostRows)
      : products(attention, mostRows), tiles(attention, mostRows) {}

  /// Adds keys [begin, end) to the sums of rows, as far as they are visible.
  void run(const RowBlock &of, int64_t begin, int64_t end) {
    if (tiles.takes(of.count))
      tiles.run(of, begin, end);
    else
      products.run(of, begin, end);
  }

private:
  BlockedProducts<Cache> products;
  BlockedTiles<Cache> tiles;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_KEYS_H
