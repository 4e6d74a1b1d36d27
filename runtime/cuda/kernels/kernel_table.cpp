// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables of kernels and of fatbins.

#include "kernel_table.h"
#include "fatbin_index.h"
#include "kernel_device.h"

#include <algorithm>

// What CMakeLists.txt makes of each fatbin (embed_fatbin.cpp).
#define HONE_FATBIN(name, isDependent) extern "C" const std::span<const unsigned char> hone_cuda_fatbin_##name;
#include "fatbins.def"
#undef HONE_FATBIN

namespace hone::cuda {

std::span<const Fatbin> fatbins() {
  static const Fatbin all[] = {
#define HONE_FATBIN(name, isDependent) {#name, hone_cuda_fatbin_##name, isDependent},
#include "fatbins.def"
#undef HONE_FATBIN
  };
  return all;
}

#define HONE_KERNEL(name, function, ...)                                                                               \
  void function(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
#include "hone/kernels/cuda.def"
#undef HONE_KERNEL

static constexpr KernelRow kRows[] = {
#define HONE_KERNEL(name, function, ...) {name, &function},
#include "hone/kernels/cuda.def"
#undef HONE_KERNEL
};

std::span<const KernelRow> kernelRows() { return kRows; }

hone_kernel_fn findKernel(std::string_view name) {
  const KernelRow *row = std::ranges::find(kRows, name, &KernelRow::name);
  return row != std::end(kRows) ? row->function : nullptr;
}

} // namespace hone::cuda
