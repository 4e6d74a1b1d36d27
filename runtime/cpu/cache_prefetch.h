// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prefetch of the parts of a KV cache that attention is about to read, where they may lie on a disk.

#ifndef HONE_RUNTIME_CPU_CACHE_PREFETCH_H
#define HONE_RUNTIME_CPU_CACHE_PREFETCH_H

#include "hone/runtime/program.h"

namespace hone::cpu {

class CachePrefetcher {
public:
  /// Begins to read positions [first, end) of a sequence and head of `cache`, [sequences, heads, positions, elements], and does not wait.
  virtual void prefetch(const hone_tensor &cache, int64_t sequence, int64_t head, int64_t first, int64_t end) = 0;

protected:
  ~CachePrefetcher() = default;
};

/// That of the call that this thread runs, or null.
CachePrefetcher *cachePrefetcher();

/// Makes a prefetcher, or null, this thread's while it lives.
class CachePrefetchScope {
public:
  explicit CachePrefetchScope(CachePrefetcher *prefetcher);
  ~CachePrefetchScope();
  CachePrefetchScope(const CachePrefetchScope &) = delete;
  CachePrefetchScope &operator=(const CachePrefetchScope &) = delete;

private:
  CachePrefetcher *outer;
};

} // namespace hone::cpu

#endif // HONE_RUNTIME_CPU_CACHE_PREFETCH_H
