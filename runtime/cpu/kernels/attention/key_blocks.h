// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order in which the keys of a cache are read, and what is prefetched.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KEY_BLOCKS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KEY_BLOCKS_H

#include "cache.h"
#include "seen_keys.h"

namespace {

constexpr int64_t kBlockKeys = 64; // keys whose scores are held at a time

/// Blocks of kBlockKeys keys that hold keys of [begin, end), those that are listed, from the first to the last. They begin
/// at multiples of their size, so that which keys are a block does not depend on which ones the rows of a call see.
class KeyBlocks {
public:
  KeyBlocks(const SeenKeys &seen, int64_t begin, int64_t end)
      : end(end), first(begin / kBlockKeys), blocks(end <= begin   ? 0
                                                    : seen.numbers ? seen.list(begin, end, kBlockKeys)
                                                                   : (end + kBlockKeys - 1) / kBlockKeys - first),
        numbers(seen.numbers) {}

  int64_t count() const { return blocks; }
  int64_t firstKey(int64_t index) const {
    if (numbers)
      return index < blocks ? numbers[index] * kBlockKeys : end;
    return (first + index) * kBlockKeys;
  }
  int64_t keyCount(int64_t index) const { return index < blocks ? smaller(kBlockKeys, end - firstKey(index)) : 0; }

private:
  int64_t end, first, blocks;
  const int64_t *numbers; // of blocks; null where all are taken from `first` on
};

/// Prefetches keys and values of the following blocks, a few lines at a time between the calculations of one, so that
/// loads overlap with arithmetic. Of each of the next kStreams blocks a part is prefetched, the larger part the sooner
/// the block comes: a core reaches its full bandwidth only with several streams.
template <typename Cache> class Prefetch {
public:
  /// `advance` is called `calls` times a block.
  Prefetch(const hone_tensor &key, const hone_tensor &value, int64_t sequence, int64_t head, int64_t calls)
      : key(key, sequence, head, 0), value(value, sequence, head, 0),
        lines(larger(this->key.rowLines(), this->value.rowLines())), linesPerCall((kRows * lines + calls - 1) / calls),
        keySkip(this->key.strideBytes() - (lines - 1) * 64), valueSkip(this->value.strideBytes() - (lines - 1) * 64) {}

  /// Block `index` is worked on.
  void begin(const KeyBlocks &blocks, int64_t index) {
    for (int64_t stream = 1; stream <= kStreams; ++stream) {
      int64_t skipped = (kStreams - stream) * kRows;
      bool exists = blocks.keyCount(index + stream) > skipped;
      int64_t first = exists ? blocks.firstKey(index + stream) + skipped : blocks.firstKey(index);
      keyRuns[stream - 1] = key.rowBytes(first);
      valueRuns[stream - 1] = value.rowBytes(first);
    }
    line = keyOffset = valueOffset = 0;
    left = kRows * lines;
  }

  void advance() {
    for (int64_t end = larger(left - linesPerCall, 0); left > end; --left) {
      for (int64_t run = 0; run < kStreams; ++run) {
        __builtin_prefetch(keyRuns[run] + keyOffset, 0, 2);
        __builtin_prefetch(valueRuns[run] + valueOffset, 0, 2);
      }
      bool isLast = ++line == lines;
      keyOffset += isLast ? keySkip : 64;
      valueOffset += isLast ? valueSkip : 64;
      line = isLast ? 0 : line;
    }
  }

private:
  static constexpr int64_t kStreams = 4, kRows = kBlockKeys / kStreams; // prefetched during a block, of each stream

  CacheRows<Cache> key, value;
  int64_t lines, linesPerCall, left = 0, line = 0;
  int64_t keyOffset = 0, valueOffset = 0, keySkip, valueSkip; // from the last line of a row to the next row
  const uint8_t *keyRuns[kStreams] = {}, *valueRuns[kStreams] = {};
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KEY_BLOCKS_H
