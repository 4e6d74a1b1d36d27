// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which attentions and positions there are, and what is in their way.

#include "StateReaders.h"

using namespace mlir;

namespace hone::speculation {

bool isOverTokens(func::FuncOp function) {
  if (function.isExternal() || function.getNumArguments() < 2 || !isa<KvType>(function.getArgumentTypes().back()))
    return false;
  auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes().front());
  return type && type.getRank() == 2 && type.getElementType().isSignlessInteger() && type.isDynamicDim(1);
}

namespace {

class ReaderFinder {
public:
  ReaderFinder(func::FuncOp function, StringRef what, Positions kind, Refusal refuse)
      : function(function), what(what), kind(kind), refuse(refuse) {}

  /// Slots grow, and attention alone reads their positions.
  LogicalResult checkSlots();
  FailureOr<SmallVector<AttentionOp>> findAttentions();

private:
  LogicalResult checkSlotUses(Operation *op, Value slot, SlotId id) const;
  LogicalResult checkAttention(AttentionOp op) const;

  func::FuncOp function;
  StringRef what;
  Positions kind;
  Refusal refuse;
};

} // namespace

static StringRef getSlotName(Operation *op, SlotId id) {
  return cast<StateOp>(SymbolTable::lookupNearestSymbolFrom(op, id.first)).getSlotAttr(id.second).getName();
}

LogicalResult ReaderFinder::checkSlotUses(Operation *op, Value slot, SlotId id) const {
  for (OpOperand &use : slot.getUses()) {
    Operation *user = use.getOwner();
    auto attention = dyn_cast<AttentionOp>(user);
    bool isKeyOrValue = attention && (attention.getKeyMutable().getOperandNumber() == use.getOperandNumber() ||
                                      attention.getValueMutable().getOperandNumber() == use.getOperandNumber());
    if (!isKeyOrValue && !readsSizes(user))
      return refuse(user, "slot '" + getSlotName(op, id) + "' of the state is read by " +
                              user->getName().getStringRef() + ", which does not know " + what);
  }
  return success();
}

LogicalResult ReaderFinder::checkSlots() {
  auto declared = StateOp::lookup(function, cast<KvType>(function.getArgumentTypes().back()));
  for (SlotAttr slot : declared.getSlots().getAsRange<SlotAttr>())
    if (!slot.getAxis())
      return refuse(function, "slot '" + slot.getName() +
                                  "' of the state is replaced as a whole, and cannot keep some tokens of a call");
  WalkResult result = function.walk([&](Operation *op) -> WalkResult {
    if (auto append = dyn_cast<KvAppendOp>(op))
      return checkSlotUses(op, append.getAll(), append.getSlotId());
    if (auto view = dyn_cast<KvViewOp>(op))
      return checkSlotUses(op, view.getResult(), view.getSlotId());
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

static bool isOverState(AttentionOp op) { return isa_and_nonnull<KvAppendOp, KvViewOp>(op.getKey().getDefiningOp()); }

static bool areAllCausal(AttentionPatternInterface pattern) {
  if (auto all = dyn_cast<AllOfAttr>(pattern))
    return llvm::all_of(all.getPatterns(), areAllCausal);
  return isa<CausalAttr, SlidingAttr>(pattern);
}

LogicalResult ReaderFinder::checkAttention(AttentionOp op) const {
  if (!areAllCausal(op.getPattern())) {
    std::string pattern;
    llvm::raw_string_ostream(pattern) << op.getPattern();
    return refuse(op, "attention with the pattern " + pattern + " does not know " + what +
                          "; supported: causal and sliding, and all_of these");
  }
  for (auto [operand, name] : {std::pair(Value(op.getBias()), "bias"), std::pair(Value(op.getKeyEnd()), "key_end"),
                               std::pair(kind == Positions::OfTokens ? Value(op.getLags()) : Value(), "lags"),
                               std::pair(Value(op.getKeyPositions()), "key_positions")})
    if (operand)
      return refuse(op, Twine("the ") + name + " of an attention goes by the order of the tokens");
  return success();
}

/// What an encoder gave has no positions; what else is computed in the call is in the order of its tokens.
FailureOr<SmallVector<AttentionOp>> ReaderFinder::findAttentions() {
  SmallVector<AttentionOp> attentions;
  WalkResult result = function.walk([&](AttentionOp op) -> WalkResult {
    if (!isOverState(op) && isa<FullAttr>(op.getPattern()))
      return WalkResult::advance();
    if (!isOverState(op))
      return refuse(op, "an attention that is not over the state goes by the order of the tokens");
    attentions.push_back(op);
    return checkAttention(op);
  });
  if (result.wasInterrupted())
    return failure();
  return attentions;
}

FailureOr<StateReaders> findStateReaders(func::FuncOp function, StringRef what, Positions kind, Refusal refuse) {
  ReaderFinder finder(function, what, kind, refuse);
  if (failed(finder.checkSlots()))
    return failure();
  FailureOr<SmallVector<AttentionOp>> attentions = finder.findAttentions();
  if (failed(attentions))
    return failure();
  FailureOr<SmallVector<PositionTensor>> positions = findPositions(function, function.getArgument(0), kind, refuse);
  if (failed(positions))
    return failure();
  return StateReaders{*std::move(attentions), *std::move(positions)};
}

} // namespace hone::speculation
