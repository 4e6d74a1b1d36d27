// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of GEMV: the kernel for each format, and its launch.

#include "gemv.h"
#include "../copy_rows.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "linear_format.h"
#include "reduce_epilogue.h"
#include "stream.h"

namespace hone::cuda {
namespace {

constexpr int32_t kSparseChunkInputs = 64; // of 2:4 weights

/// Kernels for 2:4 weights, in the order of `mmaFunction`.
const char *sparseFunction(Format format, bool isSplit, int32_t tiles) {
  static constexpr const char *names[5][2][3] = {
      {},
      {HONE_GEMV_TILE_NAMES("sparse_gemv_f16")},
      {HONE_GEMV_TILE_NAMES("sparse_gemv_bf16"), HONE_GEMV_TILE_NAMES("sparse_gemv_bf16_split")},
      {HONE_GEMV_TILE_NAMES("sparse_gemv_affine8"), HONE_GEMV_TILE_NAMES("sparse_gemv_affine8_split")},
      {HONE_GEMV_TILE_NAMES("sparse_gemv_affine4"), HONE_GEMV_TILE_NAMES("sparse_gemv_affine4_split")}};
  return names[static_cast<int>(format)][isSplit][tiles];
}

/// Kernels for wide chunks, in the order of `mmaFunction`.
const char *wideFunction(Format format, bool isSplit, int32_t tiles) {
  static constexpr const char *names[4][2][3] = {
      {HONE_GEMV_TILE_NAMES("gemv_wide_affine8"), HONE_GEMV_TILE_NAMES("gemv_wide_affine8_split")},
      {HONE_GEMV_TILE_NAMES("gemv_wide_affine4"), HONE_GEMV_TILE_NAMES("gemv_wide_affine4_split")},
      {HONE_GEMV_TILE_NAMES("gemv_wide_affine3"), HONE_GEMV_TILE_NAMES("gemv_wide_affine3_split")},
      {HONE_GEMV_TILE_NAMES("gemv_wide_affine2"), HONE_GEMV_TILE_NAMES("gemv_wide_affine2_split")}};
  return names[static_cast<int>(format) - static_cast<int>(Format::Affine8)][isSplit][tiles];
}

/// In the order of tiles 1x1, 2x1, 2x2, then the same for inputs that are split into hi and lo terms.
const char *mmaFunction(Format format, bool isSplit, int32_t tiles) {
  static constexpr const char *names[7][2][3] = {
      {},
      {HONE_GEMV_TILE_NAMES("gemv_f16")},
      {HONE_GEMV_TILE_NAMES("gemv_bf16"), HONE_GEMV_TILE_NAMES("gemv_bf16_split")},
      {HONE_GEMV_TILE_NAMES("gemv_affine8"), HONE_GEMV_TILE_NAMES("gemv_affine8_split")},
      {HONE_GEMV_TILE_NAMES("gemv_affine4"), HONE_GEMV_TILE_NAMES("gemv_affine4_split")},
      {HONE_GEMV_TILE_NAMES("gemv_affine3"), HONE_GEMV_TILE_NAMES("gemv_affine3_split")},
      {HONE_GEMV_TILE_NAMES("gemv_affine2"), HONE_GEMV_TILE_NAMES("gemv_affine2_split")}};
  return names[static_cast<int>(format)][isSplit][tiles];
}

DeviceFunction mmaKernel(Format format, const LinearArguments &args, bool isSplit, int32_t tiles) {
  if (args.indices)
    return {kGemvSparseFatbin, sparseFunction(format, isSplit, tiles)};
  if (isWide(format, args))
    return {kGemvWideFatbin, wideFunction(format, isSplit, tiles)};
  uint32_t fatbin = !isQuantized(format)                                     ? kGemvDenseFatbin
                    : format == Format::Affine8 || format == Format::Affine4 ? kGemvAffineFatbin
                                                                             : kGemvLowBitFatbin;
  return {fatbin, mmaFunction(format, isSplit, tiles)};
}

const char *fmaFunction(Format format, bool isSparse, const GemvFmaPlan &plan) {
  static constexpr const char *names[4][3] = {
      {"gemv_fma_f32_1", "gemv_fma_f32_4", "gemv_fma_f32_16"},
      {"gemv_fma_f16_1", "gemv_fma_f16_4", "gemv_fma_f16_16"},
      {"sparse_gemv_fma_f32_1", "sparse_gemv_fma_f32_4", "sparse_gemv_fma_f32_16"},
      {"sparse_gemv_fma_f16_1", "sparse_gemv_fma_f16_4", "sparse_gemv_fma_f16_16"}};
  return names[2 * isSparse + (format == Format::F16)][plan.rowsAtOnce == 1 ? 0 : plan.rowsAtOnce == 4 ? 1 : 2];
}

struct Launch {
  DeviceFunction function;
  LaunchShape shape;
  int32_t slices;
  int64_t chunks; // of a warp
};

LaunchShape shapeOf(int64_t blocks, int64_t rows, int64_t rowsAtOnce, int32_t warps, int64_t sharedBytes) {
  return {{static_cast<uint32_t>(blocks), static_cast<uint32_t>(divideUp(rows, rowsAtOnce)), 1},
          {32 * static_cast<uint32_t>(warps), 1, 1},
          static_cast<uint32_t>(sharedBytes)};
}

Launch planMma(Format format, bool isSplit, const LinearArguments &args, int32_t multiprocessors) {
  int32_t chunk = args.indices           ? kSparseChunkInputs
                  : isWide(format, args) ? wideChunkInputs(format)
                                         : chunkInputs(format);
  int64_t chunks = divideUp(args.inputs, chunk);
  GemvPlan plan = planGemv(args.rows, args.outputs, chunks, warpsOfGemv(format, args), multiprocessors);
  return {mmaKernel(format, args, isSplit, plan.rowTiles + plan.columnTiles - 2),
          shapeOf(plan.blocks, args.rows, 8 * plan.columnTiles, plan.slices, gemvSharedBytes(plan)), plan.slices,
          chunks / plan.slices};
}

Launch planFma(Format format, const LinearArguments &args, int32_t multiprocessors) {
  GemvFmaPlan plan = planGemvFma(args.rows, args.outputs, args.inputs, multiprocessors);
  return {{kGemvFmaFatbin, fmaFunction(format, args.indices != nullptr, plan)},
          shapeOf(plan.blocks, args.rows, plan.rowsAtOnce, plan.groups * plan.slices, gemvFmaSharedBytes(plan)),
          plan.slices,
          args.inputs / kGemvFmaInputs / plan.slices};
}

/// Kernels of the persistent GEMV, by the depth of their rings, the last without x in shared memory.
const char *streamFunction(Format format, bool isSplit, const StreamPlan &plan) {
  static constexpr const char *names[3][4] = {{HONE_STREAM_NAMES("gemv_stream_f16")},
                                              {HONE_STREAM_NAMES("gemv_stream_bf16")},
                                              {HONE_STREAM_NAMES("gemv_stream_bf16_split")}};
  int32_t variant = !plan.holdsX ? 3 : plan.depth == 3 ? 2 : plan.depth == 6 ? 1 : 0;
  return names[format == Format::F16 ? 0 : isSplit ? 2 : 1][variant];
}

/// Whether a layer without a pruned weight and not multiplied by FMA runs as persistent GEMV.
bool fitsStream(Format format, const LinearArguments &args) {
  return !isQuantized(format) && args.indices == nullptr && args.rows <= kStreamRows;
}

void runStream(KernelDevice &device, Format format, bool isSplit, const LinearArguments &args) {
  StreamArguments layers = {};
  layers.layers[0] = args;
  layers.tiles = layers.ends[0] = layers.ends[1] = static_cast<int32_t>(divideUp(args.outputs, 16));
  DeviceLimits limits = device.limits();
  StreamPlan plan =
      planStream(args.rows, layers.tiles, args.inputs, isSplit ? 2 : 1, limits.multiprocessors, limits.sharedBytes);
  void *pointers[] = {&layers};
  device.launch({kGemvStreamFatbin, streamFunction(format, isSplit, plan)},
                {{static_cast<uint32_t>(plan.blocks), 1, 1},
                 {32 * static_cast<uint32_t>(plan.slices), 1, 1},
                 static_cast<uint32_t>(plan.sharedBytes)},
                pointers);
}

/// GEMV by blocks that each have one tile of outputs and some of the inputs.
void runTiles(KernelDevice &device, Format format, int32_t type, LinearArguments args) {
  int32_t multiprocessors = device.limits().multiprocessors;
  Launch launch = usesFma(format, type) ? planFma(format, args, multiprocessors)
                                        : planMma(format, type == HONE_F32, args, multiprocessors);
  int32_t splits = planGemvSplitK(int64_t{launch.shape.grid[0]} * launch.shape.grid[1], launch.chunks, multiprocessors);
  int64_t sums = args.rows * args.outputs;
  args.slices = launch.slices;
  args.stride = launch.slices * splits;
  if (splits > 1)
    args.partialSums = static_cast<float *>(device.acquire(static_cast<uint64_t>(4 * splits * sums)));
  launch.shape.grid[2] = static_cast<uint32_t>(splits);
  void *pointers[] = {&args};
  device.launch(launch.function, launch.shape, pointers);
  if (!args.partialSums)
    return;
  reduceEpilogue(device, {args, args.partialSums, args.outputs, sums, splits});
  device.release(args.partialSums);
}

} // namespace

int32_t inputTypeOf(Format format, int32_t dtype) {
  int32_t own = format == Format::F16 ? HONE_F16 : HONE_BF16;
  return format != Format::F32 && dtype == own ? own : HONE_F32;
}

void runGemv(KernelDevice &device, Format format, LinearArguments args) {
  int32_t type = inputTypeOf(format, args.x.dtype);
  bool isCopied = args.inputs > 0 && (args.x.dtype != type || !args.x.isVector || args.inputs % 8 != 0);
  if (isCopied)
    args.x = copyRows(device, args.x, args.rows, type);
  args.isConstant = device.isConstant(args.weight);
  if (!usesFma(format, type) && fitsStream(format, args))
    runStream(device, format, type == HONE_F32, args);
  else
    runTiles(device, format, type, args);
  if (isCopied)
    device.release(args.x.data);
}

} // namespace hone::cuda
