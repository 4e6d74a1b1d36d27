// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of a table by their numbers: a thread takes a run of a row.

#include "../device/runs.h"
#include "embedding.h"

namespace hone::cuda {

/// Which row of the table row `row` of the result is, or -1 where there is no such row.
__device__ inline int64_t tableRow(const EmbeddingArguments &args, int64_t row) {
  int64_t at = args.ids.offset(row);
  int64_t id = args.ids.dtype == HONE_I64 ? reinterpret_cast<const int64_t *>(args.ids.data)[at]
                                          : reinterpret_cast<const int32_t *>(args.ids.data)[at];
  id += id < 0 ? args.tableRows : 0;
  return id >= 0 && id < args.tableRows ? id : -1;
}

/// The run of `count` numbers that this thread takes: its row, and its first number.
struct Run {
  int64_t row, first;

  __device__ Run(const EmbeddingArguments &args, int32_t count) {
    int64_t runs = divideUp(args.y.count, count), thread = int64_t{kEmbeddingThreads} * blockIdx.x + threadIdx.x;
    row = thread / runs;
    first = (thread - row * runs) * count;
  }
};

template <int Count> __device__ inline void copyRows(const EmbeddingArguments &args) {
  Run run(args, Count);
  if (run.row >= args.rows)
    return;
  int64_t id = tableRow(args, run.row);
  float values[Count];
#pragma unroll
  for (int i = 0; i < Count; ++i)
    values[i] = __int_as_float(0x7fc00000);
  if (id >= 0)
    loadRun<Count>(values, args.table, args.table.offset(id), run.first);
  storeRun<Count>(values, args.y, args.y.offset(run.row), run.first);
}

/// Level `place` of a row that has `bytes` bytes from `row` on.
__device__ inline int32_t levelAt(const LevelTable &table, const uint8_t *row, int64_t bytes, int64_t place) {
  int64_t bit = place * table.bits, byte = bit / 8;
  uint32_t word = row[byte];
  if (byte + 1 < bytes)
    word |= static_cast<uint32_t>(row[byte + 1]) << 8;
  auto level = static_cast<int32_t>(word >> bit % 8 & ((1u << table.bits) - 1));
  bool isBelow = table.isSigned && level >> (table.bits - 1);
  return isBelow ? level - (1 << table.bits) : level;
}

__device__ inline float numberOf(const LevelTable &table, int64_t row, int64_t k) {
  int64_t group = table.group > 0 ? k / table.group : 0;
  int32_t level = levelAt(table, table.levels + row * table.rowBytes, table.rowBytes, k);
  int32_t zero = table.isSigned ? 0 : 1 << (table.bits - 1);
  if (table.zeros)
    zero = levelAt(table, table.zeros + row * table.zeroBytes, table.zeroBytes, group);
  float scale = loadNumber(reinterpret_cast<const char *>(table.scales), row * table.groups + group, table.scaleType);
  return static_cast<float>(level - zero) * scale;
}

HONE_KERNELS_OF_RUNS(embedding, kEmbeddingThreads, EmbeddingArguments, copyRows)

} // namespace hone::cuda

extern "C" __global__ void __launch_bounds__(hone::cuda::kEmbeddingThreads)
    embedding_levels(const __grid_constant__ hone::cuda::EmbeddingArguments args) {
  using namespace hone::cuda;
  Run run(args, kLevelsOfThread);
  if (run.row >= args.rows)
    return;
  int64_t id = tableRow(args, run.row), to = args.y.offset(run.row);
  for (int64_t k = run.first; k < run.first + kLevelsOfThread && k < args.y.count; ++k)
    storeNumber(args.y.data, to + k * args.y.inner, args.y.dtype,
                id < 0 ? __int_as_float(0x7fc00000) : numberOf(args.levels, id, k));
}
