// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of kernels, made from the rows of include/hone/kernels/cuda: a source defines `run`, and its kernels by
//
//   #define HONE_KERNEL HONE_DEFINE_KERNEL
//   #include "hone/kernels/cuda/<source>.def"
//
// Each enqueues on the call's stream. All kernels take strided operands whose data lie in device memory, inputs before
// outputs; an output overlaps no input unless the signature says it may. "Absent" is a tensor with no elements, or of
// rank 0. Kernels report no errors: the compiler has checked shapes. Leading axes of x are those of y, of factor and of
// residual; at most three of them may be non-contiguous.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ENTRY_H
#define HONE_RUNTIME_CUDA_KERNELS_ENTRY_H

#include "hone/kernels/arguments.h"

/// The function of a row: run(call, arguments), or run(call, arguments, format of the row).
#define HONE_DEFINE_KERNEL(name, function, signature, layout, ...)                                                     \
  void function(hone_call *call, const hone_tensor *operands, const int64_t *ints, const double *floats) {             \
    run(call, kernels::callOf<kernels::signature, kernels::layout>(operands, ints, floats)                             \
                  __VA_OPT__(, Format::__VA_ARGS__));                                                                  \
  }

#endif // HONE_RUNTIME_CUDA_KERNELS_ENTRY_H
