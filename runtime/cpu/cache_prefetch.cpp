// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/cache_prefetch.h"

#include <utility>

namespace hone::cpu {

static thread_local CachePrefetcher *current = nullptr;

CachePrefetcher *cachePrefetcher() { return current; }

CachePrefetchScope::CachePrefetchScope(CachePrefetcher *prefetcher) : outer(std::exchange(current, prefetcher)) {}

CachePrefetchScope::~CachePrefetchScope() { current = outer; }

} // namespace hone::cpu
