// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of one ISA by name.

#include "codebook_kernels.h"
#include "expert_kernels.h"
#include "kernels.h"

#include "kernel_row.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {

extern const KernelRow kKernels[];
extern const int kKernelCount;

const KernelRow kKernels[] = {
#define HONE_KERNEL(name, function, operands) {name, &function},
#include "kernels.def"
#undef HONE_KERNEL
};

const int kKernelCount = sizeof kKernels / sizeof kKernels[0];

} // namespace hone::cpu::HONE_ISA_NAMESPACE
