// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The share of the elements of weights that are outliers, and how many slots that is.

#ifndef HONE_LIB_TRANSFORMS_WEIGHTS_OUTLIERSHARE_H
#define HONE_LIB_TRANSFORMS_WEIGHTS_OUTLIERSHARE_H

#include "hone/Dialect/Hone/HoneTypes.h"

namespace hone {

/// The share that `text` says: 0.0045 for "0.45%", 0 where it is empty. An error at `loc` where it is no share above 0.
mlir::FailureOr<double> readOutlierShare(llvm::StringRef text, mlir::Location loc);

/// `base`, codes or indices, beside as many slots of outliers as that share of a matrix of `type` is, or alone where that is less than half a slot
/// of a panel, or columns are too many for #hone.dense_sparse. Of `parts` parts that lie one below the other and are rounded separately, each has
/// as many; a part whose rows are no multiple of 16 can have none.
EncodingInterface withOutliers(EncodingInterface base, mlir::RankedTensorType type, double share, int64_t parts = 1);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_WEIGHTS_OUTLIERSHARE_H
