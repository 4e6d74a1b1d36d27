// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prefill attention over keys and values of bf16 in blocks by AMX, with 2 x 2 register tiling: two tiles of rows by two
// tiles of keys, or two columns of values, so that each tile that is loaded is multiplied twice. An item has no more
// keys than its rows see, to a KV micro-block. While vectors compute the softmax of an item, tiles multiply the next
// keys and the previous values.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_PAIRED_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_PAIRED_TILES_H

#include "kv_blocked_softmax.h"
#include "row_block.h"

#ifdef __AMX_BF16__

#include "cache_tiles.h"

#include <utility>

namespace {

constexpr int64_t kTileElements = kTileRows * kTileDepth, kTileFloats = kTileRows * kLanes;

constexpr float kLog2E = 1.44269504f;

/// 2^x for x < 128 to a relative error of 7.5e-5, which is little beside rounding to bf16: a least-squares fit of the
/// relative error over [0, 1], reweighted until the error is even, times a power of 2. 0 for -infinity, NaN for NaN.
inline Vector roughPowerOfTwo(Vector x) {
  constexpr int towardsLeast = 9; // without exceptions
  Vector r = (Vector)_mm512_reduce_ps((__m512)x, towardsLeast);
  Vector p = 7.8024594e-2f;
  p = p * r + 2.2606737e-1f;
  p = p * r + 6.9583328e-1f;
  p = p * r + 9.9992526e-1f;
  return (Vector)_mm512_scalef_ps((__m512)p, (__m512)x);
}

class PairedTiles {
public:
  static constexpr int64_t kUnitKeys = 2 * kLanes;

  PairedTiles(const Attention &attention, int64_t mostRows)
      : attention(attention), steps(attention.size() / kTileDepth), columns(toLanes(attention.valueSize()) / kLanes),
        queries(groupsOf(mostRows) * 2 * steps * kTileElements), sums(groupsOf(mostRows) * 2 * columns * kTileFloats) {}

  /// Whether keys stay near while all rows of a prompt attend to them, or rows are so many that memory keeps up anyway.
  /// How rows are divided into blocks does not matter, as that depends on the number of threads.
  static bool takes(const Attention &attention) {
    int64_t rows = attention.group() * attention.queries();
    return !attention.hasIndependentRows() && attention.size() % kTileDepth == 0 &&
           (rows >= kGemmRows || (rows > kTileRows && attention.keys() <= kNearUnits * kUnitKeys));
  }

  /// Adds keys [begin, end) to the sums of the rows. Blocks begin with key 0 and reach to the end of the KV micro-block
  /// of the last.
  void run(const RowBlock &of, const uint16_t *keyBlocks, const uint16_t *valueBlocks, int64_t begin, int64_t end) {
    TileRegisters registers(kTileRows, kTileRowBytes);
    block = &of;
    keys = keyBlocks;
    values = valueBlocks;
    groups = groupsOf(of.count);
    endUnit = (end + kUnitKeys - 1) / kUnitKeys;
    for (int64_t group = 0; group < groups; ++group)
      beginGroup(group, begin, end);
    Item three[3];
    Item *last = &three[0], *item = &three[1], *next = &three[2];
    findAfter(Place{0, begin / kUnitKeys / kNearUnits, 0, 0}, *item);
    for (int64_t part = 0; part < item->place.units; ++part)
      multiplyKeys(*item, part);
    while (item->place.units > 0 || last->place.units > 0) {
      findAfter(item->place, *next);
      work(*item, *next, *last);
      std::swap(last, item);
      std::swap(item, next);
    }
    for (int64_t r = 0; r < of.count; ++r)
      writeRow(r);
  }

private:
  static constexpr int64_t kGroupRows = 2 * kTileRows, kUnits = 2; // most KV micro-blocks of an item
  static constexpr int64_t kMostGroups = kBlockQueries / kGroupRows, kGemmRows = 64;
  static constexpr int64_t kNearUnits = 16; // that all groups pass by: up to 64 KiB of keys, and as much of values

  /// Where an item is: `KV micro-blocks` KV micro-blocks of a group, in a stretch of KV micro-blocks that all groups
  /// pass by; none where there is nothing.
  struct Place {
    int64_t group, stretch, unit, units;
  };
  struct Item {
    Place place = {0, 0, 0, 0};
    int64_t corrected = 0; // rows whose sums do not stay as they are, as bits
    float corrections[kGroupRows];
    alignas(64) uint16_t weights[kUnits][2][kTileRows][kTileDepth] = {};
    alignas(64) float scores[2][2 * kUnits][kTileRows][kLanes];
  };
  /// What the rows of a group have in common.
  struct Group {
    int64_t rows, firstUnit, endUnit, mostBegin, leastEnd;
    bool isPlain;
  };
  /// Keys of an item as `adjustPieces` knows them.
  struct Step {
    int64_t begin, end;
    int64_t firstKey(int piece) const { return begin + piece * kLanes; }
  };

  static int64_t groupsOf(int64_t rows) { return (rows + kGroupRows - 1) / kGroupRows; }
  uint16_t *queriesOf(int64_t tile) const { return queries.data() + tile * steps * kTileElements; }
  float *sumsOf(int64_t tile) const { return sums.data() + tile * columns * kTileFloats; }

  void beginGroup(int64_t number, int64_t begin, int64_t end) {
    int64_t first = number * kGroupRows;
    Group &group = all[number];
    group = {smaller(kGroupRows, block->count - first), end, begin, begin, end, true};
    for (int64_t r = first; r < first + group.rows; ++r) {
      const QueryRow &row = block->rows[r];
      group.mostBegin = larger(group.mostBegin, row.wholeBegin);
      group.leastEnd = smaller(group.leastEnd, row.wholeEnd);
      group.isPlain = group.isPlain && hasPlainLogits(row, attention.softcap);
      if (row.begin >= row.end)
        continue;
      group.firstUnit = smaller(group.firstUnit, row.begin);
      group.endUnit = larger(group.endUnit, row.end);
    }
    group.firstUnit = larger(group.firstUnit, begin) / kUnitKeys;
    group.endUnit = (smaller(group.endUnit, end) + kUnitKeys - 1) / kUnitKeys;
    for (int64_t r = 0; r < kGroupRows; ++r)
      beginRow(first + r, r < group.rows);
    for (int64_t i = 0; i < 2 * columns * kTileFloats; i += kLanes)
      store(sumsOf(2 * number) + i, 0);
  }

  void beginRow(int64_t r, bool exists) {
    const float *from = block->queries + r * block->queryStride;
    uint16_t *to = queriesOf(r / kTileRows) + r % kTileRows * kTileDepth;
    for (int64_t step = 0; step < steps; ++step, from += kTileDepth, to += kTileElements) {
      auto rounded = exists ? _mm512_cvtne2ps_pbh((__m512)load(from + kLanes), (__m512)load(from)) : __m512bh{};
      __builtin_memcpy(to, &rounded, sizeof rounded);
    }
    if (!exists)
      return;
    Vector total = 0;
    total[0] = block->rows[r].sum;
    store(totals[r], total);
    rescaleTo(r);
  }

  /// Notes what logits of row `r` are counted from, and up to where.
  void rescaleTo(int64_t r) {
    limits[r] = block->rows[r].maximum + kRescaleThreshold;
    offsets[r] = block->rows[r].reference() * kLog2E;
  }

  bool seesUnit(int64_t group, int64_t unit) const {
    for (int64_t r = group * kGroupRows; r < group * kGroupRows + all[group].rows; ++r)
      if (block->rows[r].seesAny(unit * kUnitKeys, kUnitKeys))
        return true;
    return false;
  }

  /// The item after `before`: all of a group in a stretch, then those of the next group.
  void findAfter(const Place &before, Item &item) const {
    Place place = before;
    item.corrected = 0;
    place.unit += place.units;
    place.units = 0;
    for (; place.stretch * kNearUnits < endUnit; ++place.stretch, place.group = 0)
      for (int64_t first = place.stretch * kNearUnits; place.group < groups; ++place.group, place.unit = 0) {
        const Group &group = all[place.group];
        place.unit = larger(place.unit, larger(group.firstUnit, first));
        int64_t end = smaller(group.endUnit, first + kNearUnits);
        while (block->seen.words && place.unit < end && !seesUnit(place.group, place.unit))
          ++place.unit;
        place.units = larger(smaller(kUnits, end - place.unit), 0);
        if (block->seen.words && place.units == kUnits && !seesUnit(place.group, place.unit + 1))
          place.units = 1;
        if (place.units > 0) {
          item.place = place;
          return;
        }
      }
    item.place = place;
  }

  /// Exponentiates the rows of `item`; tiles work on the keys of `next` and on the values of `last` between them.
  void work(Item &item, Item &next, const Item &last) {
    int64_t keyParts = next.place.units, parts = keyParts, done = 0;
    if (last.place.units > 0)
      parts += (columns + 1) / 2;
    auto advance = [&] {
      if (done < keyParts)
        multiplyKeys(next, done);
      else
        multiplyValues(last, 2 * (done - keyParts));
      ++done;
    };
    if (item.place.units > 0) {
      const Group &group = all[item.place.group];
      int64_t firstKey = item.place.unit * kUnitKeys;
      Step step = {firstKey, firstKey + item.place.units * kUnitKeys};
      bool isPlain = group.isPlain && group.mostBegin <= step.begin && step.end <= group.leastEnd;
      for (int64_t r = 0; r < group.rows;) {
        if (done < parts)
          advance();
        int64_t end = done < parts ? larger(group.rows * done / parts, r + 1) : group.rows;
        if (item.place.units == kUnits)
          isPlain ? softmaxRows<kUnits, true>(item, step, r, end) : softmaxRows<kUnits, false>(item, step, r, end);
        else
          isPlain ? softmaxRows<1, true>(item, step, r, end) : softmaxRows<1, false>(item, step, r, end);
        r = end;
      }
    }
    while (done < parts)
      advance();
    if (item.corrected != 0)
      correct(item);
  }

  /// Scores of KV micro-block `part` of the item: [tile of rows][piece][row][key]
  void multiplyKeys(Item &item, int64_t part) const {
    const uint16_t *first = queriesOf(2 * item.place.group), *second = first + steps * kTileElements;
    const uint16_t *key = keys + (item.place.unit + part) * kUnitKeys * attention.size();
    const int64_t half = kLanes * attention.size();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < steps * kTileElements; i += kTileElements) {
      _tile_loadd(4, first + i, kTileRowBytes);
      _tile_loadd(6, key + i, kTileRowBytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, key + half + i, kTileRowBytes);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, second + i, kTileRowBytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, item.scores[0][2 * part], kTileRowBytes);
    _tile_stored(1, item.scores[0][2 * part + 1], kTileRowBytes);
    _tile_stored(2, item.scores[1][2 * part], kTileRowBytes);
    _tile_stored(3, item.scores[1][2 * part + 1], kTileRowBytes);
  }

  /// Exponentiates the logits of rows [first, end) of the group into attention probabilities relative to `maximum` of a
  /// row, which tracks the running maximum (online softmax). A function of its own, that registers are for nothing
  /// else.
  template <int64_t UNITS, bool IS_PLAIN>
  [[gnu::noinline]] void softmaxRows(Item &item, const Step &step, int64_t first, int64_t end) {
    constexpr int pieces = 2 * UNITS;
    int64_t row = item.place.group * kGroupRows + first;
    for (int64_t r = first; r < end; ++r, ++row) {
      const float *scores = item.scores[r / kTileRows][0][r % kTileRows];
      Vector logits[pieces];
      for (int piece = 0; piece < pieces; ++piece)
        logits[piece] = load(scores + piece * kTileFloats);
      if constexpr (!IS_PLAIN)
        adjustPieces(block->rows[row], step, attention.softcap, logits);
      Vector most = maximumOf(logits);
      if (__builtin_expect(isAnyAbove(most, limits[row]), false))
        updateMaximum(item, r, row, most);
      Vector offset = offsets[row], added = load(totals[row]);
      if constexpr (!IS_PLAIN) { // a bias may be the least float, of which no multiple is one
        Vector reference = block->rows[row].reference();
        for (Vector &some : logits)
          some -= reference;
        offset = 0;
      }
      for (int piece = 0; piece < pieces; ++piece) {
        logits[piece] = roughPowerOfTwo(logits[piece] * kLog2E - offset);
        added += logits[piece];
      }
      store(totals[row], added);
      uint16_t *weights = item.weights[0][r / kTileRows][r % kTileRows];
      for (int64_t unit = 0; unit < UNITS; ++unit)
        storeRounded(logits[2 * unit], logits[2 * unit + 1], weights + 2 * unit * kTileElements);
    }
  }

  /// Words of the bf16 that are nearest to `low` and `high`.
  static void storeRounded(Vector low, Vector high, uint16_t *to) {
    __m512i upper = _mm512_add_epi32((__m512i)high, _mm512_set1_epi32(0x8000));
    __m512i lower = _mm512_srli_epi32(_mm512_add_epi32((__m512i)low, _mm512_set1_epi32(0x8000)), 16);
    _mm512_store_si512(to, _mm512_mask_mov_epi16(lower, 0xaaaaaaaa, upper));
  }

  [[gnu::noinline]] void updateMaximum(Item &item, int64_t r, int64_t row, const Vector &most) {
    item.corrections[r] = block->rows[row].updateMaximum(most);
    item.corrected |= int64_t{1} << r;
    rescaleTo(row);
    store(totals[row], load(totals[row]) * item.corrections[r]);
  }

  /// sums += weights · values, of two columns
  void multiplyValues(const Item &item, int64_t column) const {
    bool hasSecond = column + 1 < columns;
    float *first = sumsOf(2 * item.place.group) + column * kTileFloats, *second = first + columns * kTileFloats;
    const uint16_t *value = values + (item.place.unit * columns + column) * kTileElements;
    _tile_loadd(0, first, kTileRowBytes);
    _tile_loadd(2, second, kTileRowBytes);
    if (hasSecond) {
      _tile_loadd(1, first + kTileFloats, kTileRowBytes);
      _tile_loadd(3, second + kTileFloats, kTileRowBytes);
    }
    for (int64_t unit = 0; unit < item.place.units; ++unit, value += columns * kTileElements) {
      _tile_loadd(4, item.weights[unit][0], kTileRowBytes);
      _tile_loadd(6, value, kTileRowBytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(5, item.weights[unit][1], kTileRowBytes);
      _tile_dpbf16ps(2, 5, 6);
      if (hasSecond) {
        _tile_loadd(7, value + kTileElements, kTileRowBytes);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
    _tile_stored(0, first, kTileRowBytes);
    _tile_stored(2, second, kTileRowBytes);
    if (hasSecond) {
      _tile_stored(1, first + kTileFloats, kTileRowBytes);
      _tile_stored(3, second + kTileFloats, kTileRowBytes);
    }
  }

  /// Once the values of what came before are in the sums, they are rescaled to the maxima of the item.
  void correct(const Item &item) const {
    for (int64_t r = 0; r < kGroupRows; ++r) {
      if ((item.corrected >> r & 1) == 0 || item.corrections[r] == 1.0f)
        continue;
      float *to = sumsOf(2 * item.place.group + r / kTileRows) + r % kTileRows * kLanes;
      for (int64_t column = 0; column < columns; ++column, to += kTileFloats)
        store(to, load(to) * item.corrections[r]);
    }
  }

  void writeRow(int64_t r) const {
    block->rows[r].sum = sumLanes(load(totals[r]));
    const float *from = sumsOf(r / kTileRows) + r % kTileRows * kLanes;
    float *to = block->sums + r * block->sumStride;
    for (int64_t column = 0; column < columns; ++column, from += kTileFloats, to += kLanes)
      store(to, load(to) + load(from));
  }

  const Attention &attention;
  int64_t steps, columns;    // tiles of a query, of a value
  Scratch<uint16_t> queries; // [tile of rows][step][row][element]
  Scratch<float> sums;       // [tile of rows][column][row][lane]
  const RowBlock *block = nullptr;
  const uint16_t *keys = nullptr, *values = nullptr;
  int64_t groups = 0, endUnit = 0;
  Group all[kMostGroups];
  float limits[kBlockQueries], offsets[kBlockQueries];
  alignas(64) float totals[kBlockQueries][kLanes];
};

} // namespace

#endif // __AMX_BF16__
#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_PAIRED_TILES_H
