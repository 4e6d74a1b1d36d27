// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-convert-state: slots of the session's state in 16 bits or fewer, where only attention reads them, and products of as many
// bits for attention without a state.

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
  void convertSlots();
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
  return SlotAttr::get(&getContext(), slot.getName(), getKept(slot.getType()), slot.getAxis());
}

void ConvertState::roundProducts() {
  int64_t count = 0;
  getOperation().walk([&](AttentionOp op) {
    auto isComputed = [](TypedValue<RankedTensorType> value) {
      return value.getType().getElementType().isF32() && !value.getType().getEncoding() &&
             !value.getDefiningOp<KvAppendOp>() && !value.getDefiningOp<KvViewOp>();
    };
    if (!isComputed(op.getQuery()) || !isComputed(op.getKey()) || !isComputed(op.getValue()))
      return;
    op.setBf16Products(true);
    ++count;
  });
  numRounded += count;
  if (count > 0)
    remark::passed(getOperation().getLoc(), remark::RemarkOpts::name("Rounded").category("hone-convert-state"))
        << (Twine(count) + " attentions without a state may multiply in bf16").str();
}

void ConvertState::runOnOperation() {
  convertSlots();
  if (elements.isBF16())
    roundProducts();
}

void ConvertState::convertSlots() {
  auto slots = getOperation()->getAttrOfType<ArrayAttr>(HoneDialect::getSlotsAttrName());
  if (!slots)
    return;
  SmallVector<SlotUsers> users(slots.size());
  getOperation().walk([&](Operation *op) {
    if (auto append = dyn_cast<KvAppendOp>(op))
      users[append.getSlot()].appends.push_back(append);
    else if (auto view = dyn_cast<KvViewOp>(op))
      users[view.getSlot()].isViewed = true;
  });
  auto options = remark::RemarkOpts::name("Converted").category("hone-convert-state");
  SmallVector<StringRef> blockers;
  for (auto [attr, slot] : llvm::zip_equal(slots, users))
    blockers.push_back(slot.getBlocker(cast<SlotAttr>(attr)));
  // Keys and values have the same elements: all slots are converted, or none.
  SmallVector<Attribute> converted;
  auto blocker = llvm::find_if(blockers, [](StringRef text) { return !text.empty(); });
  if (blocker != blockers.end()) {
    auto slot = cast<SlotAttr>(slots[blocker - blockers.begin()]);
    remark::missed(getOperation().getLoc(), options)
        << ("the state stays as it is, for slot '" + slot.getName() + "': " + *blocker).str();
    return;
  }
  for (auto [attr, slot] : llvm::zip_equal(slots, users))
    converted.push_back(convert(cast<SlotAttr>(attr), slot.appends));
  numConverted += converted.size();
  getOperation()->setAttr(HoneDialect::getSlotsAttrName(), ArrayAttr::get(&getContext(), converted));
  remark::passed(getOperation().getLoc(), options)
      << (Twine(converted.size()) + " slots are kept as " + type.getValue()).str();
}

} // namespace hone
