// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM (large M) by AMX tiles of bf16.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_TILES_H

#ifdef __AMX_TILE__

#include "gemm_layer.h"
#include "../transpose.h"
#include "split_floats.h"
#include "tiles.h"

namespace {

constexpr int64_t kTileStepInputs = hone::cpu::kBf16Inputs, kWeightTileBytes = kTileRows * kTileRowBytes;

/// A block of rows as tiles of bf16: [step][plane][tile][row][input]. It has one or two tiles of up to sixteen rows.
/// Inputs are the sum of PLANES of bf16, or rounded to one.
template <int PLANES> struct PlaneTiles {
  int64_t tileRows, tiles;

  explicit PlaneTiles(int64_t rows) : tileRows(smaller(rows, kTileRows)), tiles(rows > kTileRows ? 2 : 1) {}

  int64_t rows() const { return tileRows * tiles; }
  int64_t tileBytes() const { return tileRows * kTileRowBytes; }
  int64_t planeBytes() const { return tiles * tileBytes(); }
  int64_t stepBytes() const { return PLANES * planeBytes(); }

  /// Converts `count` rows of x from `row` on. Rows that a block has beyond them are zeros, and inputs that x lacks.
  void convert(const hone_tensor &x, int64_t row, int64_t count, int64_t firstStep, int64_t steps, uint8_t *to) const {
    Matrix columns;
    if (isColumnMajor(x, columns))
      return convertColumns(columns, row, count, firstStep, steps, to);
    for (int64_t step = firstStep; step < firstStep + steps; ++step, to += stepBytes())
      for (int64_t r = 0; r < rows(); ++r)
        if (r < count)
          convertRow(rowOf(x, row + r), x.sizes[x.rank - 1], step * kTileStepInputs, to + r * kTileRowBytes);
        else
          storeInputs(0, 0, to + r * kTileRowBytes);
  }

  /// A row's inputs of a step.
  void storeInputs(Vector low, Vector high, uint8_t *to) const {
    if constexpr (PLANES > 1) {
      storeSplit<PLANES>(low, high, to, planeBytes(), [](Vector first, Vector second) {
        return (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
      });
    } else {
      _mm512_store_si512(to, (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low));
    }
  }

private:
  /// Lines of columns lie too far apart for the prefetcher of the processor.
  static constexpr int64_t kColumnsAhead = 2 * kTileStepInputs;

  void convertColumns(const Matrix &x, int64_t row, int64_t count, int64_t firstStep, int64_t steps, uint8_t *to) const {
    for (int64_t step = firstStep; step < firstStep + steps; ++step, to += stepBytes())
      for (int64_t first = 0; first < rows(); first += tileRows) {
        Vector halves[2][kLanes];
        for (int64_t half = 0; half < 2; ++half) {
          for (int64_t k = 0; k < kLanes; ++k) {
            int64_t input = step * kTileStepInputs + half * kLanes + k;
            bool isThere = input < x.columns && first < count;
            __builtin_prefetch(x.data + (row + first) + (input + kColumnsAhead) * x.columnStride);
            halves[half][k] = isThere ? loadColumns(&x.at(row + first, input), count - first) : (Vector)0.0f;
          }
          transpose(halves[half]);
        }
        for (int64_t r = 0; r < tileRows; ++r)
          storeInputs(halves[0][r], halves[1][r], to + (first + r) * kTileRowBytes);
      }
  }

  void convertRow(Row from, int64_t given, int64_t first, uint8_t *to) const {
    if (from.stride == 1 && first + kTileStepInputs <= given)
      return storeInputs(load(from.data + first), load(from.data + first + kLanes), to);
    float inputs[kTileStepInputs] = {};
    for (int64_t k = 0; k < smaller(given - first, kTileStepInputs); ++k)
      inputs[k] = from[first + k];
    storeInputs(load(inputs), load(inputs + kLanes), to);
  }
};

using ActivationTiles = PlaneTiles<1>;

/// What engines of tiles share: the inputs of blocks of rows, and sums.
template <int PLANES> class TileInputs {
public:
  static constexpr int64_t kPanels = 2, kStepInputs = kTileStepInputs;
  static constexpr int64_t kSliceInputs = 1024; // of what is between two layers
  static constexpr bool kTakesNTiles = true;

  using Sums = TileBlockSums;

  explicit TileInputs(int64_t rows) : blockTiles(rows) {}

  int64_t blockBytes(int64_t, int64_t steps) const { return steps * blockTiles.stepBytes(); }
  void convert(const hone_tensor &x, int64_t row, int64_t rows, int64_t step, int64_t steps, uint8_t *to) const {
    blockTiles.convert(x, row, rows, step, steps, to);
  }
  /// Outputs of `panels` panels as inputs of a block, from input 16 · `panel` on.
  void convertSums(uint8_t *block, int64_t rows, int64_t panel, int64_t panels, int64_t, const Sums &sums) const {
    uint8_t *to = block + panel / kPanels * blockTiles.stepBytes();
    for (int64_t r = 0; r < rows; ++r, to += kTileRowBytes)
      blockTiles.storeInputs(sums.at(0, r), panels > 1 ? sums.at(1, r) : (Vector)0.0f, to);
  }

  int64_t betweenBytes(int64_t rows, int64_t steps) const { return blockBytes(rows, steps); }

  /// Zeros for the tiles after those of so many panels: weights may be filled up to groups.
  void finishInputs(uint8_t *block, int64_t rows, int64_t count, int64_t steps) const {
    for (int64_t step = ceilDivide(count, kPanels); step < steps; ++step)
      for (int64_t r = 0; r < rows; ++r)
        blockTiles.storeInputs(0, 0, block + step * blockTiles.stepBytes() + r * kTileRowBytes);
  }

protected:
  PlaneTiles<PLANES> blockTiles;
};

/// Tiles of weights: those of a panel follow each other, and panels are `panelBytes` apart.
struct WeightTiles {
  const uint8_t *from;
  int64_t panelBytes;
};

/// Packed bf16 weights are tiles as they lie.
class Bf16Weights {
public:
  explicit Bf16Weights(const hone_tensor &weight)
      : panels(weight.sizes[0]), steps(weight.sizes[1] * 2 / kTileStepInputs),
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

template <typename Weights> class TileEngine : public TileInputs<1> {
public:
  /// Steps whose weights, and the activations of a block, leave a L1 cache of 48 KiB room.
  static constexpr int64_t kL1Steps = 10;
  /// Of a feed-forward block. More than a L2 cache of 2 MiB: tiles multiply so fast that weights, which pass by once
  /// for each part, cost more to read again than sums that leave the cache.
  static constexpr int64_t kPartBytes = 4 << 20;

  TileEngine(const Weights &weights, int64_t rows)
      : TileInputs(rows), panels(weights.panels), steps(weights.steps), weights(weights) {}

  /// Converted rows of a part fill less than half of a L2 cache of 2 MiB.
  GemmLimits limits(int64_t) const { return {blockTiles.rows(), 32, 512, 256}; }

  class Worker {
  public:
    Worker(const TileEngine &engine, const GemmTiling &division)
        : engine(engine), registers(engine.blockTiles.tileRows, kTileRowBytes),
          unpacked(Weights::kIsUnpacked ? kPanels * division.sliceSteps * kWeightTileBytes : 0) {}

    void select(int64_t panel, int64_t count, int64_t step, int64_t some) {
      tiles = engine.weights.take(panel, count, step, some, unpacked.data());
      width = count;
      steps = some;
    }

    template <typename Prefetcher>
    void multiply(const uint8_t *x, int64_t, BlockShare share, bool accumulates, Sums &sums,
                  const Prefetcher &prefetcher) const {
      const ActivationTiles &block = engine.blockTiles;
      TileOperands operands = {x,          x + block.tileBytes(), kTileRowBytes, block.stepBytes(),   kTileRowBytes,
                               tiles.from, tiles.panelBytes,      steps,         tilePrefetch(share), accumulates};
      multiplyTiles<Bf16Products>(operands, block.tiles, width, sums, prefetcher);
    }

  private:
    /// While blocks are multiplied, the next N-tile is prefetched; where there is one alone, its own tiles.
    TilePrefetch tilePrefetch(BlockShare share) const {
      if (Weights::kIsUnpacked)
        return {tiles.from, 0, false};
      if (share.count == 1)
        return {tiles.from + 2 * kWeightTileBytes, kTileRows, true};
      int64_t lines = ceilDivide(kTileRows, share.count);
      return {tiles.from + share.panelsToNext * tiles.panelBytes + share.index * steps * lines * kTileRowBytes, lines,
              false};
    }

    const TileEngine &engine;
    TileRegisters registers;
    Scratch<uint8_t> unpacked;
    WeightTiles tiles = {};
    int64_t width = 0, steps = 0;
  };

  int64_t panels, steps;

private:
  Weights weights;
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_TILES_H
