//===- HoneState.cpp - verifiers of the operations on a session's state -----------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots are checked against the module's list where it has one.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Verify.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace hone;

/// The slots that the module around `op` lists, or null.
static ArrayAttr getSlots(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  return module ? module->getAttrOfType<ArrayAttr>(HoneDialect::getSlotsAttrName()) : nullptr;
}

/// Sets `slot` to slot number `index` if the module lists its slots; fails if it lists fewer.
static LogicalResult findSlot(Operation *op, uint64_t index, SlotAttr &slot) {
  ArrayAttr slots = getSlots(op);
  if (!slots)
    return success();
  if (index >= slots.size())
    return op->emitOpError() << "expected the slot to be one of the module's " << slots.size() << ", but got " << index;
  slot = dyn_cast<SlotAttr>(slots[index]);
  return success();
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
  SlotAttr slot;
  if (failed(findSlot(*this, getSlot(), slot))) // kv_append C2
    return failure();
  if (slot && failed(verifyIsOfSlot(*this, "the result", all, slot))) // kv_append C3
    return failure();
  bool alike = canAppend(fresh.getElementType(), all.getElementType()) && fresh.getRank() == all.getRank();
  int64_t differing = 0;
  for (int64_t i = 0; alike && i < fresh.getRank(); ++i)
    differing += !mayEqual(fresh.getDimSize(i), all.getDimSize(i)) && !(slot && slot.getAxis() == i);
  if (!alike || differing > (slot ? 0 : 1)) // kv_append C1, C3
    return emitOpError() << "expected the result to be " << fresh << " but for the appended dimension, but got " << all;
  return success();
}

//===- kv_view ----------------------------------------------------------------------------------------------------===//

LogicalResult KvViewOp::verify() {
  SlotAttr slot;
  if (failed(findSlot(*this, getSlot(), slot))) // kv_view C1
    return failure();
  return slot ? verifyIsOfSlot(*this, "the result", getType(), slot) : success(); // kv_view C2
}
