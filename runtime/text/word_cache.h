// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words that were tokenized before.

#ifndef HONE_RUNTIME_TEXT_WORD_CACHE_H
#define HONE_RUNTIME_TEXT_WORD_CACHE_H

#include "absl/container/flat_hash_map.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone::text {

/// The ids of words seen before. Forgets everything when it is full.
class WordCache {
public:
  /// Words of natural text are shorter, in bytes; longer ones rarely come again.
  static constexpr size_t kLongestWord = 96;

  /// Appends the ids of `word`; false where it is not known.
  bool append(std::string_view word, std::vector<int32_t> &ids) const;
  void store(std::string_view word, const int32_t *ids, size_t count);

private:
  static constexpr size_t kMaximalWords = 1 << 16;

  struct Span {
    uint32_t begin, count;
  };
  absl::flat_hash_map<std::string, Span> spans;
  std::vector<int32_t> pool;
};

} // namespace hone::text

#endif // HONE_RUNTIME_TEXT_WORD_CACHE_H
