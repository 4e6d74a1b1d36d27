// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Static quantizers round every activation, so that no operator reads what another one gives. Set aside, roundings hide no pattern.

#include "Rounding.h"

#include "hone/Conversion/Passes.h"

#include "llvm/ADT/DenseSet.h"

namespace hone {
#define GEN_PASS_DEF_DEFERROUNDINGS
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

/// A scale or zero point as an attribute: a constant's value, or a parameter's name and type. Null for what is neither.
static Attribute describeOperand(Value value) {
  if (auto read = value.getDefiningOp<GetParamOp>())
    return ArrayAttr::get(value.getContext(), {read.getNameAttr(), TypeAttr::get(read.getType())});
  Operation *constant = getDefiningOp(value, "Constant");
  return constant ? Attribute(constant->getAttrOfType<DenseElementsAttr>("value")) : Attribute();
}

/// Whether rounding `value` is no rounding of an activation: weights of more than one element.
static bool isRoundedWeight(Value value) {
  RankedTensorType type = getRankedType(value);
  return isWeight(value) && !(type && type.hasStaticShape() && type.getNumElements() == 1);
}

/// The attributes of `op`, without the axis where one scale is for all elements.
static DictionaryAttr describeAttributes(Operation *op) {
  NamedAttrList attributes(op->getDiscardableAttrDictionary());
  if (isPerTensor(op->getOperand(1), getOperand(op, 2)))
    attributes.erase("axis");
  return attributes.getDictionary(op->getContext());
}

/// The operands of `op` but for the first; null where one is no constant and no parameter.
static ArrayAttr describeOperands(Operation *op) {
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands().drop_front()) {
    Attribute described = onnxir::isAbsent(operand) ? Attribute() : describeOperand(operand);
    if (!described)
      return {};
    operands.push_back(described);
  }
  return ArrayAttr::get(op->getContext(), operands);
}

/// The rounding that `quantize` and the readers of its codes are; null where they are none that can be set aside.
static DictionaryAttr describe(Operation *quantize) {
  ArrayAttr operands = describeOperands(quantize);
  Value codes = quantize->getResult(0);
  DictionaryAttr attributes;
  for (Operation *reader : codes.getUsers()) {
    if (!isOp(reader, "DequantizeLinear") || describeOperands(reader) != operands ||
        reader->getResult(0).getType() != quantize->getOperand(0).getType())
      return {};
    DictionaryAttr described = describeAttributes(reader);
    if (attributes && described != attributes)
      return {};
    attributes = described;
  }
  if (!operands || !attributes)
    return {};
  Builder b(quantize->getContext());
  return b.getDictionaryAttr({b.getNamedAttr("codes", TypeAttr::get(getElementTypeOrSelf(codes))),
                              b.getNamedAttr("dequantize", attributes), b.getNamedAttr("operands", operands),
                              b.getNamedAttr("quantize", describeAttributes(quantize))});
}

/// Whether the codes count from the least one up, so that what is less than 0 becomes 0.
static bool isLimitedToPositive(DictionaryAttr rounding) {
  auto operands = rounding.getAs<ArrayAttr>("operands");
  auto zero = operands.size() == 2 ? dyn_cast<DenseIntElementsAttr>(operands[1]) : DenseIntElementsAttr();
  if (!zero || zero.getNumElements() != 1)
    return false;
  bool isUnsigned = zero.getElementType().isUnsignedInteger();
  APInt code = *zero.value_begin<APInt>();
  return isUnsigned ? code.isMinValue() : code.isMinSignedValue();
}

/// Whether `value` is a product with a weight, perhaps plus a bias.
static bool isLinear(Value value) {
  if (Operation *add = getDefiningOp(value, "Add"))
    return (isWeight(add->getOperand(1)) && getDefiningOp(add->getOperand(0), "MatMul")) ||
           (isWeight(add->getOperand(0)) && getDefiningOp(add->getOperand(1), "MatMul"));
  Operation *product = getDefiningOp(value, "MatMul");
  product = product ? product : getDefiningOp(value, "Gemm");
  Value weight = product ? product->getOperand(1) : Value();
  while (weight && (getDefiningOp(weight, "Transpose") || getDefiningOp(weight, "DequantizeLinear")))
    weight = weight.getDefiningOp()->getOperand(0);
  return weight && isWeight(weight);
}

/// What `opType` makes of `x`, in place of it.
static Value insertAfter(Value x, StringRef opType) {
  OpBuilder b(x.getContext());
  b.setInsertionPointAfterValue(x);
  Value made = OnnxBuilder(b, x.getLoc()).create(opType, x, x.getType());
  x.replaceAllUsesExcept(made, made.getDefiningOp());
  return made;
}

/// The value to give the rounding of `x` to. Quantizers leave a Relu out where codes have no sign, as the rounding limits values in the
/// same way: it is put in its place again, since a block that leaves the rounding out has to have it.
static Value getRounded(Value x, DictionaryAttr rounding) {
  if (isLimitedToPositive(rounding) && isLinear(x))
    return insertAfter(x, "Relu");
  DictionaryAttr other = getRounding(x);
  return other && other != rounding ? insertAfter(x, "Identity") : x;
}

namespace {
class RoundingDeferrer {
public:
  explicit RoundingDeferrer(func::FuncOp function) : function(function) {}
  int64_t run();

private:
  bool defer(Value x);

  func::FuncOp function;
  llvm::DenseSet<Operation *> erased;
};
} // namespace

/// Sets the roundings of `x` aside if they are one, which is all that reads it; whether they were.
bool RoundingDeferrer::defer(Value x) {
  if (!isa<OpResult>(x) || !isFloat(x) || isRoundedWeight(x))
    return false;
  DictionaryAttr rounding;
  for (Operation *quantize : x.getUsers()) {
    DictionaryAttr described = isOp(quantize, "QuantizeLinear") ? describe(quantize) : DictionaryAttr();
    if (!described || (rounding && described != rounding))
      return false;
    rounding = described;
  }
  SmallVector<Operation *> quantized(x.getUsers());
  x = getRounded(x, rounding);
  setRounding(x, rounding);
  for (Operation *quantize : quantized) {
    for (Operation *reader : llvm::make_early_inc_range(quantize->getResult(0).getUsers())) {
      reader->getResult(0).replaceAllUsesWith(x);
      reader->erase();
    }
    erased.insert(quantize);
    quantize->erase();
  }
  return true;
}

int64_t RoundingDeferrer::run() {
  SmallVector<Operation *> quantized;
  function.walk([&](Operation *op) {
    if (isOp(op, "QuantizeLinear"))
      quantized.push_back(op);
  });
  int64_t deferred = 0;
  for (Operation *op : quantized)
    if (!erased.contains(op))
      deferred += defer(op->getOperand(0));
  return deferred;
}

namespace {
struct DeferRoundings : impl::DeferRoundingsBase<DeferRoundings> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      int64_t deferred = RoundingDeferrer(function).run();
      if (deferred)
        function->setAttr(kRoundings, Builder(function).getI64IntegerAttr(deferred));
      numDeferred += deferred;
    }
  }
};
} // namespace

} // namespace hone::raising
