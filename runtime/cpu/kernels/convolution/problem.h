// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A convolution as its kernels see it: three spatial axes, of which those that the tensors lack have size 1 and come first.

#ifndef HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PROBLEM_H
#define HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PROBLEM_H

#include "../linear/activation.h"
#include "../rows.h"
#include "../vector.h"

namespace {

constexpr int kSpatialAxes = 3;

/// The samples of a batch, `[channels, spatial...]` each; strides count elements.
struct Samples {
  float *data;
  int64_t sampleStride, channelStride;
  int64_t sizes[kSpatialAxes], strides[kSpatialAxes];

  explicit Samples(const hone_tensor &tensor)
      : data(floats(tensor)), sampleStride(tensor.strides[0]), channelStride(tensor.strides[1]) {
    int32_t absent = kSpatialAxes - (tensor.rank - 2);
    for (int32_t axis = 0; axis < kSpatialAxes; ++axis) {
      bool isThere = axis >= absent;
      sizes[axis] = isThere ? tensor.sizes[2 + axis - absent] : 1;
      strides[axis] = isThere ? tensor.strides[2 + axis - absent] : 0;
    }
  }

  int64_t positions() const { return sizes[0] * sizes[1] * sizes[2]; }
  float *at(int64_t sample, int64_t channel) const { return data + sample * sampleStride + channel * channelStride; }
  int64_t offsetOf(int64_t d, int64_t h, int64_t w) const { return d * strides[0] + h * strides[1] + w * strides[2]; }
  int64_t offsetOf(int64_t position) const {
    int64_t w = position % sizes[2], line = position / sizes[2];
    return offsetOf(line / sizes[1], line % sizes[1], w);
  }
  /// Of a sample whose positions lie at equal distances.
  void mergeRows() {
    int64_t distance = pitch(), all = positions();
    for (int axis = 0; axis < kSpatialAxes; ++axis) {
      bool isLast = axis == kSpatialAxes - 1;
      sizes[axis] = isLast ? all : 1;
      strides[axis] = isLast ? distance : all * distance;
    }
  }
  void dropLastAxis() {
    for (int axis = kSpatialAxes; --axis > 0;) {
      sizes[axis] = sizes[axis - 1];
      strides[axis] = strides[axis - 1];
    }
    sizes[0] = 1;
    strides[0] = 0;
  }
  /// The distance from each position of a channel to the next; 0 where it is not the same for all.
  int64_t pitch() const {
    int64_t first = 0, expected = 0;
    for (int axis = kSpatialAxes; axis-- > 0;) {
      if (sizes[axis] == 1)
        continue;
      if (first == 0)
        first = expected = strides[axis];
      if (strides[axis] != expected)
        return 0;
      expected *= sizes[axis];
    }
    return first == 0 ? 1 : first;
  }
  /// Whether the positions of a channel lie one after the other.
  bool isDense() const { return pitch() == 1; }
  /// Whether the channels of a position lie one after the other, as in [N, spatial..., C].
  bool isChannelsLast() const { return channelStride == 1 && !isDense(); }
};

/// NaN stays.
template <typename Values> Values clamp(Values values, float least, float most) {
  values = values < least ? (Values)least : values;
  return values > most ? (Values)most : values;
}

/// What becomes of the sum of a position and output channel before it is stored.
struct Epilogue {
  Row bias;         // of output channels, or absent
  Samples residual; // of y's shape; its data is null where there is none
  int64_t activation;
  float scale, shift, least, most;

  float biasOf(int64_t channel) const { return bias.data ? bias[channel] : 0.0f; }
  /// What is stored of sums, up to sixteen: the activation, and its limits. NaN stays.
  template <typename Values> Values limit(Values values) const {
    if (!isActivated())
      return clamp(values);
    Vector all = {};
    __builtin_memcpy(&all, &values, sizeof values);
    all = activate(all);
    __builtin_memcpy(&values, &all, sizeof values);
    return values;
  }
  /// The limits alone.
  template <typename Values> Values clamp(Values values) const { return ::clamp(values, least, most); }
  /// Whether more than limits is applied.
  bool isActivated() const { return activation != kIdentity || scale != 1.0f || shift != 0.0f; }

  /// The same for all values of a row, sixteen at a time: `read(i)` gives the i-th of `count`, `write(i, values)` takes it.
  template <typename Read, typename Write> void limitAll(int64_t count, const Read &read, const Write &write) const {
    switch (activation) {
    case kSilu:
      return limitAll<kSilu>(count, read, write);
    case kGeluErf:
      return limitAll<kGeluErf>(count, read, write);
    case kHardSwish:
      return limitAll<kHardSwish>(count, read, write);
    default:
      return limitAll<kIdentity>(count, read, write);
    }
  }

private:
  template <int ACTIVATION, typename Read, typename Write>
  void limitAll(int64_t count, const Read &read, const Write &write) const {
    const float factor = scale, summand = shift, low = least,
                high = most; // what is written may be anything, for all that the compiler knows
    for (int64_t i = 0; i < count; ++i) {
      Vector x = read(i);
      if constexpr (ACTIVATION != kIdentity)
        x = ::activate<ACTIVATION>(x);
      write(i, ::clamp(x * factor + summand, low, high));
    }
  }

  /// By itself: inlined, its registers would be those of sums.
  [[gnu::noinline]] Vector activate(Vector x) const {
    Vector result;
    limitAll(1, [&](int64_t) { return x; }, [&](int64_t, Vector values) { result = values; });
    return result;
  }
};

/// Epilogue::limit of one vector after the other, by limits that stay in registers: y may be anything, for all that the compiler knows.
class Limiter {
public:
  explicit Limiter(const Epilogue &epilogue)
      : epilogue(epilogue), isActivated(epilogue.isActivated()), least(epilogue.least), most(epilogue.most) {}
  Vector operator()(Vector values) const { return isActivated ? epilogue.limit(values) : clamp(values, least, most); }

private:
  const Epilogue &epilogue;
  const bool isActivated;
  const float least, most;
};

struct Convolution {
  Samples x, y;
  Epilogue epilogue;
  int64_t batch, groups, inputs, outputs; // channels of a group
  int64_t kernel[kSpatialAxes], strides[kSpatialAxes], dilations[kSpatialAxes], low[kSpatialAxes];
  bool isExact; // sums of integers are

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// Products that are summed for an element of y.
  int64_t steps() const { return inputs * taps(); }
  /// Of sixteen lanes each, of the output channels of a group.
  int64_t panels() const { return (outputs + kLanes - 1) / kLanes; }
  /// Whether a place of the kernel along an axis reads an element of x in any window.
  bool readsX(int axis, int64_t place) const {
    int64_t first = place * dilations[axis] - low[axis], last = first + (y.sizes[axis] - 1) * strides[axis];
    if (first >= x.sizes[axis] || last < 0)
      return false;
    int64_t before = first < 0 ? (-first + strides[axis] - 1) / strides[axis] * strides[axis] : 0;
    return first + before <= last && first + before < x.sizes[axis];
  }
  /// Elements of x and of its padding along an axis that the windows reach over.
  int64_t reach(int axis) const {
    return (y.sizes[axis] - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1;
  }
  /// Whether a window reads beyond x.
  bool isPadded() const {
    for (int axis = 0; axis < kSpatialAxes; ++axis)
      if (low[axis] > 0 || reach(axis) - low[axis] > x.sizes[axis])
        return true;
    return false;
  }
  /// Whether the epilogue is of channels that lie one after the other.
  bool storesChannelsLast() const {
    return y.channelStride == 1 && (!epilogue.residual.data || epilogue.residual.channelStride == 1);
  }
  /// Axes of size 1 come first, so that rows have neighbours.
  void moveUnitAxes() {
    constexpr int last = kSpatialAxes - 1;
    for (int moved = 0; moved < last && x.sizes[last] == 1 && y.sizes[last] == 1 && kernel[last] == 1 && low[last] == 0;
         ++moved) {
      x.dropLastAxis();
      y.dropLastAxis();
      epilogue.residual.dropLastAxis();
      for (int axis = last; axis > 0; --axis) {
        kernel[axis] = kernel[axis - 1];
        strides[axis] = strides[axis - 1];
        dilations[axis] = dilations[axis - 1];
        low[axis] = low[axis - 1];
      }
      kernel[0] = strides[0] = dilations[0] = 1;
      low[0] = 0;
    }
  }
  /// Where each window is one element, the next one the next element: positions in one row.
  void mergeRows() {
    for (int axis = 0; axis < kSpatialAxes; ++axis)
      if (kernel[axis] != 1 || strides[axis] != 1 || low[axis] != 0 || x.sizes[axis] != y.sizes[axis])
        return;
    if (x.pitch() == 0 || y.pitch() == 0 || epilogue.residual.pitch() == 0)
      return;
    x.mergeRows();
    y.mergeRows();
    epilogue.residual.mergeRows();
  }
  /// Whether so much is computed that a second thread pays.
  bool pays() const { return y.positions() * groups * outputs * steps() > (int64_t(1) << 17); }
};

/// A product of an inner step: of the element at `input` after the window's first with row `weight` of the weights of an output.
struct Step {
  int64_t input, weight;
};

/// Writes the steps of the first input channel of a group, but for those that read nothing but padding; returns how many there are.
/// `placeOf(c, d, h, w)` is where the element of input channel c lies that is d, h and w after the window's first in the padded x.
template <typename Place> int64_t listTaps(const Convolution &problem, Step *steps, const Place &placeOf) {
  int64_t taps = 0, weight = 0;
  const int64_t (&kernel)[kSpatialAxes] = problem.kernel, (&dilations)[kSpatialAxes] = problem.dilations;
  for (int64_t d = 0; d < kernel[0]; ++d)
    for (int64_t h = 0; h < kernel[1]; ++h)
      for (int64_t w = 0; w < kernel[2]; ++w, ++weight)
        if (problem.readsX(0, d) && problem.readsX(1, h) && problem.readsX(2, w))
          steps[taps++] = {placeOf(0, d * dilations[0], h * dilations[1], w * dilations[2]), weight};
  return taps;
}

/// The same for all input channels, one after the other.
template <typename Place> int64_t listSteps(const Convolution &problem, Step *steps, const Place &placeOf) {
  int64_t taps = listTaps(problem, steps, placeOf), channel = placeOf(1, 0, 0, 0) - placeOf(0, 0, 0, 0);
  for (int64_t c = 1; c < problem.inputs; ++c)
    for (int64_t tap = 0; tap < taps; ++tap)
      steps[c * taps + tap] = {steps[tap].input + c * channel, steps[tap].weight + c * problem.taps()};
  return problem.inputs * taps;
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PROBLEM_H
