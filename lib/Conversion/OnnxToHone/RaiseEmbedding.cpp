// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gather of rows of a weight.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {
#define GEN_PASS_DEF_RAISEEMBEDDING
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

/// Rows of fewer elements are no embeddings but small look-ups, which fuse better as what they are.
static constexpr int64_t kLeastWidth = 8;

static bool raiseGather(Operation *op) {
  if (!isOp(op, "Gather") || getInteger(op, "axis", 0) != 0)
    return false;
  Value table = op->getOperand(0), ids = op->getOperand(1);
  auto idType = getRankedType(ids);
  if (!table.getDefiningOp<GetParamOp>() || getRank(table) != 2 || !isFloat(table) ||
      getLastSize(table) < kLeastWidth || !idType || idType.getRank() < 1)
    return false;
  if (!idType.getElementType().isInteger(32) && !idType.getElementType().isInteger(64))
    return false;
  // Tables of angles are read once a call; what matters is the rotation.
  if (llvm::any_of(op->getResult(0).getUsers(), [](Operation *user) { return isa<RopeOp>(user); }))
    return false;
  OpBuilder b(op);
  SmallVector<int64_t> shape(idType.getShape());
  shape.push_back(getLastSize(table));
  auto type = RankedTensorType::get(shape, cast<RankedTensorType>(table.getType()).getElementType());
  replace(op->getResult(0), EmbeddingOp::create(b, op->getLoc(), type, ids, table));
  remarkRaised(op->getLoc(), "hone-raise-embedding", "Embedding") << "raised from Gather";
  return true;
}

namespace {
struct RaiseEmbedding : impl::RaiseEmbeddingBase<RaiseEmbedding> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<Operation *> ops;
      function.walk([&](Operation *op) { ops.push_back(op); });
      for (Operation *op : ops)
        if (onnxir::isOnnxOp(op))
          numEmbeddings += raiseGather(op);
      eraseDead(function);
    }
  }
};
} // namespace

} // namespace hone::raising
