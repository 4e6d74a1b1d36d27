// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Samples of x as windows read them: where they lie, or a copy with padding, channels-last if x is.

#ifndef HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PADDED_ROWS_H
#define HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PADDED_ROWS_H

#include "../parallel_for.h"
#include "phase_rows.h"

namespace {

class PaddedRows {
public:
  int64_t channelStride, depthStride, lineStride, columnStride; // of what is read

  /// Copies have `lines` lines of each depth: all that windows reach over, or some where there is one depth.
  PaddedRows(const Convolution &problem, int64_t lines)
      : channelStride(problem.x.channelStride), depthStride(problem.x.strides[0]), lineStride(problem.x.strides[1]),
        columnStride(problem.x.strides[2]), problem(problem), lines(lines) {
    if (!copies(problem))
      return;
    if (problem.x.isChannelsLast()) {
      channelStride = 1;
      columnStride = separate(channels());
      lineStride = problem.reach(2) * columnStride;
      depthStride = lines * lineStride;
    } else {
      columnStride = 1;
      lineStride = problem.reach(2);
      depthStride = lines * lineStride;
      channelStride = separate(problem.reach(0) * depthStride);
    }
  }

  /// Whether windows read a copy of x, with its padding.
  static bool copies(const Convolution &problem) { return problem.isPadded() || conflicts(problem); }

  /// Floats of a copy; 0 where windows read x as it lies.
  int64_t size() const {
    if (!copies(problem))
      return 0;
    return problem.x.isChannelsLast() ? problem.reach(0) * depthStride : channels() * channelStride;
  }

  /// Where the window of the first position of a sample begins, in its first channel. `padded` has room for size(), and takes the lines from
  /// `first` on; what lies in other lines must not be read.
  const float *read(int64_t sample, int64_t first, float *padded, bool isParallel) const {
    if (!copies(problem)) // padding that is negative leaves elements out
      return problem.x.at(sample, 0) - problem.low[0] * depthStride - problem.low[1] * lineStride -
             problem.low[2] * columnStride;
    if (channelStride == 1)
      parallelFor(problem.reach(0) * lines, isParallel, [&](int64_t line) {
        padLine(sample, line / lines, first + line % lines, padded + line * lineStride);
      });
    else
      parallelFor(channels(), isParallel,
                  [&](int64_t channel) { padChannel(sample, channel, first, padded + channel * channelStride); });
    return padded - first * lineStride;
  }

private:
  int64_t channels() const { return problem.groups * problem.inputs; }

  /// Whether elements that are read one after the other share a few sets of the L1 cache, so that they evict each other: those of one place
  /// in many channels, or of neighbours with many channels.
  static bool conflicts(const Convolution &problem) {
    constexpr int64_t sets = 1024, few = 256, channels = 32; // floats of all sets of lines, and of every fourth
    return problem.x.isChannelsLast() ? problem.x.strides[2] % sets == 0
                                      : problem.x.channelStride % few == 0 && problem.inputs >= channels;
  }
  /// At least `size` floats, an odd number of cache lines where it is more than one set's.
  static int64_t separate(int64_t size) { return ((size + kLanes - 1) / kLanes | 1) * kLanes; }

  /// The line of x that is line `h` of depth `d` of the copy, or null in the padding.
  const float *lineOf(int64_t sample, int64_t channel, int64_t d, int64_t h) const {
    const Samples &x = problem.x;
    int64_t depth = d - problem.low[0], line = h - problem.low[1];
    bool isInside = depth >= 0 && depth < x.sizes[0] && line >= 0 && line < x.sizes[1];
    return isInside ? x.at(sample, channel) + depth * x.strides[0] + line * x.strides[1] : nullptr;
  }

  /// All channels of a line.
  void padLine(int64_t sample, int64_t d, int64_t h, float *to) const {
    const Samples &x = problem.x;
    int64_t width = problem.reach(2), low = problem.low[2];
    int64_t begin = larger(0, -low), end = larger(begin, smaller(x.sizes[2], width - low));
    const float *from = lineOf(sample, 0, d, h);
    if (!from || begin == end)
      return fillZeros(to, width * columnStride);
    fillZeros(to, (begin + low) * columnStride);
    for (int64_t w = begin; w < end; ++w)
      copyFloats(from + w * x.strides[2], channels(), to + (w + low) * columnStride);
    fillZeros(to + (end + low) * columnStride, (width - end - low) * columnStride);
  }

  void padChannel(int64_t sample, int64_t channel, int64_t first, float *to) const {
    const Samples &x = problem.x;
    int64_t width = problem.reach(2), low = problem.low[2];
    int64_t begin = larger(0, -low), end = larger(begin, smaller(x.sizes[2], width - low));
    for (int64_t d = 0; d < problem.reach(0); ++d)
      for (int64_t h = first; h < first + lines; ++h, to += width) {
        const float *from = lineOf(sample, channel, d, h);
        if (!from || begin == end) {
          fillZeros(to, width);
          continue;
        }
        fillZeros(to, begin + low);
        if (x.strides[2] == 1)
          copyFloats(from + begin, end - begin, to + begin + low);
        else
          for (int64_t w = begin; w < end; ++w)
            to[w + low] = from[w * x.strides[2]];
        fillZeros(to + end + low, width - end - low);
      }
  }

  const Convolution &problem;
  int64_t lines;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PADDED_ROWS_H
