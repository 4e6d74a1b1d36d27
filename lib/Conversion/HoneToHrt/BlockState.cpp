// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-block-state: keys and values of the session's state in blocks, where only kernels of attention read them.

#include "KernelSelection.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/TypeSwitch.h"

namespace hone {
#define GEN_PASS_DEF_BLOCKSTATE
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

namespace {

/// A slot, what reads it, and why it stays as it is.
struct SlotReads {
  SlotAttr slot;
  SmallVector<Value> values; // that the slot holds, after an append or before
  Attribute layout;          // of the readers so far
  StringRef blocker;

  void take(OpOperand &use);
  void check();
};

struct BlockState : impl::BlockStateBase<BlockState> {
  void runOnOperation() override;

private:
  llvm::MapVector<SlotId, SlotReads> readSlots();
};

} // namespace

/// Which slot a value is, or nothing.
static std::optional<SlotId> getSlotOf(Value value) {
  if (auto append = value.getDefiningOp<KvAppendOp>())
    return append.getSlotId();
  if (auto view = value.getDefiningOp<KvViewOp>())
    return view.getSlotId();
  return std::nullopt;
}

void SlotReads::take(OpOperand &use) {
  if (isa<tensor::DimOp>(use.getOwner())) // blocks change no size
    return;
  if (auto pool = dyn_cast<PoolKeysOp>(use.getOwner()); pool && hasKernel(pool)) // reads whatever attention does
    return;
  bool isListed = TypeSwitch<Operation *, bool>(use.getOwner())
                      .Case<SelectAntidiagonalsOp, SelectMeansOp>(
                          [&](auto select) { return use.get() == select.getKeys() && hasKernel(select); })
                      .Default(false);
  if (isListed)
    return;
  auto attention = dyn_cast<AttentionOp>(use.getOwner());
  unsigned number = use.getOperandNumber();
  bool isKey = attention && number == attention.getKeyMutable().getOperandNumber();
  if (!isKey && !(attention && number == attention.getValueMutable().getOperandNumber())) {
    blocker = "something other than keys and values of attention reads it";
    return;
  }
  MLIRContext *context = attention.getContext();
  auto quantized = dyn_cast_or_null<QuantizedKvAttr>(slot.getType().getEncoding());
  int64_t bits = quantized ? quantized.getBits() : 0;
  Attribute wanted =
      isKey ? Attribute(hrt::KeyBlocksAttr::get(context, bits)) : hrt::ValueBlocksAttr::get(context, bits);
  if (!hasKernel(attention))
    blocker = "attention over it has no kernel";
  else if (!getSlotOf(attention.getKey()) || !getSlotOf(attention.getValue()))
    blocker = "attention reads it beside what is no state";
  else if (layout && layout != wanted)
    blocker = "it is read as keys and as values";
  layout = wanted;
}

void SlotReads::check() {
  RankedTensorType type = slot.getType();
  if (type.getRank() != 4 || slot.getAxis() != 2 || !hrt::KeyBlocksAttr::canBlock(type.getElementType())) {
    blocker = "it does not hold positions of f32, f16 or bf16 by sequence and head";
    return;
  }
  for (Value value : values)
    for (OpOperand &use : value.getUses())
      take(use);
  if (!layout && blocker.empty())
    blocker = "nothing reads it";
}

llvm::MapVector<SlotId, SlotReads> BlockState::readSlots() {
  llvm::MapVector<SlotId, SlotReads> reads;
  for (auto state : getOperation().getOps<StateOp>())
    for (auto [number, slot] : llvm::enumerate(state.getSlots().getAsRange<SlotAttr>()))
      reads[{state.getSymNameAttr(), number}] = {slot, {}, {}, ""};
  getOperation().walk([&](Operation *op) {
    if (auto append = dyn_cast<KvAppendOp>(op))
      reads[append.getSlotId()].values.push_back(append.getAll());
    else if (auto view = dyn_cast<KvViewOp>(op))
      reads[view.getSlotId()].values.push_back(view.getResult());
  });
  for (auto &[id, slot] : reads)
    slot.check();
  return reads;
}

/// Keys and values of one attention are in blocks or neither is: a blocker of one is one of the other. Returns whether there
/// was one that was not known.
static bool spreadBlockers(llvm::MapVector<SlotId, SlotReads> &reads) {
  bool isNew = false;
  for (auto &[id, slot] : reads)
    for (Value value : slot.values)
      for (Operation *user : value.getUsers())
        if (auto attention = dyn_cast<AttentionOp>(user); attention && slot.blocker.empty())
          for (Value other : {attention.getKey(), attention.getValue()})
            if (!reads[*getSlotOf(other)].blocker.empty()) {
              slot.blocker = "attention reads it beside a slot that stays as it is";
              isNew = true;
            }
  return isNew;
}

static RankedTensorType withEncoding(Type type, Attribute encoding) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), encoding);
}

void BlockState::runOnOperation() {
  llvm::MapVector<SlotId, SlotReads> reads = readSlots();
  while (spreadBlockers(reads)) {
  }
  auto options = remark::RemarkOpts::name("Blocked").category("hone-block-state");
  Location loc = getOperation().getLoc();
  llvm::DenseMap<StringAttr, SmallVector<Attribute>> blocked;
  for (auto &[id, read] : reads) {
    SlotAttr slot = read.slot;
    bool isBlocked = read.blocker.empty();
    Attribute layout = isBlocked ? read.layout : Attribute(); // what no kernel reads is not quantized
    for (Value value : read.values)
      value.setType(withEncoding(value.getType(), layout));
    blocked[id.first].push_back(SlotAttr::get(&getContext(), slot.getName(), withEncoding(slot.getType(), layout),
                                              slot.getAxis(), slot.getBeginning()));
    numBlocked += isBlocked;
    if (isBlocked)
      remark::passed(loc, options) << ("slot '" + slot.getName() + "' is kept in blocks").str();
    else
      remark::missed(loc, options) << ("slot '" + slot.getName() + "' stays as it is: " + read.blocker).str();
  }
  for (auto state : getOperation().getOps<StateOp>())
    state.setSlotsAttr(ArrayAttr::get(&getContext(), blocked[state.getSymNameAttr()]));
}

} // namespace hone
