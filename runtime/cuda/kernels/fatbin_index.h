// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fatbins by number, in the order of fatbins.def, and limits of launches.

#ifndef HONE_RUNTIME_CUDA_KERNELS_FATBIN_INDEX_H
#define HONE_RUNTIME_CUDA_KERNELS_FATBIN_INDEX_H

#include <cstdint>

namespace hone::cuda {

enum FatbinIndex : uint32_t {
#define HONE_FATBIN(name, isDependent) k##name##Fatbin,
#include "fatbins.def"
#undef HONE_FATBIN
};

constexpr int64_t kMaxGridY = 65535; // of a grid, as along z; along x it is 2^31 - 1

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_FATBIN_INDEX_H
