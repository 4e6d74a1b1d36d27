// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One small function an operation: its kernel's name, operands and attributes in the order of the kernel's row.

#include "KernelSelection.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace hone {

namespace {

/// A kernel and what it is called with; an empty name says that there is none. A null input is an absent operand.
struct Choice {
  StringRef name;
  SmallVector<Value> inputs;
  SmallVector<int64_t> ints;
  SmallVector<double> floats;
};

} // namespace

static bool isPlainF32(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && tensor.getElementType().isF32() && !tensor.getEncoding();
}

static bool arePlainF32(ValueRange values) {
  return llvm::all_of(values, [](Value value) { return !value || isPlainF32(value); });
}

static Choice choose(MatmulOp op) { return {"hone.matmul.f32", {op.getA(), op.getB()}, {}, {}}; }

static Choice choose(LinearOp op) {
  return {"hone.linear.f32", {op.getX(), op.getWeight(), op.getBias()}, {/*transposed=*/1}, {}};
}

static Choice choose(RmsNormOp op) {
  return {"hone.rms_norm.f32", {op.getX(), op.getWeight()}, {op.getUnitOffset()}, {op.getEpsilon().convertToFloat()}};
}

static Choice choose(LayerNormOp op) {
  return {"hone.layer_norm.f32", {op.getX(), op.getWeight(), op.getBias()}, {}, {op.getEpsilon().convertToFloat()}};
}

static Choice choose(RopeOp op) {
  return {"hone.rope.f32", {op.getX(), op.getCos(), op.getSin()}, {op.getInterleaved()}, {}};
}

/// {causal, window} of the patterns that the kernel knows; the prefix is an operand.
static std::optional<SmallVector<int64_t>> getPatternIntegers(Attribute pattern) {
  if (isa<FullAttr>(pattern))
    return SmallVector<int64_t>{0, -1};
  if (isa<CausalAttr, PrefixCausalAttr>(pattern))
    return SmallVector<int64_t>{1, -1};
  if (auto sliding = dyn_cast<SlidingAttr>(pattern))
    return SmallVector<int64_t>{1, sliding.getWindow()};
  return std::nullopt;
}

/// The kernel reads what is given for each sequence as i64.
static bool isAbsentOrI64(Value value) {
  return !value || cast<RankedTensorType>(value.getType()).getElementType().isInteger(64);
}

static Choice choose(AttentionOp op) {
  auto pattern = getPatternIntegers(op.getPattern());
  bool readable = isAbsentOrI64(op.getKeyBegin()) && isAbsentOrI64(op.getKeyEnd()) && isAbsentOrI64(op.getPrefix());
  if (!pattern || !readable || !arePlainF32({op.getQuery(), op.getKey(), op.getValue()}))
    return {};
  double softcap = op.getSoftcap() ? op.getSoftcap()->convertToFloat() : 0.0;
  return {"hone.attention.f32",
          {op.getQuery(), op.getKey(), op.getValue(), op.getBias(), op.getAlibi(), op.getSinks(), op.getKeyBegin(),
           op.getKeyEnd(), op.getPrefix()},
          *pattern,
          {op.getScale().convertToFloat(), softcap}};
}

static Choice choose(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return choose(attention);
  if (!arePlainF32(op->getOperands()) || !arePlainF32(op->getResults()))
    return {};
  return llvm::TypeSwitch<Operation *, Choice>(op)
      .Case<LayerNormOp, LinearOp, MatmulOp, RmsNormOp, RopeOp>([](auto typed) { return choose(typed); })
      .Default([](Operation *) { return Choice(); });
}

bool hasKernel(Operation *op) { return !choose(op).name.empty(); }

static FailureOr<Value> createDestination(OpBuilder &b, Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto reify = dyn_cast<ReifyRankedShapedTypeOpInterface>(op);
  ReifiedRankedShapedTypeDims shapes;
  if (!reify || failed(reify.reifyResultShapes(b, shapes)))
    return failure();
  Value init = tensor::EmptyOp::create(b, op->getLoc(), shapes[0], type.getElementType());
  if (init.getType() != type)
    init = tensor::CastOp::create(b, op->getLoc(), type, init);
  return init;
}

/// What a kernel takes for an operand that is not given: a scalar.
static Value createAbsent(OpBuilder &b, Location loc) {
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(RankedTensorType::get({}, b.getF32Type()), 0.0f));
}

int64_t selectKernels(func::FuncOp entry) {
  int64_t count = 0;
  Value call = entry.getArgument(0);
  entry.walk([&](Operation *op) {
    Choice choice = choose(op);
    if (choice.name.empty())
      return;
    OpBuilder b(op);
    FailureOr<Value> init = createDestination(b, op);
    if (failed(init))
      return;
    for (Value &input : choice.inputs)
      if (!input)
        input = createAbsent(b, op->getLoc());
    auto kernel =
        hrt::KernelOp::create(b, op->getLoc(), op->getResultTypes(), call, b.getStringAttr(choice.name), choice.inputs,
                              *init, b.getDenseI64ArrayAttr(choice.ints), b.getDenseF64ArrayAttr(choice.floats));
    op->replaceAllUsesWith(kernel.getResults());
    op->erase();
    ++count;
  });
  return count;
}

} // namespace hone
