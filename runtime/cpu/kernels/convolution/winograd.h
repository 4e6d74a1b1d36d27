// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolution with windows of 3 x 3 by minimal filtering, F(2x2, 3x3) of Winograd (Lavin and Gray, Fast Algorithms for Convolutional
// Neural Networks, 2016): 16 products for each 2 x 2 positions of y in place of 36. Tiles of 4 x 4 of x and the weights are transformed,
// each of their 16 places is a GEMM over the channels, and the sums are transformed back. x and y are channels-last. With dilations tiles
// are of every nth place. Sums are those of
// another order, with up to four elements of x added before.

#ifndef HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_WINOGRAD_H
#define HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_WINOGRAD_H

#include "panels.h"

namespace {

constexpr int kWinogradPlaces = 16;          // of a tile, 4 x 4
constexpr int64_t kWinogradFloats = 1 << 16; // of transformed tiles, which stay in the L2 cache
constexpr int kMostPanelsOfTile = kPairPanels > 1 ? kManyPanels : kPairPanels;
constexpr int64_t kFewestWinogradPositions = 128; // of y, for which transforming the weights pays

class WinogradConvolution {
public:
  /// Whether windows are such, and there are so many channels that the products take most of the time.
  static bool takes(const Convolution &problem) {
    for (int axis = 0; axis < kSpatialAxes; ++axis)
      if (problem.kernel[axis] != (axis == 0 ? 1 : 3) || problem.strides[axis] != 1)
        return false;
    return !problem.isExact && problem.groups == 1 && problem.inputs >= kLanes && problem.outputs >= kLanes &&
           problem.y.sizes[0] == 1 && problem.low[0] == 0 && problem.y.positions() >= kFewestWinogradPositions &&
           problem.x.isChannelsLast() && problem.storesChannelsLast();
  }

  /// Floats of the transformed weights, `[places, panels, inputs, 16]`.
  static int64_t size(const Convolution &problem) {
    return kWinogradPlaces * problem.panels() * problem.inputs * kLanes;
  }

  WinogradConvolution(const Convolution &problem, const WeightPanels &weights, float *transformed)
      : problem(problem), weights(transformed), panels(problem.panels()),
        pitch((problem.inputs + kLanes - 1) / kLanes * kLanes), across(tilesAlong(problem, 2)),
        tiles(tilesAlong(problem, 1) * across) {
    static constexpr Step only = {0, 0};
    list = {&only, 1, problem.inputs, 1, 1, kLanes};
    parallelFor(panels * problem.inputs, problem.pays(), [&](int64_t index) {
      int64_t panel = index / problem.inputs, channel = index % problem.inputs;
      transformWeight(weights.data + panel * weights.panelStride + channel * 9 * kLanes,
                      transformed + (panel * problem.inputs + channel) * kLanes);
    });
  }

  void run(int64_t sample) const {
    int64_t fitting = larger(1, kWinogradFloats / (kWinogradPlaces * pitch));
    int64_t block = smaller(fitting, (tiles - 1) / omp_get_max_threads() + 1), blocks = (tiles + block - 1) / block;
    Parts threads;
    parallelFor(blocks, problem.pays(), [&](int64_t index) {
      threads.run([&] {
        int64_t first = index * block, count = smaller(block, tiles - first);
        Scratch<float> x(kWinogradPlaces * count * pitch);
        Scratch<float> sums(kWinogradPlaces * count * kMostPanelsOfTile * kLanes);
        for (int64_t tile = 0; tile < count; ++tile)
          for (int64_t channel = 0; channel < problem.inputs; channel += kLanes)
            transformTile(sample, first + tile, channel, x.data() + tile * pitch + channel, count * pitch);
        for (int64_t panel = 0; panel < panels;)
          panel += multiplyMost<kMostPanelsOfTile>(sample, first, count, panel, x.data(), sums.data());
      });
    });
    threads.finish();
  }

private:
  /// Tiles along an axis: of 2 n places of y that follow each other, n tiles have two each, n apart for a dilation of n.
  static int64_t tilesAlong(const Convolution &problem, int axis) {
    int64_t dilation = problem.dilations[axis];
    return (problem.y.sizes[axis] + 2 * dilation - 1) / (2 * dilation) * dilation;
  }
  /// The first place along an axis of tile `index`.
  int64_t placeOf(int axis, int64_t index) const {
    int64_t dilation = problem.dilations[axis];
    return index / dilation * 2 * dilation + index % dilation;
  }

  /// G g of three values: those of the four places.
  static void transformThree(Vector a, Vector b, Vector c, Vector (&to)[4]) {
    Vector ends = (a + c) * 0.5f, middle = b * 0.5f;
    to[0] = a;
    to[1] = ends + middle;
    to[2] = ends - middle;
    to[3] = c;
  }

  /// G g Gᵀ of sixteen outputs.
  void transformWeight(const float *taps, float *to) const {
    Vector rows[3][4];
    for (int h = 0; h < 3; ++h)
      transformThree(load(taps + h * 3 * kLanes), load(taps + (h * 3 + 1) * kLanes), load(taps + (h * 3 + 2) * kLanes),
                     rows[h]);
    for (int w = 0; w < 4; ++w) {
      Vector column[4];
      transformThree(rows[0][w], rows[1][w], rows[2][w], column);
      for (int h = 0; h < 4; ++h)
        store(to + (h * 4 + w) * panels * problem.inputs * kLanes, column[h]);
    }
  }

  /// Bᵀ d of four values, in place.
  static void transformFour(Vector &a, Vector &b, Vector &c, Vector &d) {
    a -= c;
    d = b - d;
    Vector sum = b + c;
    c -= b;
    b = sum;
  }

  /// Bᵀ d B of sixteen channels, or as many as there are, with zeros for padding; places are `stride` floats apart.
  void transformTile(int64_t sample, int64_t tile, int64_t channel, float *to, int64_t stride) const {
    const Samples &x = problem.x;
    const int64_t (&steps)[kSpatialAxes] = problem.dilations;
    int64_t line = placeOf(1, tile / across) - problem.low[1], column = placeOf(2, tile % across) - problem.low[2];
    int64_t lanes = smaller(kLanes, problem.inputs - channel);
    const float *from = x.at(sample, channel);
    Vector elements[4][4];
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t w = 0; w < 4; ++w) {
        int64_t atLine = line + h * steps[1], atColumn = column + w * steps[2];
        bool isInside = atLine >= 0 && atLine < x.sizes[1] && atColumn >= 0 && atColumn < x.sizes[2];
        elements[h][w] = isInside ? loadChannels(from + x.offsetOf(0, atLine, atColumn), lanes) : Vector(0.0f);
      }
    for (int w = 0; w < 4; ++w)
      transformFour(elements[0][w], elements[1][w], elements[2][w], elements[3][w]);
    for (int h = 0; h < 4; ++h) {
      transformFour(elements[h][0], elements[h][1], elements[h][2], elements[h][3]);
      for (int w = 0; w < 4; ++w)
        store(to + (h * 4 + w) * stride, elements[h][w]);
    }
  }

  /// The same with as many panels as there are, but for powers of two and at most MOST; returns how many.
  template <int MOST>
  int64_t multiplyMost(int64_t sample, int64_t first, int64_t count, int64_t panel, const float *x, float *sums) const {
    if constexpr (MOST > 1)
      if (panel + MOST > panels)
        return multiplyMost<MOST / 2>(sample, first, count, panel, x, sums);
    multiply<MOST>(sample, first, count, panel, x, sums);
    return MOST;
  }

  /// The products of tiles with PANELS panels, and what becomes of them.
  template <int PANELS>
  void multiply(int64_t sample, int64_t first, int64_t count, int64_t panel, const float *x, float *sums) const {
    constexpr int64_t width = PANELS * kLanes;
    BlockSteps row = {};
    row.pitch = pitch;
    row.list = list;
    row.panelStride = problem.inputs * kLanes;
    row.sumPitch = width;
    row.lastLanes = kLanes;
    row.isFirst = row.isLast = true;
    for (int64_t place = 0; place < kWinogradPlaces; ++place) {
      row.x = x + place * count * pitch;
      row.weights = weights + (place * panels + panel) * row.panelStride;
      row.sums = sums + place * count * width;
      addRow<PANELS>(count, row);
    }
    for (int v = 0; v < PANELS; ++v) {
      int64_t output = (panel + v) * kLanes, lanes = smaller(kLanes, problem.outputs - output);
      Vector bias = biasOf(problem.epilogue, output, lanes);
      for (int64_t tile = 0; tile < count; ++tile)
        storeTile(sample, first + tile, output, lanes, bias, sums + tile * width + v * kLanes, count * width);
    }
  }

  /// Aᵀ m A of sixteen outputs, and the epilogue; places are `stride` floats apart.
  void storeTile(int64_t sample, int64_t tile, int64_t output, int64_t lanes, Vector bias, const float *sums,
                 int64_t stride) const {
    Vector rows[2][4];
    for (int w = 0; w < 4; ++w) {
      Vector a = load(sums + w * stride), b = load(sums + (4 + w) * stride), c = load(sums + (8 + w) * stride),
             d = load(sums + (12 + w) * stride);
      rows[0][w] = a + b + c;
      rows[1][w] = b - c - d;
    }
    const Samples &y = problem.y, &residual = problem.epilogue.residual;
    const Limiter limit(problem.epilogue);
    int64_t line = placeOf(1, tile / across), column = placeOf(2, tile % across);
    for (int64_t h = 0; h < 2; ++h) {
      Vector results[2] = {rows[h][0] + rows[h][1] + rows[h][2], rows[h][1] - rows[h][2] - rows[h][3]};
      for (int64_t w = 0; w < 2; ++w) {
        int64_t atLine = line + h * problem.dilations[1], atColumn = column + w * problem.dilations[2];
        if (atLine >= y.sizes[1] || atColumn >= y.sizes[2])
          continue;
        Vector result = results[w] + bias;
        if (residual.data)
          result += loadChannels(residual.at(sample, output) + residual.offsetOf(0, atLine, atColumn), lanes);
        storeChannels(y.at(sample, output) + y.offsetOf(0, atLine, atColumn), limit(result), lanes);
      }
    }
  }

  const Convolution &problem;
  const float *weights;  // transformed
  int64_t panels, pitch; // pitch: floats from one tile to the next
  int64_t across, tiles; // tiles along a line, and of a sample
  StepList list;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_WINOGRAD_H
