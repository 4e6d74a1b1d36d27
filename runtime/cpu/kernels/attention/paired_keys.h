// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over keys and values of f32 in rows, whose products may be of bf16. With AMX, keys and values that many
// rows attend to are rounded into blocks first, and stay there for the next rows of their head.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_PAIRED_KEYS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_PAIRED_KEYS_H

#include "paired_tiles.h"
#include "row_keys.h"
#include "word_products.h"

namespace {

#ifdef __AMX_BF16__

class PairedKeys {
public:
  PairedKeys(const Attention &attention, int64_t mostRows)
      : attention(attention),
        isTaken(PairedTiles::takes(attention) && attention.valueSize() % kLanes == 0 && areDense(attention)),
        units(isTaken ? (attention.keys() + kUnitKeys - 1) / kUnitKeys : 0), keys(units * kUnitKeys * attention.size()),
        values(units * kUnitKeys * attention.valueSize()), rows(attention, isTaken ? 0 : mostRows),
        pairs(attention, isTaken ? mostRows : 0) {}

  /// Adds keys [begin, end) to the sums of rows, as far as they are visible.
  void run(const RowBlock &of, int64_t begin, int64_t end) {
    if (!isTaken)
      return rows.run(of, begin, end);
    if (begin < end && of.seen.numbers)
      takeSeen(of, begin, end);
    else if (begin < end)
      take(of, begin / kUnitKeys, (end + kUnitKeys - 1) / kUnitKeys);
    pairs.run(of, keys.data(), values.data(), begin, end);
  }

private:
  static constexpr int64_t kUnitKeys = PairedTiles::kUnitKeys;

  static bool areDense(const Attention &attention) {
    return attention.key.strides[3] == 1 && attention.value.strides[3] == 1;
  }

  /// Rounds KV micro-blocks [first, end) of the keys and values of the rows' head, where they are not there yet.
  void take(const RowBlock &of, int64_t first, int64_t end) {
    if (of.sequence == sequence && of.head == head && first >= firstUnit && end <= endUnit)
      return;
    sequence = of.sequence;
    head = of.head;
    firstUnit = first;
    endUnit = end;
    for (int64_t unit = first; unit < end; ++unit) {
      takeKeys(unit);
      takeValues(unit);
    }
  }

  /// Rounds the KV micro-blocks that hold keys of [begin, end) which rows see. Other rows see others: none stay.
  void takeSeen(const RowBlock &of, int64_t begin, int64_t end) {
    sequence = of.sequence;
    head = of.head;
    firstUnit = endUnit = 0;
    for (int64_t i = 0, count = of.seen.list(begin, end, kUnitKeys); i < count; ++i) {
      takeKeys(of.seen.numbers[i]);
      takeValues(of.seen.numbers[i]);
    }
  }

  /// Sixteen elements of a key or value from `d` on; zeros where there is none of the number.
  Vector sixteenOf(const hone_tensor &tensor, int64_t number, int64_t d) const {
    bool exists = number < hone::kernels::keyCountOf(attention.visibility, sequence);
    return exists ? load(floats(tensor) + offsetOf(tensor, sequence, head, number) + d) : (Vector)0;
  }

  /// Keys [sixteen][step][word][key]
  void takeKeys(int64_t unit) const {
    uint16_t *to = keys.data() + unit * kUnitKeys * attention.size();
    for (int64_t first = unit * kUnitKeys; first < (unit + 1) * kUnitKeys; first += kLanes)
      for (int64_t d = 0; d < attention.size(); d += kTileDepth, to += kTileElements) {
        Vector words[kLanes];
        for (int64_t i = 0; i < kLanes; ++i)
          words[i] = (Vector)_mm512_cvtne2ps_pbh((__m512)sixteenOf(attention.key, first + i, d + kLanes),
                                                 (__m512)sixteenOf(attention.key, first + i, d));
        transpose(words);
        __builtin_memcpy(to, words, sizeof words);
      }
  }

  /// Values [column][pair of positions][element], of positions sixteen apart
  void takeValues(int64_t unit) const {
    auto *to = reinterpret_cast<uint32_t *>(values.data() + unit * kUnitKeys * attention.valueSize());
    for (int64_t d = 0; d < attention.valueSize(); d += kLanes)
      for (int64_t position = unit * kUnitKeys; position < unit * kUnitKeys + kLanes; ++position, to += kLanes) {
        Vector pair[2] = {sixteenOf(attention.value, position, d), sixteenOf(attention.value, position + kLanes, d)};
        WordProducts<Bf16Cache>::storeWeights(pair, to);
      }
  }

  const Attention &attention;
  bool isTaken;
  int64_t units;
  Scratch<uint16_t> keys, values; // as BlockedKeyLayout and BlockedValueLayout have them
  int64_t sequence = -1, head = -1, firstUnit = 0, endUnit = 0;
  RowKeys<F32Cache> rows;
  PairedTiles pairs;
};

#else

using PairedKeys = RowKeys<F32Cache>;

#endif // __AMX_BF16__

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_PAIRED_KEYS_H
