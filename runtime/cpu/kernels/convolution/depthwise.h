// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Depthwise convolution, of groups of one input channel, and pooling, with output channels as lanes: bands of rows of sixteen channels are transposed
// into `[rows, columns, 16]` with their padding, so that loads are aligned and a stride is a distance.

#ifndef HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_DEPTHWISE_H
#define HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_DEPTHWISE_H

#include "../parallel_for.h"
#include "../parts.h"
#include "../scratch.h"
#include "lanes.h"
#include "phase_rows.h"

namespace {

constexpr int64_t kBandFloats = 1 << 15; // of x that a thread transposes at once, where rows are not longer

/// What a window's elements are folded by: products with weights are summed, or elements are, or the greatest is taken.
struct SumOfProducts {
  static constexpr float kInitial = 0.0f;
  const float *weights; // panel p of sixteen channels begins at weights + p * panelStride
  int64_t panelStride;
  SumOfProducts from(int64_t panel, int64_t step = 0) const {
    return {weights + (panel * panelStride + step * kLanes), panelStride};
  }
  Vector weightOf(int64_t step, int64_t panel = 0) const {
    return load(weights + (step * kLanes + panel * panelStride));
  }
  static Vector fold(Vector sum, Vector weight, Vector element) { return sum + weight * element; }
};
struct SumOfElements {
  static constexpr float kInitial = 0.0f;
  static SumOfElements from(int64_t, int64_t = 0) { return {}; }
  static Vector weightOf(int64_t, int64_t = 0) { return 0.0f; }
  static Vector fold(Vector sum, Vector, Vector element) { return sum + element; }
};
struct GreatestElement {
  static constexpr float kInitial = -__builtin_inff();
  static GreatestElement from(int64_t, int64_t = 0) { return {}; }
  static Vector weightOf(int64_t, int64_t = 0) { return 0.0f; }
  static Vector fold(Vector best, Vector, Vector element) {
    return best >= element || best != best ? best : element; // NaN stays
  }
};

/// Folds the windows of POSITIONS neighbours, which begin `stride` floats apart.
template <int POSITIONS, typename Fold>
void foldWindows(const float *x, int64_t stride, const Step *steps, int64_t count, const Fold &fold, float *results) {
  Vector result[POSITIONS];
  for (int p = 0; p < POSITIONS; ++p)
    result[p] = Fold::kInitial;
  for (int64_t k = 0; k < count; ++k) {
    const float *element = x + steps[k].input;
    Vector weight = fold.weightOf(steps[k].weight);
    for (int p = 0; p < POSITIONS; ++p)
      result[p] = Fold::fold(result[p], weight, load(element + p * stride));
  }
  for (int p = 0; p < POSITIONS; ++p)
    store(results + p * kLanes, result[p]);
}

template <typename Fold> class DepthwiseConvolution {
public:
  /// `steps` has room for problem.steps().
  DepthwiseConvolution(const Convolution &problem, Step *steps)
      : problem(problem), steps(steps), columns(problem.reach(2)), lines(problem.reach(1)) {
    int64_t lineFloats = columns * kLanes * problem.reach(0);
    int64_t fitting = (kBandFloats / lineFloats - lines) / problem.strides[1] + problem.y.sizes[1];
    band = larger(1, smaller(fitting, problem.y.sizes[1]));
    lines = (band - 1) * problem.strides[1] + (problem.kernel[1] - 1) * problem.dilations[1] + 1;
    count = listSteps(problem, steps, [&](int64_t, int64_t d, int64_t h, int64_t w) {
      return ((d * lines + h) * columns + w) * kLanes;
    });
  }

  void run(int64_t sample, const Fold &fold) const {
    int64_t channels = problem.groups * problem.outputs, bands = (problem.y.sizes[1] + band - 1) / band;
    int64_t panels = (channels + kLanes - 1) / kLanes, tasks = panels * bands;
    int64_t shares = smaller(tasks, 4 * omp_get_max_threads());
    Parts threads;
    parallelFor(shares, problem.pays(), [&](int64_t share) {
      threads.run([&] {
        Scratch<float> rows(problem.reach(0) * lines * columns * kLanes);
        Scratch<float> sums(band * problem.y.sizes[2] * kLanes);
        for (int64_t task = tasks * share / shares; task < tasks * (share + 1) / shares; ++task) {
          int64_t first = task / bands * kLanes, line = task % bands * band;
          runBand({sample, first, smaller(kLanes, channels - first)}, line, smaller(band, problem.y.sizes[1] - line),
                  fold.from(first / kLanes), rows.data(), sums.data());
        }
      });
    });
    threads.finish();
  }

private:
  /// `size` rows of y from `line` on.
  void runBand(const OutputLanes &lanes, int64_t line, int64_t size, const Fold &fold, float *rows, float *sums) const {
    copyBand(lanes, line, rows);
    int64_t width = problem.y.sizes[2], stride = problem.strides[2] * kLanes;
    for (int64_t d = 0; d < problem.y.sizes[0]; ++d) {
      for (int64_t i = 0; i < size; ++i) {
        const float *x = rows + (d * problem.strides[0] * lines + i * problem.strides[1]) * columns * kLanes;
        float *to = sums + i * width * kLanes;
        int64_t w = 0;
        for (; w + 8 <= width; w += 8)
          foldWindows<8>(x + w * stride, stride, steps, count, fold, to + w * kLanes);
        for (; w + 4 <= width; w += 4)
          foldWindows<4>(x + w * stride, stride, steps, count, fold, to + w * kLanes);
        for (; w + 2 <= width; w += 2)
          foldWindows<2>(x + w * stride, stride, steps, count, fold, to + w * kLanes);
        if (w < width)
          foldWindows<1>(x + w * stride, stride, steps, count, fold, to + w * kLanes);
      }
      storeLanes(problem, lanes, (d * problem.y.sizes[1] + line) * width, size * width, sums, kLanes);
    }
  }

  /// What the windows of rows from `line` on read.
  void copyBand(const OutputLanes &lanes, int64_t line, float *rows) const {
    const Samples &x = problem.x;
    const float *from[kLanes];
    for (int64_t i = 0; i < kLanes; ++i)
      from[i] = x.at(lanes.sample, (lanes.first + smaller(i, lanes.count - 1)) / problem.outputs);
    int64_t begin = line * problem.strides[1] - problem.low[1];
    int64_t first = larger(begin, 0), end = smaller(begin + lines, x.sizes[1]);
    if (problem.isPadded())
      for (int64_t i = 0; i < problem.reach(0) * lines * columns; ++i)
        store(rows + i * kLanes, Vector(Fold::kInitial));
    for (int64_t d = larger(0, problem.low[0]); d < smaller(problem.reach(0), x.sizes[0] + problem.low[0]); ++d) {
      int64_t offset = (d - problem.low[0]) * x.strides[0];
      float *to = rows + (d * lines + first - begin) * columns * kLanes;
      bool areNeighbours = x.channelStride == 1 && problem.outputs == 1; // [N, H, W, C]
      if (x.isDense() && end > first)
        copyDense(from, offset + first * x.sizes[2], end - first, to);
      else if (areNeighbours)
        for (int64_t h = first; h < end; ++h, to += columns * kLanes)
          for (int64_t w = larger(0, -problem.low[2]); w < smaller(x.sizes[2], columns - problem.low[2]); ++w)
            store(to + (w + problem.low[2]) * kLanes,
                  loadColumns(from[0] + offset + h * x.strides[1] + w * x.strides[2], lanes.count));
      else
        for (int64_t h = first; h < end; ++h, to += columns * kLanes)
          for (int64_t w = larger(0, -problem.low[2]); w < smaller(x.sizes[2], columns - problem.low[2]); ++w)
            for (int64_t i = 0; i < kLanes; ++i)
              to[(w + problem.low[2]) * kLanes + i] = from[i][offset + h * x.strides[1] + w * x.strides[2]];
    }
  }

  /// Whole rows, which lie one after the other from `offset` on.
  void copyDense(const float *const (&from)[kLanes], int64_t offset, int64_t count, float *to) const {
    int64_t width = problem.x.sizes[2], size = count * width;
    int64_t least = larger(0, -problem.low[2]), most = smaller(width, columns - problem.low[2]);
    to += problem.low[2] * kLanes;
    int64_t row = 0, w = 0;
    for (int64_t next = 0; next < size; next += kLanes) {
      Vector block[kLanes];
      int64_t begin = size < kLanes ? 0 : smaller(next, size - kLanes); // the last ones may be read twice
      for (int64_t i = 0; i < kLanes; ++i)
        block[i] = size < kLanes ? loadColumns(from[i] + offset, size) : load(from[i] + offset + begin);
      transpose(block);
      for (int64_t i = next - begin; i < smaller(kLanes, size - begin); ++i) {
        if (w >= least && w < most)
          store(to + (row * columns + w) * kLanes, block[i]);
        if (++w == width) {
          w = 0;
          ++row;
        }
      }
    }
  }

  const Convolution &problem;
  Step *steps;
  int64_t count = 0;      // of steps
  int64_t columns, lines; // of what is transposed, in lanes
  int64_t band;           // rows of y
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_DEPTHWISE_H
