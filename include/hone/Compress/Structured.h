// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Structured pruning: which inputs of a weight a model can do best without, and error compensation in those that stay.

#ifndef HONE_COMPRESS_STRUCTURED_H
#define HONE_COMPRESS_STRUCTURED_H

#include "hone/Compress/InverseFactor.h"
#include "hone/Compress/Matrix.h"

#include <vector>

namespace hone::compress {

/// Inputs of a weight that stay or go together: input k is of prunable group `groupOf[k]`, in [0, count), or of none where that is negative.
/// A prunable group is a hidden channel, say, or a KV head with the query heads that share it (GQA).
struct InputGroups {
  std::span<const int32_t> groupOf;
  int64_t count;
};

/// Of each group, the sum over its inputs k of H_kk |w_k|², with w_k column k: what the outputs lose in the mean if inputs are not
/// correlated. N K operations.
std::vector<double> scoreByEnergy(const Weight &weight, const Hessian &hessian, InputGroups groups);

/// Of each group, the sum of the squares of its columns.
std::vector<double> scoreColumns(const Weight &weight, InputGroups groups);

/// Of each group of rows, given as those of columns are, the sum of the squares of its rows.
std::vector<double> scoreRows(const Weight &weight, InputGroups groups);

/// The `count` groups of lowest score, ascending; of equal ones, those that come last.
std::vector<int64_t> chooseLowest(std::span<const double> scores, int64_t count);

/// What eliminateGroups did.
struct Elimination {
  std::vector<int64_t> groups; // that are gone, ascending
  double loss;                 // tr(D H' Dᵀ) for D = W - W', the change of the weight in the damped Hessian
};

/// Removes `count` groups, those that cost least: their columns become 0, and those that stay become the least squares fit
/// W' = W H'[:, S] H'[S, S]⁻¹ of the outputs, S being the inputs that stay and H' the damped Hessian, which draws what is not
/// determined towards W. A group B costs tr(W_B ([H'⁻¹]_BB)⁻¹ W_Bᵀ) (Hassibi and Stork, "Second order derivatives for network
/// pruning: Optimal Brain Surgeon", 1992; for blocks of inputs of a layer: Kurtic et al., "ZipLM", 2023, section 3), the weight and
/// the inverse being those of what is left. Groups go in as many as `rounds` rounds of about equal size, and what they cost is
/// computed anew for each; one a round is the greedy choice, and one round the choice by what each costs alone.
///
/// `factor` has the columns in their order; a column without inputs becomes 0 and costs nothing. 2/3 K³ operations for the
/// inverse and 2 (K + N) K for each input that goes, in f64; 24 K² bytes. Parallel, and the same bits for every number of
/// threads. Fails where groups are so many that what is left has no inverse in f64.
absl::StatusOr<Elimination> eliminateGroups(const Weight &weight, const InverseFactor &factor, InputGroups groups,
                                            int64_t count, int64_t rounds);

/// H[S, S] for the inputs S in `kept`, row-major.
std::vector<float> selectInputs(const Hessian &hessian, std::span<const int64_t> kept);

} // namespace hone::compress

#endif // HONE_COMPRESS_STRUCTURED_H
