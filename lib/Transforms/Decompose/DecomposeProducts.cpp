//===- DecomposeProducts.cpp - decompositions of linear, matmul and embedding -----------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace hone;

static int64_t rankOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getRank(); }

static Type elementsOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

//===- Transposition ----------------------------------------------------------------------------------------------===//

/// Whether `op` exchanges the last two dimensions alone.
static bool swapsLast(linalg::TransposeOp op) {
  SmallVector<int64_t> order = loopRange(0, op.getPermutation().size());
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return op.getPermutation() == ArrayRef(order);
}

Value hone::transposeLast(LocBuilder &b, Value tensor) {
  if (auto transpose = tensor.getDefiningOp<linalg::TransposeOp>(); transpose && swapsLast(transpose))
    return transpose.getInput();
  if (auto product = tensor.getDefiningOp<MatmulOp>(); product && !product.getAddend() && rankOf(tensor) == 2) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(product); // its operands are not kept alive until the result is read
    return MatmulOp::create(b, transposeLast(b, product.getB()), transposeLast(b, product.getA()));
  }
  Sizes sizes = tensor::getMixedSizes(b, b.getLoc(), tensor);
  SmallVector<int64_t> order = loopRange(0, sizes.size());
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  Value empty = tensor::EmptyOp::create(b, sizes, elementsOf(tensor));
  return linalg::TransposeOp::create(b, tensor, empty, order)->getResult(0);
}

//===- Rounding of activations ------------------------------------------------------------------------------------===//

/// The largest magnitude of each row and group of x, which has the sizes `[…, K]`: `[…, groups]`, f32.
static Value buildMagnitudes(LocBuilder &builder, Value x, Sizes sizes, int64_t group) {
  int64_t rows = sizes.size() - 1;
  Value columns = asIndex(builder, sizes.back()), width = arith::ConstantIndexOp::create(builder, group);
  sizes.back() = getAsOpFoldResult(builder.createOrFold<arith::CeilDivUIOp>(columns, width));
  auto element = [&](LocBuilder &b, ValueRange) -> Value {
    SmallVector<Value> place;
    for (int64_t dim = 0; dim < rows; ++dim)
      place.push_back(linalg::IndexOp::create(b, dim));
    Value first = arith::MulIOp::create(b, linalg::IndexOp::create(b, rows), width);
    Value column = arith::AddIOp::create(b, first, linalg::IndexOp::create(b, rows + 1));
    // The last group may be shorter: its last element stands for what is missing.
    Value last = arith::SubIOp::create(b, columns, arith::ConstantIndexOp::create(b, 1));
    place.push_back(arith::MinUIOp::create(b, column, last));
    return math::AbsFOp::create(b, extractF32(b, x, place));
  };
  Value within = tensor::EmptyOp::create(builder, ArrayRef<int64_t>{group}, builder.getF32Type());
  return buildReduce(builder, Reduction::Max, sizes, {{within, {rows + 1}}}, element);
}

Value hone::roundActivations(LocBuilder &builder, Value x, Value weight) {
  auto encoding = dyn_cast_or_null<EncodingInterface>(cast<RankedTensorType>(weight.getType()).getEncoding());
  ActivationRounding rounding = encoding ? encoding.getActivationRounding() : ActivationRounding();
  if (rounding.bits == 0)
    return x;
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), x);
  sizes.back() = getSize(builder, weight, 1);
  int64_t rows = sizes.size() - 1;
  Value magnitudes = buildMagnitudes(builder, x, sizes, rounding.group);
  Value width = arith::ConstantIndexOp::create(builder, rounding.group);
  auto limit = static_cast<float>((int64_t(1) << (rounding.bits - 1)) - 1);
  return buildMap(builder, sizes, builder.getF32Type(), {{x, loopRange(0, rows + 1)}},
                  [&](LocBuilder &b, ValueRange args) -> Value {
                    SmallVector<Value> place;
                    for (int64_t dim = 0; dim < rows; ++dim)
                      place.push_back(linalg::IndexOp::create(b, dim));
                    place.push_back(arith::DivUIOp::create(b, linalg::IndexOp::create(b, rows), width));
                    Value most = tensor::ExtractOp::create(b, magnitudes, place), zero = constantF32(b, 0.0f);
                    Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, most, zero);
                    Value factor = arith::DivFOp::create(b, constantF32(b, limit), most);
                    factor = arith::SelectOp::create(b, isZero, zero, factor);
                    Value steps = math::RoundEvenOp::create(b, arith::MulFOp::create(b, args[0], factor));
                    return arith::MulFOp::create(b, steps, arith::DivFOp::create(b, most, constantF32(b, limit)));
                  });
}

//===- linear -----------------------------------------------------------------------------------------------------===//

Value hone::buildLinear(LocBuilder &builder, Value x, Value weight, Value bias) {
  int64_t leading = rankOf(x) - 1, row = leading, inner = leading + 1;
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), x);
  sizes.back() = getSize(builder, weight, 0);
  x = roundActivations(builder, x, weight);
  weight = getPlain(builder, weight);
  Value sum = buildContraction(builder, sizes, {x, with(loopRange(0, leading), {inner})}, {weight, {row, inner}});
  if (!bias)
    return sum;
  return buildMap(builder, sizes, builder.getF32Type(), {{sum, loopRange(0, sizes.size())}, {bias, {row}}},
                  [](LocBuilder &b, ValueRange args) -> Value { return arith::AddFOp::create(b, args[0], args[1]); });
}

static Value decomposeLinear(LocBuilder &builder, LinearOp op) {
  Value sum = buildLinear(builder, op.getX(), op.getWeight(), op.getBias());
  return roundTo(builder, sum, elementsOf(op.getX()));
}

//===- matmul -----------------------------------------------------------------------------------------------------===//

/// The loops of the leading dimensions of an operand of a product with `batchCount` leading dimensions: aligned from the
/// right, one of size 1 repeated unless the result has that size too.
static SmallVector<int64_t> getBatchLoops(Value tensor, ArrayRef<OpFoldResult> resultSizes, int64_t batchCount) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape().drop_back(2);
  SmallVector<int64_t> loops;
  for (auto [i, size] : llvm::enumerate(shape)) {
    int64_t loop = batchCount - static_cast<int64_t>(shape.size()) + static_cast<int64_t>(i);
    loops.push_back(size == 1 && getConstantIntValue(resultSizes[loop]) != 1 ? Repeated : loop);
  }
  return loops;
}

/// The f32 sum of `addend` and `product`, in place where the addend is of f32.
static Value accumulate(LocBuilder &builder, Value addend, Value product) {
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), addend);
  if (!elementsOf(addend).isF32())
    addend = buildMap(builder, sizes, builder.getF32Type(), {{addend, loopRange(0, sizes.size())}},
                      [](LocBuilder &, ValueRange args) { return args[0]; });
  return addInPlace(builder, addend, product);
}

static Value decomposeMatmul(LocBuilder &builder, MatmulOp op) {
  Sizes sizes = getResultSizes(builder, op);
  int64_t batch = sizes.size() - 2, row = batch, column = batch + 1, inner = batch + 2;
  Operand a{op.getA(), with(getBatchLoops(op.getA(), sizes, batch), {row, inner})};
  Operand b{op.getB(), with(getBatchLoops(op.getB(), sizes, batch), {inner, column})};
  Value product = buildContraction(builder, sizes, a, b);
  if (Value addend = op.getAddend())
    product = accumulate(builder, addend, product);
  return roundTo(builder, product, elementsOf(op.getA()));
}

//===- embedding --------------------------------------------------------------------------------------------------===//

static Value decomposeEmbedding(LocBuilder &builder, EmbeddingOp op) {
  Sizes sizes = getResultSizes(builder, op);
  Value table = op.getTable();
  EncodedReader reader(builder, table);
  Value rows = asIndex(builder, getSize(builder, table, 0));
  Value zero = arith::ConstantIndexOp::create(builder, 0);
  Value last = arith::SubIOp::create(builder, rows, arith::ConstantIndexOp::create(builder, 1));
  int64_t column = sizes.size() - 1;
  auto step = [&](LocBuilder &b, ValueRange args) -> Value {
    Value given = arith::IndexCastOp::create(b, b.getIndexType(), args[0]);
    Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, given, zero);
    Value fromEnd = arith::AddIOp::create(b, given, rows);
    Value id = arith::SelectOp::create(b, isNegative, fromEnd, given);
    // Unsigned: what is still negative is a very large id.
    Value row = arith::MinUIOp::create(b, id, last);
    Value element = convertFloat(b, reader.read(b, {row, linalg::IndexOp::create(b, column)}), b.getF32Type());
    Value isRow = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, row, id);
    return arith::SelectOp::create(b, isRow, element, constantF32(b, std::numeric_limits<float>::quiet_NaN()));
  };
  return buildMap(builder, sizes, elementsOf(table), {{op.getIds(), loopRange(0, column)}}, step);
}

void hone::addProductDecompositions(RewritePatternSet &patterns) {
  addDecomposition<LinearOp>(patterns, decomposeLinear);
  addDecomposition<MatmulOp>(patterns, decomposeMatmul);
  addDecomposition<EmbeddingOp>(patterns, decomposeEmbedding);
}
