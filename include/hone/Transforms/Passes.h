// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes over the hone dialect.

#ifndef HONE_TRANSFORMS_PASSES_H
#define HONE_TRANSFORMS_PASSES_H

#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"

namespace hone {

/// The patterns of hone-decompose, each labelled with the name of the operation that it replaces.
void populateDecompositions(mlir::RewritePatternSet &patterns);

/// Applies such patterns to every operation in `root`, with a remark for each that is replaced; returns how many those are.
uint64_t decompose(mlir::Operation *root, const mlir::FrozenRewritePatternSet &patterns);

/// Replaces `op`, if it is a feed-forward block, by products and the elementwise part between them, whose results are of the elements
/// of x; returns whether it is one. Of experts these are the products of every expert with all rows, of which those that did not
/// choose it are zeros, and the sum of what is left of them; the weight of such a product is a `tensor.extract_slice` of that of all
/// experts.
bool splitIntoProducts(mlir::RewriterBase &rewriter, mlir::Operation *op);

/// Most keys of sinks, a window and a block of hone-sparsify-attention: lists have places for all of them.
constexpr int64_t kMostListedKeys = int64_t{1} << 24;

#define GEN_PASS_DECL
#include "hone/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "hone/Transforms/Passes.h.inc"

} // namespace hone

#endif // HONE_TRANSFORMS_PASSES_H
