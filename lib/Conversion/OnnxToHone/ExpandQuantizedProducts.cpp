// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of codes, which are integers that stand for floats by a scale, as products of those floats.

#include "Rounding.h"

#include "hone/Conversion/Passes.h"

namespace hone {
#define GEN_PASS_DEF_EXPANDQUANTIZEDPRODUCTS
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

namespace {
/// A product of codes: QLinearMatMul, or QGemm and MatMulIntegerToFloat of com.microsoft.
struct CodeProduct {
  Codes lhs, rhs;
  /// Of f32, or for QGemm of integers counted in both scales; null without one.
  Value bias;
  /// Scale and zero point of the result; null where it is floats.
  Value scale, zero;
};
} // namespace

static std::optional<CodeProduct> matchProduct(Operation *op) {
  auto at = [&](unsigned index) { return getOperand(op, index); };
  if (isOp(op, "QLinearMatMul"))
    return CodeProduct{{at(0), at(1), at(2)}, {at(3), at(4), at(5)}, {}, at(6), at(7)};
  if (isOp(op, "QGemm", kMicrosoft))
    return CodeProduct{{at(0), at(1), at(2)}, {at(3), at(4), at(5)}, at(6), at(7), at(8)};
  if (isOp(op, "MatMulIntegerToFloat", kMicrosoft))
    return CodeProduct{{at(0), at(2), at(4)}, {at(1), at(3), at(5)}, at(6), {}, {}};
  return std::nullopt;
}

/// Whether there is one of `value` for each of the outputs of `matrix`, which are along `axis`.
static bool isPerOutput(Value value, Value matrix, int64_t axis) {
  RankedTensorType type = getRankedType(matrix);
  return !value || (getRank(value) == 1 && !type.isDynamicDim(axis) && getLastSize(value) == type.getDimSize(axis));
}

/// Whether its scales are those of the file, and such that DequantizeLinear and QuantizeLinear know them. Integers that nothing in the
/// model made out of floats are not rounded again: their product stays one of integers.
static bool isStatic(const CodeProduct &product, int64_t outputAxis) {
  if (outputAxis < 0)
    return false;
  bool isComputed = product.lhs.codes.getDefiningOp() && product.rhs.codes.getDefiningOp();
  for (Value scale : {product.lhs.scale, product.rhs.scale, product.scale})
    if (scale && !isWeight(scale))
      return false;
  return isComputed && isPerTensor(product.lhs.scale, product.lhs.zero) &&
         (!product.scale || (product.zero && isPerTensor(product.scale, product.zero))) &&
         (isPerTensor(product.rhs.scale, product.rhs.zero) ||
          (isPerOutput(product.rhs.scale, product.rhs.codes, outputAxis) &&
           isPerOutput(product.rhs.zero, product.rhs.codes, outputAxis))) &&
         getElementTypeOrSelf(product.lhs.scale).isF32() && getElementTypeOrSelf(product.rhs.scale).isF32();
}

/// The bias of a QGemm in floats.
static Value buildBias(OnnxBuilder &onnx, const CodeProduct &product) {
  if (!product.bias || isFloat(product.bias))
    return product.bias;
  Value scale = onnx.create("Mul", {product.rhs.scale, product.lhs.scale},
                            getRank(product.rhs.scale) >= getRank(product.lhs.scale) ? product.rhs.scale.getType()
                                                                                     : product.lhs.scale.getType());
  constexpr int64_t kLastAxis = -1;
  return dequantize(onnx, {product.bias, scale, {}}, kLastAxis);
}

static bool expand(Operation *op) {
  auto product = matchProduct(op);
  if (!product)
    return false;
  bool isGemm = isOp(op, "QGemm", kMicrosoft);
  int64_t outputAxis = isGemm && getInteger(op, "transB", 0) != 0 ? 0 : getRank(product->rhs.codes) - 1;
  if (!isStatic(*product, outputAxis))
    return false;
  OpBuilder b(op);
  OnnxBuilder onnx(b, op->getLoc());
  SmallVector<Value> operands{dequantize(onnx, product->lhs), dequantize(onnx, product->rhs, outputAxis)};
  Value bias = buildBias(onnx, *product), result = op->getResult(0);
  auto type = cast<TensorType>(result.getType()).clone(b.getF32Type());
  SmallVector<NamedAttribute> attributes;
  if (isGemm) {
    for (StringRef name : {"transA", "transB", "alpha"})
      if (Attribute attribute = op->getAttr(name))
        attributes.push_back(b.getNamedAttr(name, attribute));
    if (bias)
      operands.push_back(bias);
  }
  Value floats = onnx.create(isGemm ? "Gemm" : "MatMul", operands, type, attributes);
  if (bias && !isGemm)
    floats = onnx.create("Add", {floats, bias}, type);
  replace(result, product->scale ? quantize(onnx, floats, {result, product->scale, product->zero}) : floats);
  return true;
}

namespace {
struct ExpandQuantizedProducts : impl::ExpandQuantizedProductsBase<ExpandQuantizedProducts> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      if (expand(op)) {
        op->erase();
        ++numExpanded;
      }
  }
};
} // namespace

} // namespace hone::raising
