// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of one ISA by name: those of the sources that are compiled for it, which kernels.def lists.

#include "kernel_row.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {

#define HONE_KERNEL(name, function, ...)                                                                               \
  void function(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
#include "kernels.def"
#undef HONE_KERNEL

extern const KernelRow kKernels[];
extern const int kKernelCount;

const KernelRow kKernels[] = {
#define HONE_KERNEL(name, function, ...) {name, &function},
#include "kernels.def"
#undef HONE_KERNEL
};

const int kKernelCount = sizeof kKernels / sizeof kKernels[0];

} // namespace hone::cpu::HONE_ISA_NAMESPACE
