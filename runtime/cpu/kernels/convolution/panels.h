// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Direct convolution with output channels as lanes, an implicit GEMM: a row is a position of y, an inner step a tap of the window in an
// input channel. Weights lie in panels of sixteen outputs; elements of x are broadcast from where they lie, so that no columns (im2col)
// are made. x is copied only where it needs padding. Where y is channels-last, sums are stored as they are.

#ifndef HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PANELS_H
#define HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PANELS_H

#include "../parallel_for.h"
#include "../parts.h"
#include "../scratch.h"
#include "lanes.h"
#include "padded_rows.h"

namespace {

// Neighbours of y whose sums stay in registers for kPairPanels panels; kOddPositions for kOddPanels, the last ones of an odd number; and
// kFewPositions for kManyPanels: rows of few positions reuse little of a weight, and so more of x's elements.
#ifdef __AVX512F__
constexpr int kPairPanels = 2, kBlockPositions = 14, kOddPanels = 3, kOddPositions = 9;
constexpr int kManyPanels = 4, kFewPositions = 6;
#else
constexpr int kPairPanels = 1, kBlockPositions = 6, kOddPanels = 1, kOddPositions = 6;
constexpr int kManyPanels = 2, kFewPositions = 2;
#endif
constexpr int64_t kTilePositions = 96;      // positions whose sums a thread keeps in the L1 cache
constexpr int64_t kCachedWeights = 1 << 17; // floats of weights that stay in the L2 cache
constexpr int64_t kCachedRows = 1 << 16;    // floats of a copy of x that stay in it beside them
constexpr int64_t kSliceSteps = 256;        // inner steps whose weights of kPairPanels panels stay in the L1 cache
constexpr int64_t kReusingPositions = 64;   // of y, for which weights that the L2 cache does not hold are read often
constexpr int kUnrolledSteps = 4;

/// Weights of panel p begin at data + p * panelStride: `[steps, 16]`.
struct WeightPanels {
  const float *data;
  int64_t panelStride;
};

/// Inner steps: each tap of a list in `channels` neighbouring channels; all that `repeats` times, each time for the next channels.
struct StepList {
  const Step *taps; // of the first channel; `weight` in floats
  int64_t count, channels, repeats;
  int64_t inputStride, weightStride; // floats of x and of the weights from one channel to the next
};

/// What is multiplied for a block of positions: `x` is where the window of its first begins, `pitch` from one window to the next.
struct BlockSteps {
  const float *x;
  int64_t pitch;
  StepList list;
  const float *weights;
  int64_t panelStride;
  float *sums; // `[positions, PANELS * 16]`, sumPitch floats from one position to the next
  int64_t sumPitch;
  int64_t lastLanes;            // of the last panel, fewer than sixteen only where kMasksLanes
  bool isFirst, isLast;         // of the slices that are summed; the last one ends with the epilogue, if there is one
  const Epilogue *epilogue;     // null where sums are stored as they are
  const float *bias, *residual; // `[PANELS * 16]`, and as sums; residual may be null
  int64_t residualPitch;
};

/// Panel v of PANELS, of a row of sums or of the residual.
#ifdef __AVX512F__
constexpr bool kMasksLanes = true;
template <int PANELS> inline Vector loadPanel(const BlockSteps &block, const float *row, int v) {
  bool isLast = v + 1 == PANELS;
  return isLast ? (Vector)_mm512_maskz_loadu_ps(maskOfChannels(block.lastLanes), row + v * kLanes)
                : load(row + v * kLanes);
}
template <int PANELS> inline void storePanel(const BlockSteps &block, float *row, int v, Vector values) {
  if (v + 1 == PANELS)
    _mm512_mask_storeu_ps(row + v * kLanes, maskOfChannels(block.lastLanes), (__m512)values);
  else
    store(row + v * kLanes, values);
}
#else
constexpr bool kMasksLanes = false;
template <int PANELS> inline Vector loadPanel(const BlockSteps &, const float *row, int v) {
  return load(row + v * kLanes);
}
template <int PANELS> inline void storePanel(const BlockSteps &, float *row, int v, Vector values) {
  store(row + v * kLanes, values);
}
#endif

/// Bias, residual and limits; an activation, whose registers those of sums would be, follows in activateSums. In the caller, as everything that
/// takes sums, so that they stay in registers.
template <int PANELS, int POSITIONS>
__attribute__((always_inline)) inline void finishSums(const BlockSteps &block, Vector (&sum)[POSITIONS][PANELS]) {
  const bool isActivated = block.epilogue->isActivated();
  for (int v = 0; v < PANELS; ++v) {
    Vector bias = load(block.bias + v * kLanes);
    for (int p = 0; p < POSITIONS; ++p) {
      sum[p][v] += bias;
      if (block.residual)
        sum[p][v] += loadPanel<PANELS>(block, block.residual + p * block.residualPitch, v);
      if (!isActivated)
        sum[p][v] = block.epilogue->clamp(sum[p][v]);
    }
  }
}

/// Of sums as they were stored.
template <int PANELS> [[gnu::noinline]] void activateSums(const BlockSteps &block, int64_t positions) {
  for (int v = 0; v < PANELS; ++v)
    block.epilogue->limitAll(
        positions, [&](int64_t p) { return loadPanel<PANELS>(block, block.sums + p * block.sumPitch, v); },
        [&](int64_t p, Vector values) { storePanel<PANELS>(block, block.sums + p * block.sumPitch, v, values); });
}

/// Pointers to elements of a step: one of each third window, as registers would not hold all distances, or of the first where those of all
/// windows follow it.
template <bool IS_DENSE, int POSITIONS> constexpr int kElementPointers = IS_DENSE ? 1 : (POSITIONS + 2) / 3;

/// Adds the products of a step to the sums of POSITIONS neighbours. `weights` is a row of the first panel; elements[i] is of window 3 * i,
/// or with IS_DENSE elements[0][p] of window p.
template <bool IS_DENSE, int PANELS, int POSITIONS>
__attribute__((always_inline)) inline void addStep(const float *const *elements, int64_t pitch, const float *weights,
                                                   int64_t panelStride, Vector (&sum)[POSITIONS][PANELS]) {
  Vector weight[PANELS];
  for (int v = 0; v < PANELS; ++v)
    weight[v] = load(weights + v * panelStride);
#pragma clang loop unroll(full)
  for (int p = 0; p < POSITIONS; ++p) {
    float factor = IS_DENSE ? elements[0][p] : elements[p / 3][p % 3 * pitch];
    for (int v = 0; v < PANELS; ++v)
      sum[p][v] += factor * weight[v];
    // Elements are read one after the other: read ahead, they would take the registers of sums.
    asm volatile("" ::: "memory");
  }
}

/// The same for the channels of a tap whose first elements begin at `x`. Where elements of neighbouring channels are neighbours, steps are
/// unrolled with constant offsets: between products stands little else to decode, which threads of one core (SMT) share.
template <bool IS_DENSE, int PANELS, int POSITIONS>
__attribute__((always_inline)) inline void addChannels(const BlockSteps &block, const StepList &list, const float *x,
                                                       const float *weights, Vector (&sum)[POSITIONS][PANELS]) {
  constexpr int addresses = kElementPointers<IS_DENSE, POSITIONS>;
  const int64_t pitch = block.pitch, panelStride = block.panelStride;
  const float *elements[addresses];
  for (int i = 0; i < addresses; ++i) {
    elements[i] = x + i * 3 * pitch;
    asm("" : "+r"(elements[i])); // added up once, not in each step
  }
  auto add = [&](int64_t inputStride) __attribute__((always_inline)) {
    addStep<IS_DENSE, PANELS, POSITIONS>(elements, pitch, weights, panelStride, sum);
    for (const float *&element : elements)
      element += inputStride;
    weights += list.weightStride;
    asm("" : "+r"(weights)); // no register for each multiple of the stride
  };
  int64_t left = list.channels;
  if (!IS_DENSE && list.inputStride == 1)
    for (; left >= kUnrolledSteps; left -= kUnrolledSteps) {
#pragma clang loop unroll(full)
      for (int i = 0; i < kUnrolledSteps; ++i)
        add(1);
    }
  for (; left > 0; --left)
    add(list.inputStride);
}

/// The same for all taps of one channel, in the order in which their weights lie.
template <bool IS_DENSE, int PANELS, int POSITIONS>
__attribute__((always_inline)) inline void addTaps(const BlockSteps &block, const StepList &list, const float *x,
                                                   const float *weights, Vector (&sum)[POSITIONS][PANELS]) {
#pragma clang loop unroll_count(2)
  for (int64_t k = 0; k < list.count; ++k) {
    const Step tap = list.taps[k];
    const float *elements[kElementPointers<IS_DENSE, POSITIONS>] = {x + tap.input};
    for (int i = 1; i < kElementPointers<IS_DENSE, POSITIONS>; ++i)
      elements[i] = elements[i - 1] + 3 * block.pitch;
    addStep<IS_DENSE, PANELS, POSITIONS>(elements, block.pitch, weights + tap.weight, block.panelStride, sum);
  }
}

template <bool IS_DENSE, int PANELS, int POSITIONS> void addSteps(const BlockSteps &block) {
  Vector sum[POSITIONS][PANELS] = {};
  if (!block.isFirst)
    for (int p = 0; p < POSITIONS; ++p)
      for (int v = 0; v < PANELS; ++v)
        sum[p][v] = loadPanel<PANELS>(block, block.sums + p * block.sumPitch, v);
  const StepList list = block.list;
  const float *x = block.x, *weights = block.weights;
  for (int64_t repeat = 0; repeat < list.repeats; ++repeat) {
    if (list.channels == 1)
      addTaps<IS_DENSE, PANELS, POSITIONS>(block, list, x, weights, sum);
    else
      for (int64_t k = 0; k < list.count; ++k)
        addChannels<IS_DENSE, PANELS, POSITIONS>(block, list, x + list.taps[k].input, weights + list.taps[k].weight,
                                                 sum);
    x += list.channels * list.inputStride;
    weights += list.channels * list.weightStride;
  }
  if (block.isLast && block.epilogue)
    finishSums<PANELS, POSITIONS>(block, sum);
  // What masks store is not forwarded to loads.
  if (block.lastLanes == kLanes)
    for (int p = 0; p < POSITIONS; ++p)
      for (int v = 0; v < PANELS; ++v)
        store(block.sums + p * block.sumPitch + v * kLanes, sum[p][v]);
  else
    for (int p = 0; p < POSITIONS; ++p)
      for (int v = 0; v < PANELS; ++v)
        storePanel<PANELS>(block, block.sums + p * block.sumPitch, v, sum[p][v]);
  if (block.isLast && block.epilogue && block.epilogue->isActivated())
    activateSums<PANELS>(block, POSITIONS);
}

/// The same for up to MOST neighbours.
template <int PANELS, int MOST> void addBlock(int64_t positions, const BlockSteps &block) {
  if constexpr (MOST > 1)
    if (positions < MOST)
      return addBlock<PANELS, MOST - 1>(positions, block);
  if (MOST > 1 && block.pitch == 1)
    addSteps<true, PANELS, MOST>(block);
  else
    addSteps<false, PANELS, MOST>(block);
}

/// The same for any number, as blocks of about the same size.
template <int PANELS> void addRow(int64_t count, BlockSteps row) {
  constexpr int most = PANELS <= kPairPanels ? kBlockPositions : PANELS == kOddPanels ? kOddPositions : kFewPositions;
  for (int64_t blocks = (count + most - 1) / most; blocks > 0; --blocks) {
    int64_t size = (count + blocks - 1) / blocks;
    addBlock<PANELS, most>(size, row);
    row.x += size * row.pitch;
    row.sums += size * row.sumPitch;
    if (row.residual)
      row.residual += size * row.residualPitch;
    count -= size;
  }
}

/// The convolutions of one sample at a time.
class PanelConvolution {
public:
  /// `steps` has room for problem.taps().
  PanelConvolution(const Convolution &problem, const WeightPanels &weights, Step *steps)
      : problem(problem), weights(weights), bandLines(linesOfBand(problem)),
        rows(problem, linesOfX(problem, bandLines)) {
    list.taps = steps;
    listBlock(steps);
    int64_t lines = problem.y.sizes[0] * problem.y.sizes[1], columns = problem.y.sizes[2];
    tileLines = smaller(columns >= kTilePositions ? 1 : kTilePositions / columns, bandLines);
    tileColumns = smaller(columns, kTilePositions);
    across = (columns + tileColumns - 1) / tileColumns;
    tiles = (lines + tileLines - 1) / tileLines * across;
    panels = problem.panels();
    width = columns <= kFewPositions || takesManyPanels(panels) ? kManyPanels : kPairPanels;
    endsOdd = width == kPairPanels && panels % width != 0 && panels > width && problem.outputs % kLanes == 0;
    blocks = endsOdd ? panels / width : (panels + width - 1) / width;
  }

  void run(int64_t sample) {
    int64_t lines = problem.y.sizes[0] * problem.y.sizes[1];
    Parts threads;
    if (bandLines < lines) {
      parallelFor((lines + bandLines - 1) / bandLines, problem.pays(), [&](int64_t band) {
        threads.run([&] {
          Scratch<float> padded(rows.size());
          int64_t first = band * bandLines, end = smaller(first + bandLines, lines);
          const float *source = rows.read(sample, first * problem.strides[1], padded.data(), /*isParallel=*/false);
          for (int64_t line = first; line < end; line += tileLines)
            for (int64_t rest = 0; rest < across * blocks; ++rest)
              runTask(source, sample, 0, line, smaller(tileLines, end - line), rest / blocks, rest % blocks);
        });
      });
    } else {
      Scratch<float> padded(rows.size());
      const float *source = rows.read(sample, 0, padded.data(), problem.pays());
      // Blocks of weights that stay in the cache follow each other for a tile, otherwise tiles for a block.
      bool isTileOuter = isCached(problem);
      parallelFor(problem.groups * blocks * tiles, problem.pays(), [&](int64_t task) {
        threads.run([&] {
          int64_t rest = task % (tiles * blocks), tile = isTileOuter ? rest / blocks : rest % tiles;
          int64_t line = tile / across * tileLines;
          runTask(source, sample, task / tiles / blocks, line, smaller(tileLines, lines - line), tile % across,
                  isTileOuter ? rest % blocks : rest / tiles);
        });
      });
    }
    threads.finish();
  }

private:
  /// Some positions of y: parts of lines, or several whole ones.
  struct Tile {
    const float *source;
    int64_t sample, group, line, lines, column, columns;
  };

  /// Whether blocks of many panels, which read x less often, leave no single one, and registers hold their sums.
  static bool takesManyPanels(int64_t panels) {
    return kPairPanels > 1 && panels >= kManyPanels && panels % kManyPanels != 1;
  }

  /// Whether the weights stay in the L2 cache.
  static bool isCached(const Convolution &problem) {
    return problem.panels() * problem.steps() * kLanes <= kCachedWeights;
  }

  /// Lines of x that the windows of so many lines of y reach over.
  static int64_t linesOfX(const Convolution &problem, int64_t count) {
    return count >= problem.y.sizes[0] * problem.y.sizes[1]
               ? problem.reach(1)
               : (count - 1) * problem.strides[1] + (problem.kernel[1] - 1) * problem.dilations[1] + 1;
  }

  /// Lines of y for which a thread copies x, so that its L2 cache holds the copy beside the weights; all of them where the copy of the
  /// sample is as small, or threads share it.
  static int64_t linesOfBand(const Convolution &problem) {
    int64_t lines = problem.y.sizes[0] * problem.y.sizes[1], floats = PaddedRows(problem, 1).size();
    if (floats * problem.reach(1) <= kCachedRows || problem.reach(0) != 1 || problem.groups != 1 || !isCached(problem))
      return lines;
    int64_t reach = linesOfX(problem, 1), fitting = (kCachedRows / floats - reach) / problem.strides[1] + 1;
    if (fitting * problem.strides[1] < reach) // bands would copy most lines more than twice
      return lines;
    return larger(1, smaller(fitting, lines / (4 * omp_get_max_threads())));
  }

  /// A part of some lines, in a block of panels.
  void runTask(const float *source, int64_t sample, int64_t group, int64_t line, int64_t lines, int64_t part,
               int64_t block) const {
    int64_t column = part * tileColumns, first = block * width;
    Tile tile{source, sample, group, line, lines, column, smaller(tileColumns, problem.y.sizes[2] - column)};
    runPanels(tile, first, endsOdd && block + 1 == blocks ? panels - first : smaller(width, panels - first));
  }

  /// Lists the taps, and how many channels of each follow each other: of channels-last x they share cache lines. Other x have one channel's
  /// taps in the same lines; and where few positions reuse a weight, weights are read as they lie.
  void listBlock(Step *steps) {
    int64_t taps = listTaps(problem, steps, [&](int64_t, int64_t d, int64_t h, int64_t w) {
      return d * rows.depthStride + h * rows.lineStride + w * rows.columnStride;
    });
    for (int64_t tap = 0; tap < taps; ++tap)
      steps[tap].weight *= kLanes;
    bool reusesWeights =
        problem.y.sizes[2] > kFewPositions && (isCached(problem) || problem.y.positions() >= kReusingPositions);
    list.count = taps;
    list.channels = taps == 1 || (rows.channelStride == 1 && reusesWeights) ? channelsOfBlock(taps) : 1;
    list.inputStride = rows.channelStride;
    list.weightStride = problem.taps() * kLanes;
  }
  /// At most sixteen, of which the input channels are a multiple, and whose steps fit a slice.
  int64_t channelsOfBlock(int64_t taps) const {
    int64_t count = smaller(problem.inputs, kLanes);
    while (problem.inputs % count != 0 || (count > 1 && count * taps > kSliceSteps))
      --count;
    return count;
  }

  void runPanels(const Tile &tile, int64_t panel, int64_t panels) const {
    if (panels == kManyPanels)
      return runTile<kManyPanels>(tile, panel);
    if (panels == kOddPanels && problem.y.sizes[2] > kFewPositions)
      return runTile<kOddPanels>(tile, panel);
    for (int64_t p = 0; p < panels; p += kPairPanels)
      if (p + kPairPanels <= panels)
        runTile<kPairPanels>(tile, panel + p);
      else
        runTile<1>(tile, panel + p);
  }

  template <int PANELS> void runTile(const Tile &tile, int64_t panel) const {
    const Samples &y = problem.y, &residual = problem.epilogue.residual;
    int64_t first = tile.group * problem.outputs + panel * kLanes, count = problem.outputs - panel * kLanes;
    bool isDirect = problem.storesChannelsLast() && (kMasksLanes || count >= PANELS * kLanes);
    Scratch<float> sums(isDirect ? 0 : tile.lines * tile.columns * PANELS * kLanes);
    float bias[PANELS * kLanes];
    for (int v = 0; v < PANELS && isDirect; ++v)
      store(bias + v * kLanes, biasOf(problem.epilogue, first + v * kLanes, smaller(kLanes, count - v * kLanes)));
    const float *channel = tile.source + tile.group * problem.inputs * rows.channelStride;
    const float *panelWeights = weights.data + (tile.group * panels + panel) * weights.panelStride;
    BlockSteps row = {};
    row.pitch = problem.strides[2] * rows.columnStride;
    row.list = list;
    row.panelStride = weights.panelStride;
    row.sumPitch = isDirect ? y.strides[2] : PANELS * kLanes;
    row.lastLanes = isDirect ? smaller(kLanes, count - (PANELS - 1) * kLanes) : kLanes;
    row.epilogue = isDirect ? &problem.epilogue : nullptr;
    row.bias = bias;
    row.residualPitch = residual.strides[2];
    const int64_t channels = list.channels, repeats = problem.inputs / channels;
    int64_t most = kSliceSteps * kPairPanels / larger(PANELS, kPairPanels);
    int64_t atOnce = larger(1, most / larger(list.count * channels, 1));
    for (int64_t begin = 0; begin < repeats; begin += atOnce) {
      row.list.repeats = smaller(atOnce, repeats - begin);
      row.weights = panelWeights + begin * channels * list.weightStride;
      row.isFirst = begin == 0;
      row.isLast = begin + atOnce >= repeats;
      for (int64_t i = 0; i < tile.lines; ++i) {
        int64_t line = tile.line + i, d = line / y.sizes[1], h = line % y.sizes[1];
        row.x = channel + begin * channels * list.inputStride + d * problem.strides[0] * rows.depthStride +
                h * problem.strides[1] * rows.lineStride + tile.column * row.pitch;
        row.sums = isDirect ? y.at(tile.sample, first) + y.offsetOf(d, h, tile.column)
                            : sums.data() + i * tile.columns * PANELS * kLanes;
        row.residual = residual.data ? residual.at(tile.sample, first) + residual.offsetOf(d, h, tile.column) : nullptr;
        addRow<PANELS>(tile.columns, row);
      }
    }
    for (int v = 0; v < PANELS && !isDirect; ++v) {
      OutputLanes lanes{tile.sample, first + v * kLanes, smaller(kLanes, count - v * kLanes)};
      storeLanes(problem, lanes, tile.line * y.sizes[2] + tile.column, tile.lines * tile.columns,
                 sums.data() + v * kLanes, PANELS * kLanes);
    }
  }

  const Convolution &problem;
  WeightPanels weights;
  int64_t bandLines; // of y
  PaddedRows rows;
  int64_t tileLines, tileColumns, across, tiles; // of y; how many tiles there are along its lines, and at all
  int64_t panels, width, blocks;                 // of a group; how many a block has, and how many blocks there are
  bool endsOdd;                                  // the last block has the panel that is left over
  StepList list = {};
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PANELS_H
