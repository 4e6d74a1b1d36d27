// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// HONE_EVERY_WIDTH before a function compiles it for every width of vectors; the processor chooses when the program is loaded.
// Sums have to be written in lanes of their own, so that each width gives the same bits.

#ifndef HONE_LIB_COMPRESS_EVERYWIDTH_H
#define HONE_LIB_COMPRESS_EVERYWIDTH_H

#if !defined(__x86_64__)
#define HONE_EVERY_WIDTH
#elif __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
// The choice at load runs before sanitizers are set up. Without fused multiply-adds of the processor they would be calls.
#define HONE_EVERY_WIDTH __attribute__((target("arch=x86-64-v3")))
#else
#define HONE_EVERY_WIDTH __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

#endif // HONE_LIB_COMPRESS_EVERYWIDTH_H
