// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Padding and cropping.

#include "Indices.h"
#include "Loops.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// Elements to add around each dimension; negative ones are removed.
struct Padding {
  SmallVector<Size> before, after;
};

} // namespace

static FailureOr<SmallVector<Size>> getPaddedAxes(Node &node, unsigned input, int64_t rank) {
  SmallVector<Size> axes;
  if (!node.has(input)) {
    for (int64_t i = 0; i < rank; ++i)
      axes.push_back(node.math.constant(i));
    return axes;
  }
  auto given = node.indices(input);
  if (failed(given))
    return failure();
  for (Size axis : *given) {
    auto normalized = normalizeAxis(node, axis, rank);
    if (failed(normalized))
      return failure();
    axes.push_back(*normalized);
  }
  return axes;
}

static FailureOr<Padding> getPadding(Node &node, int64_t rank) {
  IndexMath &math = node.math;
  auto pads = node.indices(1);
  auto axes = getPaddedAxes(node, 3, rank);
  if (failed(pads) || failed(axes))
    return failure();
  size_t count = axes->size();
  if (pads->size() != 2 * count)
    return node.fail() << "expected " << 2 * count << " pads, two for each axis, but got " << pads->size();
  for (Size &pad : *pads) {
    auto checked = requireRange(node, pad, -kMostElements, kMostElements, "the pads");
    if (failed(checked))
      return failure();
    pad = *checked;
  }
  Padding padding{SmallVector<Size>(rank, math.constant(0)), SmallVector<Size>(rank, math.constant(0))};
  for (auto [i, axis] : llvm::enumerate(*axes))
    for (int64_t dim = 0; dim < rank; ++dim) {
      Value here = compare(node, arith::CmpIPredicate::eq, axis, math.constant(dim));
      padding.before[dim] = math.select(here, (*pads)[i], padding.before[dim]);
      padding.after[dim] = math.select(here, (*pads)[count + i], padding.after[dim]);
    }
  return padding;
}

static FailureOr<SmallVector<Size>> getPaddedSizes(Node &node, ArrayRef<Size> from, const Padding &padding) {
  SmallVector<Size> sizes;
  for (auto [size, before, after] : llvm::zip(from, padding.before, padding.after)) {
    auto padded = requireSize(node, node.math.add(size, node.math.add(before, after)), "a padded size");
    if (failed(padded))
      return failure();
    sizes.push_back(*padded);
  }
  return sizes;
}

/// `tensor` in the middle of a tensor of `sizes` full of `scalar`; negative pads leave out its rim.
static Value padWithScalar(Node &node, Value tensor, ArrayRef<Size> sizes, const Padding &padding, Value scalar) {
  IndexMath &math = node.math;
  Size zero = math.constant(0);
  SmallVector<Size> from = node.sizes(tensor), cropped, extent, offsets, ones(from.size(), math.constant(1));
  for (auto [size, before, after] : llvm::zip(from, padding.before, padding.after)) {
    Size skipped = math.min(math.max(math.sub(zero, before), zero), size), left = math.sub(size, skipped);
    cropped.push_back(skipped);
    extent.push_back(math.max(math.sub(left, math.max(math.sub(zero, after), zero)), zero));
    offsets.push_back(math.max(before, zero));
  }
  if (llvm::all_of(llvm::zip(extent, sizes),
                   [&](auto pair) { return math.equal(std::get<0>(pair), std::get<1>(pair)); }))
    return node.slice(tensor, cropped, extent, ones);
  Value result = node.filled(sizes, scalar);
  if (llvm::any_of(extent, [](Size size) { return IndexMath::getConstant(size) == 0; }))
    return result;
  // Where everything is cropped away there is nothing to insert, and no place for it either.
  for (auto [offset, size, count] : llvm::zip(offsets, sizes, extent))
    offset = math.min(offset, math.sub(size, count));
  Value inner = node.slice(tensor, cropped, extent, ones);
  result = tensor::InsertSliceOp::create(node.b, inner, result, offsets, extent, ones);
  node.lowerer.setSizes(result, sizes);
  return result;
}

/// The remainder that has the sign of the divisor.
static Value floorMod(Builder &b, Value value, Value divisor) {
  Value remainder = arith::RemSIOp::create(b, value, divisor);
  Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, remainder, arith::ConstantIndexOp::create(b, 0));
  return arith::SelectOp::create(b, negative, arith::AddIOp::create(b, remainder, divisor), remainder);
}

/// The element inside that stands for position `at`, which may lie outside, in a dimension of `size`.
static Value mirror(Builder &b, StringRef mode, Value at, Value size) {
  Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  Value last = arith::SubIOp::create(b, size, one);
  if (mode == "edge")
    return arith::MaxSIOp::create(b, arith::MinSIOp::create(b, at, last), zero);
  if (mode == "wrap")
    return floorMod(b, at, size);
  // There and back without repeating the ends; a single element is its own mirror.
  Value period = arith::MaxSIOp::create(b, arith::AddIOp::create(b, last, last), one);
  Value position = floorMod(b, at, period);
  return arith::MinSIOp::create(b, position, arith::SubIOp::create(b, arith::AddIOp::create(b, last, last), position));
}

static Value padWithElements(Node &node, StringRef mode, Value tensor, ArrayRef<Size> sizes, const Padding &padding) {
  IndexMath &math = node.math;
  Builder &b = node.b;
  SmallVector<Operand> tables; // of the padded dimensions: the index of each position
  SmallVector<int64_t> padded;
  for (auto [dim, size] : llvm::enumerate(node.sizes(tensor))) {
    Value filled = compare(node, arith::CmpIPredicate::sgt, size, math.constant(0));
    Value nothing = compare(node, arith::CmpIPredicate::eq, sizes[dim], math.constant(0));
    node.check(math.simplify(b.createOrFold<arith::OrIOp>(filled, nothing)),
               "cannot pad an empty dimension from its elements");
    if (IndexMath::getConstant(padding.before[dim]) == 0 && IndexMath::getConstant(padding.after[dim]) == 0)
      continue;
    Value before = math.value(padding.before[dim]), own = math.value(size);
    Value table = node.generate(sizes[dim], b.getIndexType(), [&](Builder &inner, ValueRange at) {
      return mirror(inner, mode, arith::SubIOp::create(inner, at[0], before), own);
    });
    tables.push_back({table, AffineMap::get(sizes.size(), 0, b.getAffineDimExpr(dim), b.getContext())});
    padded.push_back(dim);
  }
  Value zero = node.zero(getElementTypeOrSelf(tensor));
  return accumulate(node, sizes, {}, tables, zero, [&](Builder &inner, ValueRange indices, Value) -> Value {
    SmallVector<Value> from;
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      from.push_back(linalg::IndexOp::create(inner, dim));
    for (auto [dim, index] : llvm::zip(padded, indices))
      from[dim] = index;
    return tensor::ExtractOp::create(inner, tensor, from);
  });
}

static LogicalResult lowerPad(Node &node) {
  StringRef mode = node.string("mode");
  if (!llvm::is_contained({"constant", "edge", "reflect", "wrap"}, mode))
    return node.fail() << "unsupported mode '" << mode << "'; supported: constant, edge, reflect, wrap";
  auto padding = getPadding(node, node.rank(0));
  if (failed(padding))
    return failure();
  auto sizes = getPaddedSizes(node, node.sizes(node.in(0)), *padding);
  if (failed(sizes))
    return failure();
  if (mode != "constant") {
    node.set(0, padWithElements(node, mode, node.in(0), *sizes, *padding));
    return success();
  }
  FailureOr<Value> scalar = node.has(2) ? getScalar(node, 2) : FailureOr<Value>(node.zero(node.element(0)));
  if (failed(scalar))
    return failure();
  node.set(0, padWithScalar(node, node.in(0), *sizes, *padding, *scalar));
  return success();
}

static LogicalResult lowerCenterCropPad(Node &node) {
  IndexMath &math = node.math;
  int64_t rank = node.rank(0);
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (auto given = node.integers("axes"))
    axes = *given;
  auto wanted = getSizes(node, 1);
  if (failed(wanted))
    return failure();
  if (wanted->size() != axes.size())
    return node.fail() << "expected " << axes.size() << " sizes, but got " << wanted->size();
  SmallVector<Size> sizes = node.sizes(node.in(0));
  Padding padding{SmallVector<Size>(rank, math.constant(0)), SmallVector<Size>(rank, math.constant(0))};
  for (auto [given, size] : llvm::zip(axes, *wanted)) {
    auto axis = node.axis(given, rank);
    if (failed(axis))
      return failure();
    // The odd element is added, and removed, at the end: half the difference is rounded toward 0.
    Size missing = math.sub(size, sizes[*axis]), excess = math.sub(sizes[*axis], size), two = math.constant(2);
    Size added = math.floorDiv(math.max(missing, math.constant(0)), two);
    padding.before[*axis] = math.sub(added, math.floorDiv(math.max(excess, math.constant(0)), two));
    padding.after[*axis] = math.sub(missing, padding.before[*axis]);
    sizes[*axis] = size;
  }
  node.set(0, padWithScalar(node, node.in(0), sizes, padding, node.zero(node.element(0))));
  return success();
}

void addPadLowerings(LoweringTable &table) {
  table["onnx.CenterCropPad"] = lowerCenterCropPad;
  table["onnx.Pad"] = lowerPad;
}

} // namespace hone::lowering
