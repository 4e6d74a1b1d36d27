// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last layer and the loss as one loop over rows. The adjoint of that loop computes logits anew, so both loops become one: of a chunk of
// rows it computes the logits, their losses, the gradient of the logits in their place, and what that adds to the gradients of the rows and
// of the weight.

#include "LossByRows.h"
#include "Models.h"
#include "Products.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

static RankedTensorType typeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

//===- What computes logits ---------------------------------------------------------------------------------------===//

namespace {
/// The rows that logits are computed of, and how: a product, and elementwise operations after it.
struct LastLayer {
  Value rows; // […, K]
  Operation *product;
  SmallVector<linalg::GenericOp> elementwise; // from the product on
};

/// The same for matrices: what is the same for all chunks of rows.
struct LastLayerParts {
  Value rows;         // [R, K]
  Value weight, bias; // of LinearOp, or the second matrix of MatmulOp; the bias may be null
  bool isLinear;
};
} // namespace

/// Whether an element of the result depends on the element of `operand` at its place, and on others that are the same for all rows.
static bool isElementwiseOf(linalg::GenericOp op, OpOperand *operand) {
  int64_t rank = op.getNumLoops();
  if (op.getNumParallelLoops() != rank || op->getNumResults() != 1 || rank < 2 || op.hasIndexSemantics() ||
      !op.getRegionOutputArgs().front().use_empty())
    return false;
  auto isOfRow = [&](AffineMap map) {
    return map.getNumResults() == 0 ||
           (map.getNumResults() == 1 && map.getResult(0) == getAffineDimExpr(rank - 1, op.getContext()));
  };
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &each) {
    AffineMap map = op.getMatchingIndexingMap(&each);
    return &each == operand || op.isDpsInit(&each) ? map.isIdentity() : isOfRow(map);
  });
}

/// The operand of an elementwise operation that has its rows, or null.
static OpOperand *findRowOperand(linalg::GenericOp op) {
  for (OpOperand *input : op.getDpsInputOperands())
    if (typeOf(op.getResult(0)).getRank() == op.getRank(input) && isElementwiseOf(op, input))
      return input;
  return nullptr;
}

static std::optional<LastLayer> findLastLayer(Value logits) {
  LastLayer layer{};
  for (Operation *op = logits.getDefiningOp(); op; op = logits.getDefiningOp()) {
    if (auto cast = dyn_cast<tensor::CastOp>(op)) {
      logits = cast.getSource();
    } else if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      OpOperand *rows = findRowOperand(generic);
      if (!rows)
        return std::nullopt;
      layer.elementwise.insert(layer.elementwise.begin(), generic);
      logits = rows->get();
    } else {
      auto linear = dyn_cast<LinearOp>(op);
      auto product = dyn_cast<MatmulOp>(op);
      bool isMatrix = product && typeOf(product.getB()).getRank() == 2 && !product.getAddend();
      if (!linear && !isMatrix)
        return std::nullopt;
      layer.product = op;
      layer.rows = linear ? Value(linear.getX()) : Value(product.getA());
      return typeOf(layer.rows).getRank() >= 2 ? std::optional(layer) : std::nullopt;
    }
  }
  return std::nullopt;
}

static LastLayerParts buildParts(LocBuilder &b, const LastLayer &layer) {
  Value rows = asMatrix(b, layer.rows);
  auto linear = dyn_cast<LinearOp>(layer.product);
  if (!linear)
    return {rows, cast<MatmulOp>(layer.product).getB(), {}, false};
  Value weight = linear.getWeight(), bias = linear.getBias();
  auto stored = dyn_cast_or_null<StoredAttr>(typeOf(weight).getEncoding());
  if (bias || !stored || !stored.getTransposed())
    return {rows, weight, bias, true};
  // The gradient is summed up in the order that the file has.
  return {rows, transposeLast(b, UnpackOp::create(b, weight)), {}, false};
}

/// An elementwise operation of a matrix.
static Value buildElementwise(LocBuilder &b, linalg::GenericOp op, Value matrix) {
  OpOperand *rows = findRowOperand(op);
  AffineMap all = b.getMultiDimIdentityMap(2);
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    bool isMatrix = &operand == rows || op.isDpsInit(&operand);
    maps.push_back(
        isMatrix ? all
                 : AffineMap::get(2, 0, map.getNumResults() ? all.getResults().take_back() : ArrayRef<AffineExpr>(),
                                  b.getContext()));
  }
  Value init = tensor::EmptyOp::create(b, tensor::getMixedSizes(b, b.getLoc(), matrix),
                                       typeOf(op.getResult(0)).getElementType());
  SmallVector<Value> inputs = op.getInputs();
  inputs[rows->getOperandNumber()] = matrix;
  auto copy = linalg::GenericOp::create(b, init.getType(), inputs, init, maps,
                                        SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel));
  IRMapping none;
  op.getRegion().cloneInto(&copy.getRegion(), none);
  return copy.getResult(0);
}

/// The logits of rows [first, first + count).
static Value buildLogits(LocBuilder &b, const LastLayer &layer, const LastLayerParts &parts, Value first, Value count) {
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  Value rows = tensor::ExtractSliceOp::create(b, parts.rows, Sizes{first, zero},
                                              Sizes{count, getSize(b, parts.rows, 1)}, Sizes{one, one});
  Value logits = parts.isLinear ? LinearOp::create(b, rows, parts.weight, parts.bias).getResult()
                                : multiply(b, rows, parts.weight);
  for (linalg::GenericOp op : layer.elementwise)
    logits = buildElementwise(b, op, logits);
  return logits;
}

//===- The loop ---------------------------------------------------------------------------------------------------===//

static RankedTensorType getScalarType(OpBuilder &b) { return RankedTensorType::get({}, b.getF32Type()); }

static LogitLosses buildWhole(LocBuilder &b, Value logits, Value targets, Value reference, double temperature) {
  RankedTensorType scalar = getScalarType(b);
  LogitLosses losses{CrossEntropyOp::create(b, scalar, logits, targets), {}, {}};
  if (reference)
    losses.divergence = KlDivergenceOp::create(b, scalar, logits, reference, b.getF32FloatAttr(temperature));
  return losses;
}

/// `sum` with the mean of `count` of `all` rows.
static Value addMean(LocBuilder &b, Value sum, Value mean, Value count, Value all) {
  Value share = arith::DivFOp::create(b, asF32(b, count), asF32(b, all));
  return arith::AddFOp::create(b, sum,
                               arith::MulFOp::create(b, tensor::ExtractOp::create(b, mean, ValueRange()), share));
}

LogitLosses buildLogitLosses(LocBuilder &b, Value logits, Value targets, Value reference, double temperature,
                             int64_t mostLogits) {
  int64_t vocabulary = typeOf(logits).getShape().back();
  std::optional<LastLayer> layer = findLastLayer(logits), other;
  if (reference)
    other = findLastLayer(reference);
  if (mostLogits == 0 || ShapedType::isDynamic(vocabulary) || vocabulary == 0 || !layer || (reference && !other))
    return buildWhole(b, logits, targets, reference, temperature);

  LastLayerParts parts = buildParts(b, *layer), otherParts = other ? buildParts(b, *other) : LastLayerParts();
  Value ids = asVector(b, targets);
  // Chunks of nearly one size.
  Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  Value all = asIndex(b, getSize(b, parts.rows, 0));
  Value most = arith::ConstantIndexOp::create(b, std::max<int64_t>(mostLogits / vocabulary, 1));
  Value chunks = arith::MaxUIOp::create(b, arith::CeilDivUIOp::create(b, all, most), one);
  Value size = arith::MaxUIOp::create(b, arith::CeilDivUIOp::create(b, all, chunks), one);
  SmallVector<Value> inits(reference ? 2 : 1, constantF32(b, 0));
  auto loop =
      scf::ForOp::create(b, zero, all, size, inits, [&](OpBuilder &nested, Location loc, Value first, ValueRange sums) {
        LocBuilder inner(loc, nested);
        Value count = arith::MinUIOp::create(inner, size, arith::SubIOp::create(inner, all, first));
        Value known =
            tensor::ExtractSliceOp::create(inner, ids, Sizes{first}, Sizes{count}, Sizes{inner.getIndexAttr(1)});
        Value found = buildLogits(inner, *layer, parts, first, count);
        Value given = reference ? buildLogits(inner, *other, otherParts, first, count) : Value();
        LogitLosses losses = buildWhole(inner, found, known, given, temperature);
        SmallVector<Value> next{addMean(inner, sums[0], losses.crossEntropy, count, all)};
        if (reference)
          next.push_back(addMean(inner, sums[1], losses.divergence, count, all));
        scf::YieldOp::create(inner, next);
      });
  auto asTensor = [&](Value number) { return tensor::FromElementsOp::create(b, getScalarType(b), number).getResult(); };
  return {asTensor(loop.getResult(0)), reference ? asTensor(loop.getResult(1)) : Value(), loop};
}

//===- One loop of two --------------------------------------------------------------------------------------------===//

/// Clones the body of `loop` to the start of `to`, in the order in which that goes over the rows: from the last chunk on.
static SmallVector<Value> cloneBody(scf::ForOp loop, scf::ForOp to, ValueRange carried) {
  LocBuilder b(loop.getLoc(), loop.getContext());
  b.setInsertionPointToStart(to.getBody());
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value fromEnd = arith::AddIOp::create(b, to.getInductionVar(), one);
  Value number = arith::SubIOp::create(b, to.getUpperBound(), fromEnd);
  IRMapping copies;
  copies.map(loop.getInductionVar(), arith::MulIOp::create(b, number, loop.getStep()).getResult());
  copies.map(loop.getRegionIterArgs(), carried);
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, copies);
  return llvm::map_to_vector(loop.getYieldedValues(), [&](Value value) { return copies.lookupOrDefault(value); });
}

void mergeIntoAdjoint(scf::ForOp loop, scf::ForOp backward) {
  llvm::SetVector<Operation *> dependent, readers; // the second in the block of the loops
  getForwardSlice(loop.getOperation(), &dependent);
  for (Operation *op : dependent)
    readers.insert(loop->getBlock()->findAncestorOpInBlock(*op));
  readers.remove(loop);
  if (readers.contains(backward))
    return;
  auto build = [&](OpBuilder &, Location, ArrayRef<BlockArgument> carried) {
    return cloneBody(loop, cast<scf::ForOp>(carried.front().getOwner()->getParentOp()), ValueRange(carried));
  };
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(backward);
  auto merged = cast<scf::ForOp>(
      *backward.replaceWithAdditionalYields(rewriter, loop.getInits(), /*replaceInitOperandUsesInLoop=*/false, build));
  Operation *last = merged;
  for (Operation *reader : topologicalSort(readers)) {
    if (merged->isBeforeInBlock(reader))
      continue;
    reader->moveAfter(last);
    last = reader;
  }
  rewriter.replaceOp(loop, merged.getResults().take_back(loop.getNumResults()));
}

} // namespace hone
