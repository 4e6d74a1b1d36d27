// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 2:4 sparsity of a weight and of its transpose at once: two of four in every row and in every column of blocks of 4 x 4.

#ifndef HONE_COMPRESS_TRANSPOSABLEMASK_H
#define HONE_COMPRESS_TRANSPOSABLEMASK_H

#include "hone/Compress/Matrix.h"

#include <array>
#include <cstdint>

namespace hone::compress {

/// Rows and columns of a block.
constexpr int64_t kMaskBlock = 4;

/// All masks of a block with two ones in every row and column, ascending: bit 4 i + j is that of row i and column j.
const std::array<uint16_t, 90> &transposableMasks();

/// That of transposableMasks with the largest sum of `scores`, row-major, where it has ones; the first of equal ones.
uint16_t selectTransposable(std::span<const double, kMaskBlock * kMaskBlock> scores);

/// Keeps in every block of a weight [N, K], both multiples of 4, the elements of the mask with the largest sum of |w_j| · sqrt(importance[j]),
/// or of |w_j| where it is empty, and makes the others 0 (Hu et al., "Accelerating Transformer Pre-training with 2:4 Sparsity",
/// 2024, section 3). Parallel; blocks depend on themselves alone.
void pruneTransposable(const Weight &weight, std::span<const float> importance = {});

} // namespace hone::compress

#endif // HONE_COMPRESS_TRANSPOSABLEMASK_H
