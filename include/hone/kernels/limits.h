//===- limits.h - limits of what kernels compute ----------------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the compiler and the sources of kernels: nothing of the C++ library is included.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_KERNELS_LIMITS_H
#define HONE_KERNELS_LIMITS_H

namespace hone::kernels {

/// As `most` of a kernel, and with a sign as `least`: none. IR does not print what f32 does not have.
constexpr double kNoLimit = 3e38;

/// Elements of a key that linear attention on a GPU takes at most: a state lies in registers, a column in half a warp.
constexpr int kMostLinearAttentionKeys = 256;

} // namespace hone::kernels

#endif // HONE_KERNELS_LIMITS_H
