// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels by name. Each exists for every ISA whose instructions it uses; the ISA of this machine is chosen once.

#ifndef HONE_RUNTIME_CPU_KERNEL_TABLE_H
#define HONE_RUNTIME_CPU_KERNEL_TABLE_H

#include "hone/runtime/program.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace hone::cpu {

/// Instruction sets (ISAs) that kernels are compiled for, each including those before it but for AvxVnni, which is no part of those with
/// AVX-512.
enum class Isa { Avx2, AvxVnni, Avx512, Avx512Vnni, Avx512Bf16, Amx };

std::string_view isaName(Isa isa);

/// The ISAs that this machine can run, lowest first; empty on a CPU without AVX2.
std::span<const Isa> supportedIsas();

/// The kernel's function for the best ISA of this machine, or null for a name that is not in the table.
hone_kernel_fn findKernel(std::string_view name);

/// The function that an ISA has: that of the highest up to it for which the kernel was compiled. Null also where this
/// build has no kernels for the ISA. For tests and benchmarks.
hone_kernel_fn findKernel(std::string_view name, Isa isa);

/// All names, sorted.
std::vector<std::string_view> kernelNames();

} // namespace hone::cpu

#endif // HONE_RUNTIME_CPU_KERNEL_TABLE_H
