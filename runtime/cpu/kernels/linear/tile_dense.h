// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Many rows by tiles of bf16. Tiles multiply faster than memory delivers: weights are read once for as many rows as the
// second-level cache holds, activations are converted once into tiles that lie as the registers take them, and large outputs
// bypass the cache.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_DENSE_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_DENSE_H

#ifdef __AMX_TILE__

#include "dense_formats.h"
#include "layer.h"
#include "tiles.h"

namespace {

/// How a layer is divided. Rows come in blocks of up to two tiles, outputs in pairs of panels. A band of rows and a slice of
/// inputs are converted at a time; tasks are a part of the band's blocks by a group of pairs.
struct TileDivision {
  static constexpr int64_t kStepInputs = hone::cpu::kBf16Inputs, kPanels = 2;
  /// Converted rows of a part fill less than half of a second-level cache of 2 MiB; where inputs are cut, its sums have to lie
  /// there too.
  static constexpr int64_t kMostSteps = 32, kMostBlocks = 16, kMostCutBlocks = 8;
  static constexpr int64_t kMostGroup = 8, kTasksPerThread = 4;

  int64_t tileRows, tiles; // height of a tile, and how many a block has
  int64_t blocks, partBlocks, parts;
  int64_t steps, sliceSteps, slices;
  int64_t panels, pairs, groupPairs, groups;

  TileDivision(int64_t rows, int64_t steps, int64_t panels)
      : tileRows(smaller(rows, kTileRows)), tiles(rows > kTileRows ? 2 : 1), blocks(ceilDivide(rows, blockRows())),
        steps(steps), panels(panels), pairs(ceilDivide(panels, kPanels)) {
    slices = blocks == 1 ? 1 : larger(ceilDivide(steps, kMostSteps), 1);
    sliceSteps = ceilDivide(steps, slices);
    int64_t most = slices == 1 ? kMostBlocks : kMostCutBlocks, wanted = omp_get_max_threads() * kTasksPerThread;
    partBlocks = ceilDivide(blocks, ceilDivide(blocks, most));
    groupPairs = smaller(larger(pairs / wanted, 1), kMostGroup);
    groups = ceilDivide(pairs, groupPairs);
    parts = smaller(ceilDivide(wanted, groups), ceilDivide(blocks, partBlocks));
  }

  int64_t blockRows() const { return tileRows * tiles; }
  int64_t bandBlocks() const { return parts * partBlocks; }
  int64_t tileBytes() const { return tileRows * kTileRowBytes; }
  int64_t stepBytes() const { return tiles * tileBytes(); }
};

/// Rows of x as tiles of bf16: [block][step][tile][row][input].
class ActivationTiles {
public:
  ActivationTiles(const hone_tensor &x, int64_t rows, const TileDivision &division)
      : x(x), rows(rows), division(division), memory(division.bandBlocks() * blockBytes()) {}

  const uint8_t *block(int64_t index) const { return memory.data() + index * blockBytes(); }

  /// Converts a block of rows; `index` is its place. Rows that x lacks are zeros.
  void convert(int64_t index, int64_t firstRow, int64_t firstStep, int64_t steps) const {
    for (int64_t r = 0; r < division.blockRows(); ++r) {
      uint8_t *to = memory.data() + index * blockBytes() + r * kTileRowBytes;
      if (firstRow + r < rows)
        convertRow(rowOf(x, firstRow + r), firstStep, steps, to);
      else
        for (int64_t step = 0; step < steps; ++step)
          _mm512_store_si512(to + step * division.stepBytes(), _mm512_setzero_si512());
    }
  }

private:
  int64_t blockBytes() const { return division.sliceSteps * division.stepBytes(); }

  void convertRow(Row from, int64_t firstStep, int64_t steps, uint8_t *to) const {
    int64_t given = x.sizes[x.rank - 1], first = firstStep * TileDivision::kStepInputs;
    for (int64_t step = 0; step < steps; ++step, first += TileDivision::kStepInputs, to += division.stepBytes()) {
      if (from.stride == 1 && first + TileDivision::kStepInputs <= given) {
        storePairs(from.data + first, to);
        continue;
      }
      float inputs[TileDivision::kStepInputs] = {};
      for (int64_t k = 0; k < smaller(given - first, TileDivision::kStepInputs); ++k)
        inputs[k] = from[first + k];
      storePairs(inputs, to);
    }
  }

  static void storePairs(const float *from, uint8_t *to) {
    __m512bh pairs = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + kLanes), _mm512_loadu_ps(from));
    _mm512_store_si512(to, (__m512i)pairs);
  }

  const hone_tensor &x;
  int64_t rows;
  const TileDivision &division;
  Scratch<uint8_t> memory;
};

/// Tiles of weights: those of a panel follow each other, and panels are `panelBytes` apart.
struct WeightTiles {
  const uint8_t *from;
  int64_t panelBytes;
};

constexpr int64_t kWeightTileBytes = kTileRows * kTileRowBytes;

/// Packed bf16 weights are tiles as they lie.
class Bf16Weights {
public:
  explicit Bf16Weights(const hone_tensor &weight)
      : panels(weight.sizes[0]), steps(weight.sizes[1] * 2 / TileDivision::kStepInputs),
        data(static_cast<const uint8_t *>(weight.data)) {}

  static constexpr bool kIsUnpacked = false;

  /// The tiles of panels from `panel` on and steps from `step` on.
  WeightTiles take(int64_t panel, int64_t, int64_t step, int64_t, uint8_t *) const {
    return {data + (panel * steps + step) * kWeightTileBytes, steps * kWeightTileBytes};
  }

  int64_t panels, steps; // a step is a tile

private:
  const uint8_t *data;
};

template <typename Weights> class TileDenseLayer {
public:
  TileDenseLayer(const hone_tensor &x, const Weights &weights, const hone_tensor &target, const Epilogue &epilogue)
      : weights(weights), rows(countRows(target)), outputs(target.sizes[target.rank - 1]),
        division(rows, weights.steps, weights.panels), activations(x, rows, division), epilogue(epilogue), y(target),
        bypassesCache(rows * outputs * static_cast<int64_t>(sizeof(float)) >= kBypassBytes),
        cutSums(division.slices == 1 ? 0 : division.pairs * division.bandBlocks()) {}

  void run() const {
#pragma omp parallel
    {
      TileRegisters registers(division.tileRows, kTileRowBytes);
      Scratch<TileSums> ownSums(division.slices == 1 ? division.partBlocks : 0);
      Scratch<uint8_t> unpacked(Weights::kIsUnpacked ? TileDivision::kPanels * division.sliceSteps * kWeightTileBytes
                                                     : 0);
      for (int64_t band = 0; band < division.blocks; band += division.bandBlocks())
        for (int64_t slice = 0; slice < division.slices; ++slice)
          runSlice(band, slice, ownSums.data(), unpacked.data());
      _mm_sfence(); // stores that bypass the cache are not ordered otherwise
    }
    y.finish();
  }

private:
  /// All outputs of a band of rows from a slice of inputs; by all threads together.
  void runSlice(int64_t band, int64_t slice, TileSums *ownSums, uint8_t *unpacked) const {
    int64_t step = slice * division.sliceSteps, steps = smaller(division.sliceSteps, division.steps - step);
    int64_t blocks = smaller(division.bandBlocks(), division.blocks - band);
    int64_t tasks = ceilDivide(blocks, division.partBlocks) * division.groups;
#pragma omp for schedule(static)
    for (int64_t block = 0; block < blocks; ++block)
      activations.convert(block, (band + block) * division.blockRows(), step, steps);
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < tasks; ++task) {
      int64_t first = task / division.groups * division.partBlocks, pair = task % division.groups * division.groupPairs;
      int64_t end = smaller(pair + division.groupPairs, division.pairs);
      for (; pair < end; ++pair) {
        TileSums *sums = ownSums ? ownSums : cutSums.data() + pair * division.bandBlocks() + first;
        int64_t count = smaller(division.partBlocks, blocks - first);
        WeightTiles tiles = weights.take(pair * TileDivision::kPanels, panelsOf(pair), step, steps, unpacked);
        multiplyPair(tiles, pair, band, first, count, step, steps, sums);
        if (slice == division.slices - 1)
          for (int64_t block = 0; block < count; ++block)
            writeBlock((band + first + block) * division.blockRows(), pair, sums[block]);
      }
    }
  }

  /// What the sums of a block will be written to and combined with, a few rows at every step.
  struct RowsAhead {
    const TileDenseLayer &layer;
    int64_t firstRow, endRow, firstColumn, rowsPerStep;

    void askFor(int64_t step) const {
      int64_t row = firstRow + step * rowsPerStep;
      for (int64_t end = smaller(row + rowsPerStep, endRow); row < end; ++row) {
        RowEpilogue of = layer.epilogue.at(row, firstColumn);
        const float *to = layer.y.row(row) + firstColumn;
        for (int64_t column = 0; column < TileDivision::kPanels * kLanes; column += kLanes) {
          if (!layer.bypassesCache)
            __builtin_prefetch(to + column, 1);
          if (of.factor.data)
            __builtin_prefetch(of.factor.data + column * of.factor.stride);
          if (of.residual.data)
            __builtin_prefetch(of.residual.data + column * of.residual.stride);
        }
      }
    }
  };

  RowsAhead rowsAhead(int64_t firstRow, int64_t pair, int64_t steps) const {
    int64_t end = smaller(firstRow + division.blockRows(), rows);
    return {*this, firstRow, end, pair * TileDivision::kPanels * kLanes, ceilDivide(end - firstRow, steps)};
  }

  int64_t panelsOf(int64_t pair) const {
    return smaller(TileDivision::kPanels, division.panels - pair * TileDivision::kPanels);
  }

  /// Blocks [first, first + count) of the band. While they pass by, the next pair of panels comes nearer.
  void multiplyPair(const WeightTiles &tiles, int64_t pair, int64_t band, int64_t first, int64_t count, int64_t step,
                    int64_t steps, TileSums *sums) const {
    int64_t lines = Weights::kIsUnpacked ? 0 : ceilDivide(kTileRows, count);
    bool isLast = step + steps == division.steps;
    for (int64_t block = 0; block < count; ++block) {
      const uint8_t *x = activations.block(first + block);
      TilesAhead ahead = {tiles.from + TileDivision::kPanels * tiles.panelBytes + block * steps * lines * kTileRowBytes,
                          lines, false};
      if (count == 1 && !Weights::kIsUnpacked)
        ahead = {tiles.from + 2 * kWeightTileBytes, kTileRows, true};
      TileOperands operands = {x,
                               x + division.tileBytes(),
                               kTileRowBytes,
                               division.stepBytes(),
                               kTileRowBytes,
                               tiles.from,
                               tiles.panelBytes,
                               steps,
                               ahead,
                               step != 0};
      if (isLast)
        multiplyTiles<Bf16Products>(operands, division.tiles, panelsOf(pair), sums[block],
                                    rowsAhead((band + first + block) * division.blockRows(), pair, steps));
      else
        multiplyTiles<Bf16Products>(operands, division.tiles, panelsOf(pair), sums[block]);
    }
  }

  void writeBlock(int64_t firstRow, int64_t pair, const TileSums &sums) const {
    withActivation(epilogue.activationNumber(), [&](auto known) { writeRows<known.kNumber>(firstRow, pair, sums); });
  }

  template <int64_t ACTIVATION> void writeRows(int64_t firstRow, int64_t pair, const TileSums &sums) const {
    int64_t first = pair * TileDivision::kPanels * kLanes,
            columns = smaller(TileDivision::kPanels * kLanes, outputs - first);
    for (int64_t r = 0; r < smaller(division.blockRows(), rows - firstRow); ++r) {
      RowEpilogue of = epilogue.at(firstRow + r, first);
      float *to = y.row(firstRow + r) + first;
      bool streams = bypassesCache && columns % kLanes == 0 && reinterpret_cast<uintptr_t>(to) % 64 == 0;
      for (int64_t column = 0; column < columns; column += kLanes) {
        int64_t sum = column / kLanes + (r < kTileRows ? 0 : 2);
        Vector values = of.apply<ACTIVATION>(sums.floats(sum, r % kTileRows), column, columns - column);
        if (streams)
          _mm512_stream_ps(to + column, (__m512)values);
        else
          storeColumns(to + column, values, columns - column);
      }
    }
  }

  /// Outputs that a second-level cache does not hold are gone from it before they are read; writing them around it saves
  /// reading what they replace.
  static constexpr int64_t kBypassBytes = 4 << 20;

  const Weights &weights;
  int64_t rows, outputs;
  TileDivision division;
  ActivationTiles activations;
  const Epilogue &epilogue;
  OutputRows y;
  bool bypassesCache;
  Scratch<TileSums> cutSums;
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_DENSE_H
