// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Embedding lookup: a thread copies consecutive elements of a row.

#include "../device/vectors.h"
#include "embedding.h"

namespace hone::cuda {

/// The row of the table for row `row` of the result, or -1 where there is no such row.
__device__ inline int64_t tableRow(const EmbeddingArguments &args, int64_t row) {
  int64_t at = args.ids.offset(row);
  int64_t id = args.ids.dtype == HONE_I64 ? reinterpret_cast<const int64_t *>(args.ids.data)[at]
                                          : reinterpret_cast<const int32_t *>(args.ids.data)[at];
  id += id < 0 ? args.tableRows : 0;
  return id >= 0 && id < args.tableRows ? id : -1;
}

/// The `count` consecutive elements of this thread: their row, and the first.
struct VectorIndex {
  int64_t row, first;

  __device__ VectorIndex(const EmbeddingArguments &args, int32_t count) {
    int64_t vectors = divideUp(args.y.count, count), thread = int64_t{kEmbeddingThreads} * blockIdx.x + threadIdx.x;
    row = thread / vectors;
    first = (thread - row * vectors) * count;
  }
};

template <int Count> __device__ inline void copyRows(const EmbeddingArguments &args) {
  VectorIndex vector(args, Count);
  if (vector.row >= args.rows)
    return;
  int64_t id = tableRow(args, vector.row);
  float values[Count];
#pragma unroll
  for (int i = 0; i < Count; ++i)
    values[i] = __int_as_float(0x7fc00000);
  if (id >= 0)
    loadVector<Count>(values, args.table, args.table.offset(id), vector.first);
  storeVector<Count>(values, args.y, args.y.offset(vector.row), vector.first);
}

/// Quantized value `index` of a row that has `bytes` bytes from `row` on.
__device__ inline int32_t codeAt(const QuantizedTable &table, const uint8_t *row, int64_t bytes, int64_t index) {
  int64_t bit = index * table.bits, byte = bit / 8;
  uint32_t word = row[byte];
  if (byte + 1 < bytes)
    word |= static_cast<uint32_t>(row[byte + 1]) << 8;
  auto code = static_cast<int32_t>(word >> bit % 8 & ((1u << table.bits) - 1));
  bool isNegative = table.isSigned && code >> (table.bits - 1);
  return isNegative ? code - (1 << table.bits) : code;
}

__device__ inline float dequantized(const QuantizedTable &table, int64_t row, int64_t k) {
  int64_t group = table.group > 0 ? k / table.group : 0;
  int32_t code = codeAt(table, table.codes + row * table.rowBytes, table.rowBytes, k);
  int32_t zero = table.isSigned ? 0 : 1 << (table.bits - 1);
  if (table.zeros)
    zero = codeAt(table, table.zeros + row * table.zeroBytes, table.zeroBytes, group);
  float scale = loadElement(reinterpret_cast<const char *>(table.scales), row * table.groups + group, table.scaleType);
  return static_cast<float>(code - zero) * scale;
}

HONE_VECTORIZED_KERNELS(embedding, kEmbeddingThreads, EmbeddingArguments, copyRows)

} // namespace hone::cuda

extern "C" __global__ void __launch_bounds__(hone::cuda::kEmbeddingThreads)
    embedding_quantized(const __grid_constant__ hone::cuda::EmbeddingArguments args) {
  using namespace hone::cuda;
  VectorIndex vector(args, kCodesPerThread);
  if (vector.row >= args.rows)
    return;
  int64_t id = tableRow(args, vector.row), to = args.y.offset(vector.row);
  for (int64_t k = vector.first; k < vector.first + kCodesPerThread && k < args.y.count; ++k)
    storeElement(args.y.data, to + k * args.y.inner, args.y.dtype,
                 id < 0 ? __int_as_float(0x7fc00000) : dequantized(args.codes, id, k));
}
