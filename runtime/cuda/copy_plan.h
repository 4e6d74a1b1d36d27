// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a copy between two views on the GPU is done in the fewest and widest accesses.

#ifndef HONE_RUNTIME_CUDA_COPY_PLAN_H
#define HONE_RUNTIME_CUDA_COPY_PLAN_H

#include "cuda/kernels/strided_copy.h"

#include <cstdint>
#include <vector>

namespace hone::rt::cuda {

/// One step of a copy: bytes in a row where `width` is 0 (`copy` then has `to` and `from` alone), or a launch for elements of so
/// many bytes.
struct CopyStep {
  int width;
  uint64_t bytes; // in a row
  hone::cuda::StridedCopy copy;
};

/// Bytes in a row are copied by the driver, or by kernels as all else.
enum class CopyMeans { Any, Kernels };

/// The steps of a copy between two views of one dtype and shape; none where there are no elements. Dimensions that follow each other
/// in both views become one, and elements that lie side by side in both become wider ones.
std::vector<CopyStep> planCopy(const hone_tensor &from, const hone_tensor &to, CopyMeans means);

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_COPY_PLAN_H
