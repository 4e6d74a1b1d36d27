// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Poolings, and convolutions by the form that uses most of the lanes: output channels as lanes, or positions.

#include "../entry.h"

#include "hone/kernels/limits.h"

#include "channels_last.h"
#include "depthwise.h"
#include "panels.h"
#include "planes.h"
#include "winograd.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// Windows over x; `groups` is at least 1.
template <typename Ints>
Convolution problemOf(const hone_tensor &x, const hone_tensor &y, const Epilogue &epilogue, int64_t groups,
                      const Ints &i, bool isExact = true) {
  Convolution problem{Samples(x),
                      Samples(y),
                      epilogue,
                      y.sizes[0],
                      groups,
                      x.sizes[1] / groups,
                      y.sizes[1] / groups,
                      {i.kernel0, i.kernel1, i.kernel2},
                      {i.stride0, i.stride1, i.stride2},
                      {i.dilation0, i.dilation1, i.dilation2},
                      {i.low0, i.low1, i.low2},
                      isExact};
  problem.moveUnitAxes();
  problem.mergeRows();
  return problem;
}

/// Null data where it is absent, which has rank 0 or no elements.
Samples residualOf(const hone_tensor &residual, const hone_tensor &y) {
  Samples samples(isAbsent(residual) ? y : residual);
  if (isAbsent(residual))
    samples.data = nullptr;
  return samples;
}

template <typename Call> Convolution problemOf(const Call &call) {
  const auto &o = call.operands;
  double least = call.floats.least, most = call.floats.most;
  Epilogue epilogue{vectorOf(o.bias),
                    residualOf(o.residual, o.y),
                    call.ints.activation,
                    static_cast<float>(call.floats.scale),
                    static_cast<float>(call.floats.shift),
                    least <= -kernels::kNoLimit ? -__builtin_inff() : static_cast<float>(least),
                    most >= kernels::kNoLimit ? __builtin_inff() : static_cast<float>(most)};
  return problemOf(o.x, o.y, epilogue, call.ints.groups, call.ints, call.ints.isExact != 0);
}

void convolveByWinograd(const Convolution &problem, const WeightPanels &weights) {
  Scratch<float> transformed(WinogradConvolution::size(problem));
  WinogradConvolution convolution(problem, weights, transformed.data());
  for (int64_t sample = 0; sample < problem.batch; ++sample)
    convolution.run(sample);
}

void convolveByPanels(const Convolution &problem, const WeightPanels &weights) {
  if (WinogradConvolution::takes(problem))
    return convolveByWinograd(problem, weights);
  Scratch<Step> steps(problem.taps());
  PanelConvolution convolution(problem, weights, steps.data());
  for (int64_t sample = 0; sample < problem.batch; ++sample)
    convolution.run(sample);
}

void convolveByPlanes(const Convolution &problem, const float *weights) {
  Scratch<Step> steps(problem.steps());
  PlaneConvolution convolution(problem, weights, steps.data());
  for (int64_t sample = 0; sample < problem.batch; ++sample)
    convolution.run(sample);
}

template <typename Fold> void foldWindows(const Convolution &problem, const Fold &fold) {
  if (ChannelsLastWindows<Fold>::takes(problem)) {
    ChannelsLastWindows<Fold> windows(problem);
    for (int64_t sample = 0; sample < problem.batch; ++sample)
      windows.run(sample, fold);
    return;
  }
  Scratch<Step> steps(problem.steps());
  DepthwiseConvolution<Fold> windows(problem, steps.data());
  for (int64_t sample = 0; sample < problem.batch; ++sample)
    windows.run(sample, fold);
}

void convolveDepthwise(const Convolution &problem, const WeightPanels &weights) {
  foldWindows(problem, SumOfProducts{weights.data, weights.panelStride});
}

bool isEmpty(const Convolution &problem) {
  return problem.batch * problem.groups * problem.outputs * problem.y.positions() == 0;
}

/// Groups of `outputs` rows of a weight in panels of their own: `to[group][panel][step][output]`.
void packPanels(const Convolution &problem, const hone_tensor &weight, int64_t outputs, float *to) {
  int64_t steps = problem.steps(), panels = (outputs + kLanes - 1) / kLanes;
  parallelFor(weight.sizes[0] / outputs * panels, problem.pays(), [&](int64_t index) {
    int64_t group = index / panels, first = index % panels * kLanes;
    int64_t count = smaller(kLanes, outputs - first);
    float *panel = to + index * steps * kLanes;
    for (int64_t output = 0; output < kLanes; ++output) {
      const float *row = floats(weight) + (group * outputs + first + smaller(output, count - 1)) * weight.strides[0];
      for (int64_t k = 0; k < steps; ++k)
        panel[k * kLanes + output] = output < count ? row[k * weight.strides[1]] : 0.0f;
    }
  });
}

/// The share of lanes that panels of `outputs` output channels fill.
double usedLanesOfPanels(int64_t outputs) {
  return static_cast<double>(outputs) / static_cast<double>((outputs + kLanes - 1) / kLanes * kLanes);
}

void run(const kernels::Call<kernels::Convolution, kernels::NoWeight> &call) {
  Convolution problem = problemOf(call);
  if (isEmpty(problem))
    return;
  const hone_tensor &weight = call.operands.weight;
  bool isDepthwise = problem.inputs == 1 && problem.groups > 1;
  int64_t outputs = isDepthwise ? problem.groups * problem.outputs : problem.outputs; // of panels
  if (problem.x.isChannelsLast() || usedLanesOfPlanes(problem) < usedLanesOfPanels(outputs)) {
    int64_t panels = weight.sizes[0] / outputs * ((outputs + kLanes - 1) / kLanes);
    Scratch<float> packed(panels * problem.steps() * kLanes);
    packPanels(problem, weight, outputs, packed.data());
    WeightPanels weights{packed.data(), problem.steps() * kLanes};
    return isDepthwise ? convolveDepthwise(problem, weights) : convolveByPanels(problem, weights);
  }
  bool isDense = weight.strides[1] == 1 && weight.strides[0] == problem.steps();
  int64_t rows = problem.groups * problem.outputs, steps = problem.steps();
  Scratch<float> copy(isDense ? 0 : rows * steps);
  for (int64_t i = 0; !isDense && i < rows; ++i)
    for (int64_t k = 0; k < steps; ++k)
      copy.data()[i * steps + k] = floats(weight)[i * weight.strides[0] + k * weight.strides[1]];
  convolveByPlanes(problem, isDense ? floats(weight) : copy.data());
}

void run(const kernels::Call<kernels::PackedConvolution, kernels::Dense> &call) {
  Convolution problem = problemOf(call);
  const hone_tensor &panels = call.operands.weight[0];
  if (isEmpty(problem))
    return;
  WeightPanels weights{floats(panels), panels.strides[0]};
  return problem.inputs == 1 && problem.groups > 1 ? convolveDepthwise(problem, weights)
                                                   : convolveByPanels(problem, weights);
}

void run(const kernels::Call<kernels::Pool, kernels::NoWeight> &call) {
  const auto &o = call.operands;
  Samples none(o.y);
  none.data = nullptr;
  Epilogue epilogue{{nullptr, 0}, none, kIdentity, 1.0f, 0.0f, -__builtin_inff(), __builtin_inff()};
  Convolution problem = problemOf(o.x, o.y, epilogue, larger(o.x.sizes[1], 1), call.ints);
  if (!isEmpty(problem))
    call.ints.isSum ? foldWindows(problem, SumOfElements{}) : foldWindows(problem, GreatestElement{});
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/convolution.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
