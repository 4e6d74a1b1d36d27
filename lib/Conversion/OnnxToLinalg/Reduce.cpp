// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions, positions of extremes, and running sums and products. A reduction of nothing is the neutral element.

#include "Axes.h"
#include "Formula.h"

#include <limits>

using namespace mlir;

namespace hone::lowering {

//===----------------------------------------------------------------------===//
// The folds
//===----------------------------------------------------------------------===//

namespace {

enum class Fold { Sum, Product, Largest, Smallest };

/// One reduction: elements as files say them become numbers of type `compute`, which `fold` combines.
struct Reduction {
  Fold fold;
  Type compute;
  bool isUnsigned;
};

} // namespace

static Value getNeutral(Builder &b, const Reduction &reduction) {
  Type type = reduction.compute;
  double infinity = std::numeric_limits<double>::infinity();
  if (auto floating = dyn_cast<FloatType>(type)) {
    double values[] = {0.0, 1.0, -infinity, infinity};
    return arith::ConstantOp::create(b, b.getFloatAttr(floating, values[static_cast<int>(reduction.fold)]));
  }
  unsigned width = type.getIntOrFloatBitWidth();
  bool isUnsigned = reduction.isUnsigned;
  llvm::APInt least = isUnsigned ? llvm::APInt(width, 0) : llvm::APInt::getSignedMinValue(width);
  llvm::APInt most = isUnsigned ? llvm::APInt::getMaxValue(width) : llvm::APInt::getSignedMaxValue(width);
  llvm::APInt values[] = {llvm::APInt(width, 0), llvm::APInt(width, 1), least, most};
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, values[static_cast<int>(reduction.fold)]));
}

static Value foldFloats(Builder &b, Fold fold, Value x, Value y) {
  switch (fold) {
  case Fold::Sum:
    return arith::AddFOp::create(b, x, y);
  case Fold::Product:
    return arith::MulFOp::create(b, x, y);
  case Fold::Largest:
    return arith::MaximumFOp::create(b, x, y);
  case Fold::Smallest:
    return arith::MinimumFOp::create(b, x, y);
  }
  llvm_unreachable("unknown fold");
}

static Value foldIntegers(Builder &b, Fold fold, bool isUnsigned, Value x, Value y) {
  switch (fold) {
  case Fold::Sum:
    return b.createOrFold<arith::AddIOp>(x, y);
  case Fold::Product:
    return b.createOrFold<arith::MulIOp>(x, y);
  case Fold::Largest:
    return isUnsigned ? b.createOrFold<arith::MaxUIOp>(x, y) : b.createOrFold<arith::MaxSIOp>(x, y);
  case Fold::Smallest:
    return isUnsigned ? b.createOrFold<arith::MinUIOp>(x, y) : b.createOrFold<arith::MinSIOp>(x, y);
  }
  llvm_unreachable("unknown fold");
}

static Value foldElements(Builder &b, const Reduction &reduction, Value x, Value y) {
  return isa<FloatType>(reduction.compute) ? foldFloats(b, reduction.fold, x, y)
                                           : foldIntegers(b, reduction.fold, reduction.isUnsigned, x, y);
}

using Map = llvm::function_ref<Value(Builder &, Value)>;

/// Folds input 0 over the axes, each element mapped first.
static Value fold(Node &node, const Axes &axes, bool keep, const Reduction &reduction, Map map = nullptr) {
  Type from = node.declared(0);
  return reduceOver(
      node, node.in(0), axes, keep, getNeutral(node.b, reduction), [&](Builder &b, Value element, Value accumulator) {
        // Integers are computed in their own type, whose sign the fold knows.
        Value x = isa<FloatType>(reduction.compute) ? convertScalar(b, element, from, reduction.compute) : element;
        return foldElements(b, reduction, map ? map(b, x) : x, accumulator);
      });
}

/// The folded tensor mapped and converted to the element type of the input.
static void finish(Node &node, Value folded, const Reduction &reduction, Map map = nullptr) {
  Type to = node.declared(0);
  node.set(0, node.elementwise({folded}, node.element(0), [&](Builder &b, ValueRange x) {
    Value value = map ? map(b, x[0]) : x[0];
    return isa<FloatType>(reduction.compute) ? convertScalar(b, value, reduction.compute, to) : value;
  }));
}

static bool keepsAxes(Node &node) { return node.integer("keepdims", 1) != 0; }

/// The type an operator computes in that has a meaning for integers.
static Type getOwnType(Node &node) { return getComputeType(node.element(0)); }

/// The type an operator computes in that has none: integers as f64.
static Type getFloatType(Node &node) {
  return isa<FloatType>(node.element(0)) ? getOwnType(node) : Type(node.b.getF64Type());
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static Value square(Builder &b, Value x) {
  return isa<FloatType>(x.getType()) ? arith::MulFOp::create(b, x, x).getResult() : arith::MulIOp::create(b, x, x);
}

static Value magnitude(Builder &b, Value x) {
  if (isa<FloatType>(x.getType()))
    return math::AbsFOp::create(b, x);
  Value negated = arith::SubIOp::create(b, arith::ConstantOp::create(b, b.getZeroAttr(x.getType())), x);
  return arith::MaxSIOp::create(b, x, negated);
}

static Value logarithm(Builder &b, Value x) { return math::LogOp::create(b, x); }
static Value squareRoot(Builder &b, Value x) { return math::SqrtOp::create(b, x); }

template <Fold kind>
static LogicalResult lowerPlain(Node &node) {
  auto axes = getAxes(node);
  if (failed(axes))
    return failure();
  Reduction reduction{kind, getOwnType(node), node.isUnsigned(0)};
  finish(node, fold(node, *axes, keepsAxes(node), reduction), reduction);
  return success();
}

static LogicalResult lowerReduceL1(Node &node) {
  auto axes = getAxes(node);
  if (failed(axes))
    return failure();
  bool isUnsigned = node.isUnsigned(0);
  Reduction reduction{Fold::Sum, getOwnType(node), isUnsigned};
  finish(node, fold(node, *axes, keepsAxes(node), reduction, isUnsigned ? Map(nullptr) : Map(magnitude)), reduction);
  return success();
}

static LogicalResult lowerReduceSumSquare(Node &node) {
  auto axes = getAxes(node);
  if (failed(axes))
    return failure();
  Reduction reduction{Fold::Sum, getOwnType(node), node.isUnsigned(0)};
  finish(node, fold(node, *axes, keepsAxes(node), reduction, square), reduction);
  return success();
}

/// Sums mapped elements as floats and maps the sum.
static LogicalResult lowerFloatSum(Node &node, Map before, Map after) {
  auto axes = getAxes(node);
  if (failed(axes))
    return failure();
  Reduction reduction{Fold::Sum, getFloatType(node), false};
  finish(node, fold(node, *axes, keepsAxes(node), reduction, before), reduction, after);
  return success();
}

static LogicalResult lowerReduceL2(Node &node) { return lowerFloatSum(node, square, squareRoot); }
static LogicalResult lowerReduceLogSum(Node &node) { return lowerFloatSum(node, nullptr, logarithm); }

static LogicalResult lowerReduceMean(Node &node) {
  auto axes = getAxes(node);
  if (failed(axes))
    return failure();
  Reduction reduction{Fold::Sum, getFloatType(node), false};
  Value sum = fold(node, *axes, keepsAxes(node), reduction);
  Value count = node.math.scalar(getReducedCount(node, node.in(0), *axes), node.b.getI64Type());
  Value divisor = arith::SIToFPOp::create(node.b, reduction.compute, count);
  finish(node, sum, reduction, [&](Builder &b, Value x) { return arith::DivFOp::create(b, x, divisor); });
  return success();
}

/// log of the sum of exp, less the largest element inside and plus it outside, so that nothing overflows.
static LogicalResult lowerReduceLogSumExp(Node &node) {
  auto axes = getAxes(node);
  if (failed(axes))
    return failure();
  Type compute = getFloatType(node), from = node.declared(0);
  Value largest = fold(node, *axes, /*keep=*/true, {Fold::Largest, compute, false});
  // Infinities are left to the sum: less them, they would be NaN.
  Value offset = node.elementwise({largest}, compute, [](Builder &b, ValueRange x) {
    Number number{&b, x[0]};
    return select(abs(number) == std::numeric_limits<double>::infinity(), number.with(0), number).value;
  });
  Value shifted =
      node.elementwiseOver(node.sizes(node.in(0)), {node.in(0), offset}, compute, [&](Builder &b, ValueRange x) {
        return exp(Number{&b, convertScalar(b, x[0], from, compute)} - Number{&b, x[1]}).value;
      });
  Reduction sum{Fold::Sum, compute, false};
  auto add = [&](Builder &b, Value x, Value y) { return foldElements(b, sum, x, y); };
  Value total = reduceOver(node, shifted, *axes, keepsAxes(node), getNeutral(node.b, sum), add);
  Value back = keepsAxes(node) ? offset : node.reshape(offset, node.sizes(total));
  node.set(0, node.elementwiseOver(node.sizes(total), {total, back}, node.element(0), [&](Builder &b, ValueRange x) {
    return convertScalar(b, (log(Number{&b, x[0]}) + Number{&b, x[1]}).value, compute, from);
  }));
  return success();
}

//===----------------------------------------------------------------------===//
// Positions of extremes
//===----------------------------------------------------------------------===//

/// Whether `x` replaces `best`, which came before it. The first NaN is more extreme than every number.
static Value replaces(Builder &b, Value x, Value best, bool largest, bool last, bool isUnsigned) {
  if (isa<FloatType>(x.getType())) {
    using arith::CmpFPredicate;
    auto predicate =
        largest ? (last ? CmpFPredicate::OGE : CmpFPredicate::OGT) : (last ? CmpFPredicate::OLE : CmpFPredicate::OLT);
    Number number{&b, x}, other{&b, best};
    Value isFirstNaN = arith::AndIOp::create(b, number != number, other == other);
    return arith::OrIOp::create(b, compare(predicate, number, other), isFirstNaN);
  }
  using arith::CmpIPredicate;
  static constexpr CmpIPredicate predicates[2][2][2] = {
      {{CmpIPredicate::slt, CmpIPredicate::ult}, {CmpIPredicate::sle, CmpIPredicate::ule}},
      {{CmpIPredicate::sgt, CmpIPredicate::ugt}, {CmpIPredicate::sge, CmpIPredicate::uge}}};
  return arith::CmpIOp::create(b, predicates[largest][last][isUnsigned], x, best);
}

Value findExtreme(Node &node, Value tensor, int64_t axis, bool largest, bool last, bool isUnsigned) {
  Builder &b = node.b;
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType(), compute = getComputeType(element);
  Reduction reduction{largest ? Fold::Largest : Fold::Smallest, compute, isUnsigned};
  SmallVector<Size> sizes = node.sizes(tensor), kept;
  SmallVector<AffineExpr> dims;
  SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
  iterators[axis] = utils::IteratorType::reduction;
  for (auto [d, size] : llvm::enumerate(sizes))
    if (static_cast<int64_t>(d) != axis) {
      kept.push_back(size);
      dims.push_back(b.getAffineDimExpr(d));
    }
  Value best = node.filled(kept, getNeutral(b, reduction)), at = node.filled(kept, node.zero(b.getI64Type()));
  AffineMap in = b.getMultiDimIdentityMap(sizes.size()), out = AffineMap::get(sizes.size(), 0, dims, b.getContext());
  auto generic = linalg::GenericOp::create(
      b, TypeRange{best.getType(), at.getType()}, tensor, ValueRange{best, at}, ArrayRef<AffineMap>{in, out, out},
      iterators, [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        Builder inner(loc, nested);
        Value x = convertScalar(inner, arguments[0], element, compute);
        Value isBetter = replaces(inner, x, arguments[1], largest, last, isUnsigned);
        Value index = arith::IndexCastOp::create(inner, inner.getI64Type(), linalg::IndexOp::create(inner, axis));
        Value value = arith::SelectOp::create(inner, isBetter, x, arguments[1]);
        Value position = arith::SelectOp::create(inner, isBetter, index, arguments[2]);
        linalg::YieldOp::create(inner, ValueRange{value, position});
      });
  node.lowerer.setSizes(generic.getResult(1), kept);
  return generic.getResult(1);
}

template <bool largest>
static LogicalResult lowerArgExtreme(Node &node) {
  auto axis = node.axis(node.integer("axis", 0), node.rank(0));
  if (failed(axis))
    return failure();
  Value at = findExtreme(node, node.in(0), *axis, largest, node.integer("select_last_index", 0), node.isUnsigned(0));
  if (keepsAxes(node)) {
    SmallVector<Size> sizes = node.sizes(node.in(0));
    sizes[*axis] = node.b.getIndexAttr(1);
    at = node.reshape(at, sizes);
  }
  node.set(0, at);
  return success();
}

//===----------------------------------------------------------------------===//
// Running sums and products
//===----------------------------------------------------------------------===//

/// Folds each element of `slice` into that of `total`, where `total` is.
static Value accumulateInPlace(Node &node, Value slice, Value total, const Reduction &reduction) {
  Builder &b = node.b;
  auto type = cast<RankedTensorType>(slice.getType());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto generic =
      linalg::GenericOp::create(b, total.getType(), slice, total, ArrayRef<AffineMap>{identity, identity}, iterators,
                                [&](OpBuilder &nested, Location loc, ValueRange arguments) {
                                  Builder inner(loc, nested);
                                  Value x =
                                      convertScalar(inner, arguments[0], type.getElementType(), reduction.compute);
                                  linalg::YieldOp::create(inner, foldElements(inner, reduction, x, arguments[1]));
                                });
  return generic.getResult(0);
}

/// The fold of all elements up to each along `axis`, one slice after the other.
static Value scan(Node &node, Value tensor, int64_t axis, const Reduction &reduction, bool exclusive, bool reverse) {
  Builder &b = node.b;
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  SmallVector<Size> sizes = node.sizes(tensor), slice = sizes;
  slice[axis] = b.getIndexAttr(1);
  SmallVector<Size> ones(sizes.size(), b.getIndexAttr(1)), offsets(sizes.size(), b.getIndexAttr(0));
  Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  Value length = node.math.value(sizes[axis]), init = node.empty(sizes, element);
  Value neutral = node.filled(slice, getNeutral(b, reduction));
  auto loop = scf::ForOp::create(b, zero, length, one, ValueRange{init, neutral});
  {
    OpBuilder::InsertionGuard guard(b);
    IndexMath::RegionScope scope(node.math);
    b.setInsertionPointToStart(loop.getBody());
    Value at = loop.getInductionVar();
    if (reverse)
      at = arith::SubIOp::create(b, arith::SubIOp::create(b, length, one), at);
    offsets[axis] = at;
    Value current = tensor::ExtractSliceOp::create(b, tensor, offsets, slice, ones), total = loop.getRegionIterArg(1);
    Value after = accumulateInPlace(node, current, total, reduction);
    node.lowerer.setSizes(after, slice);
    node.lowerer.setSizes(total, slice);
    Value shown = node.elementwiseOver(slice, {exclusive ? total : after}, element, [&](Builder &inner, ValueRange x) {
      return convertScalar(inner, x[0], reduction.compute, element);
    });
    Value written = tensor::InsertSliceOp::create(b, shown, loop.getRegionIterArg(0), offsets, slice, ones);
    scf::YieldOp::create(b, ValueRange{written, after});
  }
  node.lowerer.setSizes(loop.getResult(0), sizes);
  return loop.getResult(0);
}

/// The same where the axis, counted from the front, is a value: one branch a dimension.
static Value scanAtRuntime(Node &node, Value axis, int64_t candidate, llvm::function_ref<Value(int64_t)> scanAxis) {
  if (candidate == 0)
    return scanAxis(0);
  Builder &b = node.b;
  Value own = arith::ConstantIndexOp::create(b, candidate);
  Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, axis, own);
  auto branch = scf::IfOp::create(b, node.type(0), isHere, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (bool taken : {true, false}) {
    IndexMath::RegionScope scope(node.math);
    b.setInsertionPointToStart(taken ? branch.thenBlock() : branch.elseBlock());
    Value result = taken ? scanAxis(candidate) : scanAtRuntime(node, axis, candidate - 1, scanAxis);
    if (result.getType() != node.type(0))
      result = tensor::CastOp::create(b, node.type(0), result);
    scf::YieldOp::create(b, result);
  }
  return branch.getResult(0);
}

template <Fold kind>
static LogicalResult lowerScan(Node &node) {
  Reduction reduction{kind, getOwnType(node), node.isUnsigned(0)};
  int64_t rank = node.rank(0);
  bool exclusive = node.integer("exclusive", 0), reverse = node.integer("reverse", 0);
  auto scanAxis = [&](int64_t axis) { return scan(node, node.in(0), axis, reduction, exclusive, reverse); };
  if (rank == 0 || !node.type(1).hasStaticShape() || node.type(1).getNumElements() != 1)
    return node.fail() << "expected a tensor of at least one dimension and one axis, but got " << node.type(0)
                       << " and " << node.type(1);
  if (auto constants = node.constants(1)) {
    auto axis = node.axis(constants->front(), rank);
    if (failed(axis))
      return failure();
    node.set(0, scanAxis(*axis));
    return success();
  }
  auto given = node.indices(1);
  if (failed(given))
    return failure();
  Builder &b = node.b;
  Value axis = node.math.value(given->front()), all = arith::ConstantIndexOp::create(b, rank);
  Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, axis, arith::ConstantIndexOp::create(b, 0));
  axis = arith::SelectOp::create(b, isNegative, arith::AddIOp::create(b, axis, all), axis);
  node.check(arith::CmpIOp::create(b, arith::CmpIPredicate::ult, axis, all), "the axis is out of range");
  Value result = scanAtRuntime(node, axis, rank - 1, scanAxis);
  node.lowerer.setSizes(result, node.sizes(node.in(0)));
  node.set(0, result);
  return success();
}

void addReduceLowerings(LoweringTable &table) {
  table["onnx.ArgMax"] = lowerArgExtreme<true>;
  table["onnx.ArgMin"] = lowerArgExtreme<false>;
  table["onnx.CumProd"] = lowerScan<Fold::Product>;
  table["onnx.CumSum"] = lowerScan<Fold::Sum>;
  table["onnx.ReduceL1"] = lowerReduceL1;
  table["onnx.ReduceL2"] = lowerReduceL2;
  table["onnx.ReduceLogSum"] = lowerReduceLogSum;
  table["onnx.ReduceLogSumExp"] = lowerReduceLogSumExp;
  table["onnx.ReduceMax"] = lowerPlain<Fold::Largest>;
  table["onnx.ReduceMean"] = lowerReduceMean;
  table["onnx.ReduceMin"] = lowerPlain<Fold::Smallest>;
  table["onnx.ReduceProd"] = lowerPlain<Fold::Product>;
  table["onnx.ReduceSum"] = lowerPlain<Fold::Sum>;
  table["onnx.ReduceSumSquare"] = lowerReduceSumSquare;
}

} // namespace hone::lowering
