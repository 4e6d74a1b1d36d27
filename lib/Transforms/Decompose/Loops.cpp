//===- Loops.cpp - computations over loops, as linalg.generic ---------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Transforms/Loops.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include <limits>

using namespace mlir;
using namespace hone;

SmallVector<int64_t> hone::loopRange(int64_t first, int64_t count) {
  return llvm::to_vector(llvm::seq(first, first + count));
}

SmallVector<int64_t> hone::with(ArrayRef<int64_t> loops, std::initializer_list<int64_t> last) {
  SmallVector<int64_t> all(loops);
  all.append(last);
  return all;
}

static AffineMap getMap(MLIRContext *context, ArrayRef<int64_t> loops, int64_t loopCount) {
  SmallVector<AffineExpr> exprs;
  for (int64_t loop : loops)
    exprs.push_back(loop == Repeated ? getAffineConstantExpr(0, context) : getAffineDimExpr(loop, context));
  return AffineMap::get(loopCount, 0, exprs, context);
}

/// One more than the greatest loop of the result and of any operand.
static int64_t countLoops(int64_t resultRank, ArrayRef<Operand> operands) {
  int64_t count = resultRank;
  for (const Operand &operand : operands)
    for (int64_t loop : operand.loops)
      count = std::max(count, loop + 1);
  return count;
}

/// The generic operation over `operands` into `init`; `body` gets their elements, extended to f32, and that of `init`.
static Value buildGeneric(LocBuilder &builder, Value init, ArrayRef<Operand> operands,
                          llvm::function_ref<Value(LocBuilder &, ValueRange, Value)> body) {
  int64_t resultRank = cast<RankedTensorType>(init.getType()).getRank();
  int64_t loopCount = countLoops(resultRank, operands);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (const Operand &operand : operands) {
    inputs.push_back(operand.tensor);
    maps.push_back(getMap(builder.getContext(), operand.loops, loopCount));
  }
  maps.push_back(getMap(builder.getContext(), loopRange(0, resultRank), loopCount));
  SmallVector<utils::IteratorType> iterators(loopCount, utils::IteratorType::reduction);
  std::fill_n(iterators.begin(), resultRank, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, init.getType(), inputs, init, maps, iterators, [&](OpBuilder &nested, Location loc, ValueRange args) {
        LocBuilder inner(loc, nested);
        SmallVector<Value> elements;
        for (Value arg : args.drop_back())
          elements.push_back(isa<FloatType>(arg.getType()) ? convertFloat(inner, arg, inner.getF32Type()) : arg);
        linalg::YieldOp::create(inner, body(inner, elements, args.back()));
      });
  return generic.getResult(0);
}

Value hone::buildMap(LocBuilder &builder, ArrayRef<OpFoldResult> sizes, Type elements, ArrayRef<Operand> operands,
                     Step step) {
  Value init = tensor::EmptyOp::create(builder, sizes, elements);
  return buildGeneric(builder, init, operands, [&](LocBuilder &inner, ValueRange args, Value) {
    return convertFloat(inner, step(inner, args), elements);
  });
}

Value hone::buildReduce(LocBuilder &builder, Reduction reduction, ArrayRef<OpFoldResult> sizes,
                        ArrayRef<Operand> operands, Step step) {
  bool isSum = reduction == Reduction::Sum;
  Value start = constantF32(builder, isSum ? 0.0f : -std::numeric_limits<float>::infinity());
  Value empty = tensor::EmptyOp::create(builder, sizes, builder.getF32Type());
  Value init = linalg::FillOp::create(builder, start, empty).getResult(0);
  return buildGeneric(builder, init, operands, [&](LocBuilder &inner, ValueRange args, Value sofar) -> Value {
    Value next = step(inner, args);
    if (isSum)
      return arith::AddFOp::create(inner, sofar, next);
    return arith::MaximumFOp::create(inner, sofar, next);
  });
}

Value hone::buildContraction(LocBuilder &builder, ArrayRef<OpFoldResult> sizes, const Operand &a, const Operand &b) {
  return buildReduce(builder, Reduction::Sum, sizes, {a, b}, [](LocBuilder &inner, ValueRange args) -> Value {
    return arith::MulFOp::create(inner, args[0], args[1]);
  });
}

Value hone::addInPlace(LocBuilder &builder, Value sum, Value part) {
  int64_t rank = cast<RankedTensorType>(sum.getType()).getRank();
  SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto add = [](OpBuilder &nested, Location loc, ValueRange args) {
    linalg::YieldOp::create(nested, loc, arith::AddFOp::create(nested, loc, args[1], args[0]).getResult());
  };
  return linalg::GenericOp::create(builder, sum.getType(), part, sum, maps, iterators, add).getResult(0);
}

Value hone::roundTo(LocBuilder &builder, Value tensor, Type elements) {
  if (elements.isF32())
    return tensor;
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), tensor);
  return buildMap(builder, sizes, elements, {{tensor, loopRange(0, sizes.size())}},
                  [](LocBuilder &, ValueRange args) { return args[0]; });
}

Sizes hone::getResultSizes(LocBuilder &builder, Operation *op) {
  ReifiedRankedShapedTypeDims shapes;
  if (failed(reifyResultShapes(builder, op, shapes)))
    return {};
  return Sizes(shapes.front());
}

OpFoldResult hone::getSize(LocBuilder &builder, Value tensor, int64_t dim) {
  return tensor::getMixedSize(builder, builder.getLoc(), tensor, dim);
}

Value hone::asIndex(LocBuilder &builder, OpFoldResult size) {
  return getValueOrCreateConstantIndexOp(builder, builder.getLoc(), size);
}

Value hone::asF32(LocBuilder &builder, OpFoldResult size) {
  if (std::optional<int64_t> known = getConstantIntValue(size))
    return constantF32(builder, static_cast<float>(*known));
  Value integer = arith::IndexCastOp::create(builder, builder.getI64Type(), asIndex(builder, size));
  return arith::SIToFPOp::create(builder, builder.getF32Type(), integer);
}

Value hone::constantF32(LocBuilder &builder, float value) {
  return arith::ConstantOp::create(builder, builder.getF32FloatAttr(value));
}

Value hone::convertFloat(LocBuilder &builder, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (type.isF32())
    return arith::ExtFOp::create(builder, type, value);
  return arith::TruncFOp::create(builder, type, value);
}

Value hone::extractF32(LocBuilder &builder, Value tensor, ValueRange indices) {
  return convertFloat(builder, tensor::ExtractOp::create(builder, tensor, indices), builder.getF32Type());
}
