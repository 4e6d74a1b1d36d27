// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of experts as blocks for all rows.

#ifndef HONE_TRANSFORMS_SPLITEXPERTS_H
#define HONE_TRANSFORMS_SPLITEXPERTS_H

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/IR/PatternMatch.h"

namespace hone {

/// Replaces `op` by the products of every expert with all rows, of which those that did not choose it are zeros, and the sum of
/// what is left of them. The weight of such a product is a `tensor.extract_slice` of that of all experts.
void splitMoe(mlir::RewriterBase &rewriter, MoeOp op);

} // namespace hone

#endif // HONE_TRANSFORMS_SPLITEXPERTS_H
