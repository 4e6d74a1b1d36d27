// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A weight that a method has rounded, as parameters store it.

#ifndef HONE_LIB_TRANSFORMS_WEIGHTS_ROUNDEDWEIGHT_H
#define HONE_LIB_TRANSFORMS_WEIGHTS_ROUNDEDWEIGHT_H

#include "hone/Compress/Codebook.h"
#include "hone/Compress/Rounding.h"
#include "hone/Dialect/Hone/HoneTypes.h"

#include <variant>

namespace hone {

/// Codes of a `#hone.affine` or indices into a `#hone.codebook`, and outliers if there are any.
struct RoundedWeight {
  std::variant<compress::AffineWeight, compress::CodebookWeight> base;
  compress::SparseWeight outliers;

  /// Adds the rows of a weight of the same form below. With outliers, rows of both are multiples of 16.
  void append(const RoundedWeight &below);
  /// Writes the numbers that it means to `weight`, which is of its size; `encoding` is that of its base.
  void writeValues(EncodingInterface encoding, const compress::Weight &weight) const;
  /// The storage of a parameter of `type`.
  mlir::Attribute makeStorage(mlir::RankedTensorType type) const;
};

/// The encoding of what is stored beside outliers, or `encoding` where there are none.
EncodingInterface getBaseOf(EncodingInterface encoding);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_WEIGHTS_ROUNDEDWEIGHT_H
