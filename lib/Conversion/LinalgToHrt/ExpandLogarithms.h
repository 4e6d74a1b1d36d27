// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef HONE_LIB_CONVERSION_LINALGTOHRT_EXPANDLOGARITHMS_H
#define HONE_LIB_CONVERSION_LINALGTOHRT_EXPANDLOGARITHMS_H

#include "mlir/IR/PatternMatch.h"

namespace hone {

/// Patterns that turn `math.log` and `math.log1p` of f32 into arithmetic, within two units in the last place. Zero, infinities, NaN and
/// negative numbers give what the C library gives.
void populateLogarithmPatterns(mlir::RewritePatternSet &patterns);

} // namespace hone

#endif // HONE_LIB_CONVERSION_LINALGTOHRT_EXPANDLOGARITHMS_H
