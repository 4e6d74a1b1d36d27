// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over a rounded cache in blocks by AMX: blocks of bytes are the right operands of its products as they lie,
// those of four bits are spread into bytes first. The upper limbs of eight rows, then their lower limbs, are the
// sixteen rows of a left operand.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_TILES_H

#include "kv_quantized_products.h"

#ifdef __AMX_INT8__

#include "row_tile.h"
#include "tile_items.h"

namespace {

constexpr int kTileUnits = 2; // of a step: scores of more would push what is read out of the L1 cache

constexpr int64_t kTileOfBytes = kTileRows * kTileRowBytes, kTileIntegers = kTileRows * kLanes;

/// Right operands of products: sixteen words of keys by sixteen keys, sixteen words of positions by sixteen elements of
/// values.
template <typename Cache> class QuantizedKvOperands;

template <> class QuantizedKvOperands<I8Cache> {
public:
  using Step = QuantizedStep<I8Cache, kTileUnits>;

  QuantizedKvOperands(int64_t size, int64_t) : partBytes(size * kLanes) {}

  void takeKeys(const Step &step) { __builtin_memcpy(keys, step.keys, sizeof keys); }
  void takeValues(const Step &step) { __builtin_memcpy(values, step.values, sizeof values); }
  const uint8_t *key(int unit, int part, int64_t number) const {
    return keys[unit] + part * partBytes + number * kTileOfBytes;
  }
  const uint8_t *value(int unit, int64_t column) const { return values[unit] + column * kTileOfBytes; }

private:
  int64_t partBytes;
  const uint8_t *keys[kTileUnits], *values[kTileUnits];
};

template <> class QuantizedKvOperands<U4Cache> {
public:
  using Step = QuantizedStep<U4Cache, kTileUnits>;

  QuantizedKvOperands(int64_t size, int64_t columns)
      : keyTiles(size * 4 / kTileRowBytes), valueTiles((columns + 1) / 2 * 2),
        keys(kTileUnits * keyTiles * kTileOfBytes), values(kTileUnits * valueTiles * kTileOfBytes) {}

  void takeKeys(const Step &step) {
    for (int unit = 0; unit < kTileUnits; ++unit)
      spread(step.keys[unit], keyTiles, kTileRowBytes, 2 * kTileRowBytes, keys.data() + unit * keyTiles * kTileOfBytes);
  }
  void takeValues(const Step &step) {
    for (int unit = 0; unit < kTileUnits; ++unit)
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
  /// Sixteen lines become two tiles: the upper halves of a line lie `halfStride` after the lower ones, the next line
  /// `step` after.
  static void spread(const uint8_t *from, int64_t tiles, int64_t halfStride, int64_t step, uint8_t *to) {
    for (; tiles > 0; tiles -= 2, to += 2 * kTileOfBytes)
      for (int64_t line = 0; line < kTileRows; ++line, from += kTileRowBytes) {
        for (int half = 0; half < 2; ++half) {
          Words codes = bitLayoutOf<U4Cache>(loadAs<Words>(from), half);
          __builtin_memcpy(to + line * step + half * halfStride, &codes, sizeof codes);
        }
      }
  }

  int64_t keyTiles, valueTiles; // of a KV micro-block
  Scratch<uint8_t> keys, values;
};

/// Prefetches the keys of one step to come and for the values of another, a few lines of each KV micro-block at a time.
class KvBlockPrefetcher {
public:
  /// KV micro-blocks are of so many bytes.
  template <typename Step> void begin(const Step &keys, const Step &values, int64_t keyBytes, int64_t valueBytes) {
    for (int unit = 0; unit < kTileUnits; ++unit) {
      from[2 * unit] = keys.keys[unit];
      from[2 * unit + 1] = values.values[unit];
    }
    prefetchedLines = 0;
    lines = larger(keyBytes, valueBytes) / kLineBytes;
  }

  /// Prefetches what is missing to `part` of `parts` of them.
  void prefetch(int64_t part, int64_t parts) {
    for (; prefetchedLines * parts < lines * part; ++prefetchedLines)
      for (const uint8_t *unit : from)
        __builtin_prefetch(unit + prefetchedLines * kLineBytes, 0, 2);
  }

private:
  static constexpr int64_t kLineBytes = 64;

  const uint8_t *from[2 * kTileUnits] = {};
  int64_t prefetchedLines = 0, lines = 0;
};

/// Eight rows and the keys of a step, one after another. While vectors exponentiate the keys of one, tiles multiply the
/// keys of the next and the values of the last.
template <typename Cache> class AmxQuantized {
public:
  AmxQuantized(const Attention &attention, int64_t mostRows)
      : attention(attention), isTaken(attention.size() % kTileRowBytes == 0 && attention.size() > 0),
        keyBytes(hone::cpu::kCacheBlockPositions *
                 hone::cpu::QuantizedKeyLayout(Cache::kBits, attention.size()).bytes.width),
        valueBytes(hone::cpu::kCacheBlockPositions *
                   hone::cpu::QuantizedValueLayout(Cache::kBits, attention.valueSize()).bytes.width),
        depth(attention.size() / kTileRowBytes), columns(toLanes(attention.valueSize()) / kLanes),
        keyUnit(BlockedCache<Cache>::keyElements(0, attention.size())),
        valueUnit(BlockedCache<Cache>::valueElements(0, attention.valueSize())),
        operands(isTaken ? attention.size() : 0, isTaken ? columns : 0), rounded(isTaken ? mostRows : 0),
        totals(isTaken ? mostRows : 0), queries(isTaken ? tilesOf(mostRows) * depth * kTileOfBytes : 0),
        products(isTaken ? columns * kTileIntegers : 0) {}

  bool takes(int64_t) const { return isTaken; }

  /// Adds keys [begin, end) to the sums of the rows.
  void run(const RowBlock &of, int64_t begin, int64_t end) {
    Steps steps(attention, of.sequence, of.head, of.seen, begin, end);
    height = smaller(of.count, kRowsOfTile);
    TileItems<Steps> items(of, steps, height);
    TileRegisters registers(2 * height, kTileRowBytes);
    block = &of;
    order = &steps;
    for (int64_t tile = 0; tile < items.tiles(); ++tile)
      beginTile(tile);
    runItems<Item>(*this, items);
    for (int64_t r = 0; r < of.count; ++r)
      finishRow<Cache>(of, r, totals.data()[r], columns);
  }

private:
  using Step = QuantizedStep<Cache, kTileUnits>;
  using Steps = BlockedSteps<Cache, Cache::kBlockWord, kTileUnits>;
  static constexpr int kPieces = kTileUnits * Cache::kBlockWord;
  static constexpr int64_t kKeySums = 4, kKeyParts = kPieces / kKeySums; // pieces that are multiplied at once
  // Steps between the item that is exponentiated and what is prefetched, as measured: bytes shortly before tiles
  // multiply them, codes of four bits before they are spread. What was spread is multiplied a row later, when it has
  // left the store buffer.
  static constexpr int64_t kKeyPrefetchDistance = Cache::kPerByte, kValuePrefetchDistance = 1,
                           kDelay = Cache::kPerByte - 1;

  struct Item : TileItem<Step> {
    float weightSteps[kRowsOfTile], corrections[kRowsOfTile];
    alignas(64) uint32_t weights[kTileUnits][kTileRows][kLanes] = {};
    alignas(64) int32_t scores[kPieces][kTileRows][kLanes];
  };
  template <typename OfItem, typename Worker, typename OfSteps>
  friend void runItems(Worker &worker, const TileItems<OfSteps> &items);

  static int64_t tilesOf(int64_t rows) { return (rows + kRowsOfTile - 1) / kRowsOfTile; }
  int64_t rowsOf(int64_t tile) const { return smaller(height, block->count - tile * height); }

  void beginTile(int64_t tile) {
    uint8_t *to = queries.data() + tile * depth * kTileOfBytes;
    __builtin_memset(to, 0, static_cast<size_t>(depth * kTileOfBytes));
    for (int64_t r = 0; r < rowsOf(tile); ++r) {
      int64_t row = tile * height + r;
      const float *query = block->queries + row * block->queryStride;
      rounded.data()[row] = QuantizedQuery(query, attention.size());
      for (int64_t d = 0; d < attention.size(); d += kLanes)
        setLimbs(rounded.data()[row].round(load(query + d)),
                 to + d / kTileRowBytes * kTileOfBytes + r * kTileRowBytes + d % kTileRowBytes);
      RowTotals total = {0, 0};
      total.weights[0] = block->rows[row].sum;
      totals.data()[row] = total;
    }
  }

  void setLimbs(Integers integers, uint8_t *to) const {
    typedef uint8_t Bytes __attribute__((ext_vector_type(16)));
    Integers lower = (integers << 24) >> 24;
    auto upperBytes = __builtin_convertvector((integers - lower) >> 8, Bytes);
    auto lowerBytes = __builtin_convertvector(lower, Bytes);
    __builtin_memcpy(to, &upperBytes, sizeof upperBytes);
    __builtin_memcpy(to + height * kTileRowBytes, &lowerBytes, sizeof lowerBytes);
  }

  void takeKeys(const Step &step) { operands.takeKeys(step); }
  void takeValues(const Step &step) { operands.takeValues(step); }
  void begin(Item &item) {
    if (item.isFirst)
      beginStep(item);
    if (item.exists)
      scaleRows(item);
  }
  Step stepPrefetched(const Item &item, int64_t steps) const {
    return (*order)[smaller(item.index + steps, order->count() - 1)];
  }

  void beginStep(const Item &item) {
    prefetcher.begin(stepPrefetched(item, kKeyPrefetchDistance), stepPrefetched(item, kValuePrefetchDistance), keyUnit,
                     valueUnit);
    if (!item.exists)
      return;
    numbers.take(item.step, keyBytes, valueBytes);
  }
  /// A third is prefetched while rows are scaled.
  void prefetch(const Item &, int64_t part, int64_t parts) { prefetcher.prefetch(parts + 2 * part, 3 * parts); }
  void finish(const Item &, const Item &last) const { addProducts(last); }

  /// Multiplies `part` of `parts` of the keys of `next` and of the values of `last`.
  void advance(Item &next, Item &last, int64_t part, int64_t parts) {
    int64_t due = part == parts ? parts : part - kDelay;
    while (next.exists && next.keyParts * parts < kKeyParts * due)
      multiplyKeys(next, static_cast<int>(next.keyParts++));
    while (last.exists && last.valueColumns < columns && last.valueColumns * parts < columns * due)
      last.valueColumns += multiplyValues(last, last.valueColumns);
  }

  /// scores[4 · KV micro-block + part][row and limb][key] of two parts of two KV micro-blocks
  void multiplyKeys(Item &item, int pair) const {
    static_assert(kTileUnits == 2 && kKeySums == 4);
    const uint8_t *query = queries.data() + item.tile * depth * kTileOfBytes;
    int part = 2 * pair;
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
      _tile_loadd(6, operands.key(0, part + 1, i), kTileRowBytes);
      _tile_dpbssd(2, 4, 6);
      _tile_loadd(7, operands.key(1, part + 1, i), kTileRowBytes);
      _tile_dpbssd(3, 4, 7);
    }
    _tile_stored(0, item.scores[part], kTileRowBytes);
    _tile_stored(1, item.scores[Cache::kBlockWord + part], kTileRowBytes);
    _tile_stored(2, item.scores[part + 1], kTileRowBytes);
    _tile_stored(3, item.scores[Cache::kBlockWord + part + 1], kTileRowBytes);
  }

  void scaleRows(Item &item) {
    for (int64_t r = 0; r < rowsOf(item.tile); ++r) {
      int64_t row = item.tile * height + r;
      Vector logits[kPieces];
      for (int piece = 0; piece < kPieces; ++piece)
        logits[piece] =
            joinLimbs(loadAs<Integers>(item.scores[piece][r]), loadAs<Integers>(item.scores[piece][height + r]));
      softmax.scale<Cache, kTileUnits>(r, block->rows[row], rounded.data()[row], item.step, attention.softcap,
                                       numbers.keys, logits);
      for (int piece = 0; piece < kPieces; ++piece)
        __builtin_memcpy(item.scores[piece][r], &logits[piece], sizeof logits[piece]);
      prefetcher.prefetch(r + 1, 3 * rowsOf(item.tile));
    }
    softmax.finishScaling(rowsOf(item.tile));
  }

  void exponentiate(Item &item, int64_t r) {
    Vector logits[kPieces];
    for (int piece = 0; piece < kPieces; ++piece)
      logits[piece] = loadAs<Vector>(item.scores[piece][r]);
    auto result = softmax.exponentiate<Cache, kTileUnits>(r, numbers, logits, totals.data()[item.tile * height + r]);
    item.weightSteps[r] = result.step;
    item.corrections[r] = result.correction;
    for (int unit = 0; unit < kTileUnits; ++unit) {
      __builtin_memcpy(item.weights[unit][r], &result.words[unit].first, sizeof item.weights[unit][r]);
      __builtin_memcpy(item.weights[unit][height + r], &result.words[unit].second, sizeof item.weights[unit][r]);
    }
  }

  /// products[column][row and limb][element] of some columns from `column` on; how many is the result.
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
    for (int unit = 0; unit < item.step.present; ++unit) {
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
      float *sums = block->sums + (item.tile * height + r) * block->sumStride;
      const int32_t *upper = products.data() + r * kLanes, *lower = upper + height * kLanes;
      for (int64_t column = 0; column < columns; ++column, sums += kLanes) {
        Vector product = joinLimbs(loadAs<Integers>(upper), loadAs<Integers>(lower));
        store(sums, load(sums) * item.corrections[r] + product * item.weightSteps[r]);
        upper += kTileIntegers;
        lower += kTileIntegers;
      }
    }
  }

  const Attention &attention;
  bool isTaken;
  int64_t keyBytes, valueBytes; // of the codes of a KV micro-block
  int64_t depth, columns;       // tiles of a query, of a value
  int64_t keyUnit, valueUnit;   // bytes
  QuantizedKvOperands<Cache> operands;
  Scratch<QuantizedQuery> rounded;
  Scratch<RowTotals> totals;
  Scratch<uint8_t> queries; // [tile of rows][step][row and limb][element]
  Scratch<int32_t> products;
  int64_t height = 0; // rows of a tile, each with two limbs
  const RowBlock *block = nullptr;
  const Steps *order = nullptr;
  KvBlockPrefetcher prefetcher;
  CacheNumbers<Cache, kTileUnits> numbers;
  QuantizedRows softmax;
};

template <int BITS> class BlockedTiles<QuantizedCache<BITS>> : public AmxQuantized<QuantizedCache<BITS>> {
  using AmxQuantized<QuantizedCache<BITS>>::AmxQuantized;
};

} // namespace

#endif // __AMX_INT8__
#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_QUANTIZED_TILES_H
