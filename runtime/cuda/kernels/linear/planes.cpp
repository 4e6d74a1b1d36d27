// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launches that make planes.

#include "planes.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"

#include <algorithm>

namespace hone::cuda {

static PlaneView makePlanes(KernelDevice &device, const char *function, PlanesArguments args) {
  args.planeBytes = args.rows * args.depth * 2;
  args.to =
      static_cast<char *>(device.acquire(static_cast<uint64_t>(std::max<int64_t>(args.planeBytes * args.planes, 1))));
  void *pointers[] = {&args};
  if (args.depth > 0)
    device.launch({kPlanesFatbin, function},
                  {{static_cast<uint32_t>(divideUp(args.depth, 8 * kPlaneThreads)),
                    static_cast<uint32_t>(std::min(args.rows, kMostBlocksAlongY)), 1},
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
  return makePlanes(device, "planes_of_rows", args);
}

PlaneView planesOfLevels(KernelDevice &device, const LinearArguments &layer, Format format, int32_t planes) {
  static constexpr const char *functions[] = {"planes_of_affine8", "planes_of_affine4", "planes_of_affine3",
                                              "planes_of_affine2"};
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

} // namespace hone::cuda
