// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over a rounded cache in blocks by AMX: blocks of bytes are the right operands of its products as they lie, those of four
// bits are spread into bytes first. The upper digits of eight rows, then their lower digits, are the sixteen rows of a left operand.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROUNDED_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROUNDED_TILES_H

#include "rounded_products.h"

#ifdef __AMX_INT8__

#include "row_tile.h"
#include "tile_items.h"

namespace {

constexpr int64_t kTileOfBytes = kTileRows * kTileRowBytes, kTileIntegers = kTileRows * kLanes;

/// Right operands of products: sixteen words of keys by sixteen keys, sixteen words of positions by sixteen elements of values.
template <typename Cache> class RoundedOperands;

template <> class RoundedOperands<I8Cache> {
public:
  using Step = RoundedStep<I8Cache>;

  RoundedOperands(int64_t size, int64_t) : partBytes(size * kLanes) {}

  void takeKeys(const Step &step) { __builtin_memcpy(keys, step.keys, sizeof keys); }
  void takeValues(const Step &step) { __builtin_memcpy(values, step.values, sizeof values); }
  const uint8_t *key(int unit, int part, int64_t number) const {
    return keys[unit] + part * partBytes + number * kTileOfBytes;
  }
  const uint8_t *value(int unit, int64_t column) const { return values[unit] + column * kTileOfBytes; }

private:
  int64_t partBytes;
  const uint8_t *keys[kStepUnits], *values[kStepUnits];
};

template <> class RoundedOperands<U4Cache> {
public:
  using Step = RoundedStep<U4Cache>;

  RoundedOperands(int64_t size, int64_t columns)
      : keyTiles(size * 4 / kTileRowBytes), valueTiles((columns + 1) / 2 * 2),
        keys(kStepUnits * keyTiles * kTileOfBytes), values(kStepUnits * valueTiles * kTileOfBytes) {}

  void takeKeys(const Step &step) {
    for (int unit = 0; unit < kStepUnits; ++unit)
      spread(step.keys[unit], keyTiles, kTileRowBytes, 2 * kTileRowBytes, keys.data() + unit * keyTiles * kTileOfBytes);
  }
  void takeValues(const Step &step) {
    for (int unit = 0; unit < kStepUnits; ++unit)
      spread(step.values[unit], valueTiles, kTileOfBytes, kTileRowBytes,
             values.data() + unit * valueTiles * kTileOfBytes);
  }
  const uint8_t *key(int unit, int part, int64_t number) const {
    return keys.data() + (unit * keyTiles + part * (keyTiles / 4) + number) * kTileOfBytes;
  }
  const uint8_t *value(int unit, int64_t column) const {
    return values.data() + (unit * valueTiles + column) * kTileOfBytes;
  }

private:
  /// Sixteen lines become two tiles: the upper halves of a line lie `apart` behind the lower ones, the next line `step` behind.
  static void spread(const uint8_t *from, int64_t tiles, int64_t apart, int64_t step, uint8_t *to) {
    for (; tiles > 0; tiles -= 2, to += 2 * kTileOfBytes)
      for (int64_t line = 0; line < kTileRows; ++line, from += kTileRowBytes) {
        for (int half = 0; half < 2; ++half) {
          Words levels = levelsOf<U4Cache>(from, half);
          __builtin_memcpy(to + line * step + half * apart, &levels, sizeof levels);
        }
      }
  }

  int64_t keyTiles, valueTiles; // of a unit
  Scratch<uint8_t> keys, values;
};

/// Asks memory for the units of a step to come, a few lines of each at a time.
class UnitsAhead {
public:
  /// Units are of so many bytes.
  template <typename Step> void begin(const Step &step, int64_t keyBytes, int64_t valueBytes) {
    for (int unit = 0; unit < kStepUnits; ++unit) {
      from[2 * unit] = step.keys[unit];
      from[2 * unit + 1] = step.values[unit];
    }
    asked = 0;
    lines = larger(keyBytes, valueBytes) / kLineBytes;
  }

  /// Asks for what is missing to `part` of `parts` of them.
  void ask(int64_t part, int64_t parts) {
    for (; asked * parts < lines * part; ++asked)
      for (const uint8_t *unit : from)
        __builtin_prefetch(unit + asked * kLineBytes, 0, 2);
  }

private:
  static constexpr int64_t kLineBytes = 64;

  const uint8_t *from[2 * kStepUnits] = {};
  int64_t asked = 0, lines = 0;
};

/// Eight rows and the keys of a step, one after another. While vectors weigh the keys of one, tiles multiply the keys of the next
/// and the values of the last.
template <typename Cache> class AmxRounded {
public:
  AmxRounded(const Attention &attention, int64_t mostRows)
      : attention(attention), isTaken(attention.size() % kTileRowBytes == 0 && attention.size() > 0),
        keyBytes(hone::cpu::kCacheBlockPositions *
                 hone::cpu::RoundedKeyLayout(Cache::kBits, attention.size()).bytes.width),
        valueBytes(hone::cpu::kCacheBlockPositions *
                   hone::cpu::RoundedValueLayout(Cache::kBits, attention.valueSize()).bytes.width),
        depth(attention.size() / kTileRowBytes), columns(toLanes(attention.valueSize()) / kLanes),
        keyUnit(BlockedCache<Cache>::keyElements(0, attention.size())),
        valueUnit(BlockedCache<Cache>::valueElements(0, attention.valueSize())),
        operands(isTaken ? attention.size() : 0, isTaken ? columns : 0), rounded(isTaken ? mostRows : 0),
        totals(isTaken ? mostRows : 0), queries(isTaken ? tilesOf(mostRows) * depth * kTileOfBytes : 0),
        products(isTaken ? columns * kTileIntegers : 0) {}

  bool takes(int64_t) const { return isTaken; }

  /// Adds keys [begin, end) to the sums of the rows.
  void run(const RowBlock &of, int64_t begin, int64_t end) {
    Steps steps(attention, of.sequence, of.head, begin, end, of.count < kFewRows);
    TileItems<Steps> items(of, steps, kRowsOfTile);
    TileRegisters registers(kTileRows, kTileRowBytes);
    block = &of;
    order = &steps;
    for (int64_t tile = 0; tile < items.tiles(); ++tile)
      beginTile(tile);
    runItems<Item>(*this, items);
    for (int64_t r = 0; r < of.count; ++r)
      finishRow<Cache>(of, r, totals.data()[r], columns);
  }

private:
  using Steps = BlockedSteps<Cache>;
  using Step = RoundedStep<Cache>;
  static constexpr int kPieces = kRoundedPieces<Cache>;
  static constexpr int64_t kStepsAhead = 2;

  struct Item : TileItem<Step> {
    float weightSteps[kRowsOfTile], corrections[kRowsOfTile];
    alignas(64) uint32_t weights[kStepUnits][kTileRows][kLanes] = {};
    alignas(64) int32_t scores[kPieces][kTileRows][kLanes];
  };
  template <typename OfItem, typename Worker, typename OfSteps>
  friend void runItems(Worker &worker, const TileItems<OfSteps> &items);

  static int64_t tilesOf(int64_t rows) { return (rows + kRowsOfTile - 1) / kRowsOfTile; }
  int64_t rowsOf(int64_t tile) const { return smaller(kRowsOfTile, block->count - tile * kRowsOfTile); }

  void beginTile(int64_t tile) {
    uint8_t *to = queries.data() + tile * depth * kTileOfBytes;
    __builtin_memset(to, 0, static_cast<size_t>(depth * kTileOfBytes));
    for (int64_t r = 0; r < rowsOf(tile); ++r) {
      int64_t row = tile * kRowsOfTile + r;
      const float *query = block->queries + row * block->queryStride;
      rounded.data()[row] = RoundedQuery(query, attention.size());
      for (int64_t d = 0; d < attention.size(); d += kLanes)
        setDigits(rounded.data()[row].round(load(query + d)),
                  to + d / kTileRowBytes * kTileOfBytes + r * kTileRowBytes + d % kTileRowBytes);
      RowTotals total = {0, 0};
      total.weights[0] = block->rows[row].sum;
      totals.data()[row] = total;
    }
  }

  static void setDigits(Integers integers, uint8_t *to) {
    typedef uint8_t Bytes __attribute__((ext_vector_type(16)));
    Integers lower = (integers << 24) >> 24;
    auto upperBytes = __builtin_convertvector((integers - lower) >> 8, Bytes);
    auto lowerBytes = __builtin_convertvector(lower, Bytes);
    __builtin_memcpy(to, &upperBytes, sizeof upperBytes);
    __builtin_memcpy(to + kRowsOfTile * kTileRowBytes, &lowerBytes, sizeof lowerBytes);
  }

  void takeKeys(const Step &step) { operands.takeKeys(step); }
  void takeValues(const Step &step) { operands.takeValues(step); }
  void begin(const Item &item) {
    if (!item.isFirst)
      return;
    ahead.begin((*order)[smaller(item.index + kStepsAhead, order->count() - 1)], keyUnit, valueUnit);
    if (!item.exists)
      return;
    numbers.keys.take(item.step.keys, keyBytes);
    numbers.values.take(item.step.values, valueBytes);
    numbers.largest = numbers.values.normalize();
  }
  void ask(const Item &, int64_t part, int64_t parts) { ahead.ask(part, parts); }
  void finish(const Item &, const Item &last) const { addProducts(last); }

  /// Multiplies `part` of `parts` of the keys of `next` and of the values of `last`.
  void advance(Item &next, Item &last, int64_t part, int64_t parts) {
    while (next.exists && next.keyParts * parts < Cache::kBlockWord * part)
      multiplyKeys(next, static_cast<int>(next.keyParts++));
    while (last.exists && last.valueColumns < columns && last.valueColumns * parts < columns * part)
      last.valueColumns += multiplyValues(last, last.valueColumns);
  }

  /// scores[4 · unit + part][row and digit][key]
  void multiplyKeys(Item &item, int part) const {
    const uint8_t *query = queries.data() + item.tile * depth * kTileOfBytes;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < depth; ++i) {
      _tile_loadd(4, query + i * kTileOfBytes, kTileRowBytes);
      _tile_loadd(6, operands.key(0, part, i), kTileRowBytes);
      _tile_dpbssd(0, 4, 6);
      _tile_loadd(7, operands.key(1, part, i), kTileRowBytes);
      _tile_dpbssd(1, 4, 7);
      _tile_loadd(6, operands.key(2, part, i), kTileRowBytes);
      _tile_dpbssd(2, 4, 6);
      _tile_loadd(7, operands.key(3, part, i), kTileRowBytes);
      _tile_dpbssd(3, 4, 7);
    }
    _tile_stored(0, item.scores[part], kTileRowBytes);
    _tile_stored(1, item.scores[4 + part], kTileRowBytes);
    _tile_stored(2, item.scores[8 + part], kTileRowBytes);
    _tile_stored(3, item.scores[12 + part], kTileRowBytes);
  }

  void weigh(Item &item, int64_t r) {
    int64_t row = item.tile * kRowsOfTile + r;
    Vector logits[kPieces];
    for (int piece = 0; piece < kPieces; ++piece)
      logits[piece] =
          joinDigits(loadAs<Integers>(item.scores[piece][r]), loadAs<Integers>(item.scores[piece][kRowsOfTile + r]));
    RoundedWeights result = weighRounded<Cache>(block->rows[row], rounded.data()[row], item.step, attention.softcap,
                                                numbers, logits, totals.data()[row]);
    item.weightSteps[r] = result.step;
    item.corrections[r] = result.correction;
    for (int unit = 0; unit < kStepUnits; ++unit) {
      __builtin_memcpy(item.weights[unit][r], &result.words[unit].first, sizeof item.weights[unit][r]);
      __builtin_memcpy(item.weights[unit][kRowsOfTile + r], &result.words[unit].second, sizeof item.weights[unit][r]);
    }
  }

  /// products[column][row and digit][element] of some columns from `column` on; how many is the result.
  int64_t multiplyValues(const Item &item, int64_t column) const {
    if (column + 4 <= columns)
      return multiplyColumns<4>(item, column);
    return column + 2 <= columns ? multiplyColumns<2>(item, column) : multiplyColumns<1>(item, column);
  }

  template <int COLUMNS> int64_t multiplyColumns(const Item &item, int64_t column) const {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int unit = 0; unit < kStepUnits; ++unit) {
      _tile_loadd(4, item.weights[unit], kTileRowBytes);
      _tile_loadd(6, operands.value(unit, column), kTileRowBytes);
      _tile_dpbusd(0, 4, 6);
      if constexpr (COLUMNS > 1) {
        _tile_loadd(7, operands.value(unit, column + 1), kTileRowBytes);
        _tile_dpbusd(1, 4, 7);
      }
      if constexpr (COLUMNS > 2) {
        _tile_loadd(6, operands.value(unit, column + 2), kTileRowBytes);
        _tile_dpbusd(2, 4, 6);
        _tile_loadd(7, operands.value(unit, column + 3), kTileRowBytes);
        _tile_dpbusd(3, 4, 7);
      }
    }
    int32_t *to = products.data() + column * kTileIntegers;
    _tile_stored(0, to, kTileRowBytes);
    if constexpr (COLUMNS > 1)
      _tile_stored(1, to + kTileIntegers, kTileRowBytes);
    if constexpr (COLUMNS > 2) {
      _tile_stored(2, to + 2 * kTileIntegers, kTileRowBytes);
      _tile_stored(3, to + 3 * kTileIntegers, kTileRowBytes);
    }
    return COLUMNS;
  }

  void addProducts(const Item &item) const {
    for (int64_t r = 0; item.exists && r < rowsOf(item.tile); ++r) {
      float *sums = block->sums + (item.tile * kRowsOfTile + r) * block->sumStride;
      const int32_t *upper = products.data() + r * kLanes, *lower = upper + kRowsOfTile * kLanes;
      for (int64_t column = 0; column < columns; ++column, sums += kLanes) {
        Vector product = joinDigits(loadAs<Integers>(upper), loadAs<Integers>(lower));
        store(sums, load(sums) * item.corrections[r] + product * item.weightSteps[r]);
        upper += kTileIntegers;
        lower += kTileIntegers;
      }
    }
  }

  const Attention &attention;
  bool isTaken;
  int64_t keyBytes, valueBytes; // of the levels of a unit
  int64_t depth, columns;       // tiles of a query, of a value
  int64_t keyUnit, valueUnit;   // bytes
  RoundedOperands<Cache> operands;
  Scratch<RoundedQuery> rounded;
  Scratch<RowTotals> totals;
  Scratch<uint8_t> queries; // [tile of rows][step][row and digit][element]
  Scratch<int32_t> products;
  const RowBlock *block = nullptr;
  const Steps *order = nullptr;
  UnitsAhead ahead;
  CacheNumbers<Cache> numbers;
};

template <int BITS> class BlockedTiles<RoundedCache<BITS>> : public AmxRounded<RoundedCache<BITS>> {
  using AmxRounded<RoundedCache<BITS>>::AmxRounded;
};

} // namespace

#endif // __AMX_INT8__
#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_ROUNDED_TILES_H
