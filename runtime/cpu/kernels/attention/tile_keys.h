// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention by AMX, for caches of 16 bits: keys · queries and weights · values are products of bf16 with sums in f32.
// Queries and weights are two bf16 limbs each, sixteen bits of mantissa, so that no more is lost than by sums in f32 of
// long caches; the limbs of eight rows fill the sixteen rows of a tile.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_TILE_KEYS_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_TILE_KEYS_H

#include "row_block.h"

#ifdef __AMX_BF16__
#include "row_tile.h"
#endif

namespace {

/// Adds keys to sums of rows. This one takes none.
template <typename Cache> class TileKeys {
public:
  TileKeys(const Attention &, int64_t) {}
  bool takes() const { return false; }
  void run(const RowBlock &, const KeyBlocks &) {}
};

#ifdef __AMX_BF16__

template <typename Cache> class AmxKeys {
public:
  AmxKeys(const Attention &attention, int64_t mostRows)
      : attention(attention), isTaken(CacheRows<Cache>(attention.key, 0, 0, 0).isDense() &&
                                      CacheRows<Cache>(attention.value, 0, 0, 0).isDense() &&
                                      attention.size() % kTileDepth == 0 && attention.valueSize() % kTileDepth == 0),
        tiles(attention.size(), attention.valueSize()), querySize(attention.size() / kTileDepth * kTileBytes / 2),
        sumSize(kRowsOfTile * attention.valueSize()), queries(isTaken ? rowTiles(mostRows) * querySize : 0),
        sums(isTaken ? rowTiles(mostRows) * sumSize : 0), valueProducts(isTaken ? 2 * sumSize : 0) {}

  bool takes() const { return isTaken; }

  /// A tile is written long before it is multiplied, and products are read long after: each step has a part of three
  /// others.
  void run(const RowBlock &of, const KeyBlocks &keyBlocks) {
    TileRegisters registers(kTileRows, kTileRowBytes);
    block = &of;
    blocks = &keyBlocks;
    Prefetch<Cache> prefetcher(attention.key, attention.value, block->sequence, block->head, kBlockKeys / 4 * 3);
    for (int64_t tile = 0; tile < rowTiles(block->count); ++tile)
      beginTile(tile);
    Step last, step = stepAfter({-1, rowTiles(block->count)});
    takeKeys(step, prefetcher);
    multiplyKeys(step);
    while (step.exists() || last.exists()) {
      Step next = stepAfter(step);
      multiplyValues(last);
      takeKeys(next, prefetcher);
      takeValues(step, prefetcher);
      exponentiate(step, prefetcher);
      addProducts(last);
      multiplyKeys(next);
      last = step;
      step = next;
    }
    for (int64_t tile = 0; tile < rowTiles(block->count); ++tile)
      writeTile(tile);
  }

private:
  static constexpr int64_t kMostTiles = 16;

  /// A tile of rows and a block of keys, of which `first` is the first.
  struct Step {
    int64_t index = -1, tile = 0, first = 0, keyCount = 0;
    bool isFirst = false; // of the block
    Vector correction = 0;

    bool exists() const { return keyCount > 0; }
  };

  Step stepAfter(Step step) const {
    step.isFirst = false;
    for (++step.tile; step.index < blocks->count(); ++step.tile) {
      if (step.tile >= rowTiles(block->count)) {
        step = {step.index + 1, -1};
        step.first = blocks->firstKey(step.index);
        step.keyCount = blocks->keyCount(step.index);
        step.isFirst = true;
        continue;
      }
      if (step.keyCount > 0 && rows[step.tile].sees(step.first))
        return step;
    }
    return {step.index};
  }

  static int64_t rowTiles(int64_t rows) { return (rows + kRowsOfTile - 1) / kRowsOfTile; }
  int64_t rowsOf(int64_t tile) const { return smaller(kRowsOfTile, block->count - tile * kRowsOfTile); }

  /// Tiles of queries: a word has two elements; columns are the upper limbs of eight rows, then their lower limbs.
  void beginTile(int64_t tile) {
    rows[tile].begin(block->rows + tile * kRowsOfTile, rowsOf(tile));
    uint16_t *to = queries.data() + tile * querySize;
    for (int64_t d = 0; d < attention.size(); d += kTileDepth, to += kTileBytes / 2) {
      Vector columns[kLanes] = {};
      for (int64_t r = 0; r < rowsOf(tile); ++r) {
        const float *query = block->queries + (tile * kRowsOfTile + r) * block->queryStride + d;
        Vector low, high;
        CacheTiles<Cache>::pairQuery(load(query), load(query + kLanes), low, high);
        setLimbs(low, high, columns[r], columns[kRowsOfTile + r]);
      }
      transpose(columns);
      for (int64_t i = 0; i < kTileRows; ++i)
        store(reinterpret_cast<float *>(to) + i * kLanes, columns[i]);
    }
    for (int64_t i = 0; i < sumSize; ++i)
      sums.data()[tile * sumSize + i] = 0;
  }

  static void setLimbs(Vector low, Vector high, Vector &upper, Vector &lower) {
    Vector roundedLow = roundToBf16(low), roundedHigh = roundToBf16(high);
    upper = asFloats(pairLimbs(roundedLow, roundedHigh));
    lower = asFloats(pairLimbs(low - roundedLow, high - roundedHigh));
  }

  CacheRows<Cache> rowsAt(const hone_tensor &tensor, const Step &step) const {
    return {tensor, block->sequence, block->head, step.first};
  }

  void takeKeys(const Step &step, Prefetch<Cache> &prefetcher) {
    if (step.exists() && step.isFirst)
      tiles.takeKeys(rowsAt(attention.key, step), step.keyCount, prefetcher);
  }

  void takeValues(const Step &step, Prefetch<Cache> &prefetcher) {
    if (!step.exists() || !step.isFirst)
      return;
    prefetcher.begin(*blocks, step.index);
    tiles.takeValues(rowsAt(attention.value, step), step.keyCount, prefetcher);
  }

  /// keyProducts[key][row and limb] of the keys of a block
  void multiplyKeys(const Step &step) {
    if (!step.exists())
      return;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    const uint16_t *query = queries.data() + step.tile * querySize;
    int64_t stride = tiles.keyTileStride();
    for (int64_t i = 0; i < tiles.keySteps(); ++i) {
      _tile_loadd(4, query + i / Limbs::kCount * kTileBytes / 2, kTileRowBytes);
      _tile_loadd(5, tiles.keyTile(0, i), stride);
      _tile_loadd(6, tiles.keyTile(1, i), stride);
      _tile_dpbf16ps(0, 5, 4);
      _tile_loadd(7, tiles.keyTile(2, i), stride);
      _tile_dpbf16ps(1, 6, 4);
      _tile_loadd(5, tiles.keyTile(3, i), stride);
      _tile_dpbf16ps(2, 7, 4);
      _tile_dpbf16ps(3, 5, 4);
    }
    storeProducts(keyProducts);
  }

  /// From products of keys to tiles of weights.
  void exponentiate(Step &step, Prefetch<Cache> &prefetcher) {
    if (!step.exists())
      return;
    joinLimbs();
    rows[step.tile].adjust(scores, step.first, step.keyCount, attention.softcap);
    step.correction = rows[step.tile].exponentiate(scores, prefetcher);
    splitWeights(prefetcher);
  }

  static void storeProducts(float (*to)[kTileRows][kLanes]) {
    _tile_stored(0, to[0], kTileRowBytes);
    _tile_stored(1, to[1], kTileRowBytes);
    _tile_stored(2, to[2], kTileRowBytes);
    _tile_stored(3, to[3], kTileRowBytes);
  }

  void joinLimbs() {
    for (int64_t pair = 0; pair < kBlockPairs; ++pair)
      for (int64_t t = 0; t < kTileRows; ++t)
        store(scores.lanes[pair * kTileRows + t],
              keepSum(load(keyProducts[2 * pair][t]), load(keyProducts[2 * pair + 1][t])));
  }

  /// Tiles of weights: a row has 32 keys, two to a word; the upper limbs of eight rows, then their lower limbs.
  void splitWeights(Prefetch<Cache> &prefetcher) {
    for (int64_t pair = 0; pair < kBlockPairs; ++pair) {
      Vector words[kLanes];
      for (int64_t i = 0; i < kRowsOfTile; ++i) {
        const float (*from)[kLanes] = scores.lanes + pair * kTileRows + 2 * i;
        setLimbs(load(from[0]), load(from[1]), words[i], words[kRowsOfTile + i]);
        prefetcher.advance();
      }
      transpose<4>(words); // within halves of eight: each has half of the keys
      for (int64_t i = 0; i < kLanes; ++i)
        store(weights[pair][i], words[i]);
    }
  }

  /// valueProducts[column][row and limb][lane] = weights · values
  void multiplyValues(const Step &step) {
    if (!step.exists())
      return;
    float *to = valueProducts.data();
    for (int64_t column = 0; column < tiles.valueColumns(); column += 4, to += 8 * kSumFloats)
      if (column + 2 < tiles.valueColumns())
        multiplyColumns<4>(column, to);
      else
        multiplyColumns<2>(column, to);
  }

  template <int COUNT> void multiplyColumns(int64_t column, float *to) const {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t pair = 0; pair < kBlockPairs; ++pair) {
      _tile_loadd(4, weights[pair], kTileRowBytes);
      for (int limb = 0; limb < Limbs::kCount; ++limb) {
        _tile_loadd(5, tiles.valueTile(pair, column, limb), kTileRowBytes);
        _tile_loadd(6, tiles.valueTile(pair, column + 1, limb), kTileRowBytes);
        _tile_dpbf16ps(0, 4, 5);
        _tile_dpbf16ps(1, 4, 6);
        if constexpr (COUNT == 4) {
          _tile_loadd(7, tiles.valueTile(pair, column + 2, limb), kTileRowBytes);
          _tile_loadd(5, tiles.valueTile(pair, column + 3, limb), kTileRowBytes);
          _tile_dpbf16ps(2, 4, 7);
          _tile_dpbf16ps(3, 4, 5);
        }
      }
    }
    _tile_stored(0, to, kTileRowBytes);
    _tile_stored(1, to + 2 * kSumFloats, kTileRowBytes);
    if constexpr (COUNT == 4) {
      _tile_stored(2, to + 4 * kSumFloats, kTileRowBytes);
      _tile_stored(3, to + 6 * kSumFloats, kTileRowBytes);
    }
  }

  void addProducts(const Step &step) const {
    if (!step.exists())
      return;
    float *sum = sums.data() + step.tile * sumSize;
    const float *products = valueProducts.data();
    for (int64_t column = 0; column < tiles.valueColumns(); ++column, products += kSumFloats)
      for (int64_t r = 0; r < kRowsOfTile; ++r, sum += kLanes, products += kLanes)
        store(sum, load(sum) * step.correction[r] + (load(products) + load(products + kSumFloats)));
  }

  void writeTile(int64_t tile) const {
    rows[tile].finish();
    for (int64_t r = 0; r < rowsOf(tile); ++r) {
      float *to = block->sums + (tile * kRowsOfTile + r) * block->sumStride;
      for (int64_t column = 0; column < tiles.valueColumns(); ++column) {
        const float *from = sums.data() + tile * sumSize + column * kSumFloats + r * kLanes;
        for (int64_t lane = 0; lane < kLanes; ++lane)
          to[CacheTiles<Cache>::elementOf(column, lane)] += from[lane];
      }
    }
  }

  using Limbs = CacheLimbs<Cache>;
  static constexpr int64_t kSumFloats = kRowsOfTile * kLanes;

  const Attention &attention;
  bool isTaken;
  CacheTiles<Cache> tiles;
  int64_t querySize, sumSize; // of a tile of rows
  Scratch<uint16_t> queries;
  Scratch<float> sums, valueProducts; // [tile of rows][column][row][lane]
  const RowBlock *block = nullptr;
  const KeyBlocks *blocks = nullptr;
  RowTile rows[kMostTiles];
  BlockScores scores;
  alignas(64) float keyProducts[kBlockTiles][kTileRows][kLanes], weights[kBlockPairs][kTileRows][kLanes];
};

template <> class TileKeys<Bf16Cache> : public AmxKeys<Bf16Cache> {
  using AmxKeys::AmxKeys;
};
template <> class TileKeys<F16Cache> : public AmxKeys<F16Cache> {
  using AmxKeys::AmxKeys;
};

#endif // __AMX_BF16__

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_TILE_KEYS_H
