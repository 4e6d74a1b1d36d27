// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of a table by their numbers: what host and device say to each other.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ROWS_EMBEDDING_H
#define HONE_RUNTIME_CUDA_KERNELS_ROWS_EMBEDDING_H

#include "../row_view.h"

namespace hone::cuda {

/// Levels of a table whose rows have a scale, and perhaps a zero point, for each group; planes as #hone.affine has them.
struct LevelTable {
  const uint8_t *levels, *scales, *zeros; // zeros is null where every zero point is the middle
  int64_t rowBytes, zeroBytes;            // of a row of levels, and of its zero points
  int64_t groups;                         // of a row
  int32_t bits, group, isSigned;          // group 0: one for the whole row
  int32_t scaleType;                      // HONE_F32 or HONE_F16
};

struct EmbeddingArguments {
  RowView ids; // rows of one, i32 or i64
  RowView table;
  LevelTable levels;
  RowView y;
  int64_t rows, tableRows;
};

constexpr int32_t kEmbeddingThreads = 128; // of a block
constexpr int32_t kLevelsOfThread = 8;     // which are whole bytes, whatever their bits

/// Numbers of a plain row that a thread takes: four where rows can be read and written 16 bytes at a time.
HONE_HOST_DEVICE constexpr int32_t numbersOf(const EmbeddingArguments &args) {
  return args.table.isVector && args.y.isVector && args.y.count % 4 == 0 ? 4 : 1;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ROWS_EMBEDDING_H
