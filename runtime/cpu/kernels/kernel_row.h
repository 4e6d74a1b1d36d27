// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row of an ISA's kernel table.

#ifndef HONE_RUNTIME_CPU_KERNELS_KERNEL_ROW_H
#define HONE_RUNTIME_CPU_KERNELS_KERNEL_ROW_H

#include "hone/runtime/program.h"

namespace hone::cpu {

struct KernelRow {
  const char *name;
  hone_kernel_fn function;
};

} // namespace hone::cpu

#endif // HONE_RUNTIME_CPU_KERNELS_KERNEL_ROW_H
