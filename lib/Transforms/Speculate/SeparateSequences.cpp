// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-separate-sequences: @forward for sequences that hold different numbers of positions. As hone-speculate does, it rewrites
// everything that the number of held positions decides, or refuses.

#include "StateReaders.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"

namespace hone {
#define GEN_PASS_DEF_SEPARATESEQUENCES
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::speculation {

static constexpr llvm::StringLiteral kForward = "forward", kPass = "hone-separate-sequences";

static LogicalResult refuse(Operation *op, const Twine &reason) {
  remark::missed(op->getLoc(), remark::RemarkOpts::name("Sequences").category(kPass)) << reason.str();
  return op->emitError() << "cannot let '" << kForward << "' take sequences of different lengths: " << reason;
}

/// By sequence, how many positions fewer than the longest it holds: `[B, 1, …]`.
static Value buildLags(func::FuncOp function, int64_t rank) {
  ImplicitLocOpBuilder b(function.getLoc(), function.getContext());
  b.setInsertionPointToStart(&function.getBody().front());
  Value batch = tensor::DimOp::create(b, function.getArgument(0), 0), state = function.getArguments().back();
  SmallVector<int64_t> shape(rank, 1);
  shape[0] = ShapedType::kDynamic;
  auto type = RankedTensorType::get(shape, b.getI64Type());
  return tensor::GenerateOp::create(b, type, batch, [&](OpBuilder &nested, Location loc, ValueRange sequence) {
    Value lag = KvLagOp::create(nested, loc, state, sequence[0]);
    Value number = arith::IndexCastOp::create(nested, loc, nested.getI64Type(), lag);
    tensor::YieldOp::create(nested, loc, number);
  });
}

/// Lets what reads positions, `[B, …]`, read those of each sequence.
static void separatePositions(func::FuncOp function, Value positions) {
  OpBuilder b(positions.getContext());
  b.setInsertionPointAfterValue(positions);
  auto type = cast<RankedTensorType>(positions.getType());
  OperationState sub(positions.getLoc(), onnxir::getOperationName("", "Sub"));
  sub.addOperands({positions, buildLags(function, type.getRank())});
  sub.addTypes(type);
  Operation *separated = b.create(sub);
  positions.replaceAllUsesExcept(separated->getResult(0), separated);
}

namespace {
struct SeparateSequences : impl::SeparateSequencesBase<SeparateSequences> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(kForward);
    if (!forward || !isOverTokens(forward)) {
      getOperation().emitError() << "cannot let sequences have different lengths: the model has no entry '" << kForward
                                 << "' of tokens with a state";
      return signalPassFailure();
    }
    FailureOr<StateReaders> readers =
        findStateReaders(forward, "sequences of different lengths", Positions::OfSequences, refuse);
    if (failed(readers))
      return signalPassFailure();
    separate(forward, *readers);
  }

private:
  void separate(func::FuncOp forward, StateReaders &readers) {
    Value lags = buildLags(forward, 1);
    for (const PositionTensor &tensor : readers.positions)
      separatePositions(forward, tensor.value);
    for (AttentionOp attention : readers.attentions)
      attention.getLagsMutable().assign(lags);
    numAttentions += readers.attentions.size();
    numPositions += readers.positions.size();
    remark::passed(forward.getLoc(), remark::RemarkOpts::name("Sequences").category(kPass))
        << (Twine(readers.attentions.size()) + " attentions and " + Twine(readers.positions.size()) +
            " tensors of positions go by the length of each sequence")
               .str();
  }
};
} // namespace

} // namespace hone::speculation
