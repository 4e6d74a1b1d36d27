// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folding loops, padding and repetition, and products of matrices.

#include "Loops.h"

#include "hone/Dialect/Hone/HoneOps.h"

using namespace mlir;

namespace hone::lowering {

Type getAccumulator(Type element) {
  auto type = dyn_cast<FloatType>(element);
  return type && type.getWidth() < 32 ? Float32Type::get(element.getContext()) : element;
}

Value convertFloat(Builder &b, Value value, Type element) {
  auto from = cast<FloatType>(value.getType()), to = cast<FloatType>(element);
  if (from == to)
    return value;
  if (from.getWidth() < to.getWidth())
    return arith::ExtFOp::create(b, to, value);
  if (from.getWidth() > to.getWidth())
    return arith::TruncFOp::create(b, to, value);
  return convertFloat(b, convertFloat(b, value, b.getF32Type()), element);
}

Value convertFloats(Node &node, Value tensor, Type element) {
  if (cast<RankedTensorType>(tensor.getType()).getElementType() == element)
    return tensor;
  return node.elementwiseOver(node.sizes(tensor), tensor, element,
                              [&](Builder &b, ValueRange x) { return convertFloat(b, x[0], element); });
}

Value addScalars(Builder &b, Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return arith::AddFOp::create(b, lhs, rhs);
  return arith::AddIOp::create(b, lhs, rhs);
}

Value multiplyScalars(Builder &b, Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return arith::MulFOp::create(b, lhs, rhs);
  return arith::MulIOp::create(b, lhs, rhs);
}

//===----------------------------------------------------------------------===//
// Folding loops
//===----------------------------------------------------------------------===//

/// Whether each loop from `first` on is a dimension of an operand, which then says how long it is.
static bool boundsLoops(ArrayRef<Operand> operands, unsigned first, unsigned loops) {
  for (unsigned loop = first; loop < loops; ++loop)
    if (llvm::none_of(operands, [&](const Operand &operand) {
          return llvm::any_of(operand.map.getResults(), [&](AffineExpr expr) {
            auto dim = dyn_cast<AffineDimExpr>(expr);
            return dim && dim.getPosition() == loop;
          });
        }))
      return false;
  return true;
}

Value accumulate(Node &node, ArrayRef<Size> sizes, ArrayRef<Size> reduced, ArrayRef<Operand> operands, Value initial,
                 AccumulateBody body) {
  Builder &b = node.b;
  unsigned results = sizes.size(), loops = results + reduced.size();
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (const Operand &operand : operands) {
    inputs.push_back(operand.tensor);
    maps.push_back(operand.map);
  }
  if (!boundsLoops(operands, results, loops)) { // a tensor that only says how long the loops are
    inputs.push_back(node.empty(reduced, b.getI8Type()));
    SmallVector<AffineExpr> dims;
    for (unsigned loop = results; loop < loops; ++loop)
      dims.push_back(b.getAffineDimExpr(loop));
    maps.push_back(AffineMap::get(loops, 0, dims, b.getContext()));
  }
  SmallVector<AffineExpr> dims;
  for (unsigned loop = 0; loop < results; ++loop)
    dims.push_back(b.getAffineDimExpr(loop));
  maps.push_back(AffineMap::get(loops, 0, dims, b.getContext()));
  SmallVector<utils::IteratorType> iterators(results, utils::IteratorType::parallel);
  iterators.append(reduced.size(), utils::IteratorType::reduction);
  Value init = node.filled(sizes, initial);
  auto generic = linalg::GenericOp::create(
      b, init.getType(), inputs, init, maps, iterators, [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        Builder inner(loc, nested);
        linalg::YieldOp::create(inner, body(inner, arguments.take_front(operands.size()), arguments.back()));
      });
  node.lowerer.setSizes(generic.getResult(0), sizes);
  return generic.getResult(0);
}

Value copyElements(Node &node, const Operand &operand, ArrayRef<Size> sizes) {
  Builder &b = node.b;
  Value init = node.empty(sizes, cast<RankedTensorType>(operand.tensor.getType()).getElementType());
  AffineMap all = b.getMultiDimIdentityMap(sizes.size());
  SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      b, init.getType(), operand.tensor, init, ArrayRef<AffineMap>{operand.map, all}, iterators,
      [](OpBuilder &nested, Location loc, ValueRange x) { linalg::YieldOp::create(nested, loc, x[0]); });
  node.lowerer.setSizes(generic.getResult(0), sizes);
  return generic.getResult(0);
}

Value sumProducts(Node &node, ArrayRef<Size> sizes, ArrayRef<Size> reduced, const Operand &lhs, const Operand &rhs) {
  Type element = cast<RankedTensorType>(lhs.tensor.getType()).getElementType();
  Type wide = getAccumulator(element);
  auto widen = [&](Builder &b, Value x) { return isa<FloatType>(wide) ? convertFloat(b, x, wide) : x; };
  Value sum = accumulate(node, sizes, reduced, {lhs, rhs}, node.zero(wide), [&](Builder &b, ValueRange x, Value total) {
    return addScalars(b, total, multiplyScalars(b, widen(b, x[0]), widen(b, x[1])));
  });
  return wide == element ? sum : convertFloats(node, sum, element);
}

//===----------------------------------------------------------------------===//
// Padding, repetition, concatenation
//===----------------------------------------------------------------------===//

static bool areZero(ArrayRef<Size> sizes) {
  return llvm::all_of(sizes, [](Size size) { return IndexMath::getConstant(size) == 0; });
}

Value surround(Node &node, Value tensor, ArrayRef<Size> low, ArrayRef<Size> high, Value scalar) {
  if (areZero(low) && areZero(high))
    return tensor;
  SmallVector<Size> from = node.sizes(tensor), to;
  for (auto [size, before, after] : llvm::zip(from, low, high))
    to.push_back(node.math.add(size, node.math.add(before, after)));
  SmallVector<Size> ones(from.size(), node.b.getIndexAttr(1));
  Value result = tensor::InsertSliceOp::create(node.b, tensor, node.filled(to, scalar), low, from, ones);
  node.lowerer.setSizes(result, to);
  return result;
}

Value repeat(Node &node, Value tensor, ArrayRef<Size> sizes) {
  SmallVector<Size> own = node.sizes(tensor);
  bool same = own.size() == sizes.size() && llvm::all_of(llvm::zip(own, sizes), [&](auto pair) {
                return node.math.equal(std::get<0>(pair), std::get<1>(pair));
              });
  if (same)
    return tensor;
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  return node.elementwiseOver(sizes, tensor, element, [](Builder &, ValueRange x) { return x[0]; });
}

Value join(Node &node, ValueRange tensors, int64_t axis) {
  if (tensors.size() == 1)
    return tensors.front();
  Builder &b = node.b;
  SmallVector<Size> sizes = node.sizes(tensors.front());
  Size total = b.getIndexAttr(0);
  for (Value tensor : tensors)
    total = node.math.add(total, node.size(tensor, axis));
  for (Value tensor : tensors) {
    SmallVector<Size> part = sizes;
    part[axis] = node.size(tensor, axis);
    node.isBroken |= failed(requireShape(node, tensor, part, "a part", "those of the others"));
  }
  sizes[axis] = total;
  SmallVector<Size> offsets(sizes.size(), b.getIndexAttr(0)), ones(sizes.size(), b.getIndexAttr(1));
  Value result = node.empty(sizes, cast<RankedTensorType>(tensors.front().getType()).getElementType());
  for (Value tensor : tensors) {
    SmallVector<Size> part = node.sizes(tensor);
    result = tensor::InsertSliceOp::create(b, tensor, result, offsets, part, ones);
    offsets[axis] = node.math.add(offsets[axis], part[axis]);
  }
  node.lowerer.setSizes(result, sizes);
  return result;
}

Value sliceAxis(Node &node, Value tensor, int64_t axis, Size offset, Size size) {
  SmallVector<Size> sizes = node.sizes(tensor);
  SmallVector<Size> offsets(sizes.size(), node.b.getIndexAttr(0)), ones(sizes.size(), node.b.getIndexAttr(1));
  if (IndexMath::getConstant(offset) == 0 && node.math.equal(sizes[axis], size))
    return tensor;
  offsets[axis] = offset;
  sizes[axis] = size;
  return node.slice(tensor, offsets, sizes, ones);
}

LogicalResult requireEqual(Node &node, Size lhs, Size rhs, const Twine &what) {
  if (node.math.equal(lhs, rhs))
    return success();
  auto left = IndexMath::getConstant(lhs), right = IndexMath::getConstant(rhs);
  if (left && right)
    return node.fail() << "expected " << what << " to be equal, but got " << *left << " and " << *right;
  node.check(node.math.compare(arith::CmpIPredicate::eq, lhs, rhs), "expected " + what + " to be equal");
  return success();
}

LogicalResult requireShape(Node &node, Value tensor, ArrayRef<Size> sizes, StringRef what, StringRef shape) {
  SmallVector<Size> own = node.sizes(tensor);
  if (own.size() != sizes.size())
    return node.fail() << "expected " << what << " to be " << shape << ", but got " << tensor.getType();
  for (auto [lhs, rhs] : llvm::zip_equal(own, sizes))
    if (failed(requireEqual(node, lhs, rhs, "the sizes of " + what + " and " + shape)))
      return failure();
  return success();
}

LogicalResult requireMultiple(Node &node, Size size, int64_t factor, const Twine &what) {
  Size unit = node.b.getIndexAttr(factor), whole = node.math.mul(node.math.floorDiv(size, unit), unit);
  if (auto constant = IndexMath::getConstant(size); constant && *constant % factor)
    return node.fail() << "expected " << what << " to be a multiple of " << factor << ", but got " << *constant;
  node.check(node.math.compare(arith::CmpIPredicate::eq, size, whole),
             "expected " + what + " to be a multiple of " + Twine(factor));
  return success();
}

LogicalResult requireElements(Node &node, ArrayRef<Size> sizes, const Twine &what) {
  for (Size size : sizes) {
    if (IndexMath::getConstant(size) == 0)
      return node.fail() << "expected " << what << " to have elements, but got a size of 0";
    node.check(node.math.compare(arith::CmpIPredicate::ne, size, node.b.getIndexAttr(0)),
               "expected " + what + " to have elements");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Products of matrices
//===----------------------------------------------------------------------===//

/// The element types of the hone dialect's operations.
bool isHoneFloat(Type element) { return element.isF32() || element.isF16() || element.isBF16(); }

RankedTensorType getTensorType(ArrayRef<Size> sizes, Type element) {
  SmallVector<int64_t> shape;
  for (Size size : sizes)
    shape.push_back(IndexMath::getConstant(size).value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, element);
}

/// Repeats `tensor` along the batch dimensions of which it is not known whether they are broadcast: afterwards each is
/// `batch`'s, 1 or absent.
static Value repeatBatch(Node &node, Value tensor, ArrayRef<Size> batch) {
  SmallVector<Size> own = node.sizes(tensor), wanted = own;
  int64_t leading = own.size() - 2, offset = batch.size() - leading;
  for (int64_t i = 0; i < leading; ++i)
    if (IndexMath::getConstant(own[i]) != 1)
      wanted[i] = batch[offset + i];
  return repeat(node, tensor, wanted);
}

/// The map of one operand of a product: batch dimensions from the right (constant 0 where the operand has size 1), then
/// the loops `row` and `column`.
static AffineMap getMatrixMap(Node &node, Value tensor, unsigned loops, unsigned batch, unsigned row, unsigned column) {
  SmallVector<Size> own = node.sizes(tensor);
  SmallVector<AffineExpr> exprs;
  unsigned leading = own.size() - 2;
  for (unsigned i = 0; i < leading; ++i)
    exprs.push_back(IndexMath::getConstant(own[i]) == 1 ? node.b.getAffineConstantExpr(0)
                                                        : node.b.getAffineDimExpr(batch - leading + i));
  exprs.push_back(node.b.getAffineDimExpr(row));
  exprs.push_back(node.b.getAffineDimExpr(column));
  return AffineMap::get(loops, 0, exprs, node.b.getContext());
}

FailureOr<Value> multiplyMatrices(Node &node, Value lhs, Value rhs) {
  SmallVector<Size> left = node.sizes(lhs), right = node.sizes(rhs);
  Size inner = left.back();
  if (failed(requireEqual(node, inner, right[right.size() - 2], "the inner dimensions of a product")))
    return failure();
  SmallVector<Size> sizes;
  size_t batch = std::max(left.size(), right.size()) - 2;
  for (size_t i = 0; i < batch; ++i) {
    auto get = [&](ArrayRef<Size> own) {
      size_t offset = batch - (own.size() - 2);
      return i < offset ? Size(node.b.getIndexAttr(1)) : own[i - offset];
    };
    sizes.push_back(node.broadcastSize(get(left), get(right)));
  }
  lhs = repeatBatch(node, lhs, sizes);
  rhs = repeatBatch(node, rhs, sizes);
  sizes.push_back(left[left.size() - 2]);
  sizes.push_back(right.back());
  Type element = cast<RankedTensorType>(lhs.getType()).getElementType();
  if (!isHoneFloat(element)) {
    unsigned loops = batch + 3;
    return sumProducts(node, sizes, inner, {lhs, getMatrixMap(node, lhs, loops, batch, batch, batch + 2)},
                       {rhs, getMatrixMap(node, rhs, loops, batch, batch + 2, batch + 1)});
  }
  node.isBroken = node.isBroken || failed(node.lowerer.requireSizes(node.op, sizes, element));
  Value product = MatmulOp::create(node.b, getTensorType(sizes, element), lhs, rhs, /*addend=*/Value());
  node.lowerer.setSizes(product, sizes);
  return product;
}

FailureOr<Value> applyLinear(Node &node, Value x, Value weight, Value bias) {
  SmallVector<Size> sizes = node.sizes(x), rows = node.sizes(weight);
  if (failed(requireEqual(node, sizes.back(), rows[1], "the inner dimensions of a product")))
    return failure();
  if (bias && failed(requireEqual(node, node.size(bias, 0), rows[0], "the sizes of the bias and of the weight")))
    return failure();
  Type element = cast<RankedTensorType>(x.getType()).getElementType();
  if (!isHoneFloat(element)) {
    auto product = multiplyMatrices(node, x, node.transpose(weight, {1, 0}));
    if (failed(product) || !bias)
      return product;
    return node.elementwise({*product, bias}, element,
                            [](Builder &b, ValueRange v) { return addScalars(b, v[0], v[1]); });
  }
  sizes.back() = rows[0];
  node.isBroken = node.isBroken || failed(node.lowerer.requireSizes(node.op, sizes, element));
  Value product = LinearOp::create(node.b, getTensorType(sizes, element), x, weight, bias);
  node.lowerer.setSizes(product, sizes);
  return product;
}

} // namespace hone::lowering
