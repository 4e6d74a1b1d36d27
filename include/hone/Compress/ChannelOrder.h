// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An order of channels in which N:M pruning keeps more of what matters.

#ifndef HONE_COMPRESS_CHANNELORDER_H
#define HONE_COMPRESS_CHANNELORDER_H

#include "hone/Compress/Pruning.h"

#include <vector>

namespace hone::compress {

/// The sum of the `pattern.kept` highest of `scores` in every `pattern.width` neighbours of each row, with the columns in `order`: column
/// order[i] comes as number i. `scores`, [rows, columns], are 0 or more, and columns a multiple of the width.
double keptScore(std::span<const float> scores, std::span<const int64_t> order, NmPattern pattern);

/// Sweeps over all pairs of groups, most.
constexpr int64_t kMostOrderSweeps = 8;

/// An order with a higher keptScore: from the columns as they are, of every two groups the two channels change places that gain
/// most, pair after pair, until nothing gains or kMostOrderSweeps are done (channel swaps of Pool and Yu, "Channel Permutations for N:M
/// Sparsity", 2021, section 4). Groups are ascending. columns² / 2 · rows evaluations of a group a sweep; pairs without a common
/// group in parallel, the same order for every number of threads.
std::vector<int64_t> findChannelOrder(std::span<const float> scores, int64_t columns, NmPattern pattern);

} // namespace hone::compress

#endif // HONE_COMPRESS_CHANNELORDER_H
