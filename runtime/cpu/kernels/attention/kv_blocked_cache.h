// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys and values in blocks (packing/cache_blocks.h), and the order in which they are read. A KV micro-block is the
// positions whose values share words. A step takes four of them, or two.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_CACHE_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_CACHE_H

#include "cache.h"
#include "hone/cpu/packing/cache_blocks.h"
#include "seen_keys.h"

namespace {

constexpr int64_t kStepUnits = 4;

template <typename Cache> struct BlockedCache {
  using Element = typename Cache::Element;
  static constexpr int kWord = Cache::kBlockWord;
  static constexpr int kPieces = kStepUnits * kWord; // of sixteen keys each, of a step
  static constexpr int64_t kWordsElements = kLanes * kWord;

  /// Elements of memory that `positions` keys or values take.
  static int64_t keyElements(int64_t positions, int64_t size) {
    return positions * hone::cpu::BlockedKeyLayout(kWord, size).width;
  }
  static int64_t valueElements(int64_t positions, int64_t size) {
    return positions * hone::cpu::BlockedValueLayout(kWord, size).width;
  }

  /// The elements of sixteen words: vector e has element e of each.
  static void readWords(const Element *from, Vector (&numbers)[kWord]) {
    if constexpr (kWord == 1) {
      numbers[0] = Cache::load16(from);
    } else {
      Words words = loadAs<Words>(from);
      numbers[0] = Cache::template part<0>(words);
      numbers[1] = Cache::template part<1>(words);
    }
  }
};

/// UNITS KV micro-blocks, of as many words of sixteen positions as WORD says. Piece u · WORD + e is sixteen keys of KV
/// micro-block u, from its key 16 e on.
template <typename Cache, int WORD = Cache::kBlockWord, int UNITS = kStepUnits> struct BlockedStep {
  using Element = typename Cache::Element;
  static constexpr int kUnits = UNITS;
  static constexpr int64_t kUnitKeys = kLanes * WORD;

  int64_t firstKeys[UNITS]; // that no row sees where a KV micro-block does not exist; its memory is that of another one
  const Element *keys[UNITS], *values[UNITS];
  int64_t begin, end; // all keys are in this range
  int present;        // KV micro-blocks that exist, the first ones

  int64_t firstKey(int piece) const { return firstKeys[piece / WORD] + piece % WORD * kLanes; }
};

/// Steps through the KV micro-blocks of one sequence and key head that hold keys [begin, end), those that are listed, from
/// the first to the last. They begin at multiples of UNITS KV micro-blocks, so that which of these are a step does not
/// depend on which keys the rows of a call see.
template <typename Cache, int WORD = Cache::kBlockWord, int UNITS = kStepUnits> class BlockedSteps {
public:
  using Element = typename Cache::Element;
  using Step = BlockedStep<Cache, WORD, UNITS>;

  BlockedSteps(const Attention &attention, int64_t sequence, int64_t head, const SeenKeys &seen, int64_t begin,
               int64_t end)
      : keys(firstElementOf<Element>(attention.key, sequence, head)),
        values(firstElementOf<Element>(attention.value, sequence, head)),
        keyElements(BlockedCache<Cache>::keyElements(kUnitKeys, attention.size())),
        valueElements(BlockedCache<Cache>::valueElements(kUnitKeys, attention.valueSize())), numbers(seen.numbers),
        first(numbers ? 0 : begin / (UNITS * kUnitKeys)), units(end <= begin ? 0
                                                                : numbers    ? seen.list(begin, end, kUnitKeys)
                                                                             : (end + kUnitKeys - 1) / kUnitKeys) {}

  /// The same for keys that were gathered, the first of which is number `origin`, a multiple of the keys of a step.
  BlockedSteps(const Attention &attention, const Element *keys, const Element *values, int64_t origin, int64_t begin,
               int64_t end)
      : keys(keys), values(values), keyElements(BlockedCache<Cache>::keyElements(kUnitKeys, attention.size())),
        valueElements(BlockedCache<Cache>::valueElements(kUnitKeys, attention.valueSize())), numbers(nullptr),
        first(begin / (UNITS * kUnitKeys)), units(end <= begin ? 0 : (end + kUnitKeys - 1) / kUnitKeys),
        firstPlace(origin / kUnitKeys) {}

  int64_t count() const { return larger((units + UNITS - 1) / UNITS - first, 0); }

  Step operator[](int64_t index) const {
    Step step;
    int64_t unit = (first + index) * UNITS;
    step.present = static_cast<int>(smaller(units - unit, UNITS));
    for (int64_t u = 0; u < UNITS; ++u, ++unit) {
      int64_t place = placeOf(smaller(unit, units - 1));
      step.firstKeys[u] = !numbers ? unit * kUnitKeys : unit < units ? place * kUnitKeys : kNoKey;
      step.keys[u] = keys + (place - firstPlace) * keyElements;
      step.values[u] = values + (place - firstPlace) * valueElements;
    }
    step.begin = step.firstKeys[0];
    step.end = step.firstKeys[UNITS - 1] + kUnitKeys;
    return step;
  }

private:
  static constexpr int64_t kUnitKeys = Step::kUnitKeys;
  static constexpr int64_t kNoKey = INT64_MAX / 2;

  int64_t placeOf(int64_t unit) const { return numbers ? numbers[unit] : unit; }

  const Element *keys, *values;
  int64_t keyElements, valueElements; // of a KV micro-block
  const int64_t *numbers;             // of KV micro-blocks; null where all are taken
  int64_t first, units;               // the number of the first step, and KV micro-blocks before the end
  int64_t firstPlace = 0;             // the KV micro-block that comes first in memory
};

/// Prefetches the values of a step line by line, a line of each KV micro-block at a time.
template <typename Step> class ValuePrefetcher {
public:
  ValuePrefetcher(const Step &step, bool isWanted) : step(step), left(isWanted ? kMostLines : 0) {}

  void prefetch(int64_t lines) {
    for (; lines > 0 && left > 0; --lines, --left, offset += 64)
      for (int64_t u = 0; u < Step::kUnits; ++u)
        __builtin_prefetch(reinterpret_cast<const uint8_t *>(step.values[u]) + offset, 0, 2);
  }

private:
  static constexpr int64_t kMostLines = 32; // of a KV micro-block: the hardware prefetches what follows by itself

  const Step &step;
  int64_t left, offset = 0;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_CACHE_H
