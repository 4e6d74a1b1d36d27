//===- HoneState.cpp - states and the operations on them --------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations are checked against the slots of the state that their type names.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Verify.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace hone;

//===- state ------------------------------------------------------------------------------------------------------===//

StateOp StateOp::lookup(Operation *from, KvType type) {
  return SymbolTable::lookupNearestSymbolFrom<StateOp>(from, type.getState());
}

bool StateOp::beginsWith(StringRef param) {
  return llvm::any_of(getSlots().getAsRange<SlotAttr>(),
                      [&](SlotAttr slot) { return slot.getBeginning() && slot.getBeginning().getValue() == param; });
}

LogicalResult StateOp::verify() {
  llvm::StringSet<> names;
  for (SlotAttr slot : getSlots().getAsRange<SlotAttr>())
    if (!names.insert(slot.getName()).second) // state C1
      return emitOpError() << "expected the names of its slots to be unique, but got '" << slot.getName() << "' twice";
  return success();
}

LogicalResult StateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (SlotAttr slot : getSlots().getAsRange<SlotAttr>()) {
    FlatSymbolRefAttr beginning = slot.getBeginning();
    if (!beginning)
      continue;
    auto param = symbols.lookupNearestSymbolFrom<ParamOp>(*this, beginning);
    if (!param) // state C2
      return emitOpError() << "expected slot '" << slot.getName() << "' to begin with a hone.param, but got "
                           << beginning;
    if (param.getTensorType() != slot.getType()) // state C2
      return emitOpError() << "expected slot '" << slot.getName() << "' of type " << slot.getType()
                           << " to begin with a parameter of that type, but got " << param.getTensorType();
  }
  return success();
}

/// The state that the op's type names; null after an error.
static StateOp findState(Operation *op, KvType type, SymbolTableCollection &symbols) {
  auto state = symbols.lookupNearestSymbolFrom<StateOp>(op, type.getState());
  if (!state)
    op->emitOpError() << "expected " << type.getState() << " to be a state of the module";
  return state;
}

/// The slot of that number; null after an error.
static SlotAttr findSlot(Operation *op, KvType type, uint64_t index, SymbolTableCollection &symbols) {
  StateOp state = findState(op, type, symbols);
  if (!state)
    return {};
  if (index < state.getSlots().size())
    return state.getSlotAttr(index);
  op->emitOpError() << "expected the slot to be one of the " << state.getSlots().size() << " of " << type.getState()
                    << ", but got " << index;
  return {};
}

/// Whether positions of `fresh` elements may be appended to a slot of `kept`: the same, or f32 that is rounded to fewer bits.
static bool canAppend(Type fresh, Type kept) {
  return fresh == kept || (fresh.isF32() && (kept.isF16() || kept.isBF16()));
}

static LogicalResult verifyIsOfSlot(Operation *op, StringRef what, Type actual, SlotAttr slot) {
  auto type = cast<RankedTensorType>(actual);
  if (type.getElementType() == slot.getType().getElementType() && mayEqual(type.getShape(), slot.getType().getShape()))
    return success();
  return op->emitOpError() << "expected " << what << " to be of slot '" << slot.getName() << "' of type "
                           << slot.getType() << ", but got " << type;
}

//===- kv_append --------------------------------------------------------------------------------------------------===//

LogicalResult KvAppendOp::verify() {
  RankedTensorType fresh = getFresh().getType(), all = getAll().getType();
  bool alike = canAppend(fresh.getElementType(), all.getElementType()) && fresh.getRank() == all.getRank();
  int64_t differing = 0;
  for (int64_t i = 0; alike && i < fresh.getRank(); ++i)
    differing += !mayEqual(fresh.getDimSize(i), all.getDimSize(i));
  if (!alike || differing > 1) // kv_append C1
    return emitOpError() << "expected the result to be " << fresh << " but for the appended dimension, but got " << all;
  return success();
}

LogicalResult KvAppendOp::verifySymbolUses(SymbolTableCollection &symbols) {
  SlotAttr slot = findSlot(*this, getState().getType(), getSlot(), symbols); // kv_append C2
  if (!slot)
    return failure();
  if (!slot.getAxis()) // kv_append C2
    return emitOpError() << "expected slot '" << slot.getName() << "' to grow; one without an axis is replaced";
  RankedTensorType fresh = getFresh().getType(), all = getAll().getType();
  if (failed(verifyIsOfSlot(*this, "the result", all, slot))) // kv_append C3
    return failure();
  for (int64_t i = 0; i < fresh.getRank(); ++i)
    if (i != *slot.getAxis() && !mayEqual(fresh.getDimSize(i), all.getDimSize(i))) // kv_append C3
      return emitOpError() << "expected the result to be " << fresh << " but for dimension " << *slot.getAxis()
                           << ", but got " << all;
  return success();
}

//===- kv_replace -------------------------------------------------------------------------------------------------===//

LogicalResult KvReplaceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  SlotAttr slot = findSlot(*this, getState().getType(), getSlot(), symbols); // kv_replace C1
  if (!slot)
    return failure();
  if (slot.getAxis()) // kv_replace C1
    return emitOpError() << "expected slot '" << slot.getName() << "' to have no axis; one that grows is appended to";
  return verifyIsOfSlot(*this, "the value", getValue().getType(), slot); // kv_replace C2
}

//===- kv_view ----------------------------------------------------------------------------------------------------===//

LogicalResult KvViewOp::verifySymbolUses(SymbolTableCollection &symbols) {
  SlotAttr slot = findSlot(*this, getState().getType(), getSlot(), symbols);      // kv_view C1
  return slot ? verifyIsOfSlot(*this, "the result", getType(), slot) : failure(); // kv_view C2
}

//===- What is read of a state as a whole ---------------------------------------------------------------------------===//

LogicalResult KvLengthOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(findState(*this, getState().getType(), symbols) != nullptr);
}

LogicalResult KvLagOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(findState(*this, getState().getType(), symbols) != nullptr);
}

LogicalResult KvPaddingOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(findState(*this, getState().getType(), symbols) != nullptr);
}

LogicalResult LogitsToKeepOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(findState(*this, getState().getType(), symbols) != nullptr);
}
