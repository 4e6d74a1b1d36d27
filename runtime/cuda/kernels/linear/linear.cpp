// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers: operands to arguments.

#include "../copy_rows.h"
#include "../entry.h"
#include "../kernel_device.h"
#include "../rows/row_kernels.h"
#include "linear_format.h"

#include <bit>

namespace hone::cuda {
void setQuantizedWeight(LinearArguments &args, const hone_tensor &codes, const hone_tensor &scales,
                        const hone_tensor &zeros, int64_t group, bool isSigned) {
  args.weight = static_cast<const char *>(codes.data);
  args.weightStride = codes.strides[0];
  args.scales = static_cast<const char *>(scales.data);
  args.scaleType = scales.dtype;
  args.zeros = isAbsent(zeros) ? nullptr : static_cast<const uint8_t *>(zeros.data);
  args.zeroStride = args.zeros ? zeros.strides[0] : 0;
  args.groups = static_cast<int32_t>(scales.sizes[1]);
  args.groupShift = group == 0 ? 31 : std::countr_zero(static_cast<uint64_t>(group));
  args.isSigned = isSigned;
}

namespace {

/// act(x · Wᵀ + bias) without the weight.
LinearArguments argumentsOf(const hone_tensor &x, const hone_tensor &bias, const hone_tensor &y, int64_t activation) {
  LinearArguments args = {};
  args.x = rowsOf(x);
  args.rows = countRows(x);
  args.inputs = x.sizes[x.rank - 1];
  args.outputs = y.sizes[y.rank - 1];
  args.bias = rowsOf(bias);
  args.y = rowsOf(y);
  args.activation = static_cast<int32_t>(activation);
  return args;
}

void setRows(LinearArguments &args, const RowView &rows) {
  args.weight = rows.data;
  args.weightStride = rows.strides[2] * bytesOf(rows.dtype);
}

/// The indices of a 2:4 weight: the plane of #hone.nm.
void setIndices(LinearArguments &args, const hone_tensor &indices) {
  args.indices = static_cast<const uint8_t *>(indices.data);
  args.indexStride = indices.strides[0];
}

/// The weight of a layer as it lies there.
template <typename Layout>
void setWeight(LinearArguments &args, const hone_tensor *weight, const typename Layout::Ints &ints) {
  const auto &planes = kernels::planesOf<Layout>(weight);
  if constexpr (requires { planes.elements; }) {
    setRows(args, rowsOf(planes.elements));
  } else if constexpr (requires { planes.values; }) {
    args.weight = static_cast<const char *>(planes.values.data);
    args.weightStride = planes.values.strides[0] * bytesOf(planes.values.dtype);
  } else {
    setQuantizedWeight(args, planes.codes, planes.scales, planes.zeros, ints.group, ints.isSigned != 0);
  }
  if constexpr (kernels::kHasOutliers<Layout>)
    args.outliers = {static_cast<const int32_t *>(planes.starts.data),
                     static_cast<const uint16_t *>(planes.columns.data),
                     static_cast<const uint16_t *>(planes.outliers.data)};
  if constexpr (requires { planes.indices; })
    setIndices(args, planes.indices);
}

/// Whether kernels read a weight where it lies: rows of floats only if they are aligned multiples of 16 bytes.
template <typename Layout> bool isReadable(const hone_tensor *weight) {
  if constexpr (requires(typename Layout::Planes planes) { planes.elements; }) {
    RowView rows = rowsOf(*weight);
    return !rows.data || (rows.isVector && rows.count * bytesOf(rows.dtype) % 16 == 0);
  }
  return true;
}

/// Enqueues a layer, by a copy of its weight where kernels do not read that.
template <typename Layout>
void enqueue(KernelDevice &device, Format format, LinearArguments args, const hone_tensor *weight,
             const typename Layout::Ints &ints) {
  if (args.rows == 0 || args.outputs == 0)
    return;
  setWeight<Layout>(args, weight, ints);
  RowView copy = {};
  if (!isReadable<Layout>(weight)) {
    copy = copyRows(device, rowsOf(*weight), args.outputs, weight->dtype);
    setRows(args, copy);
  }
  (args.rows <= kMaxGemvRows ? runGemv : runGemm)(device, format, args);
  if (copy.data)
    device.release(copy.data);
}

template <typename Layout>
void run(hone_call *call, const kernels::Call<kernels::Linear, Layout> &linear, Format format) {
  const auto &o = linear.operands;
  LinearArguments args = argumentsOf(o.x, o.bias, o.y, linear.ints.activation);
  args.factor = rowsOf(o.factor);
  args.residual = rowsOf(o.residual);
  enqueue<Layout>(kernelDevice(call), format, args, o.weight, linear.formatInts);
}

/// Layers of one x, and their weights.
struct LayersOfCall {
  LinearLayers args = {};
  const hone_tensor *weights[LinearLayers::kMost] = {};
  int32_t count = 0;

  void add(const LinearArguments &layer, const hone_tensor *weight) {
    args.layers[count] = layer;
    weights[count++] = weight;
  }
};

/// Enqueues layers as one launch where that can be.
template <typename Layout>
bool enqueueTogether(KernelDevice &device, Format format, const LayersOfCall &layers, const typename Layout::Ints &ints,
                     bool isGated, const InputNorm &norm) {
  if (layers.count < 2 || layers.args.layers[0].rows > kMaxGemvRows)
    return false;
  LinearLayers args = layers.args;
  for (int32_t i = 0; i < layers.count; ++i) {
    if (!isReadable<Layout>(layers.weights[i]))
      return false;
    setWeight<Layout>(args.layers[i], layers.weights[i], ints);
  }
  return runGemvOfLayers(device, format, args, layers.count, isGated, norm);
}

/// Dense rows that the caller releases.
RowView acquireRows(KernelDevice &device, int64_t rows, int64_t count, int32_t dtype) {
  int64_t stride = (count + 7) / 8 * 8; // of 16 bytes
  auto *data = static_cast<char *>(device.acquire(static_cast<uint64_t>(bytesOf(dtype) * rows * stride)));
  return {data, dtype, /*isVector=*/1, count, /*inner=*/1, {1, rows}, {0, 0, stride}};
}

template <typename Call> InputNorm normOf(const Call &call) {
  return {rowsOf(call.operands.normWeight), static_cast<float>(call.floats.epsilon),
          static_cast<int32_t>(call.ints.unitOffset)};
}

/// The norm of a layer's x, in its type, that the caller releases.
RowView normalize(KernelDevice &device, const LinearArguments &layer, const InputNorm &norm) {
  RowKernelArguments args = {};
  args.x = layer.x;
  args.y = acquireRows(device, layer.rows, layer.inputs, layer.x.dtype);
  args.weight = norm.weight;
  args.rows = layer.rows;
  args.epsilon = norm.epsilon;
  args.unitOffset = norm.unitOffset;
  runRmsNorm(device, args);
  return args.y;
}

/// Enqueues layers as one launch where that can be, with the norm of x in it or before, else by `enqueueEach(layers)`.
template <typename Layout, typename EnqueueEach>
void enqueueLayers(KernelDevice &device, Format format, LayersOfCall layers, const typename Layout::Ints &ints,
                   bool isGated, const InputNorm &norm, EnqueueEach enqueueEach) {
  if (layers.count == 0 || enqueueTogether<Layout>(device, format, layers, ints, isGated, norm))
    return;
  if (!norm.weight.data)
    return enqueueEach(layers);
  RowView x = normalize(device, layers.args.layers[0], norm);
  for (LinearArguments &layer : layers.args.layers)
    layer.x = x;
  enqueueLayers<Layout>(device, format, layers, ints, isGated, /*norm=*/{}, enqueueEach);
  device.release(x.data);
}

template <typename Layout>
void run(hone_call *call, const kernels::Call<kernels::SiblingLinear, Layout> &siblings, Format format) {
  const auto &o = siblings.operands;
  LayersOfCall layers;
  auto add = [&](const hone_tensor *weight, const hone_tensor &bias, const hone_tensor &y) {
    if (!isAbsent(y))
      layers.add(argumentsOf(o.x, bias, y, 0), weight);
  };
  add(o.first, o.firstBias, o.firstY);
  add(o.second, o.secondBias, o.secondY);
  add(o.third, o.thirdBias, o.thirdY);
  KernelDevice &device = kernelDevice(call);
  enqueueLayers<Layout>(device, format, layers, siblings.formatInts, /*isGated=*/false, normOf(siblings),
                        [&](const LayersOfCall &each) {
                          for (int32_t i = 0; i < each.count; ++i)
                            enqueue<Layout>(device, format, each.args.layers[i], each.weights[i], siblings.formatInts);
                        });
}

template <typename Layout>
void run(hone_call *call, const kernels::Call<kernels::GatedLinear, Layout> &gated, Format format) {
  const auto &o = gated.operands;
  if (isAbsent(o.y))
    return;
  LayersOfCall layers;
  layers.add(argumentsOf(o.x, o.gateBias, o.y, gated.ints.activation), o.gate);
  layers.add(argumentsOf(o.x, o.upBias, o.y, 0), o.up);
  KernelDevice &device = kernelDevice(call);
  enqueueLayers<Layout>(device, format, layers, gated.formatInts, /*isGated=*/true, normOf(gated),
                        [&](const LayersOfCall &each) {
                          LinearArguments gate = each.args.layers[0], up = each.args.layers[1];
                          gate.y = up.factor = acquireRows(device, gate.rows, gate.outputs, HONE_F32);
                          enqueue<Layout>(device, format, gate, o.gate, gated.formatInts);
                          enqueue<Layout>(device, format, up, o.up, gated.formatInts);
                          device.release(gate.y.data);
                        });
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cuda/linear.def"
#undef HONE_KERNEL

} // namespace hone::cuda
