// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One fatbin as data: compiled once for each with HONE_FATBIN_FILE, its file, and HONE_FATBIN_NAME, its name in
// fatbins.def.

#include <span>

#define HONE_JOIN_(a, b) a##b
#define HONE_JOIN(a, b) HONE_JOIN_(a, b)

// The driver reads headers of 64-bit fields.
alignas(16) static constexpr unsigned char kBytes[] = {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc23-extensions"
#embed HONE_FATBIN_FILE
#pragma clang diagnostic pop
};

extern "C" const std::span<const unsigned char> HONE_JOIN(hone_cuda_fatbin_, HONE_FATBIN_NAME);
extern "C" constexpr std::span<const unsigned char> HONE_JOIN(hone_cuda_fatbin_, HONE_FATBIN_NAME) = kBytes;
