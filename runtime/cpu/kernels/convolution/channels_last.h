// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Depthwise convolution and pooling of channels-last x and y, with sixteen neighbouring channels as lanes. Nothing is copied: taps that
// would read padding are left out, of the lines and columns at the edges of x. Some columns of some channels are computed for one line
// after the other, so that the L1 cache keeps the lines of x that the windows of neighbours share.

#ifndef HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_CHANNELS_LAST_H
#define HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_CHANNELS_LAST_H

#include "../../cache_size.h"
#include "../parallel_for.h"
#include "../parts.h"
#include "../scratch.h"
#include "depthwise.h"

namespace {

// Sums in registers, and of how many neighbours at most.
#ifdef __AVX512F__
constexpr int kWindowSums = 8, kMostNeighbours = 8;
#else
constexpr int kWindowSums = 4, kMostNeighbours = 4;
#endif
constexpr int64_t kTileColumns = 16;     // of y
constexpr int64_t kTileFloats = 1 << 13; // of x that the windows of a line of a tile read

template <typename Fold> class ChannelsLastWindows {
public:
  /// Whether the form is for the problem: one output channel for each input channel, and both as neighbours.
  static bool takes(const Convolution &problem) {
    return problem.inputs == 1 && problem.outputs == 1 && problem.x.channelStride == 1 && problem.storesChannelsLast();
  }

  explicit ChannelsLastWindows(const Convolution &problem)
      : problem(problem), lines(insideOf(problem, 1)), columns(insideOf(problem, 2)) {}

  void run(int64_t sample, const Fold &fold) const {
    int64_t all = problem.y.sizes[0] * problem.y.sizes[1], shares = smaller(all, 4 * omp_get_max_threads());
    Parts threads;
    parallelFor(shares, problem.pays(), [&](int64_t share) {
      threads.run([&] {
        int64_t end = all * (share + 1) / shares;
        for (int64_t line = all * share / shares, height = problem.y.sizes[1]; line < end;) {
          int64_t count = smaller(end - line, height - line % height);
          runLines(sample, line / height, {line % height, line % height + count}, fold);
          line += count;
        }
      });
    });
    threads.finish();
  }

private:
  struct Range {
    int64_t begin, end;
    bool has(int64_t index) const { return index >= begin && index < end; }
  };
  /// Lines or columns of y whose windows read nothing but elements of x along their axis.
  static Range insideOf(const Convolution &problem, int axis) {
    int64_t stride = problem.strides[axis], low = problem.low[axis], size = problem.y.sizes[axis];
    int64_t last = problem.x.sizes[axis] - 1 + low - (problem.kernel[axis] - 1) * problem.dilations[axis];
    int64_t begin = smaller(low <= 0 ? 0 : (low + stride - 1) / stride, size);
    int64_t end = last < 0 ? 0 : smaller(last / stride + 1, size);
    return {begin, larger(begin, end)};
  }

  /// Places of the kernel along an axis whose taps are in x, for the window of `index`.
  Range tapsOf(int axis, int64_t index) const {
    int64_t first = problem.low[axis] - index * problem.strides[axis], dilation = problem.dilations[axis];
    int64_t last = problem.x.sizes[axis] - 1 + first;
    int64_t end = last < 0 ? 0 : smaller(last / dilation + 1, problem.kernel[axis]);
    return {smaller(first <= 0 ? 0 : (first + dilation - 1) / dilation, end), end};
  }

  /// Windows of neighbours: the taps that each has, where the first one begins in x and y and the residual, and the distances to the next.
  struct Windows {
    Range taps[kSpatialAxes];
    int64_t tapStrides[kSpatialAxes]; // of x
    const float *x, *residual;
    float *y;
    int64_t xPitch, yPitch, residualPitch;
  };

  /// The windows from (d, h, w) on, of the first channel; neighbours along `axis`.
  Windows windowsOf(int64_t sample, int64_t d, int64_t h, int64_t w, int axis) const {
    const Samples &x = problem.x, &y = problem.y, &residual = problem.epilogue.residual;
    auto first = [&](int of, int64_t index) { return index * problem.strides[of] - problem.low[of]; };
    const int64_t (&dilations)[kSpatialAxes] = problem.dilations;
    return {{tapsOf(0, d), tapsOf(1, h), tapsOf(2, w)},
            {dilations[0] * x.strides[0], dilations[1] * x.strides[1], dilations[2] * x.strides[2]},
            x.at(sample, 0) + x.offsetOf(first(0, d), first(1, h), first(2, w)),
            residual.data ? residual.at(sample, 0) + residual.offsetOf(d, h, w) : nullptr,
            y.at(sample, 0) + y.offsetOf(d, h, w),
            problem.strides[axis] * x.strides[axis],
            y.strides[axis],
            residual.strides[axis]};
  }

  /// Lines of depth `d` of y.
  void runLines(int64_t sample, int64_t d, Range range, const Fold &fold) const {
    runColumns(sample, d, range, fold);
    // Columns at the edges: lines that have the same taps are neighbours.
    int64_t begin = larger(range.begin, lines.begin), end = larger(begin, smaller(range.end, lines.end));
    for (int64_t w = 0; w < problem.y.sizes[2]; ++w) {
      if (columns.has(w))
        continue;
      if (begin < end)
        foldRow(windowsOf(sample, d, begin, w, 1), end - begin, 0, problem.groups, fold);
      for (int64_t h = range.begin; h < range.end; ++h)
        if (!lines.has(h))
          foldRow(windowsOf(sample, d, h, w, 2), 1, 0, problem.groups, fold);
    }
  }

  /// The columns whose windows are inside, a tile after the other.
  void runColumns(int64_t sample, int64_t d, Range range, const Fold &fold) const {
    int64_t reach = (kTileColumns - 1) * problem.strides[2] + (problem.kernel[2] - 1) * problem.dilations[2] + 1;
    // What the L2 cache does not hold comes line by line, in parts that the hardware does not prefetch.
    bool isPrefetched = problem.x.positions() * problem.groups * 4 > hone::cpu::l2CacheBytes() / 2;
    int64_t panels = larger(1, kTileFloats / (reach * problem.kernel[0] * problem.kernel[1] * kLanes));
    for (int64_t w = columns.begin; w < columns.end; w += kTileColumns)
      for (int64_t channel = 0; channel < problem.groups; channel += panels * kLanes) {
        int64_t end = smaller(channel + panels * kLanes, problem.groups),
                count = smaller(kTileColumns, columns.end - w);
        for (int64_t h = range.begin; h < range.end; ++h) {
          Windows windows = windowsOf(sample, d, h, w, 2);
          if (isPrefetched && h + 1 < range.end)
            prefetchNext(windows, reach, channel, end);
          foldRow(windows, count, channel, end, fold);
        }
      }
  }

  /// Prefetches what the windows of the next line read and those of this one do not.
  void prefetchNext(const Windows &windows, int64_t reach, int64_t begin, int64_t end) const {
    const Samples &x = problem.x;
    int64_t stride = problem.strides[1], last = (problem.kernel[1] - 1) * problem.dilations[1];
    for (int64_t line = last + 1; line <= last + stride; ++line)
      for (int64_t w = 0; w < reach; ++w)
        for (int64_t c = begin; c < end; c += kLanes)
          __builtin_prefetch(windows.x + line * x.strides[1] + w * x.strides[2] + c, 0, 3);
  }

  /// `count` neighbours, in channels [begin, end).
  void foldRow(Windows windows, int64_t count, int64_t begin, int64_t end, const Fold &fold) const {
    while (count > 0) {
      int64_t size = count >= kMostNeighbours ? kMostNeighbours : count >= 4 ? 4 : count >= 2 ? 2 : 1;
      foldTile(windows, size, begin, end, fold);
      windows.x += size * windows.xPitch;
      windows.y += size * windows.yPitch;
      if (windows.residual)
        windows.residual += size * windows.residualPitch;
      count -= size;
    }
  }

  /// `size` neighbours, in channels [begin, end): as many sums at once as registers hold.
  void foldTile(const Windows &windows, int64_t size, int64_t begin, int64_t end, const Fold &fold) const {
    constexpr int sums = kWindowSums;
    if (kMostNeighbours > 4 && size == kMostNeighbours)
      foldPanels<kMostNeighbours, sums / kMostNeighbours>(windows, begin, end, fold);
    else if (size == 4)
      foldPanels<4, sums / 4>(windows, begin, end, fold);
    else if (size == 2)
      foldPanels<2, sums / 2>(windows, begin, end, fold);
    else
      foldPanels<1, sums>(windows, begin, end, fold);
  }

  template <int POSITIONS, int PANELS>
  void foldPanels(const Windows &windows, int64_t begin, int64_t end, const Fold &fold) const {
    for (; begin + PANELS * kLanes <= end; begin += PANELS * kLanes)
      foldBlock<POSITIONS, PANELS, true>(windows, begin, PANELS * kLanes, fold);
    for (; begin < end; begin += kLanes)
      if (end - begin >= kLanes)
        foldBlock<POSITIONS, 1, true>(windows, begin, kLanes, fold);
      else
        foldBlock<POSITIONS, 1, false>(windows, begin, end - begin, fold);
  }

  /// `lanes` channels from `channel` on.
  template <int POSITIONS, int PANELS, bool IS_WHOLE>
  void foldBlock(const Windows &windows, int64_t channel, int64_t lanes, const Fold &fold) const {
    auto read = [&](const float *from) { return IS_WHOLE ? load(from) : loadChannels(from, lanes); };
    const Fold panels = fold.from(channel / kLanes);
    const Range depths = windows.taps[0], heights = windows.taps[1], widths = windows.taps[2];
    const int64_t pitch = windows.xPitch, next = windows.tapStrides[2];
    const float *x = windows.x + channel + depths.begin * windows.tapStrides[0] +
                     heights.begin * windows.tapStrides[1] + widths.begin * next;
    Vector result[POSITIONS][PANELS];
    for (int p = 0; p < POSITIONS; ++p)
      for (int v = 0; v < PANELS; ++v)
        result[p][v] = Fold::kInitial;
    for (int64_t d = depths.begin; d < depths.end; ++d, x += windows.tapStrides[0]) {
      const float *line = x;
      int64_t tap = (d * problem.kernel[1] + heights.begin) * problem.kernel[2] + widths.begin;
      for (int64_t h = heights.begin; h < heights.end; ++h, line += windows.tapStrides[1], tap += problem.kernel[2]) {
        const float *element = line;
        Fold taps = panels.from(0, tap);
        // Unrolled, it would need more addresses than there are registers.
#pragma clang loop unroll(disable)
        for (int64_t left = widths.end - widths.begin; left > 0; --left, element += next, taps = taps.from(0, 1))
          for (int v = 0; v < PANELS; ++v) {
            Vector weight = taps.weightOf(0, v);
            for (int p = 0; p < POSITIONS; ++p)
              result[p][v] = Fold::fold(result[p][v], weight, read(element + p * pitch + v * kLanes));
          }
      }
    }
    const Epilogue &epilogue = problem.epilogue;
    const Limiter limit(epilogue);
    for (int v = 0; v < PANELS; ++v) {
      int64_t first = channel + v * kLanes;
      Vector bias = biasOf(epilogue, first, smaller(kLanes, lanes - v * kLanes));
      for (int p = 0; p < POSITIONS; ++p) {
        Vector row = result[p][v] + bias;
        if (windows.residual)
          row += read(windows.residual + first + p * windows.residualPitch);
        storeChannels(windows.y + first + p * windows.yPitch, limit(row), lanes - v * kLanes);
      }
    }
  }

  const Convolution &problem;
  Range lines, columns;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_CHANNELS_LAST_H
