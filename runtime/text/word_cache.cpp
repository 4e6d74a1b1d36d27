// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words that were tokenized before.

#include "text/word_cache.h"

#include "text/vocabulary.h"

namespace hone::text {

bool WordCache::append(std::string_view word, std::vector<int32_t> &ids) const {
  auto found = spans.find(abslView(word));
  if (found == spans.end())
    return false;
  const int32_t *begin = pool.data() + found->second.begin;
  ids.insert(ids.end(), begin, begin + found->second.count);
  return true;
}

void WordCache::store(std::string_view word, const int32_t *ids, size_t count) {
  if (spans.size() == kMaximalWords) {
    spans.clear();
    pool.clear();
  }
  spans.emplace(abslView(word), Span{static_cast<uint32_t>(pool.size()), static_cast<uint32_t>(count)});
  pool.insert(pool.end(), ids, ids + count);
}

} // namespace hone::text
