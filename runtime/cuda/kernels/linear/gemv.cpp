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

#include <algorithm>
#include <span>

namespace hone::cuda {
namespace {

constexpr int32_t kSparseChunkInputs = 64; // of 2:4 weights

/// Which layers a launch computes.
enum class Layers { One, Siblings, Gated };

/// Kernels for 2:4 weights, in the order of `mmaFunction`; siblings and gated layers have none.
const char *sparseFunction(Format format, bool isSplit, int32_t tiles) {
  static constexpr const char *names[5][2][3] = {
      {},
      {HONE_GEMV_TILE_NAMES("sparse_gemv_f16")},
      {HONE_GEMV_TILE_NAMES("sparse_gemv_bf16"), HONE_GEMV_TILE_NAMES("sparse_gemv_bf16_split")},
      {HONE_GEMV_TILE_NAMES("sparse_gemv_affine8"), HONE_GEMV_TILE_NAMES("sparse_gemv_affine8_split")},
      {HONE_GEMV_TILE_NAMES("sparse_gemv_affine4"), HONE_GEMV_TILE_NAMES("sparse_gemv_affine4_split")}};
  return names[static_cast<int>(format)][isSplit][tiles];
}

/// In the order of `kernelNumber`. Those of floats exist for two tiles of rows alone: fewer rows run as persistent GEMV.
#define HONE_GEMV_NAMES(name)                                                                                          \
  {name "_1x1",          name "_2x1",       name "_2x2",      name "_siblings_1x1",                                    \
   name "_siblings_2x2", name "_gated_2x1", name "_gated_2x2"}

int32_t kernelNumber(Layers layers, const GemvPlan &plan) {
  return layers == Layers::One        ? plan.rowTiles + plan.columnTiles - 2
         : layers == Layers::Siblings ? 2 + plan.columnTiles
                                      : 4 + plan.columnTiles;
}

/// Kernels for wide chunks, in the order of `mmaFunction`.
const char *wideFunction(Format format, bool isSplit, int32_t number) {
  static constexpr const char *names[6][2][7] = {
      {HONE_GEMV_NAMES("gemv_wide_affine8"), HONE_GEMV_NAMES("gemv_wide_affine8_split")},
      {HONE_GEMV_NAMES("gemv_wide_affine4"), HONE_GEMV_NAMES("gemv_wide_affine4_split")},
      {HONE_GEMV_NAMES("gemv_wide_affine6"), HONE_GEMV_NAMES("gemv_wide_affine6_split")},
      {HONE_GEMV_NAMES("gemv_wide_affine5"), HONE_GEMV_NAMES("gemv_wide_affine5_split")},
      {HONE_GEMV_NAMES("gemv_wide_affine3"), HONE_GEMV_NAMES("gemv_wide_affine3_split")},
      {HONE_GEMV_NAMES("gemv_wide_affine2"), HONE_GEMV_NAMES("gemv_wide_affine2_split")}};
  return names[static_cast<int>(format) - static_cast<int>(Format::Affine8)][isSplit][number];
}

/// By number, then the same for inputs that are split into hi and lo terms.
const char *mmaFunction(Format format, bool isSplit, int32_t number) {
  static constexpr const char *names[9][2][7] = {
      {},
      {HONE_GEMV_NAMES("gemv_f16")},
      {HONE_GEMV_NAMES("gemv_bf16"), HONE_GEMV_NAMES("gemv_bf16_split")},
      {HONE_GEMV_NAMES("gemv_affine8"), HONE_GEMV_NAMES("gemv_affine8_split")},
      {HONE_GEMV_NAMES("gemv_affine4"), HONE_GEMV_NAMES("gemv_affine4_split")},
      {HONE_GEMV_NAMES("gemv_affine6"), HONE_GEMV_NAMES("gemv_affine6_split")},
      {HONE_GEMV_NAMES("gemv_affine5"), HONE_GEMV_NAMES("gemv_affine5_split")},
      {HONE_GEMV_NAMES("gemv_affine3"), HONE_GEMV_NAMES("gemv_affine3_split")},
      {HONE_GEMV_NAMES("gemv_affine2"), HONE_GEMV_NAMES("gemv_affine2_split")}};
  return names[static_cast<int>(format)][isSplit][number];
}

DeviceFunction mmaKernel(Format format, const LinearArguments &args, bool isSplit, int32_t number) {
  if (args.indices)
    return {kGemvSparseFatbin, sparseFunction(format, isSplit, number)};
  if (isWide(format, args))
    return {kGemvWideFatbin, wideFunction(format, isSplit, number)};
  uint32_t fatbin = !isQuantized(format)                                     ? kGemvDenseFatbin
                    : format == Format::Affine8 || format == Format::Affine4 ? kGemvAffineFatbin
                                                                             : kGemvLowBitFatbin;
  return {fatbin, mmaFunction(format, isSplit, number)};
}

const char *fmaFunction(Format format, bool isSparse, Layers layers, const GemvFmaPlan &plan) {
  static constexpr const char *names[2][3][3] = {
      {{"gemv_fma_f32_1", "gemv_fma_f32_4", "gemv_fma_f32_16"},
       {"gemv_fma_f32_siblings_1", "gemv_fma_f32_siblings_4", "gemv_fma_f32_siblings_16"},
       {"gemv_fma_f32_gated_1", "gemv_fma_f32_gated_4", "gemv_fma_f32_gated_16"}},
      {{"gemv_fma_f16_1", "gemv_fma_f16_4", "gemv_fma_f16_16"},
       {"gemv_fma_f16_siblings_1", "gemv_fma_f16_siblings_4", "gemv_fma_f16_siblings_16"},
       {"gemv_fma_f16_gated_1", "gemv_fma_f16_gated_4", "gemv_fma_f16_gated_16"}}};
  static constexpr const char *sparse[2][3] = {
      {"sparse_gemv_fma_f32_1", "sparse_gemv_fma_f32_4", "sparse_gemv_fma_f32_16"},
      {"sparse_gemv_fma_f16_1", "sparse_gemv_fma_f16_4", "sparse_gemv_fma_f16_16"}};
  bool isHalf = format == Format::F16;
  int32_t rows = plan.rowsAtOnce == 1 ? 0 : plan.rowsAtOnce == 4 ? 1 : 2;
  return isSparse ? sparse[isHalf][rows] : names[isHalf][static_cast<int>(layers)][rows];
}

struct Launch {
  DeviceFunction function;
  LaunchShape shape;
  int32_t slices;
  int64_t chunks;  // of a warp
  int32_t outputs; // of a block
};

LaunchShape shapeOf(int64_t blocks, int64_t rows, int64_t rowsAtOnce, int32_t warps, int64_t sharedBytes) {
  return {{static_cast<uint32_t>(blocks), static_cast<uint32_t>(divideUp(rows, rowsAtOnce)), 1},
          {32 * static_cast<uint32_t>(warps), 1, 1},
          static_cast<uint32_t>(sharedBytes)};
}

/// Of all layers, how many tiles of so many outputs they have.
int64_t countTiles(std::span<const LinearArguments> layers, int64_t outputs) {
  int64_t tiles = 0;
  for (const LinearArguments &layer : layers)
    tiles += divideUp(layer.outputs, outputs);
  return tiles;
}

Launch planMma(Format format, bool isSplit, Layers kind, std::span<const LinearArguments> layers,
               int32_t multiprocessors) {
  const LinearArguments &args = layers.front();
  int32_t chunk = args.indices           ? kSparseChunkInputs
                  : isWide(format, args) ? wideChunkInputs(format)
                                         : chunkInputs(format);
  int64_t chunks = divideUp(args.inputs, chunk);
  int32_t warps = warpsOfGemv(format, args);
  GemvPlan plan = kind == Layers::One ? planGemv(args.rows, args.outputs, chunks, warps, multiprocessors)
                  : kind == Layers::Siblings
                      ? planSiblingGemv(args.rows, countTiles(layers, 16), chunks, warps, multiprocessors)
                      : planGatedGemv(args.rows, args.outputs, chunks, warps, multiprocessors);
  int32_t outputs = kind == Layers::Gated ? 16 : 16 * plan.rowTiles;
  int64_t blocks = kind == Layers::Siblings ? countTiles(layers, outputs) : plan.blocks;
  return {mmaKernel(format, args, isSplit, kernelNumber(kind, plan)),
          shapeOf(blocks, args.rows, 8 * plan.columnTiles, plan.slices, gemvSharedBytes(plan)), plan.slices,
          chunks / plan.slices, outputs};
}

Launch planFma(Format format, Layers kind, std::span<const LinearArguments> layers, int32_t multiprocessors) {
  const LinearArguments &args = layers.front();
  int64_t tiles = countTiles(layers, kGemvFmaOutputs);
  GemvFmaPlan plan = kind == Layers::One ? planGemvFma(args.rows, args.outputs, args.inputs, multiprocessors)
                     : kind == Layers::Siblings
                         ? planGemvFma(args.rows, kGemvFmaOutputs * tiles, args.inputs, multiprocessors)
                         : planGatedGemvFma(args.rows, args.outputs, args.inputs, multiprocessors);
  int32_t outputs = kGemvFmaOutputs * plan.groups / (kind == Layers::Gated ? 2 : 1);
  int64_t blocks = kind == Layers::Siblings ? countTiles(layers, outputs) : plan.blocks;
  return {{kGemvFmaFatbin, fmaFunction(format, args.indices != nullptr, kind, plan)},
          shapeOf(blocks, args.rows, plan.rowsAtOnce, plan.groups * plan.slices, gemvFmaSharedBytes(plan)),
          plan.slices,
          args.inputs / kGemvFmaInputs / plan.slices,
          outputs};
}

Launch plan(KernelDevice &device, Format format, Layers kind, std::span<const LinearArguments> layers) {
  int32_t type = inputTypeOf(format, layers.front().x.dtype), multiprocessors = device.limits().multiprocessors;
  return usesFma(format, type) ? planFma(format, kind, layers, multiprocessors)
                               : planMma(format, type == HONE_F32, kind, layers, multiprocessors);
}

int32_t planSplits(KernelDevice &device, const Launch &launch) {
  return planGemvSplitK(int64_t{launch.shape.grid[0]} * launch.shape.grid[1], launch.chunks,
                        device.limits().multiprocessors);
}

/// Whether GEMV reads x only as a copy.
bool needsCopy(Format format, const LinearArguments &args) {
  return args.inputs > 0 &&
         (args.x.dtype != inputTypeOf(format, args.x.dtype) || !args.x.isVector || args.inputs % 8 != 0);
}

/// Whether persistent GEMV reads the weight of a norm where it lies.
bool isReadable(const InputNorm &norm) { return norm.weight.dtype == HONE_F32 && norm.weight.isVector; }

/// Whether the layers' weights have the same strides, so that a kernel reads them alike.
bool areAlike(const LinearArguments &a, const LinearArguments &b) {
  return a.weightStride == b.weightStride && a.zeroStride == b.zeroStride && a.groups == b.groups &&
         a.groupShift == b.groupShift && a.scaleType == b.scaleType && !a.zeros == !b.zeros;
}

/// GEMV by blocks that each have one tile of outputs, and with split-K some of the inputs.
void runTiles(KernelDevice &device, Format format, LinearArguments args) {
  Launch launch = plan(device, format, Layers::One, {&args, 1});
  int32_t splits = planSplits(device, launch);
  int64_t sums = args.rows * args.outputs;
  args.slices = launch.slices;
  args.stride = launch.slices * splits;
  args.isConstant = device.isConstant(args.weight);
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

/// The same of several layers, without split-K.
void runTilesOfLayers(KernelDevice &device, const Launch &launch, LinearLayers &args, int32_t count) {
  bool isConstant = true;
  for (int32_t i = 0; i < count; ++i)
    isConstant &= device.isConstant(args.layers[i].weight);
  int32_t blocks = 0;
  for (int32_t i = 0; i < LinearLayers::kMost; ++i) {
    LinearArguments &layer = args.layers[i];
    layer.slices = layer.stride = launch.slices;
    layer.isConstant = isConstant;
    blocks += static_cast<int32_t>(divideUp(layer.outputs, launch.outputs));
    args.ends[i] = blocks;
  }
  void *pointers[] = {&args};
  device.launch(launch.function, launch.shape, pointers);
}

} // namespace

int32_t inputTypeOf(Format format, int32_t dtype) {
  int32_t own = format == Format::F16 ? HONE_F16 : HONE_BF16;
  return format != Format::F32 && dtype == own ? own : HONE_F32;
}

void runGemv(KernelDevice &device, Format format, LinearArguments args) {
  bool isCopied = needsCopy(format, args);
  if (isCopied)
    args.x = copyRows(device, args.x, args.rows, inputTypeOf(format, args.x.dtype));
  if (fitsStream(format, args)) {
    StreamArguments all = {};
    all.layers[0] = args;
    runStream(device, format, all, 1);
  } else {
    runTiles(device, format, args);
  }
  if (isCopied)
    device.release(args.x.data);
}

bool runGemvOfLayers(KernelDevice &device, Format format, LinearLayers &args, int32_t count, bool isGated,
                     const InputNorm &norm) {
  std::span<LinearArguments> layers(args.layers, static_cast<size_t>(count));
  bool isStream = fitsStream(format, layers[0]);
  Launch launch = isStream ? Launch() : plan(device, format, isGated ? Layers::Gated : Layers::Siblings, layers);
  bool areRead = std::ranges::all_of(layers, [&](const LinearArguments &layer) { return areAlike(layer, layers[0]); });
  if (!areRead || (!isStream && planSplits(device, launch) > 1))
    return false;
  bool isCopied = needsCopy(format, layers[0]);
  if (norm.weight.data && (!isStream || isCopied || layers[0].x.dtype != HONE_F32 || !isReadable(norm)))
    return false;
  RowView x = layers[0].x;
  if (isCopied)
    x = copyRows(device, x, layers[0].rows, inputTypeOf(format, x.dtype));
  for (LinearArguments &layer : layers)
    layer.x = x;
  if (isStream) {
    StreamArguments all = {args, norm, 0, isGated};
    runStream(device, format, all, count);
  } else {
    runTilesOfLayers(device, launch, args, count);
  }
  if (isCopied)
    device.release(x.data);
  return true;
}

} // namespace hone::cuda
