// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations whose adjoints are those of their decompositions.

#include "Models.h"

#include "hone/Dialect/Hone/HoneOps.h"

using namespace mlir;

namespace hone {

namespace {

template <typename Op>
struct DecomposedModel : DifferentiableOpInterface::ExternalModel<DecomposedModel<Op>, Op> {
  bool hasAdjoint(Operation *, const Adjoints &) const { return false; }

  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &, Adjoints &) const {
    return op->emitError() << "cannot differentiate " << op->getName() << ": expected it to be decomposed";
  }
};

} // namespace

void registerDecomposedAdjoints(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, HoneDialect *) {
    ConvolutionOp::attachInterface<DecomposedModel<ConvolutionOp>>(*context);
    PoolOp::attachInterface<DecomposedModel<PoolOp>>(*context);
    LinearAttentionOp::attachInterface<DecomposedModel<LinearAttentionOp>>(*context);
  });
}

} // namespace hone
