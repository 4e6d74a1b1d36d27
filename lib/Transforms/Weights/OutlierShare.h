// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The share of the elements of weights that are outliers, and how many slots that is.

#ifndef HONE_LIB_TRANSFORMS_WEIGHTS_OUTLIERSHARE_H
#define HONE_LIB_TRANSFORMS_WEIGHTS_OUTLIERSHARE_H

#include "hone/Dialect/Hone/HoneTypes.h"

#include <map>

namespace hone {

/// How many elements of each weight are outliers.
class OutlierShares {
public:
  /// The share that `text` says of every weight: 0.0045 for "0.45%", none where it is empty. With a file of sensitivities it is that of all
  /// weights together, and each has as many as it has of the most sensitive elements. An error at `loc` where `text` is no share above 0, or
  /// the file cannot be read.
  static mlir::FailureOr<OutlierShares> read(llvm::StringRef text, const std::string &file, mlir::Location loc);

  /// That of a weight; a weight that the file lacks has as many as all weights together.
  double of(llvm::StringRef weight) const;
  bool has(const std::string &weight) const { return ofWeights.count(weight) > 0; }
  bool hasAny() const { return ofAll > 0; }

private:
  double ofAll = 0;
  std::map<std::string, double> ofWeights;
};

/// `base`, codes or indices, beside as many slots of outliers as that share of a matrix of `type` is, or alone where that is less than half a slot
/// of a panel, or columns are too many for #hone.dense_sparse. Of `parts` parts that lie one below the other and are rounded separately, each has
/// as many; a part whose rows are no multiple of 16 can have none.
EncodingInterface withOutliers(EncodingInterface base, mlir::RankedTensorType type, double share, int64_t parts = 1);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_WEIGHTS_OUTLIERSHARE_H
