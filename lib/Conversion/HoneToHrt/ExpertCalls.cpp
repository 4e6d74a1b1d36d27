// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What experts have between their layers, by calls of kernels. These know activations by their numbers; a clamped SwiGLU is generated
// code between sums that kernels give as they are.

#include "KernelSelection.h"

#include "hone/Transforms/ExpertHidden.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

Value createExpertHidden(OpBuilder &b, MoeOp op, CallOfExperts create) {
  Location loc = op.getLoc();
  int64_t width = op.getHiddenSize(), identity = 0;
  auto call = [&](const ExpertSums &sums, int64_t columns) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, op.getExpertIds());
    sizes.push_back(b.getIndexAttr(columns));
    return create(sums, tensor::EmptyOp::create(b, loc, sizes, b.getF32Type()));
  };
  if (!op.getSwiglu()) {
    int64_t fused = op.getFused() ? static_cast<int64_t>(*op.getFused()) + 1 : 0;
    return call({op.getUp(), op.getUpBias(), op.getGate(), op.getGateBias(), getNumber(op.getActivation()), fused},
                width);
  }
  LocBuilder builder(loc, b);
  Value up = call({op.getUp(), op.getUpBias(), {}, {}, identity, 0}, op.getFused() ? 2 * width : width), gate;
  if (op.getFused())
    std::tie(gate, up) = splitFusedRows(builder, op, up);
  else
    gate = call({op.getGate(), op.getGateBias(), {}, {}, identity, 0}, width);
  return buildExpertHidden(builder, op, up, gate, b.getF32Type());
}

} // namespace hone
