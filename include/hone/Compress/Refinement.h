// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Codes and scales that were chosen once, changed one at a time while the outputs gain by it.

#ifndef HONE_COMPRESS_REFINEMENT_H
#define HONE_COMPRESS_REFINEMENT_H

#include "hone/Compress/Outliers.h"
#include "hone/Compress/Rounding.h"

namespace hone::compress {

/// Lowers tr(D H' Dᵀ), D = `weight` - values of `rounded` and of `outliers` if there are any, by cyclic coordinate descent, `passes` times over each
/// row: every scale becomes the best for the codes, which is least squares over its group with all else fixed, then every code
/// the best for the scales, which is the nearest to w_j + (D H')_j / H'_jj - D_j (Behdin et al., "QuantEase", 2023, section 3), and
/// every outlier the f16 that is nearest to the same. A change that does not lower it is not made. H' is H with damping times the
/// mean of its diagonal, as InverseFactor has it.
///
/// Elements of `weight` that are 0 and columns without inputs stay as they are, and codes of outliers the zero points. 2 N K²
/// operations in f64 and up to as many a pass. Parallel over rows, each of which depends on itself alone. Fails where H is not
/// finite or of another size.
absl::Status refine(const Weight &weight, const AffineFormat &format, const Hessian &hessian, int64_t passes,
                    AffineWeight &rounded, SparseWeight *outliers = nullptr);

} // namespace hone::compress

#endif // HONE_COMPRESS_REFINEMENT_H
