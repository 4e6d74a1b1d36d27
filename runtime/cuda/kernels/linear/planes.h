// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of numbers, and weights of few bits, as planes that matrix units multiply (PlaneView).

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_PLANES_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_PLANES_H

#include "../tensor_map.h"
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

/// How many planes x and W become, and their type.
struct Planes {
  int32_t x, weight, type;

  /// Whether a weight of `format` is multiplied as it lies in memory.
  bool areWeights(Format format) const { return weight == 1 && (format == Format::Bf16 || format == Format::F16); }
};

/// Inputs of bf16 ask for no more than bf16; others keep sixteen bits, on both sides where both have more than eight.
Planes planesFor(Format format, int32_t inputType);

/// `from` as planes in memory that the caller releases; rows of roundUp(from.count, 8) numbers.
PlaneView planesOfRows(KernelDevice &device, const RowView &from, int64_t rows, int32_t planes, int32_t type);

/// The same of the rows of x, or x itself where it is such a plane; `isCopied` says which.
PlaneView planesOfInputs(KernelDevice &device, const RowView &x, int64_t rows, const Planes &planes, bool &isCopied);

/// All outputs of a layer whose weight is none (areWeights), likewise.
PlaneView planesOfWeight(KernelDevice &device, Format format, const LinearArguments &layer, const Planes &planes);

/// How large planes are: `count` of `rows` rows of `depth` numbers.
struct PlaneSizes {
  int32_t type;
  int64_t depth, rows;
  int32_t count;
};

/// What the copy engine of sm_90 needs to know of them to bring boxes of so many rows and numbers.
TensorMap mapOfPlanes(KernelDevice &device, const PlaneView &view, const PlaneSizes &sizes, int32_t boxRows,
                      uint32_t boxColumns = kBoxColumns);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_PLANES_H
