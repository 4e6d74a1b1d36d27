// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the CPU of this machine can do, by the names LLVM gives to the features of x86.

#ifndef HONE_CPU_CPU_FEATURES_H
#define HONE_CPU_CPU_FEATURES_H

#include <optional>
#include <string_view>

namespace hone::cpu {

/// Whether the CPU, and the operating system where registers are concerned, support the feature. Nothing for a name
/// that is not known.
std::optional<bool> cpuHasFeature(std::string_view name);

} // namespace hone::cpu

#endif // HONE_CPU_CPU_FEATURES_H
