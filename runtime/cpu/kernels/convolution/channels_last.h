// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Depthwise convolution and pooling of channels-last x and y, with sixteen neighbouring channels as lanes. Nothing is copied: taps that
// would read padding are left out, of the lines and columns at the edges of x.

#ifndef HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_CHANNELS_LAST_H
#define HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_CHANNELS_LAST_H

#include "../parallel_for.h"
#include "../parts.h"
#include "../scratch.h"
#include "depthwise.h"

namespace {

template <typename Fold> class ChannelsLastWindows {
public:
  /// Whether the form is for the problem: one output channel for each input channel, and both as neighbours.
  static bool takes(const Convolution &problem) {
    return problem.inputs == 1 && problem.outputs == 1 && problem.x.channelStride == 1 && problem.storesChannelsLast();
  }

  explicit ChannelsLastWindows(const Convolution &problem) : problem(problem), columns(insideOf(problem)) {}

  /// `foldOf(panel)` is that of sixteen output channels.
  template <typename FoldOf> void run(int64_t sample, const FoldOf &foldOf) const {
    int64_t lines = problem.y.sizes[0] * problem.y.sizes[1], shares = smaller(lines, 4 * omp_get_max_threads());
    Parts threads;
    parallelFor(shares, problem.pays(), [&](int64_t share) {
      threads.run([&] {
        Scratch<Step> steps(2 * problem.taps());
        for (int64_t line = lines * share / shares; line < lines * (share + 1) / shares; ++line)
          runLine(sample, line / problem.y.sizes[1], line % problem.y.sizes[1], foldOf, steps.data());
      });
    });
    threads.finish();
  }

private:
  /// Columns of y whose windows read nothing but elements of x along their lines.
  struct Columns {
    int64_t begin, end;
  };
  static Columns insideOf(const Convolution &problem) {
    int64_t stride = problem.strides[2], low = problem.low[2], width = problem.y.sizes[2];
    int64_t last = problem.x.sizes[2] - 1 + low - (problem.kernel[2] - 1) * problem.dilations[2];
    int64_t begin = smaller(low <= 0 ? 0 : (low + stride - 1) / stride, width);
    int64_t end = last < 0 ? 0 : smaller(last / stride + 1, width);
    return {begin, larger(begin, end)};
  }

  /// Taps of `all` places along the lines that read x from column `first` on, as steps from the sample's first element.
  int64_t listColumns(const Step *all, int64_t count, int64_t first, Step *steps) const {
    int64_t kept = 0;
    for (int64_t k = 0; k < count; ++k) {
      int64_t column = first + all[k].weight % problem.kernel[2] * problem.dilations[2];
      if (column >= 0 && column < problem.x.sizes[2])
        steps[kept++] = all[k];
    }
    return kept;
  }

  /// Taps of a line of y whose lines of x exist, as steps from the window's first column.
  int64_t listLines(int64_t d, int64_t h, Step *steps) const {
    const Samples &x = problem.x;
    int64_t count = 0;
    for (int64_t tap = 0; tap < problem.taps(); ++tap) {
      int64_t w = tap % problem.kernel[2], rest = tap / problem.kernel[2];
      int64_t depth = d * problem.strides[0] - problem.low[0] + rest / problem.kernel[1] * problem.dilations[0];
      int64_t line = h * problem.strides[1] - problem.low[1] + rest % problem.kernel[1] * problem.dilations[1];
      if (depth >= 0 && depth < x.sizes[0] && line >= 0 && line < x.sizes[1])
        steps[count++] = {x.offsetOf(depth, line, w * problem.dilations[2]), tap};
    }
    return count;
  }

  template <typename FoldOf>
  void runLine(int64_t sample, int64_t d, int64_t h, const FoldOf &foldOf, Step *steps) const {
    const Samples &x = problem.x, &y = problem.y, &residual = problem.epilogue.residual;
    int64_t count = listLines(d, h, steps), channels = problem.groups;
    Step *kept = steps + problem.taps();
    auto forPanels = [&](const Step *list, int64_t size, int64_t begin, int64_t end) {
      for (int64_t first = 0; first < channels; first += kLanes) {
        Windows windows{list, size, problem.strides[2] * x.strides[2], begin * problem.strides[2] - problem.low[2]};
        windows.x = x.at(sample, first);
        windows.offset *= x.strides[2];
        windows.y = y.at(sample, first) + y.offsetOf(d, h, begin);
        windows.residual = residual.data ? residual.at(sample, first) + residual.offsetOf(d, h, begin) : nullptr;
        windows.lanes = smaller(kLanes, channels - first);
        windows.bias = biasOf(problem.epilogue, first, windows.lanes);
        foldRow(windows, end - begin, foldOf(first / kLanes));
      }
    };
    auto forEdges = [&](int64_t begin, int64_t end) {
      for (int64_t w = begin; w < end; ++w)
        forPanels(kept, listColumns(steps, count, w * problem.strides[2] - problem.low[2], kept), w, w + 1);
    };
    forEdges(0, columns.begin);
    if (columns.begin < columns.end)
      forPanels(steps, count, columns.begin, columns.end);
    forEdges(columns.end, y.sizes[2]);
  }

  /// Windows of neighbours, of the channels of a panel.
  struct Windows {
    const Step *steps;
    int64_t count, pitch, offset; // of the first window in x, from which steps count
    const float *x = nullptr;
    float *y = nullptr;
    const float *residual = nullptr;
    int64_t lanes = 0;
    Vector bias = 0.0f;
  };

  void foldRow(Windows windows, int64_t size, const Fold &fold) const {
    for (int64_t w = 0; w < size;) {
      int64_t rest = size - w, block = rest >= 8 ? 8 : rest >= 4 ? 4 : rest >= 2 ? 2 : 1;
      if (block == 8)
        foldBlock<8>(windows, fold);
      else if (block == 4)
        foldBlock<4>(windows, fold);
      else if (block == 2)
        foldBlock<2>(windows, fold);
      else
        foldBlock<1>(windows, fold);
      windows.offset += block * windows.pitch;
      windows.y += block * problem.y.strides[2];
      if (windows.residual)
        windows.residual += block * problem.epilogue.residual.strides[2];
      w += block;
    }
  }

  template <int POSITIONS> void foldBlock(const Windows &windows, const Fold &fold) const {
    if (windows.lanes == kLanes)
      foldBlock<POSITIONS, true>(windows, fold);
    else
      foldBlock<POSITIONS, false>(windows, fold);
  }

  template <int POSITIONS, bool IS_WHOLE> void foldBlock(const Windows &windows, const Fold &fold) const {
    auto read = [&](const float *from) { return IS_WHOLE ? load(from) : loadChannels(from, windows.lanes); };
    Vector result[POSITIONS];
    for (int p = 0; p < POSITIONS; ++p)
      result[p] = Fold::kInitial;
    for (int64_t k = 0; k < windows.count; ++k) {
      const float *element = windows.x + (windows.offset + windows.steps[k].input);
      Vector weight = fold.weightOf(windows.steps[k].weight);
      for (int p = 0; p < POSITIONS; ++p)
        result[p] = Fold::fold(result[p], weight, read(element + p * windows.pitch));
    }
    for (int p = 0; p < POSITIONS; ++p) {
      Vector row = result[p] + windows.bias;
      if (windows.residual)
        row += read(windows.residual + p * problem.epilogue.residual.strides[2]);
      storeChannels(windows.y + p * problem.y.strides[2], problem.epilogue.limit(row), windows.lanes);
    }
  }

  const Convolution &problem;
  Columns columns;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_CHANNELS_LAST_H
