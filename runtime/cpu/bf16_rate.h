// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How fast the CPU multiplies bf16 with vector registers.

#ifndef HONE_RUNTIME_CPU_BF16_RATE_H
#define HONE_RUNTIME_CPU_BF16_RATE_H

namespace hone::cpu {

/// Whether VDPBF16PS has a higher throughput of products than FMA of f32. It has twice that on AMD Zen 4 and 5, and half
/// of it on Intel: GEMM converts bf16 to f32 there. Measured by the first call, which takes about 10 us; the CPU has to
/// have AVX512_BF16.
bool hasFastBf16Products();

} // namespace hone::cpu

#endif // HONE_RUNTIME_CPU_BF16_RATE_H
