// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Refines types of onnx values. Only facts go into types: a size that could differ from run to run stays dynamic.

#include "StateSignature.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

namespace hone {
#define GEN_PASS_DEF_INFERONNXSHAPES
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static Type getElementType(Value value) {
  auto type = dyn_cast<TensorType>(value.getType());
  if (!type || type.getElementType() == onnxir::getUnknownType(value.getContext()))
    return {};
  return type.getElementType();
}

/// Element type of result 0 of an operator whose type the file leaves open, where it is that of an operand.
static Type inferElementType(Operation *op) {
  static const llvm::StringSet<> fromFirst = {"Identity",
                                              "Reshape",
                                              "Transpose",
                                              "Unsqueeze",
                                              "Squeeze",
                                              "Expand",
                                              "Slice",
                                              "Split",
                                              "Gather",
                                              "GatherND",
                                              "Concat",
                                              "Add",
                                              "Sub",
                                              "Mul",
                                              "Div",
                                              "Neg",
                                              "Softmax",
                                              "MatMul",
                                              "Gemm",
                                              "Tanh",
                                              "Sigmoid",
                                              "Sqrt",
                                              "Pow",
                                              "Exp",
                                              "Erf",
                                              "Relu",
                                              "Gelu",
                                              "Reciprocal",
                                              "LayerNormalization",
                                              "SimplifiedLayerNormalization",
                                              "RotaryEmbedding",
                                              "FusedMatMul",
                                              "BiasGelu",
                                              "FastGelu",
                                              "QuickGelu",
                                              "SkipLayerNormalization",
                                              "SkipSimplifiedLayerNormalization",
                                              "GroupQueryAttention",
                                              "MultiHeadAttention",
                                              "Attention",
                                              "MatMulNBits",
                                              "MoE",
                                              "QMoE",
                                              "ReduceSum",
                                              "ReduceMean",
                                              "ReduceMax",
                                              "Cos",
                                              "Sin",
                                              "Clip",
                                              "Max",
                                              "Min",
                                              "Flatten"};
  StringRef name = onnxir::getOpType(op);
  if (name == "Where")
    return getElementType(op->getOperand(1));
  if (name == "GatherBlockQuantized")
    return getElementType(op->getOperand(2));
  return fromFirst.contains(name) && op->getNumOperands() > 0 ? getElementType(op->getOperand(0)) : Type();
}

static RankedTensorType refine(Value value, SymbolicAnalysis &analysis) {
  Type element = getElementType(value);
  if (!element && cast<OpResult>(value).getResultNumber() == 0)
    element = inferElementType(value.getDefiningOp());
  auto shape = analysis.getShape(value);
  if (!element || !shape)
    return {};
  SmallVector<int64_t> sizes;
  for (const Polynomial &size : *shape) {
    auto constant = size.getConstant();
    sizes.push_back(constant && *constant >= 0 ? *constant : ShapedType::kDynamic);
  }
  return RankedTensorType::get(sizes, element);
}

/// A value whose type is open has no shape in the analysis until it is some tensor.
static void openToTensor(Value value) {
  if (value.getType() == onnxir::getUnknownType(value.getContext()))
    value.setType(UnrankedTensorType::get(value.getType()));
}

/// Refines the values of a block, and those of the branches of an If in it, which read values of the block.
static unsigned inferShapes(Block &block, SymbolicAnalysis &analysis) {
  unsigned refined = 0;
  for (Operation &op : block) {
    if (!onnxir::isOnnxOp(&op))
      continue;
    if (isOp(&op, "If"))
      for (Region &region : op.getRegions())
        refined += inferShapes(region.front(), analysis);
    for (Value result : op.getResults()) {
      openToTensor(result);
      RankedTensorType type = isa<TensorType>(result.getType()) ? refine(result, analysis) : RankedTensorType();
      if (!type || type == result.getType())
        continue;
      result.setType(type);
      ++refined;
    }
  }
  return refined;
}

unsigned inferShapes(func::FuncOp function) {
  SymbolicAnalysis analysis(function);
  unsigned refined = inferShapes(function.getBody().front(), analysis);
  Operation *terminator = function.getBody().front().getTerminator();
  function.setType(
      FunctionType::get(function.getContext(), function.getArgumentTypes(), terminator->getOperandTypes()));
  return refined;
}

namespace {
struct InferOnnxShapes : impl::InferOnnxShapesBase<InferOnnxShapes> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        numRefined += inferShapes(function);
  }
};
} // namespace

} // namespace hone::raising
