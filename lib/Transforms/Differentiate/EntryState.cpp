// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EntryState.h"
#include "Products.h"

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace hone {

FailureOr<func::FuncOp> findGradients(ModuleOp module, StringRef cannot) {
  auto gradients = module.lookupSymbol<func::FuncOp>(kGradientsEntry);
  if (!gradients || gradients.isExternal())
    return module.emitError() << cannot << ": the model has no entry '" << kGradientsEntry << "'";
  return gradients;
}

SmallVector<Value>
updateElements(LocBuilder &b, ValueRange held, ValueRange inputs,
               llvm::function_ref<SmallVector<Value>(LocBuilder &, ValueRange, ValueRange)> step) {
  int64_t rank = cast<RankedTensorType>(held.front().getType()).getRank();
  SmallVector<AffineMap> maps(inputs.size() + held.size(), b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto body = [&](OpBuilder &nested, Location loc, ValueRange all) {
    LocBuilder inner(loc, nested);
    linalg::YieldOp::create(inner, step(inner, all.drop_front(inputs.size()), all.take_front(inputs.size())));
  };
  auto results = linalg::GenericOp::create(b, held.getTypes(), inputs, held, maps, iterators, body).getResults();
  return SmallVector<Value>(results.begin(), results.end());
}

func::ReturnOp EntryState::getReturn() { return cast<func::ReturnOp>(function.getBody().front().getTerminator()); }

StringRef EntryState::getResultName(unsigned number) {
  auto result = function.getResultAttrOfType<StringAttr>(number, onnxir::kNameAttr);
  return result ? result.getValue() : StringRef();
}

LogicalResult EntryState::begin(StringRef cannot) {
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  for (StringRef taken : {entry, name})
    if (symbols.lookup(taken))
      return function.emitError() << cannot << ": the model has a symbol @" << taken;
  if (function.getNumResults() < 2 || getResultName(0) != kLossName)
    return function.emitError() << cannot << ": expected @" << kGradientsEntry
                                << " to have a loss and gradients of parameters";
  auto type = KvType::get(function.getContext(), FlatSymbolRefAttr::get(function.getContext(), name));
  (void)function.insertArgument(0, type, {}, function.getLoc());
  state = function.getArgument(0);
  return success();
}

Value EntryState::addNumber(StringRef input) {
  Builder b(function.getContext());
  auto attrs = b.getDictionaryAttr(b.getNamedAttr(onnxir::kNameAttr, b.getStringAttr(input)));
  unsigned number = function.getNumArguments();
  (void)function.insertArgument(number, RankedTensorType::get({}, b.getF32Type()), attrs, function.getLoc());
  return function.getArgument(number);
}

uint64_t EntryState::addSlot(const Twine &slot, RankedTensorType type, FlatSymbolRefAttr beginning) {
  slots.push_back(SlotAttr::get(function.getContext(), slot.str(), type, std::nullopt, beginning));
  return slots.size() - 1;
}

Value EntryState::viewIn(func::FuncOp other, uint64_t slot) {
  LocBuilder b(other.getLoc(), other.getContext());
  b.setInsertionPointToStart(&other.getBody().front());
  return KvViewOp::create(b, slots[slot].getType(), other.getArgument(0), slot);
}

void EntryState::replace(LocBuilder &b, uint64_t slot, Value value) {
  state = KvReplaceOp::create(b, state.getType(), state, value, slot, /*in_place=*/true);
}

void EntryState::finish(ArrayRef<NamedResult> results) {
  LocBuilder b = atEnd();
  SmallVector<Value> values = {state};
  SmallVector<DictionaryAttr> attrs = {b.getDictionaryAttr({})};
  for (const NamedResult &result : results) {
    values.push_back(result.value);
    attrs.push_back(b.getDictionaryAttr(b.getNamedAttr(onnxir::kNameAttr, b.getStringAttr(result.name))));
  }
  getReturn()->setOperands(values);
  function.setFunctionType(b.getFunctionType(function.getArgumentTypes(), TypeRange(ValueRange(values))));
  function.setAllResultAttrs(attrs);
  function.setName(entry);
  for (auto other : function->getParentOfType<ModuleOp>().getOps<func::FuncOp>())
    if (other != function)
      other.setPrivate();
  b.setInsertionPoint(function);
  SmallVector<Attribute> all(slots.begin(), slots.end());
  StateOp::create(b, name, b.getArrayAttr(all));
}

void makePlain(ParamOp param) {
  auto stored = dyn_cast_or_null<StoredAttr>(param.getTensorType().getEncoding());
  if (!stored)
    return;
  RankedTensorType plain = getPlanes(param.getTensorType()).front().type;
  Attribute storage = param.getPlaneStorage().front();
  param.setType(plain);
  param.setStorageAttr(storage);
  if (stored.getTransposed()) { // what is said of columns, for statistics
    param->removeAttr(kChannelScalesName);
    param->removeAttr(kInputsAttrName);
  }
  param->getParentOfType<ModuleOp>().walk([&](GetParamOp get) {
    if (get.getName() != param.getSymName())
      return;
    LocBuilder b(get.getLoc(), get);
    Value read = GetParamOp::create(b, plain, get.getNameAttr());
    Value value = stored.getTransposed() ? transposeLast(b, read) : read;
    for (Operation *user : llvm::make_early_inc_range(get->getUsers()))
      if (auto unpack = dyn_cast<UnpackOp>(user)) {
        unpack.replaceAllUsesWith(value);
        unpack.erase();
      }
    get.replaceAllUsesWith(value);
    get.erase();
  });
}

void replaceReads(func::FuncOp function, ParamOp param, Value value, Operation *kept) {
  function.walk([&](GetParamOp get) {
    if (get.getName() != param.getSymName() || get == kept)
      return;
    get.replaceAllUsesWith(value);
    get.erase();
  });
}

} // namespace hone
