// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// N:M sparsity: in every group of m neighbouring inputs of a row, n elements are kept and the others are 0.

#ifndef HONE_COMPRESS_PRUNING_H
#define HONE_COMPRESS_PRUNING_H

#include "hone/Compress/InverseFactor.h"
#include "hone/Compress/Matrix.h"

namespace hone::compress {

/// `kept` of every `width` neighbouring inputs: 2 of 4, say. 0 <= kept <= width, 1 <= width <= 128.
struct NmPattern {
  int64_t kept, width;
};

/// Marks the `count` highest of `scores` in `isKept`, which has as many elements; of equal ones, those that come first. A NaN
/// is the lowest.
void selectHighest(std::span<const double> scores, int64_t count, std::span<bool> isKept);

/// The β that makes ‖w - β S(w)‖ smallest, ⟨w, S(w)⟩ / ‖S(w)‖², where S moves each element of a group towards 0 by the largest magnitude
/// t that is not kept: sign(w) max(|w| - t, 0) (Hu et al., "S-STE: Continuous Pruning Function for Efficient 2:4 Sparse Pre-training",
/// 2024, section 4). 1 where S(w) is 0. The number of inputs is a multiple of the pattern's width.
double getShrinkScale(const Weight &weight, NmPattern pattern);

// The methods below prune a weight whose number of inputs is a multiple of the pattern's width. Each row's result depends on
// that row alone, and none on the number of threads. At most `kept` elements of a group differ from 0; exactly as many, if no
// element that is kept is 0.

/// Keeps the elements of largest magnitude.
void pruneByMagnitude(const Weight &weight, NmPattern pattern);

/// Keeps the elements of largest |w_j| · |x_j|, with |x_j|² the diagonal of the Hessian (Sun et al., "A Simple and
/// Effective Pruning Approach for Large Language Models", 2023, section 3).
void pruneByWanda(const Weight &weight, const Hessian &hessian, NmPattern pattern);

/// Keeps the elements of largest w_j² / R_jj², chosen when the sweep reaches their group, with error compensation in the following
/// columns for each one it drops (Frantar and Alistarh, "SparseGPT", 2023, algorithm 1); columns without inputs become 0. `factor` has
/// the order of the columns. Returns the squared error of the outputs in the damped Hessian, summed over rows. N K²
/// operations in f64.
double pruneBySparseGpt(const Weight &weight, const InverseFactor &factor, NmPattern pattern);

} // namespace hone::compress

#endif // HONE_COMPRESS_PRUNING_H
