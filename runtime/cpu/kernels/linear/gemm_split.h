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
template <typename Format> class SplitPanels {
public:
  /// f16 has eleven significant bits, two planes have sixteen.
  static constexpr int kPlanes = Format::kBytes == kTileRowBytes ? 3 : 2;
  static constexpr bool kPrefetches = true;
  static constexpr int64_t kStepSource = kTileStepInputs * Format::kBytes;

  explicit SplitPanels(const hone_tensor &weight)
      : panels(weight.sizes[0]), inputs(weight.sizes[1]), data(static_cast<const uint8_t *>(weight.data)) {}

  const uint8_t *at(int64_t panel, int64_t input) const { return data + (panel * inputs + input) * Format::kBytes; }
  int64_t panelBytes() const { return inputs * Format::kBytes; }

  /// Sixteen inputs from `input` on; those that the panel lacks are zeros.
  void read(int64_t panel, int64_t input, Vector (&lines)[kLanes]) const {
    const uint8_t *from = at(panel, input);
    for (int64_t i = 0; i < kLanes; ++i)
      lines[i] = input + i < inputs ? Format::load(from + i * Format::kBytes).values : 0.0f;
  }

  int64_t panels, inputs;

private:
  const uint8_t *data;
};

/// Of `Weights` that read sixteen inputs of a panel at once.
template <typename Weights> class SplitEngine : public TileInputs<3> {
public:
  static constexpr int kPlanes = Weights::kPlanes;
  static constexpr int64_t kL1Steps =
      INT64_MAX / 2;                             // all: sums that come and go cost more than weights from the L2 cache
  static constexpr int64_t kPartBytes = 4 << 20; // of a feed-forward block, as for tiles of bf16
  /// With fewer rows splitting weights costs more than tiles save; in feed-forward blocks each thread splits all of
  /// them.
  static int64_t fewestRows() { return larger(80, 64 * omp_get_max_threads()); }

  SplitEngine(const Weights &weights, int64_t rows)
      : TileInputs(rows), panels(weights.panels), steps(ceilDivide(weights.inputs, kTileStepInputs)), weights(weights) {}

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
      if constexpr (Weights::kPrefetches)
        findNext(panel, step, some);
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
        multiplyPanels<kPanels>(operands, share, sums, prefetcher);
      else
        multiplyPanels<1>(operands, share, sums, prefetcher);
    }

  private:
    static constexpr int64_t kStepBytes = kPlanes * kWeightTileBytes;

    void findNext(int64_t panel, int64_t step, int64_t some) {
      if (panel != selected) {
        firstStep = step;
        endStep = reached;
      }
      selected = panel;
      reached = step + some;
      isNextNTile = reached == endStep;
      next = engine.weights.at(panel, (isNextNTile ? firstStep : reached) * kTileStepInputs);
    }

    template <int WIDTH, typename Prefetcher>
    void multiplyPanels(const TileOperands &operands, BlockShare share, Sums &sums,
                        const Prefetcher &prefetcher) const {
      if constexpr (Weights::kPrefetches)
        multiplyTiles<SplitProducts<kPlanes>, 2, WIDTH>(operands, sums,
                                                        SourcePrefetcher<WIDTH, Prefetcher>(*this, share, prefetcher));
      else
        multiplyTiles<SplitProducts<kPlanes>, 2, WIDTH>(operands, sums, prefetcher);
    }

    /// While blocks are multiplied, what is split next is prefetched, as many lines at each step.
    template <int WIDTH, typename Prefetcher> class SourcePrefetcher {
    public:
      SourcePrefetcher(const Worker &worker, BlockShare share, const Prefetcher &outputs)
          : outputs(outputs), panelBytes(worker.engine.weights.panelBytes()),
            each(ceilDivide(Weights::kStepSource / 64, share.count) * 64),
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
  /// The tiles of a panel and step.
  void split(int64_t panel, int64_t step, uint8_t *to) const {
    for (int64_t half = 0; half < kTileStepInputs; half += kLanes) {
      Vector lines[kLanes];
      weights.read(panel, step * kTileStepInputs + half, lines);
      for (int64_t i = 0; i < kLanes; i += 2, to += kTileRowBytes)
        storeSplit<kPlanes>(lines[i], lines[i + 1], to, kWeightTileBytes, [](Vector low, Vector high) {
          return (__m512i)(loadAs<Words>(&low) >> 16 | loadAs<Words>(&high));
        });
    }
  }

public:
  int64_t panels, steps; // a step is 32 inputs

private:
  Weights weights;
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_SPLIT_H
