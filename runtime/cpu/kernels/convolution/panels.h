// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Direct convolution with output channels as lanes, an implicit GEMM: a row is a position of y, an inner step a tap of the window in an
// input channel. Weights lie in panels of sixteen outputs; elements of x are broadcast from where they lie, so that no columns (im2col)
// are made. x is copied only where it needs padding, or its rows phases.

#ifndef HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PANELS_H
#define HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PANELS_H

#include "../parallel_for.h"
#include "../parts.h"
#include "../scratch.h"
#include "lanes.h"
#include "phase_rows.h"

namespace {

// Neighbours of y whose sums stay in registers for kPairPanels panels.
#ifdef __AVX512F__
constexpr int kPairPanels = 2, kBlockPositions = 12;
#else
constexpr int kPairPanels = 1, kBlockPositions = 6;
#endif
constexpr int kFewPositions = 2, kManyPanels = 4; // memory-bound: several panels are read at once
constexpr int64_t kTilePositions = 96;            // positions whose sums a thread keeps in the L1 cache
constexpr int64_t kSliceSteps = 256;              // inner steps whose weights stay in the L1 cache

/// Weights of panel p begin at data + p * panelStride: `[steps, 16]`.
struct WeightPanels {
  const float *data;
  int64_t panelStride;
};

/// What is multiplied for a block of positions: `x` is where the window of its first begins.
struct BlockSteps {
  const float *x;
  const Step *steps;
  int64_t count;
  const float *weights;
  int64_t panelStride;
  bool isFirst; // of the slices that are summed
};

/// Adds products to the sums of POSITIONS neighbours, `[positions, PANELS * 16]`.
template <int PANELS, int POSITIONS> void addSteps(const BlockSteps &block, float *sums) {
  Vector sum[POSITIONS][PANELS] = {};
  if (!block.isFirst)
    for (int p = 0; p < POSITIONS; ++p)
      for (int v = 0; v < PANELS; ++v)
        sum[p][v] = load(sums + (p * PANELS + v) * kLanes);
  for (int64_t k = 0; k < block.count; ++k) {
    const float *element = block.x + block.steps[k].input;
    const float *row = block.weights + block.steps[k].weight * kLanes;
    Vector weight[PANELS];
    for (int v = 0; v < PANELS; ++v)
      weight[v] = load(row + v * block.panelStride);
    for (int p = 0; p < POSITIONS; ++p) {
      for (int v = 0; v < PANELS; ++v)
        sum[p][v] += element[p] * weight[v];
      // Elements are read one after the other: read ahead, they would take the registers of sums.
      asm volatile("" ::: "memory");
    }
  }
  for (int p = 0; p < POSITIONS; ++p)
    for (int v = 0; v < PANELS; ++v)
      store(sums + (p * PANELS + v) * kLanes, sum[p][v]);
}

/// The same for up to MOST neighbours.
template <int PANELS, int MOST> void addBlock(int64_t positions, const BlockSteps &block, float *sums) {
  if constexpr (MOST > 1)
    if (positions < MOST)
      return addBlock<PANELS, MOST - 1>(positions, block, sums);
  addSteps<PANELS, MOST>(block, sums);
}

/// The same for any number, as blocks of about the same size.
template <int PANELS> void addRow(int64_t count, BlockSteps row, float *sums) {
  constexpr int most = PANELS <= kPairPanels ? kBlockPositions : kFewPositions;
  for (int64_t blocks = (count + most - 1) / most; blocks > 0; --blocks) {
    int64_t size = (count + blocks - 1) / blocks;
    addBlock<PANELS, most>(size, row, sums);
    row.x += size;
    sums += size * PANELS * kLanes;
    count -= size;
  }
}

/// The convolutions of one sample at a time.
class PanelConvolution {
public:
  /// `steps` has room for problem.steps(), `padded` for paddedSize(problem).
  PanelConvolution(const Convolution &problem, const WeightPanels &weights, Step *steps, float *padded)
      : problem(problem), weights(weights), rows(problem), steps(steps), padded(padded),
        channelStride(problem.x.channelStride), depthStride(problem.x.strides[0]), rowStride(problem.x.strides[1]) {
    if (padded) {
      rowStride = rows.phases() * rows.width();
      depthStride = problem.reach(1) * rowStride;
      channelStride = separate(problem.reach(0) * depthStride);
    }
    count = listSteps(problem, steps, [&](int64_t c, int64_t d, int64_t h, int64_t w) {
      int64_t column = padded ? rows.placeOf(w, rows.width()) : w;
      return c * channelStride + d * depthStride + h * rowStride + column;
    });
  }

  /// Floats of the copy of a sample; 0 where windows read x as it lies.
  static int64_t paddedSize(const Convolution &problem) {
    bool areNeighbours = problem.y.sizes[2] == 1 || (problem.strides[2] == 1 && problem.x.strides[2] == 1);
    bool areTaps = problem.kernel[2] == 1 || problem.x.strides[2] == 1;
    if (!problem.isPadded() && areNeighbours && areTaps && !conflicts(problem))
      return 0;
    PhaseRows rows(problem);
    return problem.groups * problem.inputs *
           separate(problem.reach(0) * problem.reach(1) * rows.phases() * rows.width());
  }

  void run(int64_t sample) {
    source = padded;
    int64_t channels = problem.groups * problem.inputs;
    if (padded && isChannelsLast())
      parallelFor((channels + kLanes - 1) / kLanes, problem.pays(),
                  [&](int64_t block) { padLast(sample, block * kLanes, smaller(kLanes, channels - block * kLanes)); });
    else if (padded)
      parallelFor(channels, problem.pays(), [&](int64_t channel) { pad(sample, channel); });
    else // padding that is negative leaves elements out
      source = problem.x.at(sample, 0) - problem.low[0] * depthStride - problem.low[1] * rowStride - problem.low[2];
    int64_t lines = problem.y.sizes[0] * problem.y.sizes[1], columns = problem.y.sizes[2];
    int64_t tileLines = columns >= kTilePositions ? 1 : kTilePositions / columns;
    int64_t tileColumns = smaller(columns, kTilePositions);
    int64_t across = (columns + tileColumns - 1) / tileColumns, tiles = (lines + tileLines - 1) / tileLines * across;
    int64_t panels = (problem.outputs + kLanes - 1) / kLanes;
    int64_t width = lines * columns <= kFewPositions ? kManyPanels : kPairPanels;
    int64_t blocks = (panels + width - 1) / width;
    Parts threads;
    parallelFor(problem.groups * blocks * tiles, problem.pays(), [&](int64_t task) {
      threads.run([&] {
        int64_t tile = task % tiles, block = task / tiles % blocks;
        int64_t line = tile / across * tileLines, column = tile % across * tileColumns;
        Tile part{sample, task / tiles / blocks,
                  line,   smaller(tileLines, lines - line),
                  column, smaller(tileColumns, columns - column)};
        runPanels(part, block * width, smaller(width, panels - block * width));
      });
    });
    threads.finish();
  }

private:
  /// Whether elements of one place in many channels share a few sets of the L1 cache, so that they evict each other.
  static bool conflicts(const Convolution &problem) {
    constexpr int64_t period = 256, channels = 32; // floats: of 64 sets of lines every sixteenth, four in all
    return problem.x.channelStride % period == 0 && problem.inputs >= channels;
  }
  /// At least `size` floats, an odd number of cache lines.
  static int64_t separate(int64_t size) { return ((size + kLanes - 1) / kLanes | 1) * kLanes; }

  /// Some positions of y: parts of lines, or several whole ones.
  struct Tile {
    int64_t sample, group, line, lines, column, columns;
  };

  /// Whether x is a view of [N, H, W, C], of which sixteen channels are transposed at once.
  bool isChannelsLast() const {
    return problem.x.channelStride == 1 && problem.x.strides[2] != 1 && problem.strides[2] == 1;
  }

  /// As pad, of `count` channels from `first` on.
  void padLast(int64_t sample, int64_t first, int64_t count) const {
    const Samples &x = problem.x;
    int64_t width = rows.width(), low = problem.low[2];
    int64_t begin = larger(0, -low), end = smaller(x.sizes[2], width - low);
    for (int64_t d = 0; d < problem.reach(0); ++d)
      for (int64_t h = 0; h < problem.reach(1); ++h) {
        float *to = padded + first * channelStride + d * depthStride + h * rowStride;
        for (int64_t c = 0; c < count; ++c)
          fillZeros(to + c * channelStride, width);
        int64_t depth = d - problem.low[0], line = h - problem.low[1];
        if (depth < 0 || depth >= x.sizes[0] || line < 0 || line >= x.sizes[1])
          continue;
        const float *from = x.at(sample, first) + depth * x.strides[0] + line * x.strides[1];
        for (int64_t w = begin; w < end; w += kLanes) {
          int64_t size = smaller(kLanes, end - w);
          Vector block[kLanes];
          for (int64_t i = 0; i < kLanes; ++i)
            block[i] = loadColumns(from + (w + smaller(i, size - 1)) * x.strides[2], count);
          transpose(block);
          for (int64_t c = 0; c < count; ++c)
            storeColumns(to + c * channelStride + low + w, block[c], size);
        }
      }
  }

  /// Copies a channel of x into the middle of zeros, rows as phases.
  void pad(int64_t sample, int64_t channel) const {
    const Samples &x = problem.x;
    float *to = padded + channel * channelStride;
    for (int64_t d = 0; d < problem.reach(0); ++d)
      for (int64_t h = 0; h < problem.reach(1); ++h) {
        int64_t depth = d - problem.low[0], line = h - problem.low[1];
        bool isInside = depth >= 0 && depth < x.sizes[0] && line >= 0 && line < x.sizes[1];
        const float *row = x.at(sample, channel) + depth * x.strides[0] + line * x.strides[1];
        for (int64_t phase = 0; phase < rows.phases(); ++phase, to += rows.width()) {
          fillZeros(to, rows.width());
          if (isInside)
            rows.copy(row, rows.partOf(phase), to);
        }
      }
  }

  void runPanels(const Tile &tile, int64_t panel, int64_t panels) const {
    if (panels == kManyPanels)
      return runTile<kManyPanels>(tile, panel);
    for (int64_t p = 0; p < panels; p += kPairPanels)
      if (p + kPairPanels <= panels)
        runTile<kPairPanels>(tile, panel + p);
      else
        runTile<1>(tile, panel + p);
  }

  template <int PANELS> void runTile(const Tile &tile, int64_t panel) const {
    Scratch<float> sums(tile.lines * tile.columns * PANELS * kLanes);
    const float *channels = source + tile.group * problem.inputs * channelStride + tile.column;
    int64_t panelsOfGroup = (problem.outputs + kLanes - 1) / kLanes;
    BlockSteps row = {};
    row.weights = weights.data + (tile.group * panelsOfGroup + panel) * weights.panelStride;
    row.panelStride = weights.panelStride;
    for (int64_t first = 0; first == 0 || first < count; first += kSliceSteps) {
      row.steps = steps + first;
      row.count = smaller(kSliceSteps, count - first);
      row.isFirst = first == 0;
      for (int64_t i = 0; i < tile.lines; ++i) {
        int64_t line = tile.line + i, d = line / problem.y.sizes[1], h = line % problem.y.sizes[1];
        row.x = channels + d * problem.strides[0] * depthStride + h * problem.strides[1] * rowStride;
        addRow<PANELS>(tile.columns, row, sums.data() + i * tile.columns * PANELS * kLanes);
      }
    }
    for (int v = 0; v < PANELS; ++v) {
      int64_t first = (panel + v) * kLanes;
      OutputLanes lanes{tile.sample, tile.group * problem.outputs + first, smaller(kLanes, problem.outputs - first)};
      storeLanes(problem, lanes, tile.line * problem.y.sizes[2] + tile.column, tile.lines * tile.columns,
                 sums.data() + v * kLanes, PANELS * kLanes);
    }
  }

  const Convolution &problem;
  WeightPanels weights;
  PhaseRows rows;
  Step *steps;
  int64_t count = 0; // of steps
  float *padded;
  const float *source = nullptr;
  int64_t channelStride, depthStride, rowStride; // of what is read
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PANELS_H
