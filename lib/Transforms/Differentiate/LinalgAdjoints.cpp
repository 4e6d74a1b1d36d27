// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The adjoint of linalg.generic follows from its body and its maps. For an operand it is one loop nest: the body computed anew, its
// derivatives multiplied with the gradients of the results, and summed over the loops that the operand does not have.

#include "LinalgAdjoints.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace hone {

//===- What the body makes ----------------------------------------------------------------------------------------===//

LogicalResult GenericAdjoint::findResults() {
  for (Operation &inner : op.getBody()->without_terminator())
    ops.push_back(&inner);
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  for (OpOperand &operand : op->getOpOperands())
    accesses.push_back({operand.get(), op.getMatchingIndexingMap(&operand)});
  for (OpResult result : op.getResults()) {
    if (!adjoints.get(result))
      continue;
    OpOperand *init = op.getDpsInitOperand(result.getResultNumber());
    FailureOr<YieldedResult> found =
        findTerm(result, yield.getOperand(result.getResultNumber()), op.getMatchingBlockArgument(init));
    if (failed(found))
      return failure();
    results.push_back(*found);
  }
  for (YieldedResult &found : results) {
    if (found.combined == Combined::Maximum)
      shareMaximum(found);
    if (found.combined == Combined::Product)
      findZeros(found);
    if (found.combined == Combined::Last)
      findLast(found);
    AffineMap map = op.getIndexingMapMatchingResult(found.result);
    accesses.append({{found.result, map}, {found.gradient, map}});
    accesses.push_back({found.ofZero ? found.ofZero : found.last ? found.last : found.gradient, map});
  }
  return success();
}

//===- Loop nests -------------------------------------------------------------------------------------------------===//

/// The loops in an order in which those of `map` are the first.
static SmallVector<unsigned> orderLoops(AffineMap map) {
  SmallVector<unsigned> order;
  for (AffineExpr expr : map.getResults())
    order.push_back(cast<AffineDimExpr>(expr).getPosition());
  for (unsigned loop = 0; loop < map.getNumDims(); ++loop)
    if (!llvm::is_contained(order, loop))
      order.push_back(loop);
  return order;
}

Value GenericAdjoint::addFloats(LocBuilder &b, Value sum, Value next) { return arith::AddFOp::create(b, sum, next); }

/// The tensor with the loops of `map` as its dimensions, of size `sizes`, that combines over all other loops what `body` makes of the
/// elements of all accesses. It begins with `into`, or without that with zeros.
Value GenericAdjoint::buildNest(AffineMap map, Type element, ArrayRef<OpFoldResult> sizes,
                                llvm::function_ref<Value(LocBuilder &, ValueRange)> body, Value into,
                                llvm::function_ref<Value(LocBuilder &, Value, Value)> combine) {
  SmallVector<unsigned> order = orderLoops(map);
  SmallVector<AffineExpr> places(order.size());
  for (auto [place, loop] : llvm::enumerate(order))
    places[loop] = builder.getAffineDimExpr(place);
  auto reorder = [&](AffineMap from) { return from.replaceDimsAndSymbols(places, {}, order.size(), 0); };
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (const Access &access : accesses) {
    inputs.push_back(access.tensor);
    maps.push_back(reorder(access.map));
  }
  maps.push_back(reorder(map));
  bool isReduction = into || map.getNumResults() < map.getNumDims();
  Value init = into ? into : tensor::EmptyOp::create(builder, sizes, element).getResult();
  if (isReduction && !into) {
    Value zero = arith::ConstantOp::create(builder, builder.getZeroAttr(element));
    init = linalg::FillOp::create(builder, zero, init).getResult(0);
  }
  SmallVector<utils::IteratorType> iterators(order.size(), utils::IteratorType::reduction);
  std::fill_n(iterators.begin(), map.getNumResults(), utils::IteratorType::parallel);
  auto nest = linalg::GenericOp::create(builder, init.getType(), inputs, init, maps, iterators,
                                        [&](OpBuilder &nested, Location loc, ValueRange args) {
                                          LocBuilder b(loc, nested);
                                          Value next = body(b, args.drop_back());
                                          if (next && isReduction)
                                            next = combine(b, args.back(), next);
                                          linalg::YieldOp::create(b, next ? next : args.back());
                                        });
  // The body speaks of loops by their old numbers.
  nest->walk([&](linalg::IndexOp index) { index.setDim(cast<AffineDimExpr>(places[index.getDim()]).getPosition()); });
  return nest.getResult(0);
}

void GenericAdjoint::copyBody(LocBuilder &b, ValueRange elements, IRMapping &copies) {
  copies.map(op.getBody()->getArguments(), elements.take_front(op.getBody()->getNumArguments()));
  for (Operation *inner : ops) {
    auto index = taps.empty() ? linalg::IndexOp() : dyn_cast<linalg::IndexOp>(inner);
    if (index && taps[index.getDim()])
      copies.map(index.getResult(), taps[index.getDim()]);
    else if (Operation *copy = b.clone(*inner, copies); index)
      cast<linalg::IndexOp>(copy).setDim(numbers[index.getDim()]);
  }
}

/// What is active if `from` is.
void GenericAdjoint::findActive(ArrayRef<Value> from) {
  active.clear();
  active.insert(from.begin(), from.end());
  for (Operation *inner : ops)
    if (llvm::any_of(inner->getOperands(), [&](Value operand) { return active.contains(operand); }))
      for (Value result : inner->getResults())
        if (hasGradient(result.getType()))
          active.insert(result);
}

/// The part that one step has in the gradient of `of`, a value of the body, from the elements of all accesses.
FailureOr<Value> GenericAdjoint::buildGradient(LocBuilder &b, ValueRange elements, Value of, IRMapping &copies) {
  copyBody(b, elements, copies);
  llvm::DenseMap<Value, Value> gradients;
  ValueRange ofResults = elements.drop_front(op->getNumOperands());
  for (auto [i, found] : llvm::enumerate(results)) {
    Value value = ofResults[3 * i], gradient = ofResults[3 * i + 1];
    if (!active.contains(found.term))
      continue;
    Value term = copies.lookupOrDefault(found.term), zero;
    if (found.combined != Combined::Sum)
      zero = arith::ConstantOp::create(b, b.getZeroAttr(gradient.getType()));
    if (found.combined == Combined::Maximum) {
      Value equal = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, term, value);
      gradient = arith::SelectOp::create(b, equal, gradient, zero);
    } else if (found.combined == Combined::Product) {
      Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, term, zero);
      Value others = arith::MulFOp::create(b, gradient, arith::DivFOp::create(b, value, term));
      gradient = arith::SelectOp::create(b, isZero, ofResults[3 * i + 2], others);
    } else if (found.combined == Combined::Last) {
      Value step = linalg::IndexOp::create(b, getReductionLoop());
      Value isKept = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, step, ofResults[3 * i + 2]);
      gradient = arith::SelectOp::create(b, isKept, gradient, zero);
    } else if (found.condition) {
      zero = arith::ConstantOp::create(b, b.getZeroAttr(gradient.getType()));
      gradient = arith::SelectOp::create(b, copies.lookupOrDefault(found.condition), gradient, zero);
    }
    Value &sum = gradients[found.term];
    sum = sum ? arith::AddFOp::create(b, sum, gradient).getResult() : gradient;
  }
  if (failed(buildBodyAdjoints(b, ops, copies, [&](Value value) { return active.contains(value); }, gradients)))
    return failure();
  Value gradient = gradients.lookup(of);
  return gradient ? gradient : arith::ConstantOp::create(b, b.getZeroAttr(of.getType())).getResult();
}

//===- Operands ---------------------------------------------------------------------------------------------------===//

/// The groups of dimensions that are made of one: each that is kept, with those of size 1 after it and, of the first, before it.
static SmallVector<ReassociationIndices> groupKept(ArrayRef<bool> isKept) {
  SmallVector<ReassociationIndices> groups;
  bool hasKept = false;
  for (auto [dim, kept] : llvm::enumerate(isKept)) {
    if (groups.empty() || (kept && hasKept))
      groups.emplace_back();
    groups.back().push_back(dim);
    hasKept |= kept;
  }
  return hasKept ? groups : SmallVector<ReassociationIndices>();
}

LogicalResult GenericAdjoint::addOperand(OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  auto type = cast<RankedTensorType>(operand.get().getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, builder.getLoc(), operand.get()), kept;
  SmallVector<AffineExpr> loops;
  SmallVector<bool> isKept;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    bool isLoop = isa<AffineDimExpr>(expr) && !llvm::is_contained(loops, expr);
    if (!isLoop && (type.getDimSize(dim) != 1 || !isa<AffineConstantExpr>(expr))) {
      std::optional<WindowReads> reads = findWindows(op, map);
      if (reads && llvm::none_of(results, [](const YieldedResult &found) { return found.last; }))
        return addWindows(operand, *reads);
      return refuse("it reads operand #" + Twine(operand.getOperandNumber()) +
                    " in a way that is no choice, no repetition and no window of its dimensions");
    }
    isKept.push_back(isLoop);
    if (isLoop) {
      loops.push_back(expr);
      kept.push_back(sizes[dim]);
    }
  }
  Value element = op.getMatchingBlockArgument(&operand);
  findActive({element});
  LogicalResult status = success();
  auto body = getBody(element, status);
  AffineMap chosen = AffineMap::get(map.getNumDims(), 0, loops, builder.getContext());
  Value gradient = buildNest(chosen, type.getElementType(), kept, body);
  if (kept.size() != sizes.size()) {
    auto whole = RankedTensorType::get(type.getShape(), type.getElementType());
    gradient = tensor::ExpandShapeOp::create(builder, whole, gradient, groupKept(isKept), sizes);
  }
  adjoints.add(builder, operand.get(), gradient);
  return status;
}

/// Operands with an element for each step, in the order of the loops: one nest, in which what their gradients share is computed once.
LogicalResult GenericAdjoint::addElementwise(ArrayRef<OpOperand *> operands) {
  SmallVector<Value> inputs, inits;
  SmallVector<AffineMap> maps;
  for (const Access &access : accesses) {
    inputs.push_back(access.tensor);
    maps.push_back(access.map);
  }
  for (OpOperand *operand : operands) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, builder.getLoc(), operand->get());
    inits.push_back(tensor::EmptyOp::create(builder, sizes, getElementTypeOrSelf(operand->get().getType())));
    maps.push_back(op.getMatchingIndexingMap(operand));
  }
  LogicalResult status = success();
  SmallVector<utils::IteratorType> iterators(op.getNumLoops(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
    LocBuilder b(loc, nested);
    SmallVector<Value> gradients;
    for (auto [operand, init] : llvm::zip_equal(operands, args.take_back(operands.size()))) {
      Value element = op.getMatchingBlockArgument(operand);
      findActive({element});
      IRMapping copies;
      FailureOr<Value> gradient = buildGradient(b, args.drop_back(operands.size()), element, copies);
      if (failed(gradient))
        status = failure();
      gradients.push_back(succeeded(gradient) ? *gradient : init);
    }
    linalg::YieldOp::create(b, gradients);
  };
  auto nest = linalg::GenericOp::create(builder, TypeRange(ValueRange(inits)), inputs, inits, maps, iterators, body);
  for (auto [operand, gradient] : llvm::zip_equal(operands, nest.getResults()))
    adjoints.add(builder, operand->get(), gradient);
  return status;
}

//===- Reads at computed places -----------------------------------------------------------------------------------===//

/// A tensor that the body reads at a place that it computes: each step adds to the gradient of that place, one step after the other.
LogicalResult GenericAdjoint::addRead(tensor::ExtractOp read) {
  findActive({read.getResult()});
  LogicalResult status = success();
  SmallVector<Value> lower, upper, steps;
  for (Range range : cast<linalg::LinalgOp>(op.getOperation()).createLoopRanges(builder, builder.getLoc())) {
    lower.push_back(asIndex(builder, range.offset));
    upper.push_back(asIndex(builder, range.size));
    steps.push_back(asIndex(builder, range.stride));
  }
  auto body = [&](OpBuilder &nested, Location loc, ValueRange loops, ValueRange carried) -> scf::ValueVector {
    LocBuilder b(loc, nested);
    SmallVector<OpFoldResult> places(loops.begin(), loops.end());
    SmallVector<Value> elements;
    for (const Access &access : accesses) {
      SmallVector<Value> place;
      for (AffineExpr expr : access.map.getResults())
        place.push_back(asIndex(b, affine::makeComposedFoldedAffineApply(
                                       b, loc, AffineMap::get(access.map.getNumDims(), 0, expr), places)));
      elements.push_back(tensor::ExtractOp::create(b, access.tensor, place));
    }
    IRMapping copies;
    FailureOr<Value> gradient = buildGradient(b, elements, read, copies);
    status = gradient;
    if (failed(gradient))
      return {carried.front()};
    SmallVector<Value> place =
        llvm::map_to_vector(read.getIndices(), [&](Value i) { return copies.lookupOrDefault(i); });
    Value sum = tensor::ExtractOp::create(b, carried.front(), place);
    sum = arith::AddFOp::create(b, sum, *gradient);
    return {tensor::InsertOp::create(b, sum, carried.front(), place)};
  };
  auto loops =
      scf::buildLoopNest(builder, builder.getLoc(), lower, upper, steps, {buildZeros(builder, read.getTensor())}, body);
  for (scf::ForOp loop : loops.loops)
    for (linalg::IndexOp index : llvm::to_vector(loop.getBody()->getOps<linalg::IndexOp>())) {
      index.replaceAllUsesWith(loops.loops[index.getDim()].getInductionVar());
      index.erase();
    }
  adjoints.add(builder, read.getTensor(), loops.results.front());
  return status;
}

/// A number from outside that the body reads: the sum of what all steps have in its gradient.
LogicalResult GenericAdjoint::addNumber(Value number) {
  if (!isa<FloatType>(number.getType()))
    return refuse("its body reads a value that gradients are wanted of");
  findActive({number});
  LogicalResult status = success();
  auto body = getBody(number, status);
  AffineMap none = AffineMap::get(op.getNumLoops(), 0, builder.getContext());
  Value sum = buildNest(none, number.getType(), {}, body);
  adjoints.add(builder, number, tensor::ExtractOp::create(builder, sum, ValueRange()));
  return status;
}

LogicalResult GenericAdjoint::build() {
  if (failed(findResults()))
    return failure();
  SmallVector<OpOperand *> elementwise;
  for (OpOperand &operand : op->getOpOperands()) {
    bool isInit = op.isDpsInit(&operand);
    if (!adjoints.isWanted(operand.get()) || (isInit && op.getMatchingBlockArgument(&operand).use_empty()))
      continue;
    if (isInit && op.getNumReductionLoops() != 0) {
      Value result = op.getTiedOpResult(&operand);
      const auto *found = llvm::find_if(results, [&](const YieldedResult &other) { return other.result == result; });
      if (found != results.end() && (found->combined == Combined::Maximum || found->combined == Combined::Product))
        return refuse("its reduction, a maximum or product, begins with values that gradients are wanted of");
      if (found != results.end())
        adjoints.add(builder, operand.get(), found->last ? ofInit(*found) : found->gradient);
      continue;
    }
    if (op.getMatchingIndexingMap(&operand).isIdentity())
      elementwise.push_back(&operand);
    else if (failed(addOperand(operand)))
      return failure();
  }
  if (!elementwise.empty() && failed(addElementwise(elementwise)))
    return failure();
  llvm::SmallDenseSet<Value> numbers;
  for (Operation *inner : ops) {
    auto read = dyn_cast<tensor::ExtractOp>(inner);
    if (read && adjoints.isWanted(read.getTensor()) && failed(addRead(read)))
      return failure();
    for (Value operand : inner->getOperands())
      if (!read && adjoints.isWanted(operand) && !numbers.contains(operand)) {
        numbers.insert(operand);
        if (failed(addNumber(operand)))
          return failure();
      }
  }
  return success();
}

namespace {

struct GenericModel : DifferentiableOpInterface::ExternalModel<GenericModel, linalg::GenericOp> {
  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &builder, Adjoints &adjoints) const {
    return GenericAdjoint(builder, cast<linalg::GenericOp>(op), adjoints).build();
  }
};

/// The number that fills has the sum of all.
struct FillModel : DifferentiableOpInterface::ExternalModel<FillModel, linalg::FillOp> {
  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &builder, Adjoints &adjoints) const {
    auto fill = cast<linalg::FillOp>(op);
    Value number = fill.value(), gradient = adjoints.get(fill.getResult(0));
    if (!adjoints.isWanted(number))
      return success();
    int64_t rank = cast<RankedTensorType>(gradient.getType()).getRank();
    Value zero = arith::ConstantOp::create(builder, builder.getZeroAttr(number.getType()));
    Value start = tensor::FromElementsOp::create(builder, RankedTensorType::get({}, number.getType()), zero);
    SmallVector<AffineMap> maps{builder.getMultiDimIdentityMap(rank), AffineMap::get(rank, 0, builder.getContext())};
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::reduction);
    auto add = [](OpBuilder &nested, Location loc, ValueRange args) {
      linalg::YieldOp::create(nested, loc, ValueRange(arith::AddFOp::create(nested, loc, args[1], args[0])));
    };
    Value sum = linalg::GenericOp::create(builder, start.getType(), gradient, start, maps, loops, add).getResult(0);
    adjoints.add(builder, number, tensor::ExtractOp::create(builder, sum, ValueRange()));
    return success();
  }
};

struct TransposeModel : DifferentiableOpInterface::ExternalModel<TransposeModel, linalg::TransposeOp> {
  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &builder, Adjoints &adjoints) const {
    auto transpose = cast<linalg::TransposeOp>(op);
    Value input = transpose.getInput();
    SmallVector<int64_t> inverse = invertPermutationVector(transpose.getPermutation());
    Value empty = tensor::EmptyOp::create(builder, tensor::getMixedSizes(builder, builder.getLoc(), input),
                                          getElementTypeOrSelf(input.getType()));
    Value gradient = adjoints.get(transpose->getResult(0));
    adjoints.add(builder, input, linalg::TransposeOp::create(builder, gradient, empty, inverse)->getResult(0));
    return success();
  }
};

} // namespace

void registerLinalgAdjoints(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    linalg::GenericOp::attachInterface<GenericModel>(*context);
    linalg::FillOp::attachInterface<FillModel>(*context);
    linalg::TransposeOp::attachInterface<TransposeModel>(*context);
  });
}

} // namespace hone
