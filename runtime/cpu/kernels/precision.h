// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef HONE_RUNTIME_CPU_KERNELS_PRECISION_H
#define HONE_RUNTIME_CPU_KERNELS_PRECISION_H

namespace {

/// How exact sums of products of floats have to be: as those in f32 are, or as those of factors that are rounded to bf16.
struct ExactProducts {};
struct RoundedProducts {};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_PRECISION_H
