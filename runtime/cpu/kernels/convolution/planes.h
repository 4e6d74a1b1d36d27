// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Direct convolution with positions as lanes, for groups of few output channels, as the last of a network have. A channel of x is copied
// with its padding and with its rows and columns split by their remainder modulo the stride (polyphase), so that a tap of the window
// reads neighbours for neighbours of y whatever the stride is. Positions are those of rows as wide as the copy's; what is computed for
// the ends of rows is not stored.

#ifndef HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PLANES_H
#define HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PLANES_H

#include "../linear/columns.h"
#include "../parallel_for.h"
#include "../parts.h"
#include "../scratch.h"
#include "phase_rows.h"

namespace {

// Sums in registers: those of up to kPlaneOutputs output channels and kPlaneVectors times sixteen positions.
#ifdef __AVX512F__
constexpr int kPlaneOutputs = 4, kPlaneVectors = 4;
#else
constexpr int kPlaneOutputs = 2, kPlaneVectors = 2;
#endif
constexpr int64_t kPlaneBlock = kPlaneVectors * kLanes;
constexpr int64_t kPlaneTile = 8 * kPlaneBlock; // positions of a task

/// How positions lie in a polyphase copy of a channel of x.
struct Planes {
  int64_t depth, rows, columns; // of y's windows: of one phase
  int64_t phaseRows, phaseSize, channelSize;

  explicit Planes(const Convolution &problem)
      : depth(problem.reach(0)), rows(divideUp(problem.reach(1), problem.strides[1])),
        columns(PhaseRows(problem).width()),
        phaseRows(smaller(problem.strides[1], (problem.kernel[1] - 1) * problem.dilations[1] + 1)),
        phaseSize(rows * columns), channelSize(depth * phaseSize * phaseRows * PhaseRows(problem).phases()) {}

  /// Positions of a plane of y, the ends of rows included.
  int64_t positions(const Convolution &problem) const {
    return (problem.y.sizes[1] - 1) * columns + problem.y.sizes[2];
  }
  static int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }
};

/// The share of lanes that compute an element of y.
inline double usedLanesOfPlanes(const Convolution &problem) {
  int64_t lanes = Planes::divideUp(Planes(problem).positions(problem), kLanes) * kLanes;
  return static_cast<double>(problem.y.sizes[1] * problem.y.sizes[2]) / static_cast<double>(lanes);
}

/// Sums of OUTPUTS channels, kPlaneTile apart, and VECTORS times sixteen positions: row o of the weights times what the steps read.
template <int OUTPUTS, int VECTORS>
void addTaps(const float *x, const Step *steps, int64_t count, const float *weights, int64_t outputStride,
             float *sums) {
  Vector sum[OUTPUTS][VECTORS] = {};
  for (int64_t k = 0; k < count; ++k) {
    const float *from = x + steps[k].input, *weight = weights + steps[k].weight;
    for (int v = 0; v < VECTORS; ++v) {
      Vector elements = load(from + v * kLanes);
      for (int o = 0; o < OUTPUTS; ++o)
        sum[o][v] += weight[o * outputStride] * elements;
    }
  }
  for (int o = 0; o < OUTPUTS; ++o)
    for (int v = 0; v < VECTORS; ++v)
      store(sums + o * kPlaneTile + v * kLanes, sum[o][v]);
}

class PlaneConvolution {
public:
  /// `weights` are `[groups * outputs, steps]`; `steps` has room for problem.steps().
  PlaneConvolution(const Convolution &problem, const float *weights, Step *steps)
      : problem(problem), planes(problem), lines(problem), weights(weights), steps(steps) {
    count = listSteps(problem, steps, [&](int64_t c, int64_t d, int64_t h, int64_t w) {
      return c * planes.channelSize + placeOf(d, h, w);
    });
  }

  void run(int64_t sample) const {
    // A task of a depthwise convolution copies its channel; otherwise all tasks of a group read the same copies.
    constexpr int64_t slack = kPlaneBlock;
    int64_t groupSize = problem.inputs * planes.channelSize;
    Parts threads;
    if (problem.groups > 1) {
      int64_t shares = smaller(problem.groups, 2 * omp_get_max_threads());
      parallelFor(shares, problem.pays(), [&](int64_t share) {
        threads.run([&] {
          Scratch<float> copies(groupSize + slack);
          fillZeros(copies.data(), groupSize);
          for (int64_t group = problem.groups * share / shares; group < problem.groups * (share + 1) / shares;
               ++group) {
            for (int64_t channel = 0; channel < problem.inputs; ++channel)
              copy(sample, group * problem.inputs + channel, copies.data() + channel * planes.channelSize);
            for (int64_t task = 0; task < tasksOfGroup(); ++task)
              runTask(sample, group, task, copies.data());
          }
        });
      });
      return threads.finish();
    }
    Scratch<float> copies(groupSize + slack);
    parallelFor(problem.inputs, problem.pays(), [&](int64_t channel) {
      float *to = copies.data() + channel * planes.channelSize;
      fillZeros(to, planes.channelSize);
      copy(sample, channel, to);
    });
    parallelFor(tasksOfGroup(), problem.pays(),
                [&](int64_t task) { threads.run([&] { runTask(sample, 0, task, copies.data()); }); });
    threads.finish();
  }

private:
  int64_t tiles() const { return Planes::divideUp(planes.positions(problem), kPlaneTile); }
  int64_t tasksOfGroup() const {
    return Planes::divideUp(problem.outputs, kPlaneOutputs) * problem.y.sizes[0] * tiles();
  }

  /// Where an element of the padded channel lies in its copy.
  int64_t placeOf(int64_t d, int64_t h, int64_t w) const {
    int64_t plane = d * planes.phaseRows + h % problem.strides[1];
    return (plane * lines.phases() * planes.rows + h / problem.strides[1]) * planes.columns +
           lines.placeOf(w, planes.phaseSize);
  }

  /// Copies a channel of x into the middle of what is all zeros, or was when the channel before was copied to it.
  void copy(int64_t sample, int64_t channel, float *to) const {
    const Samples &x = problem.x;
    int64_t stride = problem.strides[1];
    for (int64_t column = 0; column < lines.phases(); ++column) {
      PhaseRows::Part part = lines.partOf(column);
      for (int64_t d = larger(0, problem.low[0]); d < smaller(planes.depth, x.sizes[0] + problem.low[0]); ++d)
        for (int64_t phase = 0; phase < planes.phaseRows; ++phase) {
          const float *from =
              x.at(sample, channel) + (d - problem.low[0]) * x.strides[0] + (phase - problem.low[1]) * x.strides[1];
          float *rows = to + ((d * planes.phaseRows + phase) * lines.phases() + column) * planes.phaseSize;
          for (int64_t i = 0, line = phase - problem.low[1]; i < planes.rows; ++i, line += stride)
            if (line >= 0 && line < x.sizes[1])
              lines.copy(from + i * stride * x.strides[1], part, rows + i * planes.columns);
        }
    }
  }

  /// A tile of positions of a plane of up to kPlaneOutputs output channels.
  void runTask(int64_t sample, int64_t group, int64_t task, const float *copies) const {
    int64_t begin = task % tiles() * kPlaneTile, rest = task / tiles();
    int64_t d = rest % problem.y.sizes[0], first = rest / problem.y.sizes[0] * kPlaneOutputs;
    int64_t size = smaller(kPlaneTile, planes.positions(problem) - begin);
    int64_t outputs = smaller(kPlaneOutputs, problem.outputs - first);
    const float *x = copies + placeOf(d * problem.strides[0], 0, 0) + begin;
    const float *rows = weights + (group * problem.outputs + first) * problem.steps();
    float sums[kPlaneOutputs * kPlaneTile];
    for (int64_t p = 0; p < size; p += kPlaneBlock)
      addOutputs<kPlaneOutputs>(outputs, size - p, x + p, rows, sums + p);
    for (int64_t o = 0; o < outputs; ++o)
      storeRows(sample, group * problem.outputs + first + o, d, begin, size, sums + o * kPlaneTile);
  }

  template <int OUTPUTS>
  void addOutputs(int64_t outputs, int64_t positions, const float *x, const float *rows, float *sums) const {
    if constexpr (OUTPUTS > 1)
      if (outputs < OUTPUTS)
        return addOutputs<OUTPUTS - 1>(outputs, positions, x, rows, sums);
    if (positions <= kLanes)
      addTaps<OUTPUTS, 1>(x, steps, count, rows, problem.steps(), sums);
    else if (positions <= 2 * kLanes)
      addTaps<OUTPUTS, 2>(x, steps, count, rows, problem.steps(), sums);
    else
      addTaps<OUTPUTS, kPlaneVectors>(x, steps, count, rows, problem.steps(), sums);
  }

  /// What is an element of y, of the positions from `begin` on.
  void storeRows(int64_t sample, int64_t channel, int64_t d, int64_t begin, int64_t size, const float *sums) const {
    const Samples &y = problem.y, &residual = problem.epilogue.residual;
    const Epilogue &epilogue = problem.epilogue;
    float bias = epilogue.biasOf(channel);
    int64_t columns = planes.columns;
    bool isDense = (y.strides[2] == 1 || y.sizes[2] == 1) && (!residual.data || residual.strides[2] == 1);
    for (int64_t h = begin / columns; h * columns < begin + size; ++h) {
      int64_t first = larger(begin - h * columns, 0), end = smaller(y.sizes[2], begin + size - h * columns);
      const float *from = sums + h * columns - begin;
      float *to = y.at(sample, channel) + d * y.strides[0] + h * y.strides[1];
      const float *added =
          residual.data ? residual.at(sample, channel) + d * residual.strides[0] + h * residual.strides[1] : nullptr;
      if (isDense)
        forVectors(end - first, [&](int64_t i, auto kind) {
          auto row = loadAs<decltype(kind)>(from + first + i) + bias;
          if (added)
            row += loadAs<decltype(kind)>(added + first + i);
          row = epilogue.limit(row);
          __builtin_memcpy(to + first + i, &row, sizeof row);
        });
      else
        for (int64_t w = first; w < end; ++w)
          to[w * y.strides[2]] = epilogue.limit(from[w] + bias + (added ? added[w * residual.strides[2]] : 0.0f));
    }
  }

  const Convolution &problem;
  Planes planes;
  PhaseRows lines;
  const float *weights;
  Step *steps;
  int64_t count = 0; // of steps
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PLANES_H
