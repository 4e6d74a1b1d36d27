// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activation functions in arithmetic on scalars.

#ifndef HONE_LIB_CONVERSION_LINALGTOHRT_SCALARACTIVATION_H
#define HONE_LIB_CONVERSION_LINALGTOHRT_SCALARACTIVATION_H

#include "mlir/IR/Value.h"

#include <optional>

namespace hone {

/// scale · act(x) + shift, where the number of act is that of `activation` in kernels/signatures.def.
struct ScalarActivation {
  int64_t number;
  double scale, shift;

  /// What `result` is of the scalar `x`; nothing where it is anything else.
  static std::optional<ScalarActivation> match(mlir::Value result, mlir::Value x);
};

} // namespace hone

#endif // HONE_LIB_CONVERSION_LINALGTOHRT_SCALARACTIVATION_H
