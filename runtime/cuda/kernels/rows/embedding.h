// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Embedding lookup: kernel arguments.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ROWS_EMBEDDING_H
#define HONE_RUNTIME_CUDA_KERNELS_ROWS_EMBEDDING_H

#include "../row_view.h"

namespace hone::cuda {

/// A quantized table whose rows have a scale, and perhaps a zero point, for each group; planes as #hone.affine has
/// them.
struct QuantizedTable {
  const uint8_t *codes, *scales, *zeros; // zeros is null where zero points are the middle of the range
  int64_t rowBytes, zeroBytes;           // of a row of codes, and of its zero points
  int64_t groups;                        // of a row
  int32_t bits, group, isSigned;         // group 0: one for the whole row
  int32_t scaleType;                     // HONE_F32 or HONE_F16
};

struct EmbeddingArguments {
  RowView ids; // rows of one, i32 or i64
  RowView table;
  QuantizedTable codes;
  RowView y;
  int64_t rows, tableRows;
};

constexpr int32_t kEmbeddingThreads = 128; // of a block
constexpr int32_t kCodesPerThread = 8;     // whole bytes for all widths

/// Elements of a float row that a thread copies: four where rows allow accesses of 16 bytes.
HONE_HOST_DEVICE constexpr int32_t vectorSizeOf(const EmbeddingArguments &args) {
  return args.table.isVector && args.y.isVector && args.y.count % 4 == 0 ? 4 : 1;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ROWS_EMBEDDING_H
