// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of many rows by a library.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_LIBRARY_ROWS_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_LIBRARY_ROWS_H

#include "planes.h"

namespace hone::cuda {

/// Enqueues the layer as products of the machine's library, with what follows them. False where it has none, or no way for one of
/// them: then y has to be computed otherwise, whatever is in it.
bool multiplyByLibrary(KernelDevice &device, const ManyRowsArguments &args, const Planes &planes);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_LIBRARY_ROWS_H
