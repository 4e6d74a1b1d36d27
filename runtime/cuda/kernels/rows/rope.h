// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rotary position embedding: what host and device say to each other.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ROWS_ROPE_H
#define HONE_RUNTIME_CUDA_KERNELS_ROWS_ROPE_H

#include "../row_view.h"

namespace hone::cuda {

struct RopeArguments {
  RowView x, y;         // rows are numbered by sequence, head and position
  RowView cosine, sine; // rows are numbered by sequence and position
  int64_t rows, heads, positions;
  int32_t interleaved, tables; // tables: sequences that cos and sin have, 1 or as many as x
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ROWS_ROPE_H
