// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Limits of the process: time and memory that run out end it with a sentence, exit code 1, and nothing half-written.

#ifndef HONE_LIB_DRIVER_PROCESSLIMITS_H
#define HONE_LIB_DRIVER_PROCESSLIMITS_H

#include <cstdint>

namespace hone {

/// From here on memory that cannot be had ends the process so, and not by LLVM's crash report.
void endWhereMemoryEnds();

/// Whether memory can be limited: AddressSanitizer keeps its shadow and its heap in mappings that the limit counts, and finds no memory
/// for itself.
#if __has_feature(address_sanitizer)
inline constexpr bool kCanLimitMemory = false;
#else
inline constexpr bool kCanLimitMemory = true;
#endif

/// From here on the process may have `bytes` of memory beside mapped files.
void limitMemory(int64_t bytes);

/// From here on the process may run for `seconds`, and compute for as many on each of its processors.
void limitTime(int64_t seconds);

} // namespace hone

#endif // HONE_LIB_DRIVER_PROCESSLIMITS_H
