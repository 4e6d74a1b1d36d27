// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Float rows and quantized weights as planes of 16-bit elements, the operands of tensor cores (PlaneView).

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_PLANES_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_PLANES_H

#include "../tensor_map.h"
#include "gemm.h"
#include "linear_format.h"

namespace hone::cuda {

constexpr int32_t kPlaneThreads = 128; // of a block, eight elements each

struct PlanesArguments {
  RowView from;          // for planes_of_rows
  LinearArguments layer; // quantized values and scales, for planes_of_affine*
  char *to;
  int64_t rows, depth, planeBytes;
  int32_t planes;
  int32_t type; // HONE_F16 or HONE_BF16; hi and lo planes are bf16
};

class KernelDevice;

/// The number of planes of x and W, and their type.
struct Planes {
  int32_t x, weight, type;

  /// Whether a weight of `format` is such a plane as it lies in memory.
  bool areWeights(Format format) const { return weight == 1 && (format == Format::Bf16 || format == Format::F16); }
};

/// Inputs of bf16 need one plane of bf16; others are split, and weights of more than eight bits too.
Planes planesFor(Format format, int32_t inputType);

/// `from` as planes in memory that the caller releases; rows have roundUp(from.count, 8) elements.
PlaneView planesOfRows(KernelDevice &device, const RowView &from, int64_t rows, int32_t planes, int32_t type);

/// The same for the rows of x, or x itself where it is such a plane; `isCopied` says which.
PlaneView planesOfInputs(KernelDevice &device, const RowView &x, int64_t rows, const Planes &planes, bool &isCopied);

/// The same for all outputs of a layer whose weight is not such a plane (areWeights).
PlaneView planesOfWeight(KernelDevice &device, Format format, const LinearArguments &layer, const Planes &planes);

/// The sizes of planes: `count` of `rows` rows of `depth` elements.
struct PlaneSizes {
  int32_t type;
  int64_t depth, rows;
  int32_t count;
};

/// The tensor map of planes for TMA loads of boxes of so many rows and columns.
TensorMap tensorMapOfPlanes(KernelDevice &device, const PlaneView &view, const PlaneSizes &sizes, int32_t boxRows,
                            uint32_t boxColumns = kBoxColumns);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_PLANES_H
