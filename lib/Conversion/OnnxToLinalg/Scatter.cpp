// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that write elements at computed indices. Writes happen one after another, as indices may repeat, but for few of them, which
// every element compares with its own.

#include "Indices.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// How an update meets the element that is there.
enum class Meeting { replace, add, multiply, least, greatest };

} // namespace

static FailureOr<Meeting> getMeeting(Node &node) {
  StringRef name = node.string("reduction", "none");
  auto meeting = llvm::StringSwitch<std::optional<Meeting>>(name)
                     .Case("none", Meeting::replace)
                     .Case("add", Meeting::add)
                     .Case("mul", Meeting::multiply)
                     .Case("min", Meeting::least)
                     .Case("max", Meeting::greatest)
                     .Default(std::nullopt);
  if (!meeting)
    return node.fail() << "unsupported reduction '" << name << "'; supported: none, add, mul, min, max";
  Type declared = node.declared(0);
  if (*meeting != Meeting::replace && declared != node.element(0) && isa<FloatType>(declared))
    return node.fail() << "unsupported reduction '" << name << "' of " << declared << "; supported: none";
  return *meeting;
}

static Value meetFloats(Builder &b, Meeting meeting, Value old, Value update) {
  switch (meeting) {
  case Meeting::add:
    return arith::AddFOp::create(b, old, update);
  case Meeting::multiply:
    return arith::MulFOp::create(b, old, update);
  case Meeting::least:
    return arith::MinimumFOp::create(b, old, update);
  case Meeting::greatest:
    return arith::MaximumFOp::create(b, old, update);
  default:
    return update;
  }
}

static Value meetIntegers(Builder &b, Meeting meeting, Value old, Value update, bool isUnsigned) {
  switch (meeting) {
  case Meeting::add:
    return arith::AddIOp::create(b, old, update);
  case Meeting::multiply:
    return arith::MulIOp::create(b, old, update);
  case Meeting::least:
    return isUnsigned ? Value(arith::MinUIOp::create(b, old, update)) : arith::MinSIOp::create(b, old, update);
  case Meeting::greatest:
    return isUnsigned ? Value(arith::MaxUIOp::create(b, old, update)) : arith::MaxSIOp::create(b, old, update);
  default:
    return update;
  }
}

/// `carried` with `update` written at `at`.
static Value writeElement(Node &node, Builder &b, Meeting meeting, Value carried, ValueRange at, Value update) {
  if (meeting != Meeting::replace) {
    Value old = tensor::ExtractOp::create(b, carried, at);
    update = isa<FloatType>(old.getType()) ? meetFloats(b, meeting, old, update)
                                           : meetIntegers(b, meeting, old, update, node.isUnsigned(0));
  }
  return tensor::InsertOp::create(b, update, carried, at);
}

/// Failure, or a check at run time, unless `sizes` are `wanted`.
static LogicalResult requireShape(Node &node, ArrayRef<Size> sizes, ArrayRef<Size> wanted, const Twine &what) {
  if (sizes.size() != wanted.size())
    return node.fail() << "expected " << what << " to have rank " << wanted.size() << ", but got " << sizes.size();
  for (auto [dim, pair] : llvm::enumerate(llvm::zip(sizes, wanted))) {
    auto [size, want] = pair;
    auto left = IndexMath::getConstant(size), right = IndexMath::getConstant(want);
    if (left && right && *left != *right)
      return node.fail() << "expected " << what << " to have size " << *right << " in dimension " << dim << ", but got "
                         << *left;
    node.check(compare(node, arith::CmpIPredicate::eq, size, want),
               "expected " + what + " to have another size in dimension " + Twine(dim));
  }
  return success();
}

/// Along an axis with at most so many indices each element of the result looks for its own, which no write has to wait for.
static constexpr int64_t kMostCompared = 256;

/// Whether updates of few indices, which do not meet, go to rows of their own: a router's choice, written into a mask. "The indices
/// should not have duplicate entries" then, so that their order does not matter.
static bool canCompare(Node &node, int64_t axis, Meeting meeting, ArrayRef<Size> data, ArrayRef<Size> sizes) {
  auto count = IndexMath::getConstant(sizes[axis]);
  bool hasOwnRows = llvm::all_of(llvm::enumerate(llvm::zip(data, sizes)), [&](auto pair) {
    auto [one, other] = pair.value();
    return static_cast<int64_t>(pair.index()) == axis || node.math.equal(one, other);
  });
  return meeting == Meeting::replace && count && *count <= kMostCompared && hasOwnRows;
}

static Value scatterByComparing(Node &node, int64_t axis, Size size) {
  using utils::IteratorType;
  int64_t rank = node.rank(0);
  Value data = node.in(0), limit = node.math.value(size);
  AffineMap own = AffineMap::get(rank + 1, 0, AffineMap::getMultiDimIdentityMap(rank, node.b.getContext()).getResults(),
                                 node.b.getContext());
  SmallVector<AffineExpr> from(own.getResults());
  from[axis] = node.b.getAffineDimExpr(rank);
  AffineMap update = AffineMap::get(rank + 1, 0, from, node.b.getContext());
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.push_back(IteratorType::reduction);
  auto generic =
      linalg::GenericOp::create(node.b, data.getType(), ValueRange{node.in(1), node.in(2)}, data, {update, update, own},
                                iterators, [&](OpBuilder &nested, Location loc, ValueRange arguments) {
                                  Builder inner(loc, nested);
                                  IndexMath::RegionScope scope(node.math);
                                  Value index = wrapIndex(inner, arguments[0], limit),
                                        place = linalg::IndexOp::create(inner, axis);
                                  Value isHere = arith::CmpIOp::create(inner, arith::CmpIPredicate::eq, index, place);
                                  Value element = arith::SelectOp::create(inner, isHere, arguments[1], arguments[2]);
                                  linalg::YieldOp::create(inner, element);
                                });
  return generic.getResult(0);
}

static LogicalResult lowerScatterElements(Node &node) {
  auto axis = node.axis(node.integer("axis"), node.rank(0));
  auto meeting = getMeeting(node);
  if (failed(axis) || failed(meeting))
    return failure();
  Value indices = node.in(1), updates = node.in(2);
  SmallVector<Size> data = node.sizes(node.in(0)), sizes = node.sizes(indices);
  if (sizes.size() != data.size())
    return node.fail() << "expected indices of rank " << data.size() << ", but got " << node.type(1);
  if (failed(requireShape(node, node.sizes(updates), sizes, "the updates")))
    return failure();
  for (auto [dim, pair] : llvm::enumerate(llvm::zip(sizes, data)))
    if (static_cast<int64_t>(dim) != *axis)
      node.check(compare(node, arith::CmpIPredicate::sle, std::get<0>(pair), std::get<1>(pair)),
                 "expected the indices to be no larger than the data in dimension " + Twine(dim));
  checkIndices(node, 1u, data[*axis]);
  if (canCompare(node, *axis, *meeting, data, sizes)) {
    Value result = scatterByComparing(node, *axis, data[*axis]);
    node.lowerer.setSizes(result, data);
    node.set(0, result);
    return success();
  }
  Value limit = node.math.value(data[*axis]);
  auto result =
      loopNest(node, sizes, node.in(0), [&](Builder &b, ValueRange at, ValueRange carried) -> SmallVector<Value> {
        SmallVector<Value> to(at);
        to[*axis] = wrapIndex(b, tensor::ExtractOp::create(b, indices, at), limit);
        return {writeElement(node, b, *meeting, carried[0], to, tensor::ExtractOp::create(b, updates, at))};
      });
  node.lowerer.setSizes(result[0], data);
  node.set(0, result[0]);
  return success();
}

/// Writes whole slices of `updates`, one for each tuple of indices.
static Value scatterSlices(Node &node, ArrayRef<Value> components, ArrayRef<Value> limits, ArrayRef<Size> outer,
                           ArrayRef<Size> inner) {
  Value updates = node.in(2);
  SmallVector<int64_t> shape;
  for (Size size : inner)
    shape.push_back(IndexMath::getConstant(size).value_or(ShapedType::kDynamic));
  auto type = RankedTensorType::get(shape, node.element(2));
  return loopNest(node, outer, node.in(0), [&](Builder &b, ValueRange at, ValueRange carried) -> SmallVector<Value> {
    SmallVector<Size> from(at.begin(), at.end()), to, updateSizes(outer.size(), b.getIndexAttr(1));
    for (auto [component, limit] : llvm::zip(components, limits))
      to.push_back(wrapIndex(b, tensor::ExtractOp::create(b, component, at), limit));
    SmallVector<Size> dataSizes(to.size(), b.getIndexAttr(1));
    from.append(inner.size(), b.getIndexAttr(0));
    to.append(inner.size(), b.getIndexAttr(0));
    updateSizes.append(inner.begin(), inner.end());
    dataSizes.append(inner.begin(), inner.end());
    SmallVector<Size> fromSteps(from.size(), b.getIndexAttr(1)), toSteps(to.size(), b.getIndexAttr(1));
    Value slice = tensor::ExtractSliceOp::create(b, type, updates, from, updateSizes, fromSteps);
    return {tensor::InsertSliceOp::create(b, slice, carried[0], to, dataSizes, toSteps)};
  })[0];
}

static Value scatterElements(Node &node, Meeting meeting, ArrayRef<Value> components, ArrayRef<Value> limits,
                             ArrayRef<Size> updateSizes, size_t outer) {
  Value updates = node.in(2);
  return loopNest(node, updateSizes, node.in(0),
                  [&](Builder &b, ValueRange at, ValueRange carried) -> SmallVector<Value> {
                    SmallVector<Value> to;
                    for (auto [component, limit] : llvm::zip(components, limits))
                      to.push_back(wrapIndex(b, tensor::ExtractOp::create(b, component, at.take_front(outer)), limit));
                    to.append(at.begin() + outer, at.end());
                    return {writeElement(node, b, meeting, carried[0], to, tensor::ExtractOp::create(b, updates, at))};
                  })[0];
}

static LogicalResult lowerScatterND(Node &node) {
  auto meeting = getMeeting(node);
  auto length = getTupleLength(node, 1, node.rank(0));
  if (failed(meeting) || failed(length))
    return failure();
  SmallVector<Size> data = node.sizes(node.in(0)), outer = node.sizes(node.in(1));
  outer.pop_back();
  ArrayRef<Size> inner = ArrayRef(data).drop_front(*length);
  SmallVector<Size> wanted = outer;
  wanted.append(inner.begin(), inner.end());
  if (failed(requireShape(node, node.sizes(node.in(2)), wanted, "the updates")))
    return failure();
  auto components = splitIndexTuples(node, 1, ArrayRef(data).take_front(*length));
  if (failed(components))
    return failure();
  SmallVector<Value> limits;
  for (int64_t i = 0; i < *length; ++i)
    limits.push_back(node.math.value(data[i]));
  bool slices = *meeting == Meeting::replace && !inner.empty();
  Value result = slices ? scatterSlices(node, *components, limits, outer, inner)
                        : scatterElements(node, *meeting, *components, limits, wanted, outer.size());
  node.lowerer.setSizes(result, data);
  node.set(0, result);
  return success();
}

static LogicalResult lowerTensorScatter(Node &node) {
  IndexMath &math = node.math;
  auto axis = node.axis(node.integer("axis", -2), node.rank(0));
  if (failed(axis))
    return failure();
  StringRef mode = node.string("mode", "linear");
  if (*axis == 0 || (mode != "linear" && mode != "circular"))
    return node.fail() << "expected an axis after the batch and mode linear or circular, but got axis " << *axis
                       << " and mode '" << mode << "'";
  Value update = node.in(1), starts = node.in(2);
  SmallVector<Size> data = node.sizes(node.in(0)), sizes = node.sizes(update), wanted = data;
  wanted[*axis] = sizes.size() == data.size() ? sizes[*axis] : wanted[*axis];
  if (failed(requireShape(node, sizes, wanted, "the update")) ||
      (starts && failed(requireShape(node, node.sizes(starts), data[0], "write_indices"))))
    return failure();
  Size room = math.sub(data[*axis], sizes[*axis]);
  node.check(compare(node, arith::CmpIPredicate::sge, room, math.constant(0)),
             "expected the update to fit into the cache");
  if (starts && mode == "linear")
    checkIndices(node, starts, math.add(room, math.constant(1)));
  Value limit = math.value(data[*axis]), last = math.value(math.sub(data[*axis], math.constant(1)));
  auto result =
      loopNest(node, sizes, node.in(0), [&](Builder &b, ValueRange at, ValueRange carried) -> SmallVector<Value> {
        SmallVector<Value> to(at);
        if (starts) {
          Value start = arith::IndexCastOp::create(b, b.getIndexType(), tensor::ExtractOp::create(b, starts, at[0]));
          Value place = arith::AddIOp::create(b, start, at[*axis]);
          Value around = wrapIndex(b, arith::RemSIOp::create(b, place, limit), limit);
          to[*axis] = mode == "circular" ? around : arith::MinSIOp::create(b, around, last).getResult();
        }
        return {tensor::InsertOp::create(b, tensor::ExtractOp::create(b, update, at), carried[0], to)};
      });
  node.lowerer.setSizes(result[0], data);
  node.set(0, result[0]);
  return success();
}

void addScatterLowerings(LoweringTable &table) {
  table["onnx.Scatter"] = lowerScatterElements;
  table["onnx.ScatterElements"] = lowerScatterElements;
  table["onnx.ScatterND"] = lowerScatterND;
  table["onnx.TensorScatter"] = lowerTensorScatter;
}

} // namespace hone::lowering
