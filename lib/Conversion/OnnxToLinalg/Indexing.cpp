// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that read elements by computed indices, or whose elements depend on where they are.

#include "Indices.h"

using namespace mlir;

namespace hone::lowering {

/// `tensor` with `count` dimensions of size 1 after its own.
static Value appendOnes(Node &node, Value tensor, int64_t count) {
  SmallVector<Size> sizes = node.sizes(tensor);
  sizes.append(count, node.math.constant(1));
  return node.reshape(tensor, sizes);
}

static SmallVector<Value> getLoopIndices(Builder &b, int64_t count) {
  SmallVector<Value> indices;
  for (int64_t i = 0; i < count; ++i)
    indices.push_back(linalg::IndexOp::create(b, i));
  return indices;
}

static LogicalResult requireInteger(Node &node, unsigned input) {
  if (node.element(input).isSignlessInteger())
    return success();
  return node.fail() << "expected input " << input << " to hold integers, but got " << node.type(input);
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

/// Gather of one index, which is a slice.
static LogicalResult gatherOne(Node &node, int64_t axis, Size index, ArrayRef<Size> result) {
  SmallVector<Size> sizes = node.sizes(node.in(0));
  auto offset = normalizeIndex(node, index, sizes[axis]);
  if (failed(offset))
    return failure();
  SmallVector<Size> offsets(sizes.size(), node.math.constant(0)), ones(sizes.size(), node.math.constant(1));
  offsets[axis] = *offset;
  sizes[axis] = node.math.constant(1);
  node.set(0, node.reshape(node.slice(node.in(0), offsets, sizes, ones), result));
  return success();
}

/// The only index of Gather, if there is one.
static std::optional<Size> getOnlyIndex(Node &node, Value indices) {
  auto type = cast<RankedTensorType>(indices.getType());
  if (!type.hasStaticShape() || type.getNumElements() != 1)
    return std::nullopt;
  if (auto values = node.scalars(indices))
    return node.math.fromScalar(values->front());
  SmallVector<Value> at(type.getRank(), arith::ConstantIndexOp::create(node.b, 0));
  return node.math.fromScalar(tensor::ExtractOp::create(node.b, indices, at));
}

/// Gather where the data and the indices are scalars: a shape, permuted. Null otherwise.
static Value gatherScalars(Node &node, int64_t axis, ArrayRef<int64_t> result) {
  auto data = node.scalars(node.in(0));
  auto indices = node.constants(1);
  if (!data || !indices || !isScalarShape(RankedTensorType::get(result, node.element(0))))
    return {};
  ArrayRef<int64_t> from = node.type(0).getShape(), shape = node.type(1).getShape();
  return node.fromIndices(result, node.in(0), [&](ArrayRef<int64_t> at) {
    int64_t index = (*indices)[linearize(at.slice(axis, shape.size()), shape)];
    SmallVector<int64_t> source(at.take_front(axis));
    source.push_back(index < 0 ? index + from[axis] : index);
    source.append(at.begin() + axis + shape.size(), at.end());
    return (*data)[linearize(source, from)];
  });
}

static LogicalResult gatherMany(Node &node, int64_t axis, ArrayRef<Size> result) {
  Value data = node.in(0), indices = node.in(1);
  Size size = node.size(data, axis);
  IndexWrap wrap = checkIndices(node, 1u, size);
  if (auto shape = getConstantIntValues(result))
    if (Value folded = gatherScalars(node, axis, *shape)) {
      node.set(0, folded);
      return success();
    }
  Value limit = node.math.value(size);
  int64_t rank = node.rank(0), inner = node.rank(1);
  Value aligned = appendOnes(node, indices, rank - axis - 1);
  node.set(0, node.elementwiseOver(result, aligned, node.element(0), [&](Builder &b, ValueRange x) -> Value {
    SmallVector<Value> at = getLoopIndices(b, result.size());
    SmallVector<Value> source(at.begin(), at.begin() + axis);
    source.push_back(wrap(b, x[0], limit));
    source.append(at.begin() + axis + inner, at.end());
    return tensor::ExtractOp::create(b, data, source);
  }));
  return success();
}

/// Constant indices outside a fixed size are an error at compile time.
static LogicalResult checkConstantIndices(Node &node, unsigned input, Size size) {
  auto values = node.constants(input);
  auto limit = IndexMath::getConstant(size);
  if (!values || !limit)
    return success();
  for (int64_t index : *values)
    if (index < -*limit || index >= *limit)
      return node.fail() << "expected indices in [" << -*limit << ", " << *limit << "), but got " << index;
  return success();
}

static LogicalResult lowerGather(Node &node) {
  auto axis = node.axis(node.integer("axis"), node.rank(0));
  if (failed(axis) || failed(requireInteger(node, 1)))
    return failure();
  SmallVector<Size> data = node.sizes(node.in(0)), result(data.begin(), data.begin() + *axis);
  if (failed(checkConstantIndices(node, 1, data[*axis])))
    return failure();
  result.append(node.sizes(node.in(1)));
  result.append(data.begin() + *axis + 1, data.end());
  if (auto index = getOnlyIndex(node, node.in(1)))
    return gatherOne(node, *axis, *index, result);
  return gatherMany(node, *axis, result);
}

static LogicalResult lowerGatherElements(Node &node) {
  auto axis = node.axis(node.integer("axis"), node.rank(0));
  if (failed(axis) || failed(requireInteger(node, 1)))
    return failure();
  if (node.rank(1) != node.rank(0))
    return node.fail() << "expected inputs of one rank, but got " << node.type(0) << " and " << node.type(1);
  Value data = node.in(0), indices = node.in(1);
  SmallVector<Size> from = node.sizes(data), sizes = node.sizes(indices);
  for (auto [dim, pair] : llvm::enumerate(llvm::zip(from, sizes)))
    if (static_cast<int64_t>(dim) != *axis)
      node.check(compare(node, arith::CmpIPredicate::sle, std::get<1>(pair), std::get<0>(pair)),
                 "expected the indices to be no larger than the data in dimension " + Twine(dim));
  if (failed(checkConstantIndices(node, 1, from[*axis])))
    return failure();
  IndexWrap wrap = checkIndices(node, 1u, from[*axis]);
  Value limit = node.math.value(from[*axis]);
  node.set(0, node.elementwiseOver(sizes, indices, node.element(0), [&](Builder &b, ValueRange x) -> Value {
    SmallVector<Value> at = getLoopIndices(b, sizes.size());
    at[*axis] = wrap(b, x[0], limit);
    return tensor::ExtractOp::create(b, data, at);
  }));
  return success();
}

FailureOr<SmallVector<Value>> splitIndexTuples(Node &node, unsigned input, ArrayRef<Size> limits) {
  Value indices = node.in(input);
  SmallVector<Size> sizes = node.sizes(indices);
  SmallVector<Size> offsets(sizes.size(), node.math.constant(0)), ones(sizes.size(), node.math.constant(1));
  ArrayRef<Size> outer = ArrayRef(sizes).drop_back();
  SmallVector<Size> one(sizes);
  one.back() = node.math.constant(1);
  SmallVector<Value> components;
  for (auto [i, limit] : llvm::enumerate(limits)) {
    offsets.back() = node.math.constant(i);
    components.push_back(node.reshape(node.slice(indices, offsets, one, ones), outer));
    checkIndices(node, components.back(), limit);
  }
  return components;
}

FailureOr<int64_t> getTupleLength(Node &node, unsigned input, int64_t dims) {
  RankedTensorType type = node.type(input);
  if (!type.getElementType().isSignlessInteger() || type.getRank() == 0 || type.isDynamicDim(type.getRank() - 1))
    return node.fail() << "expected input " << input << " to hold integers with a fixed last size, but got " << type;
  int64_t length = type.getShape().back();
  if (length > dims)
    return node.fail() << "expected tuples of at most " << dims << " indices, but got " << length;
  return length;
}

static LogicalResult lowerGatherND(Node &node) {
  int64_t batch = node.integer("batch_dims"), rank = node.rank(0), outer = node.rank(1) - 1;
  if (batch < 0 || batch >= std::min(rank, outer + 1))
    return node.fail() << "expected batch_dims to be in [0, " << std::min(rank, outer + 1) << "), but got " << batch;
  auto length = getTupleLength(node, 1, rank - batch);
  if (failed(length))
    return failure();
  Value data = node.in(0);
  SmallVector<Size> from = node.sizes(data), sizes = node.sizes(node.in(1));
  sizes.pop_back();
  for (int64_t i = 0; i < batch; ++i)
    node.check(compare(node, arith::CmpIPredicate::sle, sizes[i], from[i]),
               "expected the batch sizes of data and indices to agree");
  auto components = splitIndexTuples(node, 1, ArrayRef(from).slice(batch, *length));
  if (failed(components))
    return failure();
  ArrayRef<Size> inner = ArrayRef(from).drop_front(batch + *length);
  sizes.append(inner.begin(), inner.end());
  SmallVector<Value> limits, aligned;
  for (auto [i, component] : llvm::enumerate(*components)) {
    limits.push_back(node.math.value(from[batch + i]));
    aligned.push_back(appendOnes(node, component, inner.size()));
  }
  node.set(0, node.elementwiseOver(sizes, aligned, node.element(0), [&](Builder &b, ValueRange x) -> Value {
    SmallVector<Value> at = getLoopIndices(b, sizes.size());
    SmallVector<Value> source(at.begin(), at.begin() + batch);
    for (auto [index, limit] : llvm::zip(x, limits))
      source.push_back(wrapIndex(b, index, limit));
    source.append(at.begin() + outer, at.end());
    return tensor::ExtractOp::create(b, data, source);
  }));
  return success();
}

//===----------------------------------------------------------------------===//
// Elements by their place
//===----------------------------------------------------------------------===//

/// An index from an element of any numeric type; the fraction of a float is dropped.
static Value toIndex(Builder &b, Value element, bool isUnsigned) {
  if (isa<FloatType>(element.getType()))
    element = arith::FPToSIOp::create(b, b.getI64Type(), element);
  if (isUnsigned)
    return arith::IndexCastUIOp::create(b, b.getIndexType(), element);
  return arith::IndexCastOp::create(b, b.getIndexType(), element);
}

static LogicalResult lowerOneHot(Node &node) {
  int64_t rank = node.rank(0) + 1;
  auto axis = node.axis(node.integer("axis", -1), rank);
  auto depthScalar = getScalar(node, 1);
  if (failed(axis) || failed(depthScalar))
    return failure();
  if (node.rank(2) != 1)
    return node.fail() << "expected input 2 to be [off, on], but got " << node.type(2);
  Builder &b = node.b;
  Size wanted =
      node.math.fromScalar(isa<FloatType>(depthScalar->getType()) ? toIndex(b, *depthScalar, false) : *depthScalar);
  auto depth = requireSize(node, wanted, "the depth");
  if (failed(depth))
    return failure();
  node.check(compare(node, arith::CmpIPredicate::eq, node.size(node.in(2), 0), node.math.constant(2)),
             "expected input 2 to be [off, on]");
  Value off = tensor::ExtractOp::create(b, node.in(2), Value(arith::ConstantIndexOp::create(b, 0)));
  Value on = tensor::ExtractOp::create(b, node.in(2), Value(arith::ConstantIndexOp::create(b, 1)));
  SmallVector<Size> sizes = node.sizes(node.in(0)), aligned = sizes;
  sizes.insert(sizes.begin() + *axis, *depth);
  aligned.insert(aligned.begin() + *axis, node.math.constant(1));
  Value limit = node.math.value(*depth), indices = node.reshape(node.in(0), aligned);
  bool isUnsigned = node.isUnsigned(0);
  node.set(0, node.elementwiseOver(sizes, indices, node.element(2), [&](Builder &inner, ValueRange x) -> Value {
    Value hot = wrapIndex(inner, toIndex(inner, x[0], isUnsigned), limit);
    Value place = linalg::IndexOp::create(inner, *axis);
    Value here = arith::CmpIOp::create(inner, arith::CmpIPredicate::eq, hot, place);
    return arith::SelectOp::create(inner, here, on, off);
  }));
  return success();
}

static LogicalResult lowerTrilu(Node &node) {
  int64_t rank = node.rank(0);
  if (rank < 2)
    return node.fail() << "expected input 0 to have rank 2 or more, but got " << node.type(0);
  FailureOr<Size> diagonal = node.has(1) ? getScalarIndex(node, 1) : FailureOr<Size>(node.math.constant(0));
  if (failed(diagonal))
    return failure();
  bool upper = node.integer("upper", 1) != 0;
  Value shift = node.math.value(*diagonal), zero = node.zero(node.element(0));
  SmallVector<Size> sizes = node.sizes(node.in(0));
  node.set(0, node.elementwiseOver(sizes, node.in(0), node.element(0), [&](Builder &b, ValueRange x) -> Value {
    Value row = linalg::IndexOp::create(b, rank - 2), column = linalg::IndexOp::create(b, rank - 1);
    Value edge = arith::AddIOp::create(b, row, shift);
    auto keeps = upper ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sle;
    return arith::SelectOp::create(b, arith::CmpIOp::create(b, keeps, column, edge), x[0], zero);
  }));
  return success();
}

void addIndexingLowerings(LoweringTable &table) {
  table["onnx.Gather"] = lowerGather;
  table["onnx.GatherElements"] = lowerGatherElements;
  table["onnx.GatherND"] = lowerGatherND;
  table["onnx.OneHot"] = lowerOneHot;
  table["onnx.Trilu"] = lowerTrilu;
  table["onnx.com.microsoft.Trilu"] = lowerTrilu;
}

} // namespace hone::lowering
