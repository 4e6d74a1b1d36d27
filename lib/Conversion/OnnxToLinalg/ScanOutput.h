// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that a loop collects, one an iteration, in a tensor with a dimension more.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_SCANOUTPUT_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_SCANOUTPUT_H

#include "Lowering.h"

namespace hone::lowering {

/// The buffer of one collected output. Where the number of iterations and the sizes of an element are known before the
/// loop it is as large as the result; else it grows to twice its length whenever it is full.
struct ScanOutput {
  /// For elements of type `element` as the file declares it, without sign; `trips` iterations if that is known.
  static ScanOutput create(Node &node, Type element, std::optional<Size> trips);
  /// `buffer` with `value` as its element `iteration`.
  FailureOr<Value> append(Node &node, Value buffer, Value iteration, Value value) const;
  /// The first `trips` elements of `buffer`.
  Value finish(Node &node, Value buffer, Size trips) const;

  /// The buffer before the first iteration; null if the type of the elements is not known.
  Value initial;
  bool grows = false;
};

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_SCANOUTPUT_H
