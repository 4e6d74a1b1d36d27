// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-convert-state: slots of the session's state in 16 bits or fewer, where only attention reads them, and products of as many
// bits for attention without a state.

#include "RoundProducts.h"

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"

namespace hone {
#define GEN_PASS_DEF_CONVERTSTATE
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

static bool isKeyOrValue(OpOperand &use) {
  auto attention = dyn_cast<AttentionOp>(use.getOwner());
  return attention && (attention.getKeyMutable().getOperandNumber() == use.getOperandNumber() ||
                       attention.getValueMutable().getOperandNumber() == use.getOperandNumber());
}

/// Whether both keys and values of every attention that reads `value` come from slots: they have the same elements.
static bool isReadBesideASlot(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    auto attention = cast<AttentionOp>(user);
    return attention.getKey().getDefiningOp<KvAppendOp>() && attention.getValue().getDefiningOp<KvAppendOp>();
  });
}

namespace {

/// What reads and extends one slot.
struct SlotUsers {
  SmallVector<KvAppendOp> appends;
  bool isViewed = false;

  /// Why the slot stays as it is, or an empty string.
  StringRef getBlocker(SlotAttr slot) const;
};

struct ConvertState : impl::ConvertStateBase<ConvertState> {
  using ConvertStateBase::ConvertStateBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (type == "int8" || type == "int4") {
      elements = Float32Type::get(context);
      encoding = QuantizedKvAttr::get(context, type == "int8" ? 8 : 4);
      return success();
    }
    if (type == "bf16" || type == "f16") {
      elements = type == "bf16" ? FloatType(BFloat16Type::get(context)) : Float16Type::get(context);
      return success();
    }
    return emitError(UnknownLoc::get(context))
           << "unsupported type '" << type.getValue() << "' to keep a state in; supported: bf16, f16, int8, int4";
  }

  void runOnOperation() override;

private:
  SmallVector<SlotUsers> findUsers(StateOp state);
  void convertSlots(StateOp state);
  void roundProducts();
  SlotAttr convert(SlotAttr slot, ArrayRef<KvAppendOp> appends);
  RankedTensorType getKept(Type type) const {
    return RankedTensorType::get(cast<RankedTensorType>(type).getShape(), elements, encoding);
  }

  FloatType elements;
  QuantizedKvAttr encoding; // of integers
};

} // namespace

StringRef SlotUsers::getBlocker(SlotAttr slot) const {
  if (!slot.getAxis()) // keeps its elements beside those that are converted
    return "";
  if (!slot.getType().getElementType().isF32())
    return "it does not hold f32";
  if (isViewed)
    return "it is read before it is extended";
  for (KvAppendOp append : appends)
    if (!llvm::all_of(append.getAll().getUses(), isKeyOrValue) || !isReadBesideASlot(append.getAll()))
      return "something other than attention over the state reads it";
  return "";
}

SlotAttr ConvertState::convert(SlotAttr slot, ArrayRef<KvAppendOp> appends) {
  for (KvAppendOp append : appends)
    append.getAll().setType(getKept(append.getAll().getType()));
  return SlotAttr::get(&getContext(), slot.getName(), getKept(slot.getType()), slot.getAxis(), slot.getBeginning());
}

void ConvertState::roundProducts() {
  int64_t count = 0;
  getOperation().walk([&](AttentionOp op) { count += roundAttention(op); });
  numRounded += count;
  if (count > 0)
    remark::passed(getOperation().getLoc(), remark::RemarkOpts::name("Rounded").category("hone-convert-state"))
        << (Twine(count) + " attentions without a state may multiply in bf16").str();
}

void ConvertState::runOnOperation() {
  for (auto state : getOperation().getOps<StateOp>())
    convertSlots(state);
  if (elements.isBF16())
    roundProducts();
}

SmallVector<SlotUsers> ConvertState::findUsers(StateOp state) {
  SmallVector<SlotUsers> users(state.getSlots().size());
  getOperation().walk([&](Operation *op) {
    auto append = dyn_cast<KvAppendOp>(op);
    auto view = dyn_cast<KvViewOp>(op);
    if (append && append.getSlotId().first == state.getSymNameAttr())
      users[append.getSlot()].appends.push_back(append);
    else if (view && view.getSlotId().first == state.getSymNameAttr())
      users[view.getSlot()].isViewed = true;
  });
  return users;
}

/// Keys and values have the same elements: all slots that grow are converted, or none.
void ConvertState::convertSlots(StateOp state) {
  SmallVector<SlotUsers> users = findUsers(state);
  auto options = remark::RemarkOpts::name("Converted").category("hone-convert-state");
  SmallVector<Attribute> slots(state.getSlots().getValue());
  for (auto [attr, slot] : llvm::zip_equal(slots, users))
    if (StringRef blocker = slot.getBlocker(cast<SlotAttr>(attr)); !blocker.empty()) {
      StringRef name = cast<SlotAttr>(attr).getName();
      remark::missed(getOperation().getLoc(), options)
          << ("the state stays as it is, for slot '" + name + "': " + blocker).str();
      return;
    }
  int64_t count = 0;
  for (auto [attr, slot] : llvm::zip_equal(slots, users))
    if (cast<SlotAttr>(attr).getAxis()) {
      attr = convert(cast<SlotAttr>(attr), slot.appends);
      ++count;
    }
  numConverted += count;
  state.setSlotsAttr(ArrayAttr::get(&getContext(), slots));
  remark::passed(getOperation().getLoc(), options) << (Twine(count) + " slots are kept as " + type.getValue()).str();
}

} // namespace hone
