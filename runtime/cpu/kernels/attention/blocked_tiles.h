// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over a cache of 16 bits in blocks by AMX. Blocks of bf16 are the right operands of its products as they lie; queries and
// weights are rounded to bf16 as what they are multiplied with is, and sixteen rows are the left operand. Those of f16 become two digits
// of bf16 where many rows share that work, and so are queries and weights: the upper digits of eight rows, then their lower digits.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCKED_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCKED_TILES_H

#include "blocked_products.h"

#ifdef __AMX_BF16__

#include "cache_tiles.h"
#include "row_tile.h"

namespace {

constexpr int64_t kTileElements = kTileRows * kTileDepth, kTileFloats = kTileRows * kLanes;

/// Right operands of products: sixteen words of keys by sixteen keys, sixteen pairs of positions by sixteen elements of values.
template <typename Cache> class BlockedOperands;

template <> class BlockedOperands<Bf16Cache> {
public:
  using Step = BlockedStep<Bf16Cache, 2>;
  static constexpr int kDigits = 1, kRowDigits = 1; // of keys and values, and of queries and weights
  static constexpr int64_t kLeastRows = 0;          // that pay for making the operands

  BlockedOperands(int64_t size, int64_t) : size(size) {}

  void take(const Step &from) { step = from; }
  const uint16_t *key(int unit, int part, int64_t number, int) const {
    return step.keys[unit] + part * kLanes * size + number * kTileElements;
  }
  const uint16_t *value(int unit, int64_t column, int) const { return step.values[unit] + column * kTileElements; }

private:
  int64_t size;
  Step step;
};

template <> class BlockedOperands<F16Cache> {
public:
  using Digits = CacheDigits<F16Cache>;
  using Step = BlockedStep<F16Cache, 2>;
  static constexpr int kDigits = Digits::kCount, kRowDigits = 2;
  static constexpr int64_t kLeastRows = kFewRows;

  BlockedOperands(int64_t size, int64_t columns)
      : size(size), columns(columns), keys(2 * kStepUnits * size / kTileDepth * kDigits * kTileElements),
        values(kStepUnits * columns * kDigits * kTileElements) {}

  void take(const Step &step) {
    for (int unit = 0; unit < kStepUnits; ++unit) {
      for (int part = 0; part < 2; ++part)
        for (int64_t number = 0; number < size / kTileDepth; ++number)
          pairRows(step.keys[unit] + (part * size + number * kTileDepth) * kLanes, 2 * kLanes, kLanes,
                   keys.data() + keyTile(unit, part, number) * kDigits * kTileElements);
      for (int64_t column = 0; column < columns; ++column)
        pairRows(step.values[unit] + column * kTileFloats, kLanes, kLanes * columns * kLanes,
                 values.data() + (unit * columns + column) * kDigits * kTileElements);
    }
  }
  const uint16_t *key(int unit, int part, int64_t number, int digit) const {
    return keys.data() + (keyTile(unit, part, number) * kDigits + digit) * kTileElements;
  }
  const uint16_t *value(int unit, int64_t column, int digit) const {
    return values.data() + ((unit * columns + column) * kDigits + digit) * kTileElements;
  }

private:
  int64_t keyTile(int unit, int part, int64_t number) const { return (unit * 2 + part) * (size / kTileDepth) + number; }

  /// Tiles of the digits of sixteen pairs of rows: rows of a pair are `apart`, pairs `step` elements.
  static void pairRows(const _Float16 *from, int64_t step, int64_t apart, uint16_t *to) {
    for (int64_t row = 0; row < kTileRows; ++row, from += step, to += kTileDepth) {
      Words words[kDigits];
      Digits::pair(F16Cache::load16(from), F16Cache::load16(from + apart), words);
      for (int digit = 0; digit < kDigits; ++digit)
        __builtin_memcpy(to + digit * kTileElements, &words[digit], sizeof words[digit]);
    }
  }

  int64_t size, columns;
  Scratch<uint16_t> keys, values; // [unit][part][number][digit], [unit][column][digit], tiles
};

template <typename Cache> class AmxBlocks {
public:
  AmxBlocks(const Attention &attention, int64_t mostRows)
      : attention(attention), isTaken(attention.size() % kTileDepth == 0), steps(attention.size() / kTileDepth),
        columns(toLanes(attention.valueSize()) / kLanes),
        operands(isTaken ? attention.size() : 0, isTaken ? columns : 0),
        queries(isTaken ? tilesOf(mostRows) * steps * kTileElements : 0),
        sums(isTaken ? tilesOf(mostRows) * columns * kTileFloats : 0), totals(tilesOf(mostRows) * kTileFloats) {}

  bool takes(int64_t rows) const { return isTaken && rows >= Operands::kLeastRows; }

  /// Adds keys [begin, end) to the sums of the rows.
  void run(const RowBlock &of, int64_t begin, int64_t end) {
    BlockedSteps<Cache, 2> order(attention, of.sequence, of.head, begin, end, of.count < kFewRows);
    TileRegisters registers(kTileRows, kTileRowBytes);
    block = &of;
    for (int64_t tile = 0; tile < tilesOf(of.count); ++tile)
      beginTile(tile);
    for (int64_t i = 0; i < order.count(); ++i) {
      Step step = order[i];
      operands.take(step);
      for (int64_t tile = 0; tile < tilesOf(of.count); ++tile)
        if (isSeen(step, tile))
          addTile(step, tile);
    }
    for (int64_t r = 0; r < of.count; ++r)
      writeRow(r);
  }

private:
  using Operands = BlockedOperands<Cache>;
  using Step = typename Operands::Step;
  static constexpr int kPieces = 2 * kStepUnits, kRowDigits = Operands::kRowDigits;
  static constexpr int64_t kRows = kTileRows / kRowDigits; // of a tile
  static constexpr int64_t kAhead = 512;                   // bytes between what is read and what is asked for

  static int64_t tilesOf(int64_t rows) { return (rows + kRows - 1) / kRows; }
  int64_t rowsOf(int64_t tile) const { return smaller(kRows, block->count - tile * kRows); }
  float *sumsOf(int64_t tile) const { return sums.data() + tile * columns * kTileFloats; }

  /// Pairs of bf16 as row `r` of a tile, and what they lack as its row kRows + r where there is a second digit.
  static void setDigits(Vector low, Vector high, uint16_t *tile, int64_t r) {
    Vector roundedLow = roundToBf16(low), roundedHigh = roundToBf16(high);
    storeWords(tile + r * kTileDepth, pairDigits(roundedLow, roundedHigh));
    if constexpr (kRowDigits == 2)
      storeWords(tile + (kRows + r) * kTileDepth, pairDigits(low - roundedLow, high - roundedHigh));
  }

  /// The nearest sum of digits; weights do without, as errors of many of them cancel out.
  static Vector roundToDigits(Vector x) {
    Vector rounded = roundToBf16(x);
    return kRowDigits == 1 ? rounded : rounded + roundToBf16(x - rounded);
  }

  /// A row of a tile of sums, from its first.
  static Vector sumOfDigits(const float *from) {
    return kRowDigits == 1 ? load(from) : load(from) + load(from + kRows * kLanes);
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
        setDigits(roundToDigits(low), roundToDigits(high), to, r);
      }
    for (int64_t r = 0; r < rowsOf(tile); ++r) {
      Vector total = 0;
      total[0] = block->rows[tile * kRows + r].sum;
      store(totalOf(tile * kRows + r), total);
    }
  }

  float *totalOf(int64_t r) const { return totals.data() + r * kLanes; }

  bool isSeen(const Step &step, int64_t tile) const {
    return block->sees(tile * kRows, rowsOf(tile), step.begin, step.end);
  }

  void addTile(const Step &step, int64_t tile) {
    bool isAsking = tile == 0 && block->count < kFewRows;
    const uint16_t *query = queries.data() + tile * steps * kTileElements;
    multiplyKeys(0, query, isAsking);
    multiplyKeys(1, query, isAsking);
    ValuesAhead<Step> values(step, isAsking);
    for (int64_t r = 0; r < rowsOf(tile); ++r)
      weigh(step, tile, r, values);
    multiplyValues(sumsOf(tile), isAsking);
  }

  static void ask(const void *tile, bool isAsking) {
    if (isAsking)
      for (int64_t line = 0; line < kTileRows; ++line)
        __builtin_prefetch(static_cast<const uint8_t *>(tile) + kAhead + line * kTileRowBytes, 0, 3);
  }

  /// scores[2 · unit + part][row and digit][key]
  void multiplyKeys(int part, const uint16_t *query, bool isAsking) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < steps; ++i) {
      _tile_loadd(4, query + i * kTileElements, kTileRowBytes);
      for (int digit = 0; digit < Operands::kDigits; ++digit) {
        _tile_loadd(6, operands.key(0, part, i, digit), kTileRowBytes);
        ask(operands.key(0, part, i, digit), isAsking);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, operands.key(1, part, i, digit), kTileRowBytes);
        ask(operands.key(1, part, i, digit), isAsking);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(6, operands.key(2, part, i, digit), kTileRowBytes);
        ask(operands.key(2, part, i, digit), isAsking);
        _tile_dpbf16ps(2, 4, 6);
        _tile_loadd(7, operands.key(3, part, i, digit), kTileRowBytes);
        ask(operands.key(3, part, i, digit), isAsking);
        _tile_dpbf16ps(3, 4, 7);
      }
    }
    _tile_stored(0, scores[part], kTileRowBytes);
    _tile_stored(1, scores[2 + part], kTileRowBytes);
    _tile_stored(2, scores[4 + part], kTileRowBytes);
    _tile_stored(3, scores[6 + part], kTileRowBytes);
  }

  void weigh(const Step &step, int64_t tile, int64_t r, ValuesAhead<Step> &values) {
    int64_t row = tile * kRows + r;
    Vector logits[kPieces], total = load(totalOf(row));
    for (int piece = 0; piece < kPieces; ++piece)
      logits[piece] = sumOfDigits(scores[piece][r]);
    values.ask(kPieces / 2);
    adjustPieces(block->rows[row], step, attention.softcap, logits);
    float correction = weighPieces(block->rows[row], logits, total);
    store(totalOf(row), total);
    for (int unit = 0; unit < kStepUnits; ++unit)
      setDigits(logits[2 * unit], logits[2 * unit + 1], weights[unit][0], r);
    if (correction == 1.0f)
      return;
    float *to = sumsOf(tile) + r * kLanes;
    for (int64_t column = 0; column < columns; ++column, to += kTileFloats)
      for (int64_t digit = 0; digit < kRowDigits * kRows * kLanes; digit += kRows * kLanes)
        store(to + digit, load(to + digit) * correction);
  }

  void multiplyValues(float *to, bool isAsking) const {
    _tile_loadd(2, weights[0], kTileRowBytes);
    _tile_loadd(3, weights[1], kTileRowBytes);
    _tile_loadd(4, weights[2], kTileRowBytes);
    _tile_loadd(5, weights[3], kTileRowBytes);
    int64_t column = 0;
    for (; column + 2 <= columns; column += 2) {
      multiplyColumn<0>(column, to, isAsking);
      multiplyColumn<1>(column + 1, to, isAsking);
    }
    if (column < columns)
      multiplyColumn<0>(column, to, isAsking);
  }

  template <int SUM> void multiplyColumn(int64_t column, float *to, bool isAsking) const {
    _tile_loadd(SUM, to + column * kTileFloats, kTileRowBytes);
    for (int digit = 0; digit < Operands::kDigits; ++digit) {
      _tile_loadd(6, operands.value(0, column, digit), kTileRowBytes);
      ask(operands.value(0, column, digit), isAsking);
      _tile_dpbf16ps(SUM, 2, 6);
      _tile_loadd(7, operands.value(1, column, digit), kTileRowBytes);
      ask(operands.value(1, column, digit), isAsking);
      _tile_dpbf16ps(SUM, 3, 7);
      _tile_loadd(6, operands.value(2, column, digit), kTileRowBytes);
      ask(operands.value(2, column, digit), isAsking);
      _tile_dpbf16ps(SUM, 4, 6);
      _tile_loadd(7, operands.value(3, column, digit), kTileRowBytes);
      ask(operands.value(3, column, digit), isAsking);
      _tile_dpbf16ps(SUM, 5, 7);
    }
    _tile_stored(SUM, to + column * kTileFloats, kTileRowBytes);
  }

  void writeRow(int64_t r) const {
    block->rows[r].sum = sumLanes(load(totalOf(r)));
    const float *from = sumsOf(r / kRows) + r % kRows * kLanes;
    float *to = block->sums + r * block->sumStride;
    for (int64_t column = 0; column < columns; ++column, from += kTileFloats, to += kLanes)
      store(to, load(to) + sumOfDigits(from));
  }

  const Attention &attention;
  bool isTaken;
  int64_t steps, columns; // tiles of a query, of a value
  Operands operands;
  Scratch<uint16_t> queries;   // [tile of rows][step][row and digit][element]
  Scratch<float> sums, totals; // [tile of rows][column][row and digit][lane], [row][lane]
  const RowBlock *block = nullptr;
  alignas(64) float scores[kPieces][kTileRows][kLanes];
  alignas(64) uint16_t weights[kStepUnits][kTileRows][kTileDepth] = {};
};

template <> class BlockedTiles<Bf16Cache> : public AmxBlocks<Bf16Cache> {
  using AmxBlocks::AmxBlocks;
};
template <> class BlockedTiles<F16Cache> : public AmxBlocks<F16Cache> {
  using AmxBlocks::AmxBlocks;
};

} // namespace

#endif // __AMX_BF16__
#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_BLOCKED_TILES_H
