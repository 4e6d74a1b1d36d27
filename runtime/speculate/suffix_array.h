// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of a text's suffixes.

#ifndef HONE_RUNTIME_SPECULATE_SUFFIX_ARRAY_H
#define HONE_RUNTIME_SPECULATE_SUFFIX_ARRAY_H

#include <cstdint>
#include <span>
#include <vector>

namespace hone::speculate {

/// Where the suffixes of `text` begin, in their lexicographic order; one that is the beginning of another is the smaller. Elements are at
/// least 0 and less than `alphabet`, and fewer than 2^31. Takes linear time, and 4 to 10 bytes an element besides the result (SA-IS: Nong,
/// Zhang and Chan, 2011).
std::vector<int32_t> sortSuffixes(std::span<const int32_t> text, int32_t alphabet);

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_SUFFIX_ARRAY_H
