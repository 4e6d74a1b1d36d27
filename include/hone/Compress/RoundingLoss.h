// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What rounding would cost, without doing it.

#ifndef HONE_COMPRESS_ROUNDINGLOSS_H
#define HONE_COMPRESS_ROUNDINGLOSS_H

#include "hone/Compress/AffineLevels.h"
#include "hone/Compress/Matrix.h"
#include "hone/io/status.h"

namespace hone::compress {

/// The sum over elements of importance_j (w_j - q_j)², with q_j the number that w_j is rounded to in `format`, and `importance`,
/// [K], how much an error of column j costs: H_jj, the diagonal of the second moment, makes it the mean square of what changes
/// of the outputs if errors of different columns are independent; all ones where it is empty. In f64, parallel, the same bits
/// for every number of threads. Fails, naming the row, where a group has no finite scale.
absl::StatusOr<double> roundingLoss(const Weight &weight, const AffineFormat &format,
                                    std::span<const float> importance);

} // namespace hone::compress

#endif // HONE_COMPRESS_ROUNDINGLOSS_H
