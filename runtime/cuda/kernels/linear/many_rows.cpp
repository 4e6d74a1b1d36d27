// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of layers of many rows: which planes are multiplied, and weights that are expanded a slab of outputs at a time.

#include "many_rows.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "linear_format.h"
#include "planes.h"

#include <algorithm>

namespace hone::cuda {
namespace {

/// How many planes x and W become, and their type.
struct Planes {
  int32_t x, weight, type;
};

/// Inputs of bf16 ask for no more than bf16; others keep sixteen bits, on both sides where both have more than eight.
Planes planesFor(Format format, int32_t inputType) {
  if (format == Format::F16 && inputType == HONE_F16)
    return {1, 1, HONE_F16};
  if (inputType == HONE_BF16 && format != Format::F32 && format != Format::F16)
    return {1, 1, HONE_BF16};
  return {2, format == Format::Bf16 ? 1 : 2, HONE_BF16};
}

const char *functionFor(const Planes &planes, int32_t tileRows) {
  static constexpr const char *names[4][2] = {{"many_rows_f16_64", "many_rows_f16_128"},
                                              {"many_rows_bf16_64", "many_rows_bf16_128"},
                                              {"many_rows_split_64", "many_rows_split_128"},
                                              {"many_rows_double_64", "many_rows_double_128"}};
  return names[planes.type == HONE_F16 ? 0 : planes.x + planes.weight - 1][tileRows == 128];
}

bool isPlane(const RowView &x, const Planes &planes) {
  return planes.x == 1 && x.dtype == planes.type && x.isVector && x.count % 8 == 0 && x.sizes[0] == 1;
}

void skipOutputs(RowView &view, int64_t count) {
  if (view.data)
    view.data += count * view.inner * bytesOf(view.dtype);
}

/// Outputs first … first + count - 1 of a layer.
LinearArguments slabOf(LinearArguments layer, int64_t first, int64_t count) {
  layer.outputs = count;
  layer.weight += first * layer.weightStride;
  if (layer.scales)
    layer.scales += first * layer.groups * bytesOf(layer.scaleType);
  if (layer.zeros)
    layer.zeros += first * layer.zeroStride;
  if (layer.outliers.starts)
    layer.outliers.starts += first / kPanelOutputs; // slabs are whole panels
  skipOutputs(layer.bias, first);
  skipOutputs(layer.factor, first);
  skipOutputs(layer.residual, first);
  skipOutputs(layer.y, first);
  return layer;
}

PlaneView weightPlanes(KernelDevice &device, Format format, const LinearArguments &layer, const Planes &planes) {
  if (hasLevels(format))
    return planesOfLevels(device, layer, format, planes.weight);
  RowView rows = {};
  rows.data = const_cast<char *>(layer.weight);
  rows.dtype = format == Format::F32 ? HONE_F32 : HONE_F16;
  rows.count = layer.inputs;
  rows.inner = rows.sizes[0] = 1;
  rows.sizes[1] = layer.outputs;
  rows.strides[2] = layer.weightStride / bytesOf(rows.dtype);
  return planesOfRows(device, rows, layer.outputs, planes.weight, planes.type);
}

void multiply(KernelDevice &device, ManyRowsArguments args, const Planes &planes) {
  int32_t tileRows = tileRowsOf(args.linear.rows);
  int64_t blocks = divideUp(args.linear.rows, tileRows) * divideUp(args.linear.outputs, kTileOutputs);
  void *pointers[] = {&args};
  device.launch({kManyRowsFatbin, functionFor(planes, tileRows)},
                {{static_cast<uint32_t>(blocks), 1, 1},
                 {kManyRowsThreads, 1, 1},
                 static_cast<uint32_t>(manyRowsSharedBytes(tileRows, planes.x, planes.weight))},
                pointers);
}

} // namespace

void runManyRows(KernelDevice &device, Format format, LinearArguments layer) {
  Planes planes = planesFor(format, layer.x.dtype);
  ManyRowsArguments args = {};
  args.depth = roundUp(layer.inputs, 8);
  bool isCopied = !isPlane(layer.x, planes);
  args.x = isCopied ? planesOfRows(device, layer.x, layer.rows, planes.x, planes.type)
                    : PlaneView{layer.x.data, layer.x.strides[2] * 2, 0};
  bool isExpanded = !(planes.weight == 1 && (format == Format::Bf16 || format == Format::F16));
  int64_t slab = isExpanded ? outputsOfSlab(layer.outputs, args.depth * 2 * planes.weight) : layer.outputs;
  for (int64_t first = 0; first < layer.outputs; first += slab) {
    args.linear = slabOf(layer, first, std::min(slab, layer.outputs - first));
    args.weight =
        isExpanded ? weightPlanes(device, format, args.linear, planes) : PlaneView{layer.weight, layer.weightStride, 0};
    multiply(device, args, planes);
    if (isExpanded)
      device.release(const_cast<char *>(args.weight.data));
  }
  if (isCopied)
    device.release(const_cast<char *>(args.x.data));
}

} // namespace hone::cuda
