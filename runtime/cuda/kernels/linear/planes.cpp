// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches of the kernels that make planes.

#include "planes.h"
#include "../copy_rows.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"

#include <algorithm>

namespace hone::cuda {

/// Blocks of `function` take `columns` by `rows` elements at once.
static PlaneView makePlanes(KernelDevice &device, const char *function, PlanesArguments args,
                            int64_t columns = 8 * kPlaneThreads, int64_t rows = 1) {
  args.planeBytes = args.rows * args.depth * 2;
  args.to =
      static_cast<char *>(device.acquire(static_cast<uint64_t>(std::max<int64_t>(args.planeBytes * args.planes, 1))));
  void *pointers[] = {&args};
  if (args.depth > 0)
    device.launch({kPlanesFatbin, function},
                  {{static_cast<uint32_t>(divideUp(args.depth, columns)),
                    static_cast<uint32_t>(std::min(divideUp(args.rows, rows), kMaxGridY)), 1},
                   {kPlaneThreads, 1, 1},
                   0},
                  pointers);
  return {args.to, args.depth * 2, args.planeBytes};
}

static void addOutliers(KernelDevice &device, PlanesArguments args, const PlaneView &view) {
  args.to = const_cast<char *>(view.data);
  args.planeBytes = view.planeBytes;
  void *pointers[] = {&args};
  device.launch({kPlanesFatbin, "add_outliers"},
                {{static_cast<uint32_t>(divideUp(args.rows, kPanelOutputs)), 1, 1}, {kPlaneThreads, 1, 1}, 0},
                pointers);
}

PlaneView planesOfRows(KernelDevice &device, const RowView &from, int64_t rows, int32_t planes, int32_t type) {
  PlanesArguments args = {};
  args.from = from;
  args.rows = rows;
  args.depth = roundUp(from.count, 8);
  args.planes = planes;
  args.type = type;
  if (isColumnMajor(from))
    return makePlanes(device, "planes_of_columns", args, kTransposedTile, kTransposedTile);
  return makePlanes(device, "planes_of_rows", args);
}

static PlaneView planesOfQuantized(KernelDevice &device, const LinearArguments &layer, Format format, int32_t planes) {
  static constexpr const char *functions[] = {"planes_of_affine8", "planes_of_affine4", "planes_of_affine6",
                                              "planes_of_affine5", "planes_of_affine3", "planes_of_affine2"};
  PlanesArguments args = {};
  args.layer = layer;
  args.rows = layer.outputs;
  args.depth = roundUp(layer.inputs, 8);
  args.planes = planes;
  args.type = HONE_BF16;
  PlaneView view = makePlanes(device, functions[static_cast<int>(format) - static_cast<int>(Format::Affine8)], args);
  if (layer.outliers.starts)
    addOutliers(device, args, view);
  return view;
}

Planes planesFor(Format format, int32_t inputType) {
  if (format == Format::F16 && inputType == HONE_F16)
    return {1, 1, HONE_F16};
  if (inputType == HONE_BF16 && format != Format::F32 && format != Format::F16)
    return {1, 1, HONE_BF16};
  return {2, format == Format::Bf16 ? 1 : 2, HONE_BF16};
}

PlaneView planesOfInputs(KernelDevice &device, const RowView &x, int64_t rows, const Planes &planes, bool &isCopied) {
  isCopied = !(planes.x == 1 && x.dtype == planes.type && x.isVector && x.count % 8 == 0 && x.sizes[0] == 1);
  return isCopied ? planesOfRows(device, x, rows, planes.x, planes.type) : PlaneView{x.data, x.strides[2] * 2, 0};
}

PlaneView planesOfWeight(KernelDevice &device, Format format, const LinearArguments &layer, const Planes &planes) {
  if (isQuantized(format))
    return planesOfQuantized(device, layer, format, planes.weight);
  RowView rows = {};
  rows.data = const_cast<char *>(layer.weight);
  rows.dtype = format == Format::F32 ? HONE_F32 : HONE_F16;
  rows.count = layer.inputs;
  rows.inner = rows.sizes[0] = 1;
  rows.sizes[1] = layer.outputs;
  rows.strides[2] = layer.weightStride / bytesOf(rows.dtype);
  return planesOfRows(device, rows, layer.outputs, planes.weight, planes.type);
}

TensorMap tensorMapOfPlanes(KernelDevice &device, const PlaneView &view, const PlaneSizes &sizes, int32_t boxRows,
                            uint32_t boxColumns) {
  // The stride of an axis of size one may be any multiple of 16 bytes.
  auto bytes = [](int64_t stride) { return static_cast<uint64_t>(stride > 0 ? stride : 16); };
  return device.makeTensorMap(
      {const_cast<char *>(view.data),
       sizes.type,
       {static_cast<uint64_t>(sizes.depth), static_cast<uint64_t>(sizes.rows), static_cast<uint64_t>(sizes.count), 1},
       {bytes(view.rowBytes), bytes(view.planeBytes), bytes(0)},
       static_cast<uint32_t>(boxRows),
       boxColumns});
}

} // namespace hone::cuda
