// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How far two weights differ, where nothing is known of what they are multiplied with.

#ifndef HONE_COMPRESS_DIFFERENCE_H
#define HONE_COMPRESS_DIFFERENCE_H

#include <span>

namespace hone::compress {

/// |before - after| / |before| in the norm of Frobenius, for as many elements of each; 0 where `before` is all 0. In f64, parallel,
/// the same bits for every number of threads.
double relativeDifference(std::span<const float> before, std::span<const float> after);

} // namespace hone::compress

#endif // HONE_COMPRESS_DIFFERENCE_H
