// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops over tensors as the lowerings build them: element-wise with broadcasting, reductions, generated elements,
// reshapes, slices.

#include "Lowering.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace hone::lowering {

Value Node::constant(double value, Type element) {
  if (isa<FloatType>(element))
    return arith::ConstantOp::create(b, b.getFloatAttr(element, value));
  return arith::ConstantOp::create(b, b.getIntegerAttr(element, static_cast<int64_t>(value)));
}

Value Node::empty(ArrayRef<Size> sizes, Type element) {
  Value tensor = tensor::EmptyOp::create(b, sizes, element);
  lowerer.setSizes(tensor, sizes);
  return tensor;
}

Value Node::filled(ArrayRef<Size> sizes, Value scalar) {
  Value tensor = linalg::FillOp::create(b, scalar, empty(sizes, scalar.getType())).getResult(0);
  lowerer.setSizes(tensor, sizes);
  return tensor;
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
  Value isOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, math.value(lhs), math.value(b.getIndexAttr(1)));
  return math.select(isOne, rhs, lhs);
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

/// How one tensor is read in a loop over `sizes`: by an indexing map, or, where it is not known before run time whether a
/// dimension is broadcast, by extracting at an index that is 0 for dimensions of size 1.
struct Access {
  Value tensor;
  AffineMap map;                     // null: read by extraction
  SmallVector<std::optional<Value>> isOne; // per dimension: run-time "size is 1"
};

} // namespace

static Access getAccess(Node &node, Value tensor, ArrayRef<Size> sizes) {
  Builder &b = node.b;
  Access access{tensor, {}, {}};
  SmallVector<Size> own = node.sizes(tensor);
  size_t offset = sizes.size() - own.size();
  SmallVector<AffineExpr> exprs;
  bool known = true;
  for (auto [i, size] : llvm::enumerate(own)) {
    access.isOne.push_back(std::nullopt);
    if (node.math.equal(size, sizes[offset + i])) {
      exprs.push_back(b.getAffineDimExpr(offset + i));
    } else if (IndexMath::getConstant(size) == 1) {
      exprs.push_back(b.getAffineConstantExpr(0));
    } else {
      Value one = arith::ConstantIndexOp::create(b, 1);
      access.isOne.back() = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, node.math.value(size), one);
      exprs.push_back(b.getAffineDimExpr(offset + i));
      known = false;
    }
  }
  if (known)
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
        SmallVector<Value> elements;
        unsigned next = 0;
        for (const Access &access : accesses)
          elements.push_back(access.map ? arguments[next++] : readByIndex(inner, access, sizes.size()));
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
  bool fixed = !llvm::is_contained(shape, ShapedType::kDynamic) && element.isSignlessInteger();
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
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    bool reduced = llvm::is_contained(axes, static_cast<int64_t>(dim));
    iterators.push_back(reduced ? utils::IteratorType::reduction : utils::IteratorType::parallel);
    if (reduced && !keep)
      continue;
    kept.push_back(reduced ? Size(b.getIndexAttr(1)) : size);
    exprs.push_back(reduced ? b.getAffineConstantExpr(0) : b.getAffineDimExpr(dim));
  }
  Value init = filled(kept, initial);
  AffineMap in = b.getMultiDimIdentityMap(sizes.size()), out = AffineMap::get(sizes.size(), 0, exprs, b.getContext());
  auto generic = linalg::GenericOp::create(
      b, init.getType(), tensor, init, ArrayRef<AffineMap>{in, out}, iterators,
      [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        Builder inner(loc, nested);
        linalg::YieldOp::create(inner, body(inner, arguments[0], arguments[1]));
      });
  lowerer.setSizes(generic.getResult(0), kept);
  return generic.getResult(0);
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

Value Node::transpose(Value tensor, ArrayRef<int64_t> permutation) {
  SmallVector<Size> from = sizes(tensor), to;
  for (int64_t dim : permutation)
    to.push_back(from[dim]);
  Value init = empty(to, cast<RankedTensorType>(tensor.getType()).getElementType());
  Value result = linalg::TransposeOp::create(b, tensor, init, permutation).getResult()[0];
  lowerer.setSizes(result, to);
  return result;
}

Value Node::slice(Value tensor, ArrayRef<Size> offsets, ArrayRef<Size> sizes, ArrayRef<Size> strides) {
  Value result = tensor::ExtractSliceOp::create(b, tensor, offsets, sizes, strides);
  lowerer.setSizes(result, sizes);
  return result;
}

/// The groups of dimensions by which `from` and `to` have equal products, scanning both from the front.
static std::optional<SmallVector<std::pair<ReassociationIndices, ReassociationIndices>>>
matchGroups(IndexMath &math, ArrayRef<Size> from, ArrayRef<Size> to) {
  SmallVector<std::pair<ReassociationIndices, ReassociationIndices>> groups;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    auto &[left, right] = groups.emplace_back();
    Size l = from[i], r = to[j];
    left.push_back(i++);
    right.push_back(j++);
    while (!math.equal(l, r)) {
      // Take from the side that has fewer factors left to explain; sizes that never meet are not comparable.
      bool leftNext = i < from.size() && (j >= to.size() || left.size() <= right.size());
      auto gap = math.difference(l, r);
      if (gap)
        leftNext = *gap < 0;
      else if (math.equal(math.mul(math.floorDiv(r, l), l), r))
        leftNext = true;
      else if (math.equal(math.mul(math.floorDiv(l, r), r), l))
        leftNext = false;
      if (leftNext ? i >= from.size() : j >= to.size())
        return std::nullopt;
      if (leftNext) {
        l = math.mul(l, from[i]);
        left.push_back(i++);
      } else {
        r = math.mul(r, to[j]);
        right.push_back(j++);
      }
    }
  }
  if (groups.empty())
    return std::nullopt;
  for (; i < from.size(); ++i) { // what is left has size 1
    if (IndexMath::getConstant(from[i]) != 1)
      return std::nullopt;
    groups.back().first.push_back(i);
  }
  for (; j < to.size(); ++j) {
    if (IndexMath::getConstant(to[j]) != 1)
      return std::nullopt;
    groups.back().second.push_back(j);
  }
  return groups;
}

static RankedTensorType getType(ArrayRef<Size> sizes, Type element) {
  SmallVector<int64_t> shape;
  for (Size size : sizes)
    shape.push_back(IndexMath::getConstant(size).value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, element);
}

static Value collapse(Node &node, Value tensor, ArrayRef<ReassociationIndices> groups) {
  SmallVector<Size> from = node.sizes(tensor), to;
  bool trivial = true;
  for (const ReassociationIndices &group : groups) {
    Size product = node.b.getIndexAttr(1);
    for (int64_t dim : group)
      product = node.math.mul(product, from[dim]);
    to.push_back(product);
    trivial &= group.size() == 1;
  }
  if (trivial)
    return tensor;
  Value result = tensor::CollapseShapeOp::create(node.b, tensor, groups);
  node.lowerer.setSizes(result, to);
  return result;
}

/// A dimension is fixed exactly where all of its group are: expand_shape wants both sides to agree.
static Value matchFixedSizes(Node &node, Value tensor, ArrayRef<ReassociationIndices> groups, ArrayRef<int64_t> to) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape;
  for (const ReassociationIndices &group : groups) {
    int64_t product = 1;
    for (int64_t dim : group)
      product = ShapedType::isDynamic(to[dim]) || ShapedType::isDynamic(product) ? ShapedType::kDynamic : product * to[dim];
    shape.push_back(product);
  }
  auto wanted = RankedTensorType::get(shape, type.getElementType());
  return groups.empty() || wanted == type ? tensor : tensor::CastOp::create(node.b, wanted, tensor).getResult();
}

static Value expand(Node &node, Value tensor, ArrayRef<ReassociationIndices> groups, ArrayRef<Size> to) {
  if (groups.size() == to.size())
    return tensor;
  auto element = cast<RankedTensorType>(tensor.getType()).getElementType();
  tensor = matchFixedSizes(node, tensor, groups, getType(to, element).getShape());
  Value result = tensor::ExpandShapeOp::create(node.b, getType(to, element), tensor, groups, to);
  node.lowerer.setSizes(result, to);
  return result;
}

Value Node::reshape(Value tensor, ArrayRef<Size> to) {
  SmallVector<Size> from = sizes(tensor);
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  if (from.size() == to.size() && llvm::all_of(llvm::zip(from, to), [&](auto pair) {
        return math.equal(std::get<0>(pair), std::get<1>(pair));
      }))
    return tensor;
  if (auto values = scalars(tensor); values && getType(to, element).hasStaticShape())
    return fromScalars(getType(to, element), *values);
  SmallVector<ReassociationIndices> left, right;
  if (auto groups = matchGroups(math, from, to)) {
    for (auto &[l, r] : *groups) {
      left.push_back(l);
      right.push_back(r);
    }
  } else {
    // Through one dimension: collapse everything, then expand.
    if (!from.empty())
      left.push_back(llvm::to_vector<2>(llvm::seq<int64_t>(0, from.size())));
    if (!to.empty())
      right.push_back(llvm::to_vector<2>(llvm::seq<int64_t>(0, to.size())));
  }
  if (from.empty()) {
    SmallVector<Size> ones(to.size(), b.getIndexAttr(1));
    return expand(*this, tensor, {}, ones);
  }
  if (to.empty())
    left.clear();
  Value flat = collapse(*this, tensor, left);
  return expand(*this, flat, right, to);
}

void Node::check(Value condition, const Twine &message) {
  APInt constant;
  if (matchPattern(condition, m_ConstantInt(&constant)) && !constant.isZero())
    return;
  std::string where;
  if (auto name = dyn_cast<NameLoc>(op->getLoc()))
    where = name.getName().str() + ": ";
  cf::AssertOp::create(b, condition, where + message.str());
}

} // namespace hone::lowering
