// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mixtures of experts as kernels of CUDA: pairs of rows and choices by expert, what is between the two layers, and the weighted sum.

#include "CudaSelection.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneStorage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

/// Experts that cuda.expert_groups takes at most.
static constexpr int64_t kMostExperts = 8192;

/// Whether kernels of experts read a weight: numbers, or levels without outliers.
static bool isRead(Value weight) {
  return !getFormat(weight).empty() && !roundsActivations(weight) &&
         !isa_and_nonnull<DenseSparseAttr>(cast<RankedTensorType>(weight.getType()).getEncoding());
}

static bool haveKernels(MoeOp op) {
  Value up = op.getUp(), gate = op.getGate();
  bool areRead = isRead(up) && isRead(op.getDown()) &&
                 (!gate || (isRead(gate) && getFormat(gate) == getFormat(up) && getLevels(gate) == getLevels(up)));
  Type ids = cast<RankedTensorType>(op.getExpertIds().getType()).getElementType();
  return areRead && (ids.isInteger(32) || ids.isInteger(64)) && op.getHiddenSize() > 0 &&
         op.getUp().getType().getDimSize(1) > 0 && op.getExpertCount() <= kMostExperts &&
         arePlainFloats({op.getX(), op.getExpertWeights(), op.getUpBias(), op.getDownBias(), op.getGateBias()});
}

/// Memory for the groups of `ids`.
static Value createGroups(OpBuilder &b, Location loc, Value ids, int64_t experts) {
  int64_t pairs = 1;
  Value dynamic;
  for (OpFoldResult size : tensor::getMixedSizes(b, loc, ids)) {
    if (auto constant = getConstantIntValue(size))
      pairs *= *constant;
    else
      dynamic = dynamic ? arith::MulIOp::create(b, loc, dynamic, cast<Value>(size)) : cast<Value>(size);
  }
  SmallVector<OpFoldResult> sizes{b.getIndexAttr(experts + 1 + pairs)};
  if (dynamic) {
    dynamic = arith::MulIOp::create(b, loc, dynamic, arith::ConstantIndexOp::create(b, loc, pairs));
    sizes[0] = arith::AddIOp::create(b, loc, dynamic, arith::ConstantIndexOp::create(b, loc, experts + 1)).getResult();
  }
  return tensor::EmptyOp::create(b, loc, sizes, b.getI32Type());
}

Value createExperts(OpBuilder &b, MoeOp op, Value call) {
  if (!haveKernels(op))
    return {};
  Location loc = op.getLoc();
  int64_t experts = op.getExpertCount();
  Value ids = op.getExpertIds();
  Value groups = createKernel(b, loc, call, {"cuda.expert_groups", {{"ids", ids}}, {{"experts", experts}}, {}},
                              createGroups(b, loc, ids, experts));
  Value hidden = createExpertHidden(b, op, [&](const ExpertSums &sums, Value destination) {
    KernelCall first{"cuda.expert_hidden." + getFormat(op.getUp()),
                     {{"x", op.getX()},
                      {"groups", groups},
                      {"up", sums.up},
                      {"upBias", sums.upBias},
                      {"gate", sums.gate},
                      {"gateBias", sums.gateBias}},
                     {{"activation", sums.activation}, {"fused", sums.fused}, {"experts", experts}},
                     {}};
    addFormatIntegers(first, getLevels(op.getUp()));
    return createKernel(b, loc, call, first, destination);
  });
  KernelCall second{"cuda.expert_sum." + getFormat(op.getDown()),
                    {{"hidden", hidden},
                     {"ids", ids},
                     {"expertWeights", op.getExpertWeights()},
                     {"groups", groups},
                     {"down", op.getDown()},
                     {"downBias", op.getDownBias()}},
                    {{"experts", experts}},
                    {}};
  addFormatIntegers(second, getLevels(op.getDown()));
  Value result = tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, op.getX()),
                                         op.getResult().getType().getElementType());
  return createKernel(b, loc, call, second, result);
}

} // namespace hone
