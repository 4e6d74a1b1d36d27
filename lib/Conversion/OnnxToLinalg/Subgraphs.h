// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Subgraphs of If, Loop and Scan.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_SUBGRAPHS_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_SUBGRAPHS_H

#include "Lowering.h"

namespace hone::lowering {

/// The subgraph `name`, which must have `inputs` inputs and at least `outputs` outputs.
FailureOr<mlir::Region *> requireSubgraph(Node &node, StringRef name, size_t inputs, size_t outputs);

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_SUBGRAPHS_H
