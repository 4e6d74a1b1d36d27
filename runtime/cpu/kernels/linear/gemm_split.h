// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM (large M) in f32 and f16 by split precision: floats are sums of bf16 (split_floats.h), multiplied by AMX tiles.
// The products that are left out are rarely more than 2^-24 of the whole. Six tile products take less time than one f32
// product by vectors.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_SPLIT_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_SPLIT_H

#ifdef __AMX_TILE__

#include "gemm_tiles.h"

namespace {

/// Two tiles of rows in three planes by weights in three, or in two where these hold them: the products of planes i and
/// j with i + j < 3, and the one of the second planes. Neither operand is loaded where the product before had it.
template <int PLANES> struct SplitProducts {
  template <int HEIGHT, int WIDTH> static void addStep(const TileOperands &o, int64_t step, const uint8_t *weight) {
    static_assert(HEIGHT == 2);
    const uint8_t *x = o.x + step * o.xStep;
    loadRows(o, x, 0);
    loadPanels<WIDTH>(o, weight, 0);
    add<WIDTH>();
    loadRows(o, x, 1);
    add<WIDTH>();
    loadPanels<WIDTH>(o, weight, 1);
    add<WIDTH>();
    loadRows(o, x, 0);
    add<WIDTH>();
    if constexpr (PLANES == 3) {
      loadPanels<WIDTH>(o, weight, 2);
      add<WIDTH>();
    }
    loadRows(o, x, 2);
    loadPanels<WIDTH>(o, weight, 0);
    add<WIDTH>();
  }

private:
  static void loadRows(const TileOperands &o, const uint8_t *x, int64_t plane) {
    int64_t second = o.secondX - o.x;
    _tile_loadd(4, x + plane * 2 * second, o.xStride);
    _tile_loadd(5, x + plane * 2 * second + second, o.xStride);
  }

  template <int WIDTH> static void loadPanels(const TileOperands &o, const uint8_t *weight, int64_t plane) {
    _tile_loadd(6, weight + plane * kWeightTileBytes, kTileRowBytes);
    if constexpr (WIDTH == 2)
      _tile_loadd(7, weight + o.panelBytes + plane * kWeightTileBytes, kTileRowBytes);
  }

  template <int WIDTH> static void add() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (WIDTH == 2) {
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
};

/// Packed weights whose steps are one input of sixteen outputs, f32 or f16.
template <typename Format> class SplitEngine : public TileInputs<3> {
public:
  /// f16 has eleven significant bits, two planes have sixteen.
  static constexpr int kPlanes = Format::kBytes == kTileRowBytes ? 3 : 2;
  static constexpr int64_t kL1Steps =
      INT64_MAX / 2;                             // all: sums that come and go cost more than weights from the L2 cache
  static constexpr int64_t kPartBytes = 4 << 20; // of a feed-forward block, as for tiles of bf16
  /// With fewer rows splitting weights costs more than tiles save; in feed-forward blocks each thread splits all of
  /// them.
  static int64_t fewestRows() { return larger(80, 64 * omp_get_max_threads()); }

  SplitEngine(const hone_tensor &weight, int64_t rows)
      : TileInputs(rows), panels(weight.sizes[0]), inputs(weight.sizes[1]), steps(ceilDivide(inputs, kTileStepInputs)),
        data(static_cast<const uint8_t *>(weight.data)) {}

  /// Converted rows of a part fill less than half of a L2 cache of 2 MiB, sums of the blocks and an N-tile's weights
  /// the rest.
  GemmLimits limits(int64_t) const { return {blockTiles.rows(), 16, 256, 256}; }

  class Worker {
  public:
    Worker(const SplitEngine &engine, const GemmTiling &division)
        : engine(engine), registers(kTileRows, kTileRowBytes), tiles(kPanels * division.sliceSteps * kStepBytes) {}

    void select(int64_t panel, int64_t count, int64_t step, int64_t some) {
      width = count;
      steps = some;
      for (int64_t p = 0; p < count; ++p)
        for (int64_t i = 0; i < some; ++i)
          engine.split(panel + p, step + i, tiles.data() + (p * some + i) * kStepBytes);
      if (panel != selected) {
        firstStep = step;
        endStep = reached;
      }
      selected = panel;
      reached = step + some;
      isNextNTile = reached == endStep;
      next = engine.data +
             (panel * engine.inputs + (isNextNTile ? firstStep : reached) * kTileStepInputs) * Format::kBytes;
    }

    template <typename Prefetcher>
    void multiply(const uint8_t *x, int64_t, BlockShare share, bool accumulates, Sums &sums,
                  const Prefetcher &prefetcher) const {
      const PlaneTiles<3> &block = engine.blockTiles;
      TileOperands operands = {x,
                               x + block.tileBytes(),
                               kTileRowBytes,
                               block.stepBytes(),
                               kPlanes * kTileRowBytes,
                               tiles.data(),
                               steps * kStepBytes,
                               steps,
                               {tiles.data(), 0, false},
                               accumulates};
      if (width == kPanels)
        multiplyTiles<SplitProducts<kPlanes>, 2, kPanels>(
            operands, sums, SourcePrefetcher<kPanels, Prefetcher>(*this, share, prefetcher));
      else
        multiplyTiles<SplitProducts<kPlanes>, 2, 1>(operands, sums,
                                                    SourcePrefetcher<1, Prefetcher>(*this, share, prefetcher));
    }

  private:
    static constexpr int64_t kStepBytes = kPlanes * kWeightTileBytes, kStepSource = kTileStepInputs * Format::kBytes;

    /// While blocks are multiplied, what is split next is prefetched, as many lines at each step.
    template <int WIDTH, typename Prefetcher> class SourcePrefetcher {
    public:
      SourcePrefetcher(const Worker &worker, BlockShare share, const Prefetcher &outputs)
          : outputs(outputs), panelBytes(worker.engine.inputs * Format::kBytes),
            each(ceilDivide(kStepSource / 64, share.count) * 64),
            from(worker.next + (worker.isNextNTile ? share.panelsToNext * panelBytes : 0) +
                 share.index * worker.steps * each) {}

      void prefetch(int64_t step, int64_t steps) const {
        outputs.prefetch(step, steps);
        const uint8_t *line = from + step * each;
        for (const uint8_t *end = line + each; line < end; line += 64)
          for (int panel = 0; panel < WIDTH; ++panel)
            prefetchL2(line + panel * panelBytes);
      }

    private:
      const Prefetcher &outputs;
      int64_t panelBytes, each;
      const uint8_t *from;
    };

    const SplitEngine &engine;
    TileRegisters registers;
    Scratch<uint8_t> tiles; // [panel][step][plane][pair of inputs][output][input]
    int64_t width = 0, steps = 0;
    int64_t selected = -1, firstStep = 0, reached = 0,
            endStep = 0; // of the N-tile; each ends where the one before it did
    const uint8_t *next = nullptr;
    bool isNextNTile = false;
  };

private:
  /// The tiles of a panel and step; what the panel lacks is zeros.
  void split(int64_t panel, int64_t step, uint8_t *to) const {
    int64_t first = step * kTileStepInputs;
    const uint8_t *from = data + (panel * inputs + first) * Format::kBytes;
    for (int64_t input = 0; input < kTileStepInputs; input += 2, from += 2 * Format::kBytes, to += kTileRowBytes) {
      int64_t given = inputs - first - input;
      Vector even = given > 0 ? Format::load(from).values : 0.0f;
      Vector odd = given > 1 ? Format::load(from + Format::kBytes).values : 0.0f;
      storeSplit<kPlanes>(even, odd, to, kWeightTileBytes, [](Vector low, Vector high) {
        return (__m512i)(loadAs<Words>(&low) >> 16 | loadAs<Words>(&high));
      });
    }
  }

public:
  int64_t panels, inputs, steps; // a step is 32 inputs

private:
  const uint8_t *data;
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_SPLIT_H
