// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-speculate: @verify of @forward, for the tokens of a tree. Everything that the number of held positions decides is either
// rewritten or a reason to refuse, so that what is left is computed as for a chain.

#include "StateReaders.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"

namespace hone {
#define GEN_PASS_DEF_SPECULATE
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::speculation {
namespace {

constexpr llvm::StringLiteral kForward = "forward", kVerify = "verify", kAncestors = "ancestors";
/// Tokens of a call: the bits of a word.
constexpr int64_t kMostTokens = 64;

/// Makes @verify of a copy of @forward.
class Verifier {
public:
  /// With `kind` OfSequences each has a tree of its own, and a length.
  Verifier(func::FuncOp function, Positions kind)
      : function(function), kind(kind), state(function.getArguments().back()), tokens(function.getArgument(0)) {}

  /// Fails after an error and a remark, with the function as useless as it then is.
  LogicalResult build();
  int64_t numAttentions = 0, numPositions = 0;

private:
  LogicalResult refuse(Operation *op, const Twine &reason) const;
  bool isOfSequences() const { return kind == Positions::OfSequences; }
  void addAncestors();
  Value buildLags(ImplicitLocOpBuilder &b, Value words, ValueRange sizes) const;
  Value alignLags(ImplicitLocOpBuilder &b, const PositionTensor &positions) const;
  void branchPositions(ArrayRef<PositionTensor> positions);
  void branchAttentions(ArrayRef<AttentionOp> attentions);
  Value buildKeyPositions(ImplicitLocOpBuilder &b);

  func::FuncOp function;
  Positions kind;
  Value state, tokens;
  Value batch, count; // of sequences and of tokens, indices
  Value ancestors;    // as #hone.tree takes them
  Value lags;         // by token, or by sequence and token: how many of the earlier ones are no ancestors
  Value keyPositions; // null until one is needed
};

} // namespace

LogicalResult Verifier::refuse(Operation *op, const Twine &reason) const {
  remark::missed(op->getLoc(), remark::RemarkOpts::name("Verify").category("hone-speculate")) << reason.str();
  return op->emitError() << "cannot make an entry '" << kVerify << "' for trees of tokens: " << reason;
}

//===- The tree -------------------------------------------------------------------------------------------------------===//

/// The name of a dimension of the tokens, given to it if it has none.
static StringAttr nameDimension(func::FuncOp function, unsigned dim, StringRef otherwise) {
  Builder b(function.getContext());
  auto given = function.getArgAttrOfType<ArrayAttr>(0, onnxir::kDimsAttr);
  SmallVector<Attribute> names(2, b.getStringAttr(""));
  if (given && given.size() == 2)
    names.assign(given.begin(), given.end());
  if (cast<StringAttr>(names[dim]).empty())
    names[dim] = b.getStringAttr(otherwise);
  function.setArgAttr(0, onnxir::kDimsAttr, b.getArrayAttr(names));
  return cast<StringAttr>(names[dim]);
}

/// By token of the words, how far those of a tree are before those of a chain.
Value Verifier::buildLags(ImplicitLocOpBuilder &b, Value words, ValueRange sizes) const {
  Type i64 = b.getI64Type();
  return tensor::GenerateOp::create(b, words.getType(), sizes, [&](OpBuilder &nested, Location loc, ValueRange token) {
    Value own = arith::IndexCastOp::create(nested, loc, i64, token.back());
    Value one = arith::ConstantIntOp::create(nested, loc, i64, 1),
          zero = arith::ConstantIntOp::create(nested, loc, i64, 0);
    Value word = tensor::ExtractOp::create(nested, loc, words, token);
    Value path = math::CtPopOp::create(nested, loc, word); // with the token itself
    Value others = arith::SubIOp::create(nested, loc, arith::AddIOp::create(nested, loc, own, one), path);
    // Whatever the words are, no position is before the first token or after the last one.
    Value bounded = arith::MinSIOp::create(nested, loc, arith::MaxSIOp::create(nested, loc, others, zero), own);
    tensor::YieldOp::create(nested, loc, bounded);
  });
}

/// The input, as attention takes it, and the lags that follow from it.
void Verifier::addAncestors() {
  ImplicitLocOpBuilder b(function.getLoc(), function.getContext());
  SmallVector<Attribute> names = {nameDimension(function, 1, "sequence")};
  if (isOfSequences())
    names.insert(names.begin(), nameDimension(function, 0, "batch"));
  Type i64 = b.getI64Type();
  auto type = RankedTensorType::get(SmallVector<int64_t>(names.size(), ShapedType::kDynamic), i64);
  DictionaryAttr attributes = b.getDictionaryAttr({b.getNamedAttr(onnxir::kNameAttr, b.getStringAttr(kAncestors)),
                                                   b.getNamedAttr(onnxir::kDimsAttr, b.getArrayAttr(names))});
  (void)function.insertArgument(1, type, attributes, function.getLoc());
  Value words = function.getArgument(1);
  b.setInsertionPointToStart(&function.getBody().front());
  batch = tensor::DimOp::create(b, tokens, 0);
  count = tensor::DimOp::create(b, tokens, 1);
  Value fits =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ule, count, arith::ConstantIndexOp::create(b, kMostTokens));
  hrt::CheckOp::create(b, fits, "expected a tree of at most 64 tokens, but got {}", count);
  OpFoldResult one = b.getIndexAttr(1), sequences = isOfSequences() ? OpFoldResult(batch) : one;
  int64_t trees = isOfSequences() ? ShapedType::kDynamic : 1;
  SmallVector<ReassociationIndices> axes =
      isOfSequences() ? SmallVector<ReassociationIndices>{{0}, {1, 2}} : SmallVector<ReassociationIndices>{{0, 1, 2}};
  ancestors = tensor::ExpandShapeOp::create(b, RankedTensorType::get({trees, ShapedType::kDynamic, 1}, i64), words,
                                            axes, SmallVector<OpFoldResult>{sequences, count, one});
  lags = buildLags(b, words, isOfSequences() ? ValueRange{batch, count} : ValueRange{count});
}

/// The lags along the axes of positions, from the first that they have on.
Value Verifier::alignLags(ImplicitLocOpBuilder &b, const PositionTensor &positions) const {
  int64_t rank = cast<RankedTensorType>(positions.value.getType()).getRank();
  int64_t first = isOfSequences() ? 0 : positions.axis;
  if (rank - first == cast<RankedTensorType>(lags.getType()).getRank())
    return lags;
  SmallVector<int64_t> shape(rank - first, 1);
  SmallVector<OpFoldResult> sizes(rank - first, b.getIndexAttr(1));
  SmallVector<ReassociationIndices> axes(cast<RankedTensorType>(lags.getType()).getRank());
  auto set = [&](int64_t axis, Value size) {
    shape[axis - first] = ShapedType::kDynamic;
    sizes[axis - first] = size;
  };
  if (isOfSequences())
    set(0, batch);
  set(positions.axis, count);
  for (int64_t axis = first; axis < rank; ++axis)
    axes[isOfSequences() && axis >= positions.axis ? 1 : 0].push_back(axis - first);
  return tensor::ExpandShapeOp::create(b, RankedTensorType::get(shape, b.getI64Type()), lags, axes, sizes);
}

/// Lets what reads positions read those in the tree. Of separate sequences that is what takes the lag of each off.
void Verifier::branchPositions(ArrayRef<PositionTensor> positions) {
  for (const PositionTensor &tensor : positions) {
    ImplicitLocOpBuilder b(tensor.value.getLoc(), function.getContext());
    b.setInsertionPointAfterValue(tensor.value);
    OperationState sub(b.getLoc(), onnxir::getOperationName("", "Sub"));
    sub.addOperands({tensor.value, alignLags(b, tensor)});
    sub.addTypes(tensor.value.getType());
    Operation *branched = b.create(sub);
    Value read = tensor.value;
    read.replaceAllUsesExcept(branched->getResult(0), branched);
    ++numPositions;
  }
}

/// `[B, Sk]`: held positions are at their own places, tokens of the call where the tree has them. What is after the tokens of a sequence that
/// is shorter than another is none of its keys.
Value Verifier::buildKeyPositions(ImplicitLocOpBuilder &b) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(lags);
  Type i64 = b.getI64Type();
  Value held = KvLengthOp::create(b, state);
  Value keys = arith::AddIOp::create(b, held, count);
  auto type = RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic}, i64);
  return tensor::GenerateOp::create(
      b, type, ValueRange{batch, keys}, [&](OpBuilder &nested, Location loc, ValueRange at) {
        Value zero = arith::ConstantIndexOp::create(nested, loc, 0), own = held;
        if (isOfSequences())
          own = arith::SubIOp::create(nested, loc, held, KvLagOp::create(nested, loc, state, at[0]));
        Value token = arith::SubIOp::create(nested, loc, at[1], own);
        Value isHeld = arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::slt, token, zero);
        Value inCall = arith::MaxSIOp::create(nested, loc, token, zero);
        SmallVector<Value> lagAt = {inCall};
        if (isOfSequences()) {
          Value one = arith::ConstantIndexOp::create(nested, loc, 1);
          lagAt = {at[0], arith::MinSIOp::create(nested, loc, inCall, arith::SubIOp::create(nested, loc, count, one))};
        }
        Value lag = tensor::ExtractOp::create(nested, loc, lags, lagAt);
        Value none = arith::ConstantIntOp::create(nested, loc, i64, 0);
        Value back = arith::SelectOp::create(nested, loc, isHeld, none, lag);
        Value place = arith::IndexCastOp::create(nested, loc, i64, at[1]);
        tensor::YieldOp::create(nested, loc, arith::SubIOp::create(nested, loc, place, back).getResult());
      });
}

static bool hasWindow(AttentionPatternInterface pattern) {
  if (auto all = dyn_cast<AllOfAttr>(pattern))
    return llvm::any_of(all.getPatterns(), hasWindow);
  return isa<SlidingAttr>(pattern);
}

void Verifier::branchAttentions(ArrayRef<AttentionOp> attentions) {
  for (AttentionOp op : attentions) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    MLIRContext *context = b.getContext();
    SmallVector<AttentionPatternInterface> patterns;
    if (auto all = dyn_cast<AllOfAttr>(op.getPattern()))
      llvm::append_range(patterns, all.getPatterns());
    else
      patterns.push_back(op.getPattern());
    patterns.push_back(TreeAttr::get(context));
    op.setPatternAttr(AllOfAttr::get(context, patterns));
    op.getPatternOperandsMutable().append(ancestors);
    if (op.getAlibi() || hasWindow(op.getPattern())) {
      if (!keyPositions)
        keyPositions = buildKeyPositions(b);
      op.getKeyPositionsMutable().assign(keyPositions);
    }
    ++numAttentions;
  }
}

LogicalResult Verifier::build() {
  FailureOr<StateReaders> readers =
      findStateReaders(function, "trees", kind, [&](Operation *op, const Twine &reason) { return refuse(op, reason); });
  if (failed(readers))
    return failure();
  addAncestors();
  branchPositions(readers->positions);
  branchAttentions(readers->attentions);
  if (numAttentions == 0)
    return refuse(function, "no attention reads the state");
  return success();
}

namespace {
struct Speculate : impl::SpeculateBase<Speculate> {
  void runOnOperation() override {
    if (failed(addVerify()))
      signalPassFailure();
  }

private:
  LogicalResult addVerify();
};
} // namespace

/// Whether sequences go by the positions that each holds itself.
static bool areSeparate(func::FuncOp function) {
  return function.walk([](KvLagOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

LogicalResult Speculate::addVerify() {
  auto forward = getOperation().lookupSymbol<func::FuncOp>(kForward);
  if (!forward || !isOverTokens(forward))
    return getOperation().emitError() << "cannot make an entry '" << kVerify << "' for trees of tokens: the model has "
                                      << "no entry '" << kForward << "' of tokens with a state";
  if (getOperation().lookupSymbol(kVerify))
    return getOperation().emitError() << "cannot make an entry '" << kVerify << "': the model has one";
  OpBuilder b(forward);
  b.setInsertionPointAfter(forward);
  auto verify = cast<func::FuncOp>(b.clone(*forward));
  verify.setName(kVerify);
  Verifier verifier(verify, areSeparate(forward) ? Positions::OfSequences : Positions::OfTokens);
  if (failed(verifier.build()))
    return verify.erase(), failure();
  numAttentions += verifier.numAttentions;
  numPositions += verifier.numPositions;
  remark::passed(forward.getLoc(), remark::RemarkOpts::name("Verify").category("hone-speculate"))
      << (Twine(verifier.numAttentions) + " attentions see the ancestors of a token, " + Twine(verifier.numPositions) +
          " tensors of positions go by them")
             .str();
  return success();
}

} // namespace hone::speculation
