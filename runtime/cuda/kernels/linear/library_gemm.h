// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM by a library.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_LIBRARY_GEMM_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_LIBRARY_GEMM_H

#include "planes.h"

namespace hone::cuda {

/// Enqueues the layer as products of the machine's library, with its epilogue. False where there is no library or it
/// does not support one of them; y has to be computed otherwise then, and its contents are undefined.
bool runLibraryGemm(KernelDevice &device, const GemmArguments &args, const Planes &planes);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_LIBRARY_GEMM_H
