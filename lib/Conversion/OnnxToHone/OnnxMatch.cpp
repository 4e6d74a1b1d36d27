// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Questions to onnx operations and builders of them.

#include "OnnxMatch.h"
#include "Rounding.h"

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace hone::raising {

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

bool isOp(Operation *op, StringRef opType, StringRef domain) {
  return op && onnxir::isOnnxOp(op) && onnxir::getOpType(op) == opType && onnxir::getDomain(op) == domain;
}

Operation *getDefiningOp(Value value, StringRef opType, StringRef domain) {
  Operation *op = value ? value.getDefiningOp() : nullptr;
  return isOp(op, opType, domain) ? op : nullptr;
}

Value getOperand(Operation *op, unsigned index) {
  if (index >= op->getNumOperands() || onnxir::isAbsent(op->getOperand(index)))
    return {};
  return op->getOperand(index);
}

Value getResult(Operation *op, unsigned index) {
  if (index >= op->getNumResults() || onnxir::isAbsent(op->getResult(index)))
    return {};
  return op->getResult(index);
}

int64_t getInteger(Operation *op, StringRef name, int64_t otherwise) {
  auto attr = op->getAttrOfType<IntegerAttr>(name);
  return attr ? attr.getInt() : otherwise;
}

double getReal(Operation *op, StringRef name, double otherwise) {
  auto attr = op->getAttrOfType<FloatAttr>(name);
  return attr ? attr.getValueAsDouble() : otherwise;
}

std::optional<SmallVector<int64_t>> getIntegers(Operation *op, StringRef name) {
  auto attr = op->getAttrOfType<DenseI64ArrayAttr>(name);
  if (!attr)
    return std::nullopt;
  return SmallVector<int64_t>(attr.asArrayRef());
}

RankedTensorType getRankedType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

int64_t getRank(Value value) {
  auto type = getRankedType(value);
  return type ? type.getRank() : -1;
}

int64_t getLastSize(Value value) {
  auto type = getRankedType(value);
  return type && type.getRank() > 0 ? type.getShape().back() : ShapedType::kDynamic;
}

bool isFloat(Value value) {
  auto type = getRankedType(value);
  return type && (type.getElementType().isF32() || type.getElementType().isF16() || type.getElementType().isBF16());
}

Value skipCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    bool same = isOp(op, "Identity") || (isOp(op, "Dropout") && value == op->getResult(0)) ||
                (isOp(op, "Cast") && isFloat(op->getOperand(0)) && isFloat(value));
    if (!same)
      return value;
    value = op->getOperand(0);
  }
  return value;
}

bool isWeight(Value value) {
  Operation *op = value.getDefiningOp();
  return op && (isa<GetParamOp>(op) || isOp(op, "Constant"));
}

std::optional<WithConstant> matchWithConstant(Value value, StringRef opType, SymbolicAnalysis &analysis) {
  Operation *op = getDefiningOp(value, opType);
  if (!op || op->getNumOperands() != 2)
    return std::nullopt;
  if (auto constant = analysis.getSplat(op->getOperand(1)))
    return WithConstant{op->getOperand(0), *constant};
  if (opType == "Add" || opType == "Mul")
    if (auto constant = analysis.getSplat(op->getOperand(0)))
      return WithConstant{op->getOperand(1), *constant};
  return std::nullopt;
}

RankedTensorType getTransposedType(RankedTensorType type) {
  auto encoding = StoredAttr::get(cast<FloatType>(type.getElementType()), /*transposed=*/true);
  return RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType(), encoding);
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

Value OnnxBuilder::create(StringRef opType, ValueRange operands, Type result, ArrayRef<NamedAttribute> attrs) {
  OperationState state(loc, onnxir::getOperationName("", opType));
  state.addOperands(operands);
  state.addAttributes(attrs);
  state.addTypes(result);
  return b.create(state)->getResult(0);
}

Value OnnxBuilder::constant(DenseElementsAttr value) {
  return create("Constant", {}, value.getType(), b.getNamedAttr("value", value));
}

Value OnnxBuilder::integers(ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, b.getI64Type());
  return constant(DenseElementsAttr::get(type, values));
}

Value OnnxBuilder::integer(int64_t value) {
  return constant(DenseElementsAttr::get(RankedTensorType::get({}, b.getI64Type()), value));
}

Value OnnxBuilder::real(float value) {
  return constant(DenseElementsAttr::get(RankedTensorType::get({}, b.getF32Type()), value));
}

Value OnnxBuilder::transpose(Value value, ArrayRef<int64_t> permutation) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  for (int64_t from : permutation)
    shape.push_back(type.getDimSize(from));
  return create("Transpose", value, RankedTensorType::get(shape, type.getElementType()),
                b.getNamedAttr("perm", b.getDenseI64ArrayAttr(permutation)));
}

Value OnnxBuilder::reshape(Value value, ArrayRef<int64_t> shape, ArrayRef<int64_t> resultShape) {
  auto type = RankedTensorType::get(resultShape, cast<TensorType>(value.getType()).getElementType());
  return create("Reshape", {value, integers(shape)}, type);
}

Value OnnxBuilder::unsqueeze(Value value, ArrayRef<int64_t> axes) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t axis : axes)
    shape.insert(shape.begin() + axis, 1);
  auto result = RankedTensorType::get(shape, type.getElementType());
  // From opset 13 on the axes are an operand.
  Operation *parent = b.getInsertionBlock()->getParentOp();
  int64_t opset = onnxir::getOpsetVersion(parent, "");
  if (opset != 0 && opset < 13)
    return create("Unsqueeze", value, result, b.getNamedAttr("axes", b.getDenseI64ArrayAttr(axes)));
  return create("Unsqueeze", {value, integers(axes)}, result);
}

Value OnnxBuilder::slice(Value value, int64_t axis, int64_t start, int64_t end) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = end - start;
  return create("Slice", {value, integers(start), integers(end), integers(axis)},
                RankedTensorType::get(shape, type.getElementType()));
}

/// The static broadcast of two types, as far as it is known.
static RankedTensorType broadcast(RankedTensorType a, RankedTensorType b) {
  if (a.getRank() < b.getRank())
    std::swap(a, b);
  SmallVector<int64_t> shape(a.getShape());
  int64_t offset = a.getRank() - b.getRank();
  for (auto [dim, size] : llvm::enumerate(b.getShape()))
    if (shape[offset + dim] == 1 || (ShapedType::isDynamic(shape[offset + dim]) && size != 1))
      shape[offset + dim] = size;
  return RankedTensorType::get(shape, a.getElementType());
}

Value OnnxBuilder::add(Value x, Value y) {
  return create("Add", {x, y}, broadcast(cast<RankedTensorType>(x.getType()), cast<RankedTensorType>(y.getType())));
}

/// TensorProto's number of an element type that the passes cast to.
static int64_t getDataType(Type element) {
  if (element.isF32())
    return 1;
  if (element.isInteger(32))
    return 6;
  if (element.isInteger(64))
    return 7;
  if (element.isInteger(1))
    return 9;
  return element.isF16() ? 10 : 16;
}

Value OnnxBuilder::cast(Value value, Type element) {
  auto type = mlir::cast<RankedTensorType>(value.getType());
  if (type.getElementType() == element)
    return value;
  return create("Cast", value, RankedTensorType::get(type.getShape(), element),
                integerAttr("to", getDataType(element)));
}

mlir::Attribute StorageParts::take(mlir::Attribute storage, RankedTensorType type, int64_t part) {
  mlir::Attribute &taken = parts[{storage, part}];
  if (!taken)
    taken = cut(storage, type, part);
  return taken;
}

mlir::Attribute StorageParts::cut(mlir::Attribute storage, RankedTensorType type, int64_t part) {
  int64_t bytes = getDenseBytes(type).value_or(0);
  if (auto external = dyn_cast<ExternalAttr>(storage))
    return ExternalAttr::get(type.getContext(), external.getFile(), external.getOffset() + part * bytes, bytes);
  if (auto resource = dyn_cast<mlir::DenseResourceElementsAttr>(storage)) {
    mlir::AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    return blob ? makeResource(type, blob->getData().slice(part * bytes, bytes)) : mlir::Attribute();
  }
  auto elements = dyn_cast<mlir::DenseElementsAttr>(storage);
  if (!elements)
    return {};
  ArrayRef<char> raw = elements.getRawData();
  return mlir::DenseElementsAttr::getFromRawBuffer(type, elements.isSplat() ? raw : raw.slice(part * bytes, bytes));
}

void passNamesOn(ModuleOp module, SymbolTable &symbols, const ParamCopies &copies) {
  for (auto [original, copy] : copies) {
    if (!SymbolTable::symbolKnownUseEmpty(original, module))
      continue;
    mlir::StringAttr name = original.getSymNameAttr();
    symbols.erase(original);
    (void)symbols.rename(copy, name);
  }
}

void eraseDead(func::FuncOp function) {
  auto isDead = [](Operation *op) {
    return (onnxir::isOnnxOp(op) || isPure(op)) && op->use_empty() && !op->hasTrait<OpTrait::IsTerminator>();
  };
  function.walk<WalkOrder::PostOrder, mlir::ReverseIterator>([&](Operation *op) {
    if (op != function.getOperation() && isDead(op))
      op->erase();
  });
}

void replace(Value value, Value with) {
  with = keepRounding(value, with);
  if (value.getType() == with.getType()) {
    value.replaceAllUsesWith(with);
    return;
  }
  Value cast;
  for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
    if (onnxir::isOnnxOp(use.getOwner()) && !use.getOwner()->hasTrait<OpTrait::IsTerminator>()) {
      use.set(with);
      continue;
    }
    if (!cast) {
      OpBuilder b(value.getContext());
      b.setInsertionPointAfterValue(with);
      cast = tensor::CastOp::create(b, value.getLoc(), value.getType(), with);
    }
    use.set(cast);
  }
}

} // namespace hone::raising
