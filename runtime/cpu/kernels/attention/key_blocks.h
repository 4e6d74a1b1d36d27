// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order in which the keys of a cache are read, and what is prefetched.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KEY_BLOCKS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KEY_BLOCKS_H

#include "cache.h"
#include "seen_keys.h"

namespace {

constexpr int64_t kBlockKeys = 64;                           // keys whose scores are held at a time
constexpr int64_t kRangeBits = 2, kRanges = 1 << kRangeBits; // that are read alternately where the call is memory-bound

/// Blocks of the keys [begin, end), those that are seen, one after another or, where `isSpread`, alternately from kRanges
/// ranges of equal length: a core reaches its full bandwidth only with several streams.
class KeyBlocks {
public:
  KeyBlocks(const SeenKeys &seen, int64_t begin, int64_t end, bool isSpread)
      : begin(begin), end(larger(begin, end)), bits(isSpread ? kRangeBits : 0),
        blocks(seen.words ? seen.list(begin, end, kBlockKeys) : (this->end - begin + kBlockKeys - 1) / kBlockKeys),
        perRange(((blocks - 1) >> bits) + 1), numbers(seen.words ? seen.numbers : nullptr) {}

  /// Blocks to go through; some may be empty.
  int64_t count() const { return perRange << bits; }
  int64_t firstKey(int64_t index) const {
    int64_t range = index & ((1 << bits) - 1), block = range * perRange + (index >> bits);
    if (numbers)
      return block < blocks ? numbers[block] * kBlockKeys : end;
    return begin + block * kBlockKeys;
  }
  int64_t keyCount(int64_t index) const {
    return index < count() ? larger(smaller(kBlockKeys, end - firstKey(index)), 0) : 0;
  }

private:
  int64_t begin, end, bits, blocks, perRange;
  const int64_t *numbers; // of blocks of kBlockKeys keys; null where all are taken from `begin` on
};

/// Prefetches keys and values of the following blocks, a few lines at a time between the calculations of one, so that
/// loads overlap with arithmetic. Of each of the next kRanges blocks a part is prefetched, the larger part the sooner
/// the block comes, so that all ranges are read concurrently.
template <typename Cache> class Prefetch {
public:
  /// `advance` is called `calls` times a block.
  Prefetch(const hone_tensor &key, const hone_tensor &value, int64_t sequence, int64_t head, int64_t calls)
      : key(key, sequence, head, 0), value(value, sequence, head, 0),
        lines(larger(this->key.rowLines(), this->value.rowLines())), linesPerCall((kRows * lines + calls - 1) / calls),
        keySkip(this->key.strideBytes() - (lines - 1) * 64), valueSkip(this->value.strideBytes() - (lines - 1) * 64) {}

  /// Block `index` is worked on.
  void begin(const KeyBlocks &blocks, int64_t index) {
    for (int64_t range = 1; range <= kRanges; ++range) {
      int64_t skipped = (kRanges - range) * kRows;
      bool exists = blocks.keyCount(index + range) > skipped;
      int64_t first = exists ? blocks.firstKey(index + range) + skipped : blocks.firstKey(index);
      keyRuns[range - 1] = key.rowBytes(first);
      valueRuns[range - 1] = value.rowBytes(first);
    }
    line = keyOffset = valueOffset = 0;
    left = kRows * lines;
  }

  void advance() {
    for (int64_t end = larger(left - linesPerCall, 0); left > end; --left) {
      for (int64_t run = 0; run < kRanges; ++run) {
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
  static constexpr int64_t kRows = kBlockKeys / kRanges; // prefetched during a block, of each range

  CacheRows<Cache> key, value;
  int64_t lines, linesPerCall, left = 0, line = 0;
  int64_t keyOffset = 0, valueOffset = 0, keySkip, valueSkip; // from the last line of a row to the next row
  const uint8_t *keyRuns[kRanges] = {}, *valueRuns[kRanges] = {};
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KEY_BLOCKS_H
