// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of persistent GEMV.

#include "stream.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "linear_format.h"

namespace hone::cuda {
namespace {

/// By the depth of the rings, and without x in shared memory.
#define HONE_STREAM_NAMES(name) {name "_12", name "_6", name "_3", name "_3_global"}

const char *streamFunction(Format format, bool isSplit, const StreamPlan &plan) {
  static constexpr const char *names[3][4] = {HONE_STREAM_NAMES("gemv_stream_f16"),
                                              HONE_STREAM_NAMES("gemv_stream_bf16"),
                                              HONE_STREAM_NAMES("gemv_stream_bf16_split")};
  int32_t variant = !plan.holdsX ? 3 : plan.depth == 3 ? 2 : plan.depth == 6 ? 1 : 0;
  return names[format == Format::F16 ? 0 : isSplit ? 2 : 1][variant];
}

} // namespace

bool fitsStream(Format format, const LinearArguments &layer) {
  return !isQuantized(format) && !usesFma(format, inputTypeOf(format, layer.x.dtype)) && layer.indices == nullptr &&
         layer.rows <= kStreamRows;
}

void runStream(KernelDevice &device, Format format, StreamArguments &args, int32_t count) {
  bool isConstant = !args.norm.weight.data || device.isConstant(args.norm.weight.data);
  for (int32_t i = 0; i < count; ++i)
    isConstant &= device.isConstant(args.layers[i].weight);
  args.tiles = 0;
  for (int32_t i = 0; i < LinearLayers::kMost; ++i) {
    if (i < count && !(args.isGated && i > 0))
      args.tiles += static_cast<int32_t>(divideUp(args.layers[i].outputs, args.isGated ? 8 : 16));
    args.ends[i] = args.tiles;
    args.layers[i].isConstant = isConstant;
  }
  const LinearArguments &first = args.layers[0];
  bool isSplit = inputTypeOf(format, first.x.dtype) == HONE_F32;
  DeviceLimits limits = device.limits();
  StreamPlan plan =
      planStream(first.rows, args.tiles, first.inputs, isSplit ? 2 : 1, limits.multiprocessors, limits.sharedBytes);
  void *pointers[] = {&args};
  device.launch({kGemvStreamFatbin, streamFunction(format, isSplit, plan)},
                {{static_cast<uint32_t>(plan.blocks), 1, 1},
                 {32 * static_cast<uint32_t>(plan.slices), 1, 1},
                 static_cast<uint32_t>(plan.sharedBytes)},
                pointers);
}

} // namespace hone::cuda
