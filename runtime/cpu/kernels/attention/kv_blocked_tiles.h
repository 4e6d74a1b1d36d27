// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over a cache of 16 bits in blocks by AMX. Blocks of bf16 are the right operands of its products as they
// lie; queries and weights are rounded to bf16 as what they are multiplied with is, and sixteen rows are the left
// operand. Those of f16 become two limbs of bf16 where many rows share that work, and so are queries and weights: the
// upper limbs of eight rows, then their lower limbs.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_TILES_H

#include "kv_blocked_products.h"

#ifdef __AMX_BF16__

#include "paired_tiles.h"
#include "row_tile.h"
#include "tile_items.h"

namespace {

/// Right operands of products: sixteen words of keys by sixteen keys, sixteen pairs of positions by sixteen elements of
/// values.
template <typename Cache> class BlockedOperands;

template <> class BlockedOperands<Bf16Cache> {
public:
  using Step = BlockedStep<Bf16Cache, 2>;
  static constexpr int kLimbs = 1, kRowLimbs = 1; // of keys and values, and of queries and weights
  static constexpr int64_t kLeastRows = 0;        // that pay for making the operands

  BlockedOperands(int64_t size, int64_t) : size(size) {}

  void takeKeys(const Step &step) { __builtin_memcpy(keys, step.keys, sizeof keys); }
  void takeValues(const Step &step) { __builtin_memcpy(values, step.values, sizeof values); }
  const uint16_t *key(int unit, int part, int64_t number, int) const {
    return keys[unit] + part * kLanes * size + number * kTileElements;
  }
  const uint16_t *value(int unit, int64_t column, int) const { return values[unit] + column * kTileElements; }

private:
  int64_t size;
  const uint16_t *keys[kStepUnits], *values[kStepUnits];
};

template <> class BlockedOperands<F16Cache> {
public:
  using Limbs = CacheLimbs<F16Cache>;
  using Step = BlockedStep<F16Cache, 2>;
  static constexpr int kLimbs = Limbs::kCount, kRowLimbs = 2;
  static constexpr int64_t kLeastRows = kGemvRows;

  BlockedOperands(int64_t size, int64_t columns)
      : size(size), columns(columns), keys(2 * kStepUnits * size / kTileDepth * kLimbs * kTileElements),
        values(kStepUnits * columns * kLimbs * kTileElements) {}

  void takeKeys(const Step &step) {
    for (int unit = 0; unit < kStepUnits; ++unit)
      for (int part = 0; part < 2; ++part)
        for (int64_t number = 0; number < size / kTileDepth; ++number)
          pairRows(step.keys[unit] + (part * size + number * kTileDepth) * kLanes, 2 * kLanes, kLanes,
                   keys.data() + keyTile(unit, part, number) * kLimbs * kTileElements);
  }
  void takeValues(const Step &step) {
    for (int unit = 0; unit < kStepUnits; ++unit)
      for (int64_t column = 0; column < columns; ++column)
        pairRows(step.values[unit] + column * kTileFloats, kLanes, kLanes * columns * kLanes,
                 values.data() + (unit * columns + column) * kLimbs * kTileElements);
  }
  const uint16_t *key(int unit, int part, int64_t number, int limb) const {
    return keys.data() + (keyTile(unit, part, number) * kLimbs + limb) * kTileElements;
  }
  const uint16_t *value(int unit, int64_t column, int limb) const {
    return values.data() + ((unit * columns + column) * kLimbs + limb) * kTileElements;
  }

private:
  int64_t keyTile(int unit, int part, int64_t number) const { return (unit * 2 + part) * (size / kTileDepth) + number; }

  /// Tiles of the limbs of sixteen pairs of rows: rows of a pair are `rowStride` elements from each other, pairs `step`.
  static void pairRows(const _Float16 *from, int64_t step, int64_t rowStride, uint16_t *to) {
    for (int64_t row = 0; row < kTileRows; ++row, from += step, to += kTileDepth) {
      Words words[kLimbs];
      Limbs::pair(F16Cache::load16(from), F16Cache::load16(from + rowStride), words);
      for (int limb = 0; limb < kLimbs; ++limb)
        __builtin_memcpy(to + limb * kTileElements, &words[limb], sizeof words[limb]);
    }
  }

  int64_t size, columns;
  Scratch<uint16_t> keys, values; // [KV micro-block][part][number][limb], [KV micro-block][column][limb], tiles
};

template <typename Cache> class AmxBlocks {
public:
  AmxBlocks(const Attention &attention, int64_t mostRows)
      : attention(attention), isTaken(attention.size() % kTileDepth == 0), steps(attention.size() / kTileDepth),
        columns(toLanes(attention.valueSize()) / kLanes),
        operands(isTaken ? attention.size() : 0, isTaken ? columns : 0),
        queries(isTaken ? tilesOf(mostRows) * steps * kTileElements : 0),
        sums(isTaken ? tilesOf(mostRows) * columns * kTileFloats : 0), totals(tilesOf(mostRows) * kTileFloats) {}

  bool takes(int64_t rows) const {
    return isTaken && (Operands::kLeastRows == 0 || (!attention.hasIndependentRows() && rows >= Operands::kLeastRows));
  }

  /// Adds keys [begin, end) to the sums of the rows.
  void run(const RowBlock &of, int64_t begin, int64_t end) {
    Steps order(attention, of.sequence, of.head, of.seen, begin, end);
    TileItems<Steps> items(of, order, kRows);
    TileRegisters registers(kTileRows, kTileRowBytes);
    block = &of;
    for (int64_t tile = 0; tile < items.tiles(); ++tile)
      beginTile(tile);
    runItems<Item>(*this, items);
    for (int64_t r = 0; r < of.count; ++r)
      writeRow(r);
  }

protected:
  const Attention &attention;

private:
  using Operands = BlockedOperands<Cache>;
  using Step = typename Operands::Step;
  using Steps = BlockedSteps<Cache, 2>;
  static constexpr int kPieces = 2 * kStepUnits, kRowLimbs = Operands::kRowLimbs;
  static constexpr int64_t kKeyParts = kPieces / 2;       // two pieces of each
  static constexpr int64_t kRows = kTileRows / kRowLimbs; // of a tile
  static constexpr int64_t kPrefetchDistance = 1024,
                           kValueLines =
                               32; // bytes between what is read and what is prefetched; lines of a KV micro-block

  struct Item : TileItem<Step> {
    float corrections[kRows];
    bool isCorrected = false; // by another factor than 1
    alignas(64) uint16_t weights[kStepUnits][kTileRows][kTileDepth] = {};
    alignas(64) float scores[kPieces][kTileRows][kLanes];
  };
  template <typename OfItem, typename Worker, typename OfSteps>
  friend void runItems(Worker &worker, const TileItems<OfSteps> &items);

  static int64_t tilesOf(int64_t rows) { return (rows + kRows - 1) / kRows; }
  int64_t rowsOf(int64_t tile) const { return smaller(kRows, block->count - tile * kRows); }
  float *sumsOf(int64_t tile) const { return sums.data() + tile * columns * kTileFloats; }

  /// Pairs of bf16 as row `r` of a tile, and what they lack as its row kRows + r where there is a second limb.
  static void setLimbs(Vector low, Vector high, uint16_t *tile, int64_t r) {
    Vector roundedLow = roundToBf16(low), roundedHigh = roundToBf16(high);
    storeWords(tile + r * kTileDepth, pairLimbs(roundedLow, roundedHigh));
    if constexpr (kRowLimbs == 2)
      storeWords(tile + (kRows + r) * kTileDepth, pairLimbs(low - roundedLow, high - roundedHigh));
  }

  /// The nearest sum of limbs; weights do without, as errors of many of them cancel out.
  static Vector roundToLimbs(Vector x) {
    Vector rounded = roundToBf16(x);
    return kRowLimbs == 1 ? rounded : rounded + roundToBf16(x - rounded);
  }

  /// A row of a tile of sums, from its first.
  static Vector sumOfLimbs(const float *from) {
    return kRowLimbs == 1 ? load(from) : load(from) + load(from + kRows * kLanes);
  }

  static void storeWords(uint16_t *to, Words words) { __builtin_memcpy(to, &words, sizeof words); }

  void beginTile(int64_t tile) {
    for (int64_t i = 0; i < columns * kTileFloats; ++i)
      sumsOf(tile)[i] = 0;
    uint16_t *to = queries.data() + tile * steps * kTileElements;
    for (int64_t step = 0; step < steps; ++step, to += kTileElements)
      for (int64_t r = 0; r < kRows; ++r) {
        Vector low = 0, high = 0;
        if (r < rowsOf(tile)) {
          const float *query = block->queries + (tile * kRows + r) * block->queryStride + step * kTileDepth;
          Vector first = load(query), second = load(query + kLanes); // a word has two neighbours
          low = __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
          high = __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        }
        setLimbs(roundToLimbs(low), roundToLimbs(high), to, r);
      }
    for (int64_t r = 0; r < rowsOf(tile); ++r) {
      Vector total = 0;
      total[0] = block->rows[tile * kRows + r].sum;
      store(totalOf(tile * kRows + r), total);
    }
  }

  float *totalOf(int64_t r) const { return totals.data() + r * kLanes; }

  void takeKeys(const Step &step) { operands.takeKeys(step); }
  void takeValues(const Step &step) { operands.takeValues(step); }
  void begin(Item &item) const { item.isCorrected = false; }

  /// Few rows are memory-bound: the hardware prefetches what follows the first lines by itself.
  bool prefetches(const Item &item) const { return item.exists && item.tile == 0 && block->count < kGemvRows; }
  void prefetch(const Item &item, int64_t part, int64_t parts) const {
    if (prefetches(item))
      for (int64_t line = (part - 1) * kValueLines / parts; line < part * kValueLines / parts; ++line)
        for (const auto *values : item.step.values)
          __builtin_prefetch(reinterpret_cast<const uint8_t *>(values) + line * kTileRowBytes, 0, 2);
  }
  static void prefetchTiles(const void *tile, bool prefetches) {
    if (prefetches)
      for (int64_t line = 0; line < kTileRows; ++line)
        __builtin_prefetch(static_cast<const uint8_t *>(tile) + kPrefetchDistance + line * kTileRowBytes, 0, 3);
  }

  /// Multiplies `part` of `parts` of the keys of `next` and of the values of `last`.
  void advance(Item &next, Item &last, int64_t part, int64_t parts) {
    while (next.exists && next.keyParts * parts < kKeyParts * part)
      multiplyKeys(next, static_cast<int>(next.keyParts++));
    while (last.exists && last.valueColumns < columns && last.valueColumns * parts < columns * part) {
      multiplyValues(last, last.valueColumns);
      last.valueColumns += 2;
    }
  }

  /// scores[2 · KV micro-block + part][row and limb][key] of two KV micro-blocks
  void multiplyKeys(Item &item, int pair) const {
    bool isPrefetching = prefetches(item);
    int unit = pair / 2 * 2, part = pair % 2;
    const uint16_t *query = queries.data() + item.tile * steps * kTileElements;
    _tile_zero(0);
    _tile_zero(1);
    for (int64_t i = 0; i < steps; ++i) {
      _tile_loadd(4, query + i * kTileElements, kTileRowBytes);
      for (int limb = 0; limb < Operands::kLimbs; ++limb) {
        _tile_loadd(6, operands.key(unit, part, i, limb), kTileRowBytes);
        prefetchTiles(operands.key(unit, part, i, limb), isPrefetching);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, operands.key(unit + 1, part, i, limb), kTileRowBytes);
        prefetchTiles(operands.key(unit + 1, part, i, limb), isPrefetching);
        _tile_dpbf16ps(1, 4, 7);
      }
    }
    _tile_stored(0, item.scores[2 * unit + part], kTileRowBytes);
    _tile_stored(1, item.scores[2 * unit + 2 + part], kTileRowBytes);
  }

  void exponentiate(Item &item, int64_t r) {
    int64_t row = item.tile * kRows + r;
    Vector logits[kPieces], total = load(totalOf(row));
    for (int piece = 0; piece < kPieces; ++piece)
      logits[piece] = sumOfLimbs(item.scores[piece][r]);
    adjustPieces(block->rows[row], item.step, attention.softcap, logits);
    item.corrections[r] = softmaxPieces(block->rows[row], logits, total);
    item.isCorrected |= item.corrections[r] != 1.0f;
    store(totalOf(row), total);
    for (int unit = 0; unit < kStepUnits; ++unit)
      setLimbs(logits[2 * unit], logits[2 * unit + 1], item.weights[unit][0], r);
  }

  /// sums += weights · values, of two columns
  void multiplyValues(const Item &item, int64_t column) const {
    bool isPrefetching = prefetches(item), hasSecond = column + 1 < columns;
    float *to = sumsOf(item.tile) + column * kTileFloats;
    _tile_loadd(0, to, kTileRowBytes);
    if (hasSecond)
      _tile_loadd(1, to + kTileFloats, kTileRowBytes);
    for (int unit = 0; unit < item.step.present; ++unit) {
      _tile_loadd(4, item.weights[unit], kTileRowBytes);
      for (int limb = 0; limb < Operands::kLimbs; ++limb) {
        _tile_loadd(6, operands.value(unit, column, limb), kTileRowBytes);
        prefetchTiles(operands.value(unit, column, limb), isPrefetching);
        _tile_dpbf16ps(0, 4, 6);
        if (hasSecond) {
          _tile_loadd(7, operands.value(unit, column + 1, limb), kTileRowBytes);
          prefetchTiles(operands.value(unit, column + 1, limb), isPrefetching);
          _tile_dpbf16ps(1, 4, 7);
        }
      }
    }
    _tile_stored(0, to, kTileRowBytes);
    if (hasSecond)
      _tile_stored(1, to + kTileFloats, kTileRowBytes);
  }

  /// Once the values of the last item are in the sums, they are rescaled to the maxima of the item.
  void finish(const Item &item, const Item &) const {
    if (!item.exists || !item.isCorrected)
      return;
    for (int64_t r = 0; r < rowsOf(item.tile); ++r) {
      if (item.corrections[r] == 1.0f)
        continue;
      float *to = sumsOf(item.tile) + r * kLanes;
      for (int64_t column = 0; column < columns; ++column, to += kTileFloats)
        for (int64_t limb = 0; limb < kRowLimbs * kRows * kLanes; limb += kRows * kLanes)
          store(to + limb, load(to + limb) * item.corrections[r]);
    }
  }

  void writeRow(int64_t r) const {
    block->rows[r].sum = sumLanes(load(totalOf(r)));
    const float *from = sumsOf(r / kRows) + r % kRows * kLanes;
    float *to = block->sums + r * block->sumStride;
    for (int64_t column = 0; column < columns; ++column, from += kTileFloats, to += kLanes)
      store(to, load(to) + sumOfLimbs(from));
  }

  bool isTaken;
  int64_t steps, columns; // tiles of a query, of a value
  Operands operands;
  Scratch<uint16_t> queries;   // [tile of rows][step][row and limb][element]
  Scratch<float> sums, totals; // [tile of rows][column][row and limb][lane], [row][lane]
  const RowBlock *block = nullptr;
};

template <> class BlockedTiles<Bf16Cache> : public AmxBlocks<Bf16Cache> {
public:
  BlockedTiles(const Attention &attention, int64_t mostRows)
      : AmxBlocks(attention, PairedTiles::takes(attention) ? 0 : mostRows), isPaired(PairedTiles::takes(attention)),
        pairs(attention, isPaired ? mostRows : 0) {}

  void run(const RowBlock &of, int64_t begin, int64_t end) {
    if (isPaired)
      pairs.run(of, firstOf(of, attention.key), firstOf(of, attention.value), begin, end);
    else
      AmxBlocks::run(of, begin, end);
  }

private:
  static const uint16_t *firstOf(const RowBlock &of, const hone_tensor &tensor) {
    return static_cast<const uint16_t *>(tensor.data) + offsetOf(tensor, of.sequence, of.head, 0);
  }

  bool isPaired;
  PairedTiles pairs;
};
template <> class BlockedTiles<F16Cache> : public AmxBlocks<F16Cache> {
  using AmxBlocks::AmxBlocks;
};

} // namespace

#endif // __AMX_BF16__
#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_KV_BLOCKED_TILES_H
