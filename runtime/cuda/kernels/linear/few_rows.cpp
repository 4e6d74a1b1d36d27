// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of layers of a few rows: which function multiplies which types, and its launch.

#include "few_rows.h"
#include "../copy_rows.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "finish_sums.h"
#include "linear_format.h"

namespace hone::cuda {
namespace {

constexpr int32_t kSparseChunkInputs = 64; // of 2:4 weights

/// Those of 2:4 weights, in the order of `matrixFunction`.
const char *sparseFunction(Format format, bool isSplit, int32_t tiles) {
  static constexpr const char *names[5][2][3] = {
      {},
      {{"sparse_few_rows_f16_1x1", "sparse_few_rows_f16_2x1", "sparse_few_rows_f16_2x2"}},
      {{"sparse_few_rows_bf16_1x1", "sparse_few_rows_bf16_2x1", "sparse_few_rows_bf16_2x2"},
       {"sparse_few_rows_bf16_split_1x1", "sparse_few_rows_bf16_split_2x1", "sparse_few_rows_bf16_split_2x2"}},
      {{"sparse_few_rows_affine8_1x1", "sparse_few_rows_affine8_2x1", "sparse_few_rows_affine8_2x2"},
       {"sparse_few_rows_affine8_split_1x1", "sparse_few_rows_affine8_split_2x1", "sparse_few_rows_affine8_split_2x2"}},
      {{"sparse_few_rows_affine4_1x1", "sparse_few_rows_affine4_2x1", "sparse_few_rows_affine4_2x2"},
       {"sparse_few_rows_affine4_split_1x1", "sparse_few_rows_affine4_split_2x1",
        "sparse_few_rows_affine4_split_2x2"}}};
  return names[static_cast<int>(format)][isSplit][tiles];
}

/// In the order of tiles 1x1, 2x1, 2x2, and the same for inputs that are split into two numbers of bf16.
const char *matrixFunction(Format format, bool isSplit, int32_t tiles) {
  static constexpr const char *names[7][2][3] = {
      {},
      {{"few_rows_f16_1x1", "few_rows_f16_2x1", "few_rows_f16_2x2"}},
      {{"few_rows_bf16_1x1", "few_rows_bf16_2x1", "few_rows_bf16_2x2"},
       {"few_rows_bf16_split_1x1", "few_rows_bf16_split_2x1", "few_rows_bf16_split_2x2"}},
      {{"few_rows_affine8_1x1", "few_rows_affine8_2x1", "few_rows_affine8_2x2"},
       {"few_rows_affine8_split_1x1", "few_rows_affine8_split_2x1", "few_rows_affine8_split_2x2"}},
      {{"few_rows_affine4_1x1", "few_rows_affine4_2x1", "few_rows_affine4_2x2"},
       {"few_rows_affine4_split_1x1", "few_rows_affine4_split_2x1", "few_rows_affine4_split_2x2"}},
      {{"few_rows_affine3_1x1", "few_rows_affine3_2x1", "few_rows_affine3_2x2"},
       {"few_rows_affine3_split_1x1", "few_rows_affine3_split_2x1", "few_rows_affine3_split_2x2"}},
      {{"few_rows_affine2_1x1", "few_rows_affine2_2x1", "few_rows_affine2_2x2"},
       {"few_rows_affine2_split_1x1", "few_rows_affine2_split_2x1", "few_rows_affine2_split_2x2"}}};
  return names[static_cast<int>(format)][isSplit][tiles];
}

uint32_t matrixFatbin(Format format) {
  if (!hasLevels(format))
    return kFewRowsPlainFatbin;
  return format == Format::Affine8 || format == Format::Affine4 ? kFewRowsAffineFatbin : kFewRowsNarrowFatbin;
}

const char *exactFunction(Format format, bool isSparse, const ExactRowsPlan &plan) {
  static constexpr const char *names[4][3] = {
      {"exact_rows_f32_1", "exact_rows_f32_4", "exact_rows_f32_16"},
      {"exact_rows_f16_1", "exact_rows_f16_4", "exact_rows_f16_16"},
      {"sparse_exact_rows_f32_1", "sparse_exact_rows_f32_4", "sparse_exact_rows_f32_16"},
      {"sparse_exact_rows_f16_1", "sparse_exact_rows_f16_4", "sparse_exact_rows_f16_16"}};
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

Launch planMatrix(Format format, bool isSplit, const LinearArguments &args, int32_t multiprocessors) {
  bool isSparse = args.indices != nullptr;
  int64_t chunks = divideUp(args.inputs, isSparse ? kSparseChunkInputs : chunkInputs(format));
  FewRowsPlan plan = planFewRows(args.rows, args.outputs, chunks, isSplit, multiprocessors);
  int32_t tiles = plan.rowTiles + plan.columnTiles - 2;
  return {{isSparse ? kFewRowsSparseFatbin : matrixFatbin(format),
           isSparse ? sparseFunction(format, isSplit, tiles) : matrixFunction(format, isSplit, tiles)},
          shapeOf(plan.blocks, args.rows, 8 * plan.columnTiles, plan.slices, fewRowsSharedBytes(plan)),
          plan.slices,
          chunks / plan.slices};
}

Launch planExact(Format format, const LinearArguments &args, int32_t multiprocessors) {
  ExactRowsPlan plan = planExactRows(args.rows, args.outputs, args.inputs, multiprocessors);
  return {{kFewRowsExactFatbin, exactFunction(format, args.indices != nullptr, plan)},
          shapeOf(plan.blocks, args.rows, plan.rowsAtOnce, plan.groups * plan.slices, exactRowsSharedBytes(plan)),
          plan.slices,
          args.inputs / kExactInputs / plan.slices};
}

} // namespace

int32_t inputTypeOf(Format format, int32_t dtype) {
  int32_t own = format == Format::F16 ? HONE_F16 : HONE_BF16;
  return format != Format::F32 && dtype == own ? own : HONE_F32;
}

void runFewRows(KernelDevice &device, Format format, LinearArguments args) {
  int32_t type = inputTypeOf(format, args.x.dtype);
  bool isCopied = args.inputs > 0 && (args.x.dtype != type || !args.x.isVector || args.inputs % 8 != 0);
  if (isCopied)
    args.x = copyRows(device, args.x, args.rows, type);
  int32_t multiprocessors = device.limits().multiprocessors;
  Launch launch = isExact(format, type) ? planExact(format, args, multiprocessors)
                                        : planMatrix(format, type == HONE_F32, args, multiprocessors);
  int32_t splits = planRowSplits(int64_t{launch.shape.grid[0]} * launch.shape.grid[1], launch.chunks, multiprocessors);
  int64_t sums = args.rows * args.outputs;
  args.slices = launch.slices;
  args.stride = launch.slices * splits;
  if (splits > 1)
    args.parts = static_cast<float *>(device.acquire(static_cast<uint64_t>(4 * splits * sums)));
  launch.shape.grid[2] = static_cast<uint32_t>(splits);
  void *pointers[] = {&args};
  device.launch(launch.function, launch.shape, pointers);
  if (args.parts) {
    finishSums(device, {args, args.parts, args.outputs, sums, splits});
    device.release(args.parts);
  }
  if (isCopied)
    device.release(args.x.data);
}

} // namespace hone::cuda
