// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops over tensors as the lowerings build them: element-wise with broadcasting, reductions, generated elements,
// reshapes, slices.

#include "Lowering.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace hone::lowering {

Value Node::constant(double value, Type element) {
  if (isa<FloatType>(element))
    return arith::ConstantOp::create(b, b.getFloatAttr(element, value));
  return arith::ConstantOp::create(b, b.getIntegerAttr(element, static_cast<int64_t>(value)));
}

Value Node::empty(ArrayRef<Size> sizes, Type element) {
  isBroken = isBroken || failed(lowerer.requireSizes(op, sizes, element));
  Value tensor = tensor::EmptyOp::create(b, sizes, element);
  lowerer.setSizes(tensor, sizes);
  return tensor;
}

Value Node::filled(ArrayRef<Size> sizes, Value scalar) {
  Value tensor = linalg::FillOp::create(b, scalar, empty(sizes, scalar.getType())).getResult(0);
  lowerer.setSizes(tensor, sizes);
  return tensor;
}

static RankedTensorType getType(ArrayRef<Size> sizes, Value like) {
  SmallVector<int64_t> shape;
  for (Size size : sizes)
    shape.push_back(IndexMath::getConstant(size).value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, getElementTypeOrSelf(like));
}

int64_t linearize(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t position = 0;
  for (auto [at, size] : llvm::zip(index, shape))
    position = position * size + at;
  return position;
}

Value Node::fromIndices(ArrayRef<int64_t> shape, Value like, Pick pick) {
  SmallVector<Value> values;
  SmallVector<int64_t> strides = computeStrides(shape);
  for (int64_t i = 0, e = ShapedType::getNumElements(shape); i < e; ++i)
    values.push_back(pick(delinearize(i, strides)));
  return fromScalars(RankedTensorType::get(shape, getElementTypeOrSelf(like)), values);
}

//===----------------------------------------------------------------------===//
// Broadcasting
//===----------------------------------------------------------------------===//

Size Node::broadcastSize(Size lhs, Size rhs) {
  if (math.equal(lhs, rhs) || IndexMath::getConstant(rhs) == 1)
    return lhs;
  if (IndexMath::getConstant(lhs) == 1)
    return rhs;
  // A fixed size other than 1 wins: the other is the same or 1.
  if (IndexMath::getConstant(lhs))
    return lhs;
  if (IndexMath::getConstant(rhs))
    return rhs;
  if (math.isClampOf(lhs, rhs))
    return rhs;
  if (math.isClampOf(rhs, lhs))
    return lhs;
  return math.select(math.compare(arith::CmpIPredicate::eq, lhs, b.getIndexAttr(1)), rhs, lhs);
}

SmallVector<Size> Node::broadcastSizes(ValueRange tensors) {
  SmallVector<Size> result;
  for (Value tensor : tensors) {
    SmallVector<Size> sizes = this->sizes(tensor);
    if (sizes.size() > result.size())
      result.insert(result.begin(), sizes.size() - result.size(), b.getIndexAttr(1));
    size_t offset = result.size() - sizes.size();
    for (auto [i, size] : llvm::enumerate(sizes))
      result[offset + i] = broadcastSize(result[offset + i], size);
  }
  return result;
}

namespace {

/// How one tensor is read in a loop over `sizes`: by an indexing map; as the scalar that it is; or, where it is not known
/// before run time whether a dimension is broadcast, by extracting at an index that is 0 for dimensions of size 1.
struct Access {
  Value tensor;
  Value scalar;
  AffineMap map;                           // null: not read by a map
  SmallVector<std::optional<Value>> isOne; // per dimension: run-time "size is 1"
};

} // namespace

/// Checks at run time that a dimension of `size` reads as `to`, and returns whether its size is 1; nothing if the two must
/// be equal.
static std::optional<Value> checkBroadcast(Node &node, Size size, Size to) {
  Builder &b = node.b;
  Value isSame = node.math.compare(arith::CmpIPredicate::eq, size, to);
  if (node.math.isClampOf(size, to)) {
    node.check(isSame, "cannot broadcast: two sizes differ and neither is 1");
    return std::nullopt;
  }
  Value isOne = node.math.compare(arith::CmpIPredicate::eq, size, b.getIndexAttr(1));
  node.check(b.createOrFold<arith::OrIOp>(isOne, isSame), "cannot broadcast: two sizes differ and neither is 1");
  return isOne;
}

static Access getAccess(Node &node, Value tensor, ArrayRef<Size> sizes) {
  Builder &b = node.b;
  Access access{tensor, {}, {}, {}};
  if (auto values = node.scalars(tensor); values && values->size() == 1) {
    access.scalar = values->front();
    return access;
  }
  SmallVector<Size> own = node.sizes(tensor);
  size_t offset = sizes.size() - own.size();
  SmallVector<AffineExpr> exprs;
  for (auto [i, size] : llvm::enumerate(own)) {
    bool fixedOne = IndexMath::getConstant(size) == 1, same = node.math.equal(size, sizes[offset + i]);
    exprs.push_back(fixedOne && !same ? b.getAffineConstantExpr(0) : b.getAffineDimExpr(offset + i));
    access.isOne.push_back(fixedOne || same ? std::nullopt : checkBroadcast(node, size, sizes[offset + i]));
  }
  if (llvm::none_of(access.isOne, [](const auto &isOne) { return isOne.has_value(); }))
    access.map = AffineMap::get(sizes.size(), 0, exprs, b.getContext());
  return access;
}

static Value readByIndex(Builder &b, const Access &access, size_t loops) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  SmallVector<Value> at;
  size_t offset = loops - access.isOne.size();
  auto sizes = cast<RankedTensorType>(access.tensor.getType()).getShape();
  for (auto [i, isOne] : llvm::enumerate(access.isOne)) {
    Value index = sizes[i] == 1 ? zero : linalg::IndexOp::create(b, offset + i).getResult();
    at.push_back(isOne ? arith::SelectOp::create(b, *isOne, zero, index).getResult() : index);
  }
  return tensor::ExtractOp::create(b, access.tensor, at);
}

Value Node::elementwiseOver(ArrayRef<Size> sizes, ValueRange tensors, Type element, Body body) {
  SmallVector<Access> accesses;
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (Value tensor : tensors) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (type.getRank() > static_cast<int64_t>(sizes.size())) {
      fail() << "expected an operand of at most " << sizes.size() << " dimensions, but got " << type;
      isBroken = true;
      return empty(sizes, element);
    }
    Access &access = accesses.emplace_back(getAccess(*this, tensor, sizes));
    if (access.map) {
      inputs.push_back(tensor);
      maps.push_back(access.map);
    }
  }
  maps.push_back(b.getMultiDimIdentityMap(sizes.size()));
  SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
  Value init = empty(sizes, element);
  auto generic = linalg::GenericOp::create(
      b, init.getType(), inputs, init, maps, iterators, [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        Builder inner(loc, nested);
        IndexMath::RegionScope scope(math);
        SmallVector<Value> elements;
        unsigned next = 0;
        for (const Access &access : accesses)
          elements.push_back(access.scalar ? access.scalar
                             : access.map  ? arguments[next++]
                                           : readByIndex(inner, access, sizes.size()));
        linalg::YieldOp::create(inner, body(inner, elements));
      });
  lowerer.setSizes(generic.getResult(0), sizes);
  return generic.getResult(0);
}

/// Element `index` (row-major over `shape`) of scalars shaped `type`, broadcast.
static Value readScalar(ArrayRef<Value> scalars, RankedTensorType type, ArrayRef<int64_t> shape, int64_t index) {
  int64_t position = 0, stride = 1;
  for (int64_t d = shape.size() - 1, own = type.getRank() - 1; own >= 0; --d, --own) {
    int64_t at = index % shape[d];
    index /= shape[d];
    if (type.getDimSize(own) != 1)
      position += at * stride;
    stride *= type.getDimSize(own);
  }
  return scalars[position];
}

Value Node::elementwise(ValueRange tensors, Type element, Body body) {
  SmallVector<Size> sizes = broadcastSizes(tensors);
  SmallVector<SmallVector<Value>> scalars;
  for (Value tensor : tensors)
    if (auto values = this->scalars(tensor))
      scalars.push_back(*values);
  SmallVector<int64_t> shape;
  for (Size size : sizes)
    shape.push_back(IndexMath::getConstant(size).value_or(ShapedType::kDynamic));
  bool fixed = !llvm::is_contained(shape, ShapedType::kDynamic) && isScalarShape(RankedTensorType::get(shape, element));
  if (!fixed || scalars.size() != tensors.size() || tensors.empty())
    return elementwiseOver(sizes, tensors, element, body);
  SmallVector<Value> results;
  for (int64_t i = 0, e = ShapedType::getNumElements(shape); i < e; ++i) {
    SmallVector<Value> elements;
    for (auto [values, tensor] : llvm::zip(scalars, tensors))
      elements.push_back(readScalar(values, cast<RankedTensorType>(tensor.getType()), shape, i));
    results.push_back(body(b, elements));
  }
  return fromScalars(RankedTensorType::get(shape, element), results);
}

//===----------------------------------------------------------------------===//
// Generated elements and reductions
//===----------------------------------------------------------------------===//

Value Node::generate(ArrayRef<Size> sizes, Type element, IndexBody body) {
  return elementwiseOver(sizes, {}, element, [&](Builder &inner, ValueRange) {
    SmallVector<Value> at;
    for (size_t i = 0; i < sizes.size(); ++i)
      at.push_back(linalg::IndexOp::create(inner, i));
    return body(inner, at);
  });
}

Value Node::reduce(Value tensor, ArrayRef<int64_t> axes, bool keep, Value initial, ReduceBody body) {
  SmallVector<Size> sizes = this->sizes(tensor), kept;
  SmallVector<AffineExpr> exprs;
  SmallVector<utils::IteratorType> iterators;
  SmallVector<Size> withOnes = sizes;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    bool reduced = llvm::is_contained(axes, static_cast<int64_t>(dim));
    iterators.push_back(reduced ? utils::IteratorType::reduction : utils::IteratorType::parallel);
    if (reduced) {
      withOnes[dim] = b.getIndexAttr(1);
      continue;
    }
    kept.push_back(size);
    exprs.push_back(b.getAffineDimExpr(dim));
  }
  Value init = filled(kept, initial);
  AffineMap in = b.getMultiDimIdentityMap(sizes.size()), out = AffineMap::get(sizes.size(), 0, exprs, b.getContext());
  auto generic = linalg::GenericOp::create(b, init.getType(), tensor, init, ArrayRef<AffineMap>{in, out}, iterators,
                                           [&](OpBuilder &nested, Location loc, ValueRange arguments) {
                                             Builder inner(loc, nested);
                                             IndexMath::RegionScope scope(math);
                                             linalg::YieldOp::create(inner, body(inner, arguments[0], arguments[1]));
                                           });
  lowerer.setSizes(generic.getResult(0), kept);
  return keep ? reshape(generic.getResult(0), withOnes) : generic.getResult(0);
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

Value Node::transpose(Value tensor, ArrayRef<int64_t> permutation) {
  SmallVector<Size> from = sizes(tensor), to;
  for (int64_t dim : permutation)
    to.push_back(from[dim]);
  if (auto values = scalars(tensor)) {
    auto shape = cast<RankedTensorType>(tensor.getType()).getShape();
    return fromIndices(getType(to, tensor).getShape(), tensor, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> at(index.size());
      for (auto [i, dim] : llvm::enumerate(permutation))
        at[dim] = index[i];
      return (*values)[linearize(at, shape)];
    });
  }
  if (llvm::is_sorted(permutation))
    return tensor;
  Value init = empty(to, getElementTypeOrSelf(tensor));
  Value result = linalg::TransposeOp::create(b, tensor, init, permutation).getResult()[0];
  lowerer.setSizes(result, to);
  return result;
}

/// The scalars of a slice with fixed offsets, sizes and strides; null otherwise.
static Value sliceScalars(Node &node, Value tensor, ArrayRef<Size> offsets, ArrayRef<Size> sizes,
                          ArrayRef<Size> strides) {
  auto values = node.scalars(tensor);
  auto first = getConstantIntValues(offsets), count = getConstantIntValues(sizes), step = getConstantIntValues(strides);
  if (!values || !first || !count || !step)
    return {};
  auto shape = cast<RankedTensorType>(tensor.getType()).getShape();
  return node.fromIndices(*count, tensor, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> at;
    for (size_t i = 0; i < index.size(); ++i)
      at.push_back((*first)[i] + index[i] * (*step)[i]);
    return (*values)[linearize(at, shape)];
  });
}

/// True if a slice is known to be empty: it has size 0, or starts at the end, which extract_slice does not allow.
static bool takesNothing(RankedTensorType type, ArrayRef<Size> offsets, ArrayRef<Size> sizes) {
  for (auto [dim, offset, size] : llvm::zip(type.getShape(), offsets, sizes)) {
    auto start = IndexMath::getConstant(offset);
    if (IndexMath::getConstant(size) == 0 || (!ShapedType::isDynamic(dim) && start && *start >= dim))
      return true;
  }
  return false;
}

Value Node::slice(Value tensor, ArrayRef<Size> offsets, ArrayRef<Size> sizes, ArrayRef<Size> strides) {
  auto isConstant = [](ArrayRef<Size> values, int64_t constant) {
    return llvm::all_of(values, [&](Size value) { return IndexMath::getConstant(value) == constant; });
  };
  if (isConstant(offsets, 0) && isConstant(strides, 1) &&
      llvm::all_of(llvm::zip(sizes, this->sizes(tensor)),
                   [&](auto pair) { return math.equal(std::get<0>(pair), std::get<1>(pair)); }))
    return tensor;
  if (Value folded = sliceScalars(*this, tensor, offsets, sizes, strides))
    return folded;
  if (takesNothing(cast<RankedTensorType>(tensor.getType()), offsets, sizes))
    return empty(sizes, getElementTypeOrSelf(tensor));
  isBroken = isBroken || failed(lowerer.requireNonNegative(op, sizes));
  Value result = tensor::ExtractSliceOp::create(b, tensor, offsets, sizes, strides);
  lowerer.setSizes(result, sizes);
  return result;
}

using Groups = SmallVector<std::pair<ReassociationIndices, ReassociationIndices>>;

/// Takes one group of dimensions with equal products off the front of from[i...] and to[j...], or leaves both as they are.
static bool matchGroup(IndexMath &math, ArrayRef<Size> from, ArrayRef<Size> to, size_t &i, size_t &j, Groups &groups) {
  size_t nextLeft = i, nextRight = j;
  ReassociationIndices left, right;
  auto take = [](ArrayRef<Size> sizes, size_t &next, ReassociationIndices &group) {
    group.push_back(next);
    return sizes[next++];
  };
  Size l = take(from, nextLeft, left), r = take(to, nextRight, right);
  while (!math.equal(l, r)) {
    auto gap = math.difference(l, r);
    bool leftDivides = gap ? *gap < 0 : math.divide(r, l).has_value();
    bool rightDivides = gap ? *gap > 0 : math.divide(l, r).has_value();
    if (leftDivides && nextLeft < from.size())
      l = math.mul(l, take(from, nextLeft, left));
    else if (rightDivides && nextRight < to.size())
      r = math.mul(r, take(to, nextRight, right));
    else
      return false;
  }
  groups.emplace_back(left, right);
  i = nextLeft;
  j = nextRight;
  return true;
}

/// Groups of dimensions by which `from` and `to` have equal products. What cannot be told apart is one group in the middle.
static Groups matchGroups(IndexMath &math, ArrayRef<Size> from, ArrayRef<Size> to) {
  Groups groups, tail;
  size_t i = 0, j = 0, leftEnd = from.size(), rightEnd = to.size();
  while (i < leftEnd && j < rightEnd && matchGroup(math, from, to, i, j, groups))
    continue;
  while (i < leftEnd && j < rightEnd && math.equal(from[leftEnd - 1], to[rightEnd - 1])) {
    --leftEnd;
    --rightEnd;
    tail.emplace_back(ReassociationIndices{int64_t(leftEnd)}, ReassociationIndices{int64_t(rightEnd)});
  }
  auto left = llvm::seq<int64_t>(i, leftEnd), right = llvm::seq<int64_t>(j, rightEnd);
  if (!left.empty() && !right.empty()) {
    groups.emplace_back(llvm::to_vector<2>(left), llvm::to_vector<2>(right));
  } else if (!groups.empty()) { // one side is left over: sizes of 1
    groups.back().first.append(left.begin(), left.end());
    groups.back().second.append(right.begin(), right.end());
  } else if (!tail.empty()) {
    tail.back().first.insert(tail.back().first.begin(), left.begin(), left.end());
    tail.back().second.insert(tail.back().second.begin(), right.begin(), right.end());
  }
  groups.append(tail.rbegin(), tail.rend());
  return groups;
}

static int64_t countElements(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims)
    product = ShapedType::isDynamic(shape[dim]) || ShapedType::isDynamic(product) ? ShapedType::kDynamic
                                                                                  : product * shape[dim];
  return product;
}

/// True if some group has fixed sizes on both sides that disagree: only as a whole can the two shapes be equal.
static bool contradicts(const Groups &groups, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  return llvm::any_of(groups, [&](const auto &group) {
    int64_t left = countElements(from, group.first), right = countElements(to, group.second);
    return !ShapedType::isDynamic(left) && !ShapedType::isDynamic(right) && left != right;
  });
}

/// `tensor` with another static knowledge of the same sizes.
static Value refine(Node &node, Value tensor, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto wanted = RankedTensorType::get(shape, type.getElementType());
  return wanted == type ? tensor : tensor::CastOp::create(node.b, wanted, tensor).getResult();
}

/// Collapses and expands; a dimension is fixed exactly where all of its group are, which expand_shape asks for.
static Value regroup(Node &node, Value tensor, const Groups &groups, ArrayRef<Size> to) {
  SmallVector<ReassociationIndices> left, right;
  SmallVector<int64_t> middle;
  RankedTensorType wanted = getType(to, tensor);
  for (const auto &[l, r] : groups) {
    left.push_back(l);
    right.push_back(r);
    middle.push_back(countElements(wanted.getShape(), r));
  }
  auto from = cast<RankedTensorType>(tensor.getType());
  if (left.size() != static_cast<size_t>(from.getRank()))
    tensor = tensor::CollapseShapeOp::create(node.b, tensor, left);
  if (right.size() != to.size())
    tensor = tensor::ExpandShapeOp::create(node.b, wanted, refine(node, tensor, middle), right, to);
  return tensor;
}

/// Lowering an expansion of one dimension to several that are not fixed is not upstream's: a reshape says it by values.
static bool expandsToSeveralUnknown(const Groups &groups, ArrayRef<int64_t> to) {
  return llvm::any_of(groups, [&](const auto &group) {
    return llvm::count_if(group.second, [&](int64_t dim) { return ShapedType::isDynamic(to[dim]); }) > 1;
  });
}

static Value reshapeByValues(Node &node, Value tensor, ArrayRef<Size> to) {
  SmallVector<Value> sizes;
  for (Size size : to)
    sizes.push_back(node.math.value(size));
  Value shape = tensor::FromElementsOp::create(node.b, sizes);
  return tensor::ReshapeOp::create(node.b, getType(to, tensor), tensor, shape);
}

Value Node::reshape(Value tensor, ArrayRef<Size> to) {
  SmallVector<Size> from = sizes(tensor);
  if (from.size() == to.size() &&
      llvm::all_of(llvm::zip(from, to), [&](auto pair) { return math.equal(std::get<0>(pair), std::get<1>(pair)); }))
    return tensor;
  RankedTensorType wanted = getType(to, tensor);
  if (isBroken || failed(lowerer.requireSizes(op, to, wanted.getElementType()))) {
    isBroken = true;
    return tensor::EmptyOp::create(b, to, wanted.getElementType());
  }
  ArrayRef<int64_t> before = getType(from, tensor).getShape(), after = wanted.getShape();
  int64_t count = countElements(before, llvm::to_vector(llvm::seq<int64_t>(0, from.size())));
  int64_t newCount = countElements(after, llvm::to_vector(llvm::seq<int64_t>(0, to.size())));
  if (auto values = scalars(tensor); values && newCount == static_cast<int64_t>(values->size()))
    return fromScalars(wanted, *values);
  bool impossible = !ShapedType::isDynamic(count) && !ShapedType::isDynamic(newCount) && count != newCount;
  if (impossible || llvm::is_contained(before, 0) || llvm::is_contained(after, 0))
    return empty(to, wanted.getElementType()); // no elements to keep
  Value result;
  if (from.empty() || to.empty()) {
    SmallVector<int64_t> ones(from.size(), 1);
    SmallVector<Size> allOnes(to.size(), b.getIndexAttr(1));
    result = from.empty()
                 ? tensor::ExpandShapeOp::create(b, getType(allOnes, tensor), tensor, ArrayRef<ReassociationIndices>(),
                                                 allOnes)
                       .getResult()
                 : tensor::CollapseShapeOp::create(b, refine(*this, tensor, ones), ArrayRef<ReassociationIndices>())
                       .getResult();
  } else {
    Groups groups = matchGroups(math, from, to);
    if (contradicts(groups, before, after))
      groups = {{llvm::to_vector<2>(llvm::seq<int64_t>(0, from.size())),
                 llvm::to_vector<2>(llvm::seq<int64_t>(0, to.size()))}};
    result = expandsToSeveralUnknown(groups, after) ? reshapeByValues(*this, tensor, to)
                                                    : regroup(*this, tensor, groups, to);
  }
  if (result.getType() != wanted || result == tensor)
    result = tensor::CastOp::create(b, wanted, result); // a value of its own, to which the new sizes belong
  lowerer.setSizes(result, to);
  return result;
}

} // namespace hone::lowering
