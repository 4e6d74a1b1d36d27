// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attentions whose queries the state keeps, and entries over that state.

#include "hone/Transforms/ScoredLayers.h"

using namespace mlir;

namespace hone {

StringRef ScoredLayer::getName() const {
  AttentionOp op = attention;
  auto keys = op.getKey().getDefiningOp<KvAppendOp>();
  return StateOp::lookup(op, keys.getState().getType()).getSlotAttr(slots.keys).getName();
}

AttentionParts ScoredLayer::getParts(LocBuilder &b, Value state) const {
  AttentionOp op = attention;
  StateOp declared = StateOp::lookup(op, cast<KvType>(state.getType()));
  auto view = [&](int64_t slot) -> Value {
    return KvViewOp::create(b, declared.getSlotAttr(slot).getType(), state, slot);
  };
  AttentionParts parts;
  parts.query = view(*slots.queries);
  parts.key = view(slots.keys);
  parts.value = view(slots.values);
  parts.pattern = op.getPattern();
  parts.scale = op.getScale().convertToFloat();
  if (std::optional<APFloat> softcap = op.getSoftcap())
    parts.softcap = softcap->convertToFloat();
  return parts;
}

SmallVector<ScoredLayer> findScoredLayers(func::FuncOp forward) {
  StateOp state = StateOp::lookup(forward, cast<KvType>(forward.getArgumentTypes().back()));
  std::optional<Retention> retention = Retention::get(state->getAttr(kRetentionAttrName));
  SmallVector<ScoredLayer> layers;
  forward.walk([&](AttentionOp op) {
    auto keys = op.getKey().getDefiningOp<KvAppendOp>();
    for (const LayerRetention &layer : retention ? ArrayRef(retention->layers) : ArrayRef<LayerRetention>())
      if (keys && layer.queries && layer.keys == static_cast<int64_t>(keys.getSlot()))
        layers.push_back({op, layer});
  });
  return layers;
}

func::FuncOp addStateEntry(func::FuncOp forward, StringRef name, TypeRange inputs,
                           llvm::function_ref<SmallVector<Value>(LocBuilder &, Block::BlockArgListType)> build) {
  LocBuilder b(forward.getLoc(), forward.getContext());
  b.setInsertionPointAfter(forward);
  SmallVector<Type> arguments(inputs);
  arguments.push_back(forward.getArgumentTypes().back());
  auto function = func::FuncOp::create(b, name, b.getFunctionType(arguments, {}));
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  SmallVector<Value> results = build(b, body->getArguments());
  results.push_back(body->getArguments().back());
  func::ReturnOp::create(b, results);
  function.setFunctionType(b.getFunctionType(arguments, ValueRange(results).getTypes()));
  return function;
}

} // namespace hone
