// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions of linalg.generic as its adjoint takes them: how terms are combined, and what part of the gradient of a result each has.

#include "LinalgAdjoints.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

/// What a result is made of: an element each, or a reduction of such.
FailureOr<YieldedResult> GenericAdjoint::findTerm(OpResult result, Value yielded, BlockArgument soFar) {
  YieldedResult found{result, yielded, Combined::Sum, adjoints.get(result), {}, {}, {}};
  if (op.getNumReductionLoops() == 0)
    return found;
  unsigned uses = 1;
  if (auto choice = yielded.getDefiningOp<arith::SelectOp>(); choice && choice.getFalseValue() == soFar) {
    found.condition = choice.getCondition();
    yielded = choice.getTrueValue();
    ++uses;
    llvm::erase(ops, choice.getOperation());
    if (soFar.hasOneUse() && op.getNumReductionLoops() == 1) {
      found.combined = Combined::Last;
      found.term = yielded;
      return found;
    }
  }
  Operation *combiner = yielded.getDefiningOp();
  bool isCombiner = combiner && combiner->getNumOperands() == 2 && soFar.hasNUses(uses) &&
                    llvm::is_contained(combiner->getOperands(), Value(soFar));
  if (!isCombiner)
    return refuse("its reduction is no sum, product, maximum or choice of terms");
  found.term = combiner->getOperand(combiner->getOperand(0) == soFar ? 1 : 0);
  if (isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp, arith::MinNumFOp>(combiner))
    found.combined = Combined::Maximum;
  else if (isa<arith::MulFOp>(combiner))
    found.combined = Combined::Product;
  else if (!isa<arith::AddFOp>(combiner))
    return refuse("it reduces with " + combiner->getName().getStringRef() +
                  "; supported: sums, products, maxima, minima");
  if (found.condition && found.combined != Combined::Sum)
    return refuse("it leaves terms out of a reduction that is no sum");
  llvm::erase(ops, combiner);
  return found;
}

/// The tensor of the shape of a result that `body` makes, element for element.
Value GenericAdjoint::mapResult(const YieldedResult &found, ValueRange operands,
                                llvm::function_ref<Value(LocBuilder &, ValueRange)> body) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, builder.getLoc(), found.result);
  Value init = tensor::EmptyOp::create(builder, sizes, getElementTypeOrSelf(found.result.getType()));
  SmallVector<AffineMap> maps(operands.size() + 1, builder.getMultiDimIdentityMap(sizes.size()));
  SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
  auto step = [&](OpBuilder &nested, Location loc, ValueRange args) {
    LocBuilder b(loc, nested);
    linalg::YieldOp::create(b, body(b, args.drop_back()));
  };
  return linalg::GenericOp::create(builder, init.getType(), operands, init, maps, iterators, step).getResult(0);
}

/// Terms that equal the maximum share its gradient: the nest that counts them.
void GenericAdjoint::shareMaximum(YieldedResult &found) {
  AffineMap map = op.getIndexingMapMatchingResult(found.result);
  Type element = cast<RankedTensorType>(found.result.getType()).getElementType();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, builder.getLoc(), found.result);
  SmallVector<Access> operands = accesses;
  accesses.push_back({found.result, map});
  Value count = buildNest(map, element, sizes, [&](LocBuilder &b, ValueRange elements) -> Value {
    IRMapping copies;
    copyBody(b, elements, copies);
    Value equal =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, copies.lookupOrDefault(found.term), elements.back());
    Value one = arith::ConstantOp::create(b, b.getFloatAttr(element, 1)),
          zero = arith::ConstantOp::create(b, b.getZeroAttr(element));
    return arith::SelectOp::create(b, equal, one, zero);
  });
  accesses = operands;
  found.gradient = mapResult(found, {found.gradient, count}, [](LocBuilder &b, ValueRange args) -> Value {
    return arith::DivFOp::create(b, args[0], args[1]);
  });
}

/// The gradient of a term of a product that is zero is that of the product times all other terms: zero too where another one is.
void GenericAdjoint::findZeros(YieldedResult &found) {
  AffineMap map = op.getIndexingMapMatchingResult(found.result);
  Type element = cast<RankedTensorType>(found.result.getType()).getElementType();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, builder.getLoc(), found.result);
  auto one = [&](LocBuilder &b) -> Value { return arith::ConstantOp::create(b, b.getFloatAttr(element, 1)); };
  auto zero = [&](LocBuilder &b) -> Value { return arith::ConstantOp::create(b, b.getZeroAttr(element)); };
  auto whereZero = [&](LocBuilder &b, ValueRange elements, bool isCount) -> Value {
    IRMapping copies;
    copyBody(b, elements, copies);
    Value term = copies.lookupOrDefault(found.term);
    Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, term, zero(b));
    return arith::SelectOp::create(b, isZero, one(b), isCount ? zero(b) : term);
  };
  Value count =
      buildNest(map, element, sizes, [&](LocBuilder &b, ValueRange args) { return whereZero(b, args, true); });
  Value rest = buildNest(
      map, element, sizes, [&](LocBuilder &b, ValueRange args) { return whereZero(b, args, false); },
      op.getDpsInitOperand(found.result.getResultNumber())->get(),
      [](LocBuilder &b, Value product, Value next) -> Value { return arith::MulFOp::create(b, product, next); });
  found.ofZero = mapResult(found, {found.gradient, count, rest}, [&](LocBuilder &b, ValueRange args) -> Value {
    Value isOnly = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, args[1], one(b));
    return arith::SelectOp::create(b, isOnly, arith::MulFOp::create(b, args[0], args[2]), zero(b));
  });
}

unsigned GenericAdjoint::getReductionLoop() {
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  return loops.front();
}

/// Of a reduction that keeps the last term whose condition holds: the step of that term.
void GenericAdjoint::findLast(YieldedResult &found) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, builder.getLoc(), found.result);
  Value none = arith::ConstantOp::create(builder, builder.getIndexAttr(-1));
  Value init = tensor::EmptyOp::create(builder, sizes, builder.getIndexType());
  auto step = [&](LocBuilder &b, ValueRange elements) -> Value {
    IRMapping copies;
    copyBody(b, elements, copies);
    Value loop = linalg::IndexOp::create(b, getReductionLoop());
    return arith::SelectOp::create(b, copies.lookupOrDefault(found.condition), loop, none);
  };
  auto later = [](LocBuilder &b, Value last, Value next) -> Value { return arith::MaxSIOp::create(b, last, next); };
  found.last = buildNest(op.getIndexingMapMatchingResult(found.result), builder.getIndexType(), sizes, step,
                         linalg::FillOp::create(builder, none, init).getResult(0), later);
}

/// Where no term is kept, the init is.
Value GenericAdjoint::ofInit(const YieldedResult &found) {
  return mapResult(found, {found.gradient, found.last}, [](LocBuilder &b, ValueRange args) -> Value {
    Value isInit =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, args[1], arith::ConstantOp::create(b, b.getIndexAttr(0)));
    return arith::SelectOp::create(b, isInit, args[0], arith::ConstantOp::create(b, b.getZeroAttr(args[0].getType())));
  });
}

} // namespace hone
