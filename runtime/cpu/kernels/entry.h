// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of kernels, made from the rows of include/hone/kernels/cpu: a source defines `run`, and its kernels by
//
//   #define HONE_KERNEL HONE_DEFINE_KERNEL
//   #include "hone/kernels/cpu/<source>.def"
//
// HONE_ISA_NAMESPACE is the namespace of the ISA that the source is compiled for. All kernels take strided operands,
// inputs before outputs; an output overlaps no input unless the signature says it may. "Absent" is a tensor with no
// elements, or of rank 0. Kernels run in OpenMP threads and do not fail: the compiler has checked shapes.
//
// A kernel's source includes no header of the C++ library. Templates and inline functions have one body in the whole
// program, and the linker might pick one compiled for a higher ISA than the machine's.

#ifndef HONE_RUNTIME_CPU_KERNELS_ENTRY_H
#define HONE_RUNTIME_CPU_KERNELS_ENTRY_H

#include "hone/kernels/arguments.h"

/// The function of a row: run(call), or run<type of the row>(call).
#define HONE_DEFINE_KERNEL(name, function, Signature, Format, ...)                                                     \
  void function(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats) {                 \
    run __VA_OPT__(<__VA_ARGS__>)(kernels::callOf<kernels::Signature, kernels::Format>(operands, ints, floats));       \
  }

#endif // HONE_RUNTIME_CPU_KERNELS_ENTRY_H
