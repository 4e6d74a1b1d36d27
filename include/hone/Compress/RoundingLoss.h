// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What rounding would cost, without doing it.

#ifndef HONE_COMPRESS_ROUNDINGLOSS_H
#define HONE_COMPRESS_ROUNDINGLOSS_H

#include "hone/Compress/AffineQuantization.h"
#include "hone/Compress/Matrix.h"
#include "hone/io/status.h"

namespace hone::compress {

/// Rows that an estimate looks at; errors of rows of one weight are alike.
constexpr int64_t kMostRowsLookedAt = 256;

/// The sum over elements of importance_j (w_j - q_j)², with q_j the number that w_j is rounded to in `format` with scales of searchScale,
/// and `importance`, [K], how much an error of column j costs: with H_jj, the diagonal of the Hessian, it is the mean
/// square of what changes of the outputs if errors of different columns are independent, and with 1 / R_jj² of an InverseFactor
/// with error compensation in the following columns. Of more than `mostRows` rows, as many that lie evenly stand for all. In
/// f64, parallel, the same bits for every number of threads. Without what markCostly takes for
/// `outliers` slots a panel.
/// Fails, naming the row, where a group has no finite scale.
absl::StatusOr<double> roundingLoss(const Weight &weight, const AffineFormat &format, std::span<const float> importance,
                                    double outliers = 0, int64_t mostRows = kMostRowsLookedAt);

} // namespace hone::compress

#endif // HONE_COMPRESS_ROUNDINGLOSS_H
