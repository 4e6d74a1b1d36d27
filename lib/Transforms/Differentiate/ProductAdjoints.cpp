// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adjoints of products and lookups, and of the loss at the end of a language model. The adjoints of products are products, and run on
// the kernels of such.

#include "Models.h"
#include "Products.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

static RankedTensorType typeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

Value multiply(LocBuilder &b, Value left, Value right) { return MatmulOp::create(b, left, right); }

void addProduct(LocBuilder &b, Adjoints &adjoints, Value value, Value left, Value right) {
  Value before = adjoints.get(value);
  if (before && adjoints.isWanted(value))
    adjoints.replace(value, MatmulOp::create(b, before.getType(), left, right, before));
  else
    adjoints.add(b, value, multiply(b, left, right));
}

Value asMatrix(LocBuilder &b, Value tensor) {
  int64_t rank = typeOf(tensor).getRank();
  if (rank == 2)
    return tensor;
  if (rank == 1) {
    Sizes sizes = tensor::getMixedSizes(b, b.getLoc(), tensor);
    sizes.insert(sizes.begin(), b.getIndexAttr(1));
    auto type = RankedTensorType::get({1, typeOf(tensor).getDimSize(0)}, typeOf(tensor).getElementType());
    return tensor::ExpandShapeOp::create(b, type, tensor, ArrayRef<ReassociationIndices>{{0, 1}}, sizes);
  }
  ReassociationIndices rows = llvm::to_vector<2>(llvm::seq<int64_t>(0, rank - 1));
  return tensor::CollapseShapeOp::create(b, tensor, ArrayRef<ReassociationIndices>{rows, {rank - 1}});
}

Value asVector(LocBuilder &b, Value tensor) {
  int64_t rank = typeOf(tensor).getRank();
  if (rank == 1)
    return tensor;
  if (rank > 1)
    return tensor::CollapseShapeOp::create(
        b, tensor, ArrayRef<ReassociationIndices>{llvm::to_vector<2>(llvm::seq<int64_t>(0, rank))});
  auto type = RankedTensorType::get({1}, typeOf(tensor).getElementType());
  return tensor::ExpandShapeOp::create(b, type, tensor, ArrayRef<ReassociationIndices>(), Sizes{b.getIndexAttr(1)});
}

Value sumTo(LocBuilder &b, Value tensor, ArrayRef<OpFoldResult> sizes, ArrayRef<int64_t> kept) {
  SmallVector<int64_t> loops(typeOf(tensor).getRank());
  int64_t next = kept.size();
  for (auto [dim, loop] : llvm::enumerate(loops)) {
    const auto *found = llvm::find(kept, static_cast<int64_t>(dim));
    loop = found == kept.end() ? next++ : found - kept.begin();
  }
  Value sum =
      buildReduce(b, Reduction::Sum, sizes, {{tensor, loops}}, [](LocBuilder &, ValueRange args) { return args[0]; });
  return roundTo(b, sum, typeOf(tensor).getElementType());
}

Value sumRows(LocBuilder &b, Value tensor) {
  int64_t last = typeOf(tensor).getRank() - 1;
  return sumTo(b, tensor, getSize(b, tensor, last), last);
}

Value constantF64(LocBuilder &b, double value) { return arith::ConstantOp::create(b, b.getF64FloatAttr(value)); }

Value sumAll(LocBuilder &b, ValueRange tensors, Step step) {
  Sizes sizes = tensor::getMixedSizes(b, b.getLoc(), tensors.front());
  int64_t rank = sizes.size();
  sizes.resize(std::min<int64_t>(rank, 1));
  auto operands = llvm::map_to_vector(tensors, [&](Value tensor) -> Operand { return {tensor, loopRange(0, rank)}; });
  Value rows = buildReduce(b, Reduction::Sum, rank > 1 ? sizes : Sizes(), operands, step);
  SmallVector<utils::IteratorType> iterators(rank > 1, utils::IteratorType::reduction);
  SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(iterators.size()),
                                 AffineMap::get(iterators.size(), 0, b.getContext())};
  Value zero = tensor::FromElementsOp::create(b, RankedTensorType::get({}, b.getF64Type()), constantF64(b, 0));
  auto sum = linalg::GenericOp::create(
      b, zero.getType(), rows, zero, maps, iterators, [](OpBuilder &nested, Location loc, ValueRange args) {
        LocBuilder inner(loc, nested);
        Value wide = arith::ExtFOp::create(inner, inner.getF64Type(), args[0]);
        linalg::YieldOp::create(inner, ValueRange(arith::AddFOp::create(inner, args[1], wide)));
      });
  return sum.getResult(0);
}

namespace {

struct LinearModel : DifferentiableOpInterface::ExternalModel<LinearModel, LinearOp> {
  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &b, Adjoints &adjoints) const {
    auto linear = cast<LinearOp>(op);
    Value g = adjoints.get(linear.getResult()), x = linear.getX(), weight = linear.getWeight();
    if (adjoints.isWanted(x)) {
      Value plain = typeOf(weight).getEncoding() ? UnpackOp::create(b, weight).getResult() : weight;
      if (typeOf(x).getRank() == 1)
        adjoints.add(b, x,
                     tensor::CollapseShapeOp::create(b, multiply(b, asMatrix(b, g), plain),
                                                     ArrayRef<ReassociationIndices>{{0, 1}}));
      else
        addProduct(b, adjoints, x, g, plain);
    }
    if (adjoints.isWanted(weight))
      addProduct(b, adjoints, weight, transposeLast(b, asMatrix(b, g)), asMatrix(b, x));
    if (Value bias = linear.getBias(); bias && adjoints.isWanted(bias))
      adjoints.add(b, bias, sumRows(b, g));
    return success();
  }
};

/// The gradient of an operand of a product from that of all its repetitions.
static Value sumRepeated(LocBuilder &b, Value gradient, Value operand) {
  ArrayRef<int64_t> shape = typeOf(operand).getShape();
  int64_t rank = typeOf(gradient).getRank(), more = rank - static_cast<int64_t>(shape.size());
  SmallVector<int64_t> kept;
  SmallVector<ReassociationIndices> groups;
  Sizes sizes;
  for (int64_t dim = 0, size = shape.size(); dim < size; ++dim) {
    bool isRepeated = dim < size - 2 && shape[dim] == 1 && typeOf(gradient).getDimSize(dim + more) != 1;
    if (isRepeated)
      continue;
    kept.push_back(dim + more);
    sizes.push_back(getSize(b, gradient, dim + more));
  }
  if (static_cast<int64_t>(kept.size()) == rank)
    return gradient;
  Value sum = sumTo(b, gradient, sizes, kept);
  if (kept.size() == shape.size())
    return sum;
  SmallVector<OpFoldResult> whole = tensor::getMixedSizes(b, b.getLoc(), operand);
  for (int64_t dim = 0, size = shape.size(); dim < size; ++dim) {
    bool isKept = llvm::is_contained(kept, dim + more);
    bool startsGroup =
        groups.empty() ||
        (isKept && llvm::any_of(groups.back(), [&](int64_t other) { return llvm::is_contained(kept, other + more); }));
    if (startsGroup)
      groups.emplace_back();
    groups.back().push_back(dim);
  }
  return tensor::ExpandShapeOp::create(b, cast<RankedTensorType>(getGradientType(operand)), sum, groups, whole);
}

struct MatmulModel : DifferentiableOpInterface::ExternalModel<MatmulModel, MatmulOp> {
  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &b, Adjoints &adjoints) const {
    auto product = cast<MatmulOp>(op);
    Value g = adjoints.get(product.getResult()), left = product.getA(), right = product.getB();
    if (adjoints.isWanted(left))
      addSummed(b, adjoints, left, g, transposeLast(b, right));
    if (adjoints.isWanted(right))
      addSummed(b, adjoints, right, transposeLast(b, left), g);
    if (Value addend = product.getAddend())
      adjoints.add(b, addend, g);
    return success();
  }

private:
  /// Adds first · second, summed over the repetitions of `operand`.
  static void addSummed(LocBuilder &b, Adjoints &adjoints, Value operand, Value first, Value second) {
    if (typeOf(first).getRank() == 2 && typeOf(second).getRank() == 2)
      return addProduct(b, adjoints, operand, first, second);
    adjoints.add(b, operand, sumRepeated(b, multiply(b, first, second), operand));
  }
};

/// Rows of the table get the sums of the gradients of what was read of them, one token after the other.
struct EmbeddingModel : DifferentiableOpInterface::ExternalModel<EmbeddingModel, EmbeddingOp> {
  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &b, Adjoints &adjoints) const {
    auto embedding = cast<EmbeddingOp>(op);
    Value ids = asVector(b, embedding.getIds()), table = embedding.getTable();
    Value g = asMatrix(b, adjoints.get(embedding.getResult()));
    Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
    Value rows = asIndex(b, getSize(b, table, 0)), count = asIndex(b, getSize(b, ids, 0));
    // Of a table that is the last layer's weight too, rows are added to the gradient that it has from there.
    Value before = adjoints.get(table), start = before ? before : buildZeros(b, table);
    auto loop = scf::ForOp::create(
        b, zero, count, one, start, [&](OpBuilder &nested, Location loc, Value token, ValueRange sums) {
          LocBuilder inner(loc, nested);
          Value id =
              arith::IndexCastOp::create(inner, inner.getIndexType(), tensor::ExtractOp::create(inner, ids, token));
          Value isNegative = arith::CmpIOp::create(inner, arith::CmpIPredicate::slt, id, zero);
          Value row = arith::SelectOp::create(inner, isNegative, arith::AddIOp::create(inner, id, rows), id);
          // Unsigned: what is still negative is a very large one.
          Value exists = arith::CmpIOp::create(inner, arith::CmpIPredicate::ult, row, rows);
          auto sum = scf::IfOp::create(
              inner, exists,
              [&](OpBuilder &then, Location at) {
                LocBuilder t(at, then);
                scf::YieldOp::create(t, addRow(t, sums.front(), row, g, token));
              },
              [&](OpBuilder &otherwise, Location at) { scf::YieldOp::create(otherwise, at, sums.front()); });
          scf::YieldOp::create(inner, sum.getResult(0));
        });
    if (before)
      adjoints.replace(table, loop.getResult(0));
    else
      adjoints.add(b, table, loop.getResult(0));
    return success();
  }

private:
  /// `sums` with row `token` of `g` added to row `row`.
  static Value addRow(LocBuilder &b, Value sums, Value row, Value g, Value token) {
    OpFoldResult width = getSize(b, g, 1), one = b.getIndexAttr(1), zero = b.getIndexAttr(0);
    Sizes sizes{one, width}, strides{one, one};
    Value before = tensor::ExtractSliceOp::create(b, sums, Sizes{row, zero}, sizes, strides);
    Value more = tensor::ExtractSliceOp::create(b, g, Sizes{token, zero}, sizes, strides);
    return tensor::InsertSliceOp::create(b, addInPlace(b, before, more), sums, Sizes{row, zero}, sizes, strides);
  }
};

/// The probabilities of the logits less 1 at the target, each a share of the mean. They overwrite the logits where nothing else
/// reads these.
struct CrossEntropyModel : DifferentiableOpInterface::ExternalModel<CrossEntropyModel, CrossEntropyOp> {
  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &b, Adjoints &adjoints) const {
    auto loss = cast<CrossEntropyOp>(op);
    Value logits = loss.getLogits(), lse = buildLogSumExp(b, logits), count = arith::ConstantIndexOp::create(b, 1);
    Sizes sizes = tensor::getMixedSizes(b, b.getLoc(), logits);
    for (OpFoldResult size : ArrayRef(sizes).drop_back())
      count = arith::MulIOp::create(b, count, asIndex(b, size));
    Value rows = asF32(b, count);
    int64_t rank = sizes.size() - 1;
    auto step = [&](OpBuilder &nested, Location loc, ValueRange args) {
      LocBuilder inner(loc, nested);
      Value probability = math::ExpOp::create(inner, arith::SubFOp::create(inner, args[3], args[0]));
      Value index = arith::IndexCastOp::create(inner, inner.getIndexType(), args[1]);
      Value isTarget =
          arith::CmpIOp::create(inner, arith::CmpIPredicate::eq, index, linalg::IndexOp::create(inner, rank));
      Value less = arith::SubFOp::create(inner, probability, constantF32(inner, 1.0f));
      Value slope = arith::SelectOp::create(inner, isTarget, less, probability);
      Value share = arith::DivFOp::create(inner, args[2], rows);
      linalg::YieldOp::create(inner, arith::MulFOp::create(inner, slope, share).getResult());
    };
    AffineMap all = b.getMultiDimIdentityMap(rank + 1), ofRow = all.getMajorSubMap(rank);
    SmallVector<AffineMap> maps{ofRow, ofRow, AffineMap::get(rank + 1, 0, b.getContext()), all};
    SmallVector<utils::IteratorType> iterators(rank + 1, utils::IteratorType::parallel);
    SmallVector<Value> inputs{lse, loss.getTargets(), adjoints.get(loss.getResult())};
    auto gradient = linalg::GenericOp::create(b, logits.getType(), inputs, logits, maps, iterators, step);
    adjoints.add(b, logits, gradient.getResult(0));
    return success();
  }
};

} // namespace

void registerProductAdjoints(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, HoneDialect *) {
    LinearOp::attachInterface<LinearModel>(*context);
    MatmulOp::attachInterface<MatmulModel>(*context);
    EmbeddingOp::attachInterface<EmbeddingModel>(*context);
    CrossEntropyOp::attachInterface<CrossEntropyModel>(*context);
  });
}

} // namespace hone
