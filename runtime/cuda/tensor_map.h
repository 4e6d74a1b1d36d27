// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps for TMA, encoded by the driver.

#ifndef HONE_RUNTIME_CUDA_TENSOR_MAP_H
#define HONE_RUNTIME_CUDA_TENSOR_MAP_H

#include "cuda/context.h"
#include "cuda/kernels/tensor_map.h"

namespace hone::rt::cuda {

/// The map of a box as kernels take it. Fails where the driver refuses the box.
absl::StatusOr<hone::cuda::TensorMap> encodeTensorMap(Context &context, const hone::cuda::TensorBox &box);

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_TENSOR_MAP_H
