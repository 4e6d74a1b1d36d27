// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers that operators read from tensors, and loops over indices.

#include "Indices.h"

#include "hone/Dialect/Hone/ParamBytes.h"

using namespace mlir;

namespace hone::lowering {

FailureOr<Value> getScalar(Node &node, unsigned index) {
  RankedTensorType type = node.type(index);
  bool single = type.getRank() == 0 || (type.getRank() == 1 && (type.isDynamicDim(0) || type.getDimSize(0) == 1));
  if (!single)
    return node.fail() << "expected input " << index << " to hold one element, but got " << type;
  if (auto values = node.scalars(node.in(index)))
    return values->front();
  SmallVector<Value> at;
  if (type.getRank() == 1) {
    Size one = node.math.constant(1);
    node.check(compare(node, arith::CmpIPredicate::eq, node.size(node.in(index), 0), one),
               "expected input " + Twine(index) + " to hold one element");
    at.push_back(arith::ConstantIndexOp::create(node.b, 0));
  }
  return tensor::ExtractOp::create(node.b, node.in(index), at).getResult();
}

FailureOr<Size> getScalarIndex(Node &node, unsigned index) {
  auto scalar = getScalar(node, index);
  if (failed(scalar))
    return failure();
  if (!scalar->getType().isSignlessInteger())
    return node.fail() << "expected input " << index << " to be an integer, but got " << node.type(index);
  return node.math.fromScalar(*scalar);
}

Value compare(Node &node, arith::CmpIPredicate predicate, Size lhs, Size rhs) {
  return node.math.compare(predicate, lhs, rhs);
}

FailureOr<Size> requireRange(Node &node, Size value, int64_t low, int64_t high, const Twine &what) {
  IndexMath &math = node.math;
  if (auto constant = IndexMath::getConstant(value)) {
    if (*constant >= low && *constant <= high)
      return value;
    return node.fail() << "expected " << what << " to be in [" << low << ", " << high << "], but got " << *constant;
  }
  if (math.isAtLeast(value, low) && math.isLessOrEqual(value, math.constant(high)))
    return value;
  Value isAbove = compare(node, arith::CmpIPredicate::sge, value, math.constant(low));
  Value isBelow = compare(node, arith::CmpIPredicate::sle, value, math.constant(high));
  node.check(math.simplify(node.b.createOrFold<arith::AndIOp>(isAbove, isBelow)),
             "expected " + what + " to be in [" + Twine(low) + ", " + Twine(high) + "], but got {}", value);
  math.assume(value, low);
  return math.max(value, math.constant(low));
}

FailureOr<Size> requireSize(Node &node, Size size, const Twine &what) {
  if (node.math.isAtLeast(size, 0))
    return size;
  if (auto constant = IndexMath::getConstant(size))
    return node.fail() << "expected " << what << " not to be negative, but got " << *constant;
  node.check(compare(node, arith::CmpIPredicate::sge, size, node.math.constant(0)),
             "expected " + what + " not to be negative, but got {}", size);
  node.math.assume(size, 0);
  return node.math.max(size, node.math.constant(0));
}

FailureOr<SmallVector<Size>> getSizes(Node &node, unsigned index) {
  auto values = node.indices(index);
  if (failed(values))
    return failure();
  for (Size &size : *values) {
    auto checked = requireSize(node, size, "sizes of input " + Twine(index));
    if (failed(checked))
      return failure();
    size = *checked;
  }
  return values;
}

FailureOr<Size> normalizeAxis(Node &node, Size axis, int64_t rank) {
  if (auto constant = IndexMath::getConstant(axis)) {
    auto normalized = node.axis(*constant, rank);
    return failed(normalized) ? FailureOr<Size>(failure()) : node.math.constant(*normalized);
  }
  return normalizeIndex(node, axis, node.math.constant(rank));
}

FailureOr<Size> normalizeIndex(Node &node, Size index, Size size) {
  IndexMath &math = node.math;
  auto constant = IndexMath::getConstant(index), limit = IndexMath::getConstant(size);
  if (constant && limit && (*constant < -*limit || *constant >= *limit))
    return node.fail() << "expected an index in [" << -*limit << ", " << *limit << "), but got " << *constant;
  Value negative = compare(node, arith::CmpIPredicate::slt, index, math.constant(0));
  Size wrapped = math.select(negative, math.add(index, size), index);
  Value low = compare(node, arith::CmpIPredicate::sge, wrapped, math.constant(0));
  Value high = compare(node, arith::CmpIPredicate::slt, wrapped, size);
  node.check(node.math.simplify(node.b.createOrFold<arith::AndIOp>(low, high)),
             "expected an index inside its dimension");
  return wrapped;
}

/// `index` as an index; it is one of an element already.
static Value castIndex(Builder &b, Value index, Value) {
  return index.getType().isIndex() ? index : b.createOrFold<arith::IndexCastOp>(b.getIndexType(), index);
}

Value wrapIndex(Builder &b, Value index, Value size) {
  index = castIndex(b, index, size);
  Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, arith::ConstantIndexOp::create(b, 0));
  return arith::SelectOp::create(b, negative, arith::AddIOp::create(b, index, size), index);
}

/// True if constants say that every index is in range.
static bool areKnownInside(Node &node, Value indices, Size size) {
  auto values = node.scalars(indices);
  return values && llvm::all_of(*values, [&](Value value) {
           Size index = node.math.fromScalar(value);
           Size end = node.math.isAtLeast(index, 0) ? index : node.math.sub(node.math.constant(-1), index);
           return node.math.isAtLeast(end, 0) && node.math.isAtLeast(node.math.sub(size, end), 1);
         });
}

void checkElements(Node &node, Value tensor, Size least, Size end, const Twine &message) {
  Builder &b = node.b;
  Value limit = node.math.value(end), lowest = node.math.value(least);
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  SmallVector<int64_t> axes =
      llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(tensor.getType()).getRank()));
  Value inside = node.reduce(tensor, axes, false, yes, [&](Builder &inner, Value element, Value so) -> Value {
    Value index = arith::IndexCastOp::create(inner, inner.getIndexType(), element);
    Value low = arith::CmpIOp::create(inner, arith::CmpIPredicate::sge, index, lowest);
    Value high = arith::CmpIOp::create(inner, arith::CmpIPredicate::slt, index, limit);
    return arith::AndIOp::create(inner, so, arith::AndIOp::create(inner, low, high));
  });
  node.check(tensor::ExtractOp::create(b, inside, ValueRange()), message);
}

void checkIndices(Node &node, Value indices, Size size) {
  if (!areKnownInside(node, indices, size))
    checkElements(node, indices, node.math.sub(node.math.constant(0), size), size,
                  "expected indices inside their dimension");
}

/// True if the integers of an operand of ONNX's, at least 32 bits wide, are known to be in [0, limit): elements of constants that all are;
/// what TopK, ArgMax or ArgMin say of an axis of at most so many elements; in another shape or type perhaps.
static bool areBelow(Value indices, int64_t limit) {
  Operation *op = indices.getDefiningOp();
  Type element = getElementTypeOrSelf(indices);
  if (!op || !element.isInteger() || element.getIntOrFloatBitWidth() < 32)
    return false;
  StringRef name = op->getName().stripDialect();
  if (llvm::is_contained(
          {"Cast", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"},
          name))
    return areBelow(op->getOperand(0), limit);
  if (name == "Where")
    return areBelow(op->getOperand(1), limit) && areBelow(op->getOperand(2), limit);
  bool isTopK = name == "TopK" && indices == op->getResult(1);
  if (isTopK || name == "ArgMax" || name == "ArgMin") {
    auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
    auto axis = op->getAttrOfType<IntegerAttr>("axis");
    int64_t place = axis ? axis.getInt() : isTopK ? -1 : 0;
    if (!type || place < -type.getRank() || place >= type.getRank())
      return false;
    int64_t length = type.getDimSize(place < 0 ? place + type.getRank() : place);
    return !ShapedType::isDynamic(length) && length <= limit;
  }
  SmallVector<int64_t> constants = readIntegers(indices);
  return !constants.empty() && llvm::all_of(constants, [&](int64_t index) { return index >= 0 && index < limit; });
}

IndexWrap checkIndices(Node &node, unsigned input, Size size) {
  auto limit = IndexMath::getConstant(size);
  if (limit && areBelow(node.op->getOperand(input), *limit))
    return castIndex;
  checkIndices(node, node.in(input), size);
  return wrapIndex;
}

Size getProduct(Node &node, ArrayRef<Size> sizes) {
  Size product = node.math.constant(1);
  for (Size size : sizes)
    product = node.math.mul(product, size);
  return product;
}

/// The scalars of a tensor repeated to a fixed shape; null where they are not all known.
static Value broadcastScalars(Node &node, Value tensor, ArrayRef<Size> sizes) {
  auto values = node.scalars(tensor);
  auto shape = getConstantIntValues(sizes);
  if (!values || !shape || !isScalarShape(RankedTensorType::get(*shape, getElementTypeOrSelf(tensor))))
    return {};
  auto own = cast<RankedTensorType>(tensor.getType()).getShape();
  return node.fromIndices(*shape, tensor, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> at(index.take_back(own.size()));
    for (auto [i, size] : llvm::zip(at, own))
      i = size == 1 ? 0 : i;
    return (*values)[linearize(at, own)];
  });
}

Value broadcast(Node &node, Value tensor, ArrayRef<Size> sizes) {
  SmallVector<Size> own = node.sizes(tensor);
  bool same = own.size() == sizes.size() && llvm::all_of(llvm::zip(own, sizes), [&](auto pair) {
                return node.math.equal(std::get<0>(pair), std::get<1>(pair));
              });
  if (same)
    return tensor;
  if (Value folded = broadcastScalars(node, tensor, sizes))
    return folded;
  return node.elementwiseOver(sizes, tensor, getElementTypeOrSelf(tensor),
                              [](Builder &, ValueRange x) { return x[0]; });
}

SmallVector<Value> loopNest(Node &node, ArrayRef<Size> sizes, ValueRange initial, NestBody body) {
  Builder &b = node.b;
  SmallVector<Value> lower(sizes.size(), arith::ConstantIndexOp::create(b, 0)), upper;
  SmallVector<Value> steps(sizes.size(), arith::ConstantIndexOp::create(b, 1));
  for (Size size : sizes)
    upper.push_back(node.math.value(size));
  auto nest = scf::buildLoopNest(b, b.getLoc(), lower, upper, steps, initial,
                                 [&](OpBuilder &nested, Location loc, ValueRange indices, ValueRange carried) {
                                   Builder inner(loc, nested);
                                   IndexMath::RegionScope scope(node.math);
                                   SmallVector<Value> results = body(inner, indices, carried);
                                   return scf::ValueVector(results.begin(), results.end());
                                 });
  return nest.results;
}

} // namespace hone::lowering
