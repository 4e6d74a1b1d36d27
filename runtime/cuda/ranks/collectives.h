// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels that ranks run together, on GPUs.

#ifndef HONE_RUNTIME_CUDA_RANKS_COLLECTIVES_H
#define HONE_RUNTIME_CUDA_RANKS_COLLECTIVES_H

#include "hone/runtime/program.h"

#include <string_view>

namespace hone::rt::cuda {

/// A kernel that ranks run together (hone/runtime/collectives.h) by its name, or null. The queue of its call is connected with the other
/// ranks (GpuRanks).
hone_kernel_fn findCollective(std::string_view name);

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_RANKS_COLLECTIVES_H
