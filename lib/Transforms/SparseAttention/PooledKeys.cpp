// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An append of pooled keys follows that of the keys, in every entry that has one.

#include "PooledKeys.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace hone {

StringRef PooledKeys::getBlocker(AttentionOp op) {
  RankedTensorType type = op.getKey().getType();
  if (type.isDynamicDim(3))
    return "the size of its heads is not known";
  if (op.getLags())
    return "its sequences have lengths of their own";
  auto append = op.getKey().getDefiningOp<KvAppendOp>();
  if (!append)
    return op.getKey().getDefiningOp<KvViewOp>() ? "it does not extend the keys that it reads" : "";
  int64_t appends = 0;
  module.walk([&](KvAppendOp other) { appends += other.getSlotId() == append.getSlotId(); });
  if (appends > 1)
    return "several entries extend its keys";
  IRRewriter rewriter(op.getContext());
  if (op.getKeyBegin() && failed(moveValueDefinitions(rewriter, op.getKeyBegin(), append->getNextNode())))
    return "where its keys begin is known after they are appended";
  return "";
}

/// A slot for the rows of pooled keys beside that of the keys.
uint64_t PooledKeys::addSlot(KvAppendOp append) {
  StateOp state = StateOp::lookup(append, append.getState().getType());
  SmallVector<Attribute> all(state.getSlots().getValue());
  SlotAttr keys = state.getSlotAttr(append.getSlot());
  SmallVector<int64_t> shape(keys.getType().getShape());
  shape.back() = PoolKeysOp::getWidth(shape.back(), size, hasBounds);
  std::string name = (keys.getName() + (hasBounds ? ".bounds" : ".pooled")).str();
  auto isTaken = [&](Attribute slot) { return cast<SlotAttr>(slot).getName() == name; };
  while (llvm::any_of(all, isTaken))
    name += "_";
  MLIRContext *context = module.getContext();
  all.push_back(SlotAttr::get(context, name, RankedTensorType::get(shape, Float32Type::get(context)), keys.getAxis()));
  state.setSlotsAttr(ArrayAttr::get(context, all));
  return all.size() - 1;
}

/// The last `fresh` rows.
Value PooledKeys::build(ImplicitLocOpBuilder &b, AttentionOp op, Value fresh) {
  SmallVector<int64_t> shape(op.getKey().getType().getShape());
  shape[2] = ShapedType::kDynamic;
  shape[3] = PoolKeysOp::getWidth(shape[3], size, hasBounds);
  return PoolKeysOp::create(b, RankedTensorType::get(shape, b.getF32Type()), op.getKey(), fresh, op.getKeyBegin(), size,
                            hasBounds);
}

Value PooledKeys::get(AttentionOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto append = op.getKey().getDefiningOp<KvAppendOp>();
  if (!append)
    return build(b, op, tensor::DimOp::create(b, op.getKey(), 2));
  Value &all = rows[append];
  if (all)
    return all;
  Operation *last = append;
  if (Operation *begin = op.getKeyBegin() ? op.getKeyBegin().getDefiningOp() : nullptr;
      begin && begin->getBlock() == append->getBlock() && append->isBeforeInBlock(begin)) // where getBlocker moved it
    last = begin;
  b.setInsertionPointAfter(last);
  Value fresh = build(b, op, tensor::DimOp::create(b, append.getFresh(), 2));
  uint64_t slot = addSlot(append);
  auto type = StateOp::lookup(append, append.getState().getType()).getSlotAttr(slot).getType();
  auto pooled = KvAppendOp::create(b, append.getNext().getType(), type, append.getNext(), fresh, slot);
  append.getNext().replaceAllUsesExcept(pooled.getNext(), pooled);
  return all = pooled.getAll();
}

} // namespace hone
