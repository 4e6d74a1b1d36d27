// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of numbers, and weights of few bits, as planes that matrix units multiply (PlaneView).

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_PLANES_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_PLANES_H

#include "linear_format.h"
#include "many_rows.h"

namespace hone::cuda {

constexpr int32_t kPlaneThreads = 128; // of a block, eight numbers each

struct PlanesArguments {
  RowView from;          // numbers, for planes_of_rows
  LinearArguments layer; // levels and scales, for planes_of_levels
  char *to;
  int64_t rows, depth, planeBytes;
  int32_t planes;
  int32_t type; // HONE_F16 or HONE_BF16; two planes are of bf16
};

class KernelDevice;

/// `from` as planes in memory that the caller releases; rows of roundUp(from.count, 8) numbers.
PlaneView planesOfRows(KernelDevice &device, const RowView &from, int64_t rows, int32_t planes, int32_t type);

/// All outputs of a layer of levels likewise, of bf16.
PlaneView planesOfLevels(KernelDevice &device, const LinearArguments &layer, Format format, int32_t planes);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_PLANES_H
