// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that put tensors together, take them apart, or move their blocks.

#include "Indices.h"

using namespace mlir;

namespace hone::lowering {

//===----------------------------------------------------------------------===//
// Concat and Split
//===----------------------------------------------------------------------===//

/// The concatenation of small integer tensors as scalars; null where they are not all known.
static Value concatScalars(Node &node, ArrayRef<Value> parts, ArrayRef<Size> sizes, int64_t axis) {
  SmallVector<SmallVector<Value>> scalars;
  for (Value part : parts)
    if (auto values = node.scalars(part))
      scalars.push_back(*values);
  auto shape = getConstantIntValues(sizes);
  bool small = shape && isScalarShape(RankedTensorType::get(*shape, getElementTypeOrSelf(parts[0])));
  if (!small || scalars.size() != parts.size())
    return {};
  return node.fromIndices(*shape, parts[0], [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> at(index);
    size_t part = 0;
    auto length = [&] { return cast<RankedTensorType>(parts[part].getType()).getDimSize(axis); };
    for (; at[axis] >= length(); ++part)
      at[axis] -= length();
    return scalars[part][linearize(at, cast<RankedTensorType>(parts[part].getType()).getShape())];
  });
}

/// Checks that sizes other than the axis agree, and knows them as fixed where any part does.
static LogicalResult mergeSizes(Node &node, SmallVector<Size> &sizes, ArrayRef<Size> part, int64_t axis) {
  for (auto [dim, size] : llvm::enumerate(part)) {
    if (static_cast<int64_t>(dim) == axis || node.math.equal(sizes[dim], size))
      continue;
    auto left = IndexMath::getConstant(sizes[dim]), right = IndexMath::getConstant(size);
    if (left && right)
      return node.fail() << "expected the inputs to agree in dimension " << dim << ", but got sizes " << *left
                         << " and " << *right;
    node.check(compare(node, arith::CmpIPredicate::eq, sizes[dim], size),
               "expected the inputs to agree in dimension " + Twine(dim));
    sizes[dim] = left ? sizes[dim] : size;
  }
  return success();
}

static Value insertParts(Node &node, ArrayRef<Value> parts, ArrayRef<Size> sizes, int64_t axis) {
  SmallVector<Size> offsets(sizes.size(), node.math.constant(0)), ones(sizes.size(), node.math.constant(1));
  Value result = node.empty(sizes, getElementTypeOrSelf(parts[0]));
  for (Value part : parts) {
    SmallVector<Size> extent = node.sizes(part);
    if (IndexMath::getConstant(extent[axis]) != 0)
      result = tensor::InsertSliceOp::create(node.b, part, result, offsets, extent, ones);
    offsets[axis] = node.math.add(offsets[axis], extent[axis]);
  }
  node.lowerer.setSizes(result, sizes);
  return result;
}

static LogicalResult lowerConcat(Node &node) {
  auto axis = node.axis(node.integer("axis"), node.rank(0));
  if (failed(axis))
    return failure();
  SmallVector<Value> parts;
  SmallVector<Size> sizes = node.sizes(node.in(0));
  sizes[*axis] = node.math.constant(0);
  for (unsigned i = 0; i < node.inputs(); ++i) {
    if (node.rank(i) != node.rank(0))
      return node.fail() << "expected inputs of one rank, but got " << node.type(0) << " and " << node.type(i);
    SmallVector<Size> part = node.sizes(node.in(i));
    if (failed(mergeSizes(node, sizes, part, *axis)))
      return failure();
    sizes[*axis] = node.math.add(sizes[*axis], part[*axis]);
    parts.push_back(node.in(i));
  }
  if (parts.size() == 1) {
    node.set(0, parts[0]);
    return success();
  }
  Value folded = concatScalars(node, parts, sizes, *axis);
  node.set(0, folded ? folded : insertParts(node, parts, sizes, *axis));
  return success();
}

/// `count` elements of `tensor` along `axis` from `offset`.
static Value takeAlong(Node &node, Value tensor, int64_t axis, Size offset, Size count) {
  SmallVector<Size> sizes = node.sizes(tensor);
  SmallVector<Size> offsets(sizes.size(), node.math.constant(0)), ones(sizes.size(), node.math.constant(1));
  offsets[axis] = offset;
  sizes[axis] = count;
  return node.slice(tensor, offsets, sizes, ones);
}

/// The lengths of the parts of Split: given, or equal with a smaller last one.
static FailureOr<SmallVector<Size>> getSplitLengths(Node &node, Size size) {
  IndexMath &math = node.math;
  SmallVector<Size> lengths;
  if (auto given = node.integers("split")) {
    for (int64_t length : *given)
      lengths.push_back(math.constant(length));
    return lengths;
  }
  if (node.has(1)) {
    auto given = node.indices(1);
    if (failed(given))
      return failure();
    for (Size length : *given) {
      auto checked = requireRange(node, length, 0, kMostElements, "the lengths of the parts");
      if (failed(checked))
        return failure();
      lengths.push_back(*checked);
    }
    return lengths;
  }
  int64_t parts = node.results();
  Size length = math.ceilDiv(size, math.constant(parts)), rest = size;
  for (int64_t i = 0; i < parts; ++i) {
    lengths.push_back(math.min(length, rest));
    rest = math.sub(rest, lengths.back());
  }
  return lengths;
}

static LogicalResult lowerSplit(Node &node) {
  auto axis = node.axis(node.integer("axis"), node.rank(0));
  if (failed(axis))
    return failure();
  Size size = node.size(node.in(0), *axis), offset = node.math.constant(0);
  auto lengths = getSplitLengths(node, size);
  if (failed(lengths))
    return failure();
  if (lengths->size() != node.results())
    return node.fail() << "expected " << node.results() << " lengths, but got " << lengths->size();
  SmallVector<Size> offsets;
  for (Size length : *lengths) {
    offsets.push_back(offset);
    offset = node.math.add(offset, length);
  }
  auto total = IndexMath::getConstant(offset), whole = IndexMath::getConstant(size);
  if (total && whole && *total != *whole)
    return node.fail() << "expected the lengths of the parts to sum to " << *whole << ", but got " << *total;
  if (!node.math.equal(offset, size))
    node.check(compare(node, arith::CmpIPredicate::eq, offset, size),
               "expected the lengths of the parts to sum to the whole");
  for (auto [i, length] : llvm::enumerate(*lengths))
    if (node.wants(i))
      node.set(i, takeAlong(node, node.in(0), *axis, offsets[i], length));
  return success();
}

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

namespace {

/// What Slice takes of one dimension: `count` elements from `start`, `step` apart.
struct Span {
  Size start, end, step, count;
};

} // namespace

/// A bound counted from the front and clamped to [low, high]. What lies beyond all sizes clamps whatever the size is.
static Size clampBound(Node &node, Size bound, Size size, Size low, Size high) {
  IndexMath &math = node.math;
  if (auto constant = IndexMath::getConstant(bound)) {
    if (*constant >= kFarAway)
      return high;
    if (*constant <= -kFarAway)
      return low;
  }
  if (math.difference(bound, math.sub(math.constant(0), size)) == 0)
    return math.constant(0); // minus the size itself is the start, also of an empty dimension
  Value negative = compare(node, arith::CmpIPredicate::slt, bound, math.constant(0));
  Size absolute = math.select(negative, math.add(bound, size), bound);
  return math.min(math.max(absolute, low), high);
}

static Span resolveForward(Node &node, const Span &span, Size size) {
  IndexMath &math = node.math;
  Size zero = math.constant(0);
  Size start = clampBound(node, span.start, size, zero, size), end = clampBound(node, span.end, size, zero, size);
  return {start, end, span.step, math.max(math.ceilDiv(math.sub(end, start), span.step), zero)};
}

static Span resolveBackward(Node &node, const Span &span, Size size) {
  IndexMath &math = node.math;
  Size zero = math.constant(0), last = math.sub(size, math.constant(1));
  Size start = clampBound(node, span.start, size, zero, last),
       end = clampBound(node, span.end, size, math.constant(-1), last);
  Size count = math.ceilDiv(math.sub(start, end), math.sub(zero, span.step));
  return {start, end, span.step, math.max(count, zero)};
}

/// Clamps as ONNX says (Slice: "Effective values"), by the sign of the step, which may be known only at run time.
static FailureOr<Span> resolveSpan(Node &node, const Span &span, Size size) {
  IndexMath &math = node.math;
  if (IndexMath::getConstant(span.step) == 0)
    return node.fail() << "expected steps not to be 0";
  if (math.isAtLeast(span.step, 1))
    return resolveForward(node, span, size);
  if (math.isAtLeast(math.sub(math.constant(0), span.step), 1))
    return resolveBackward(node, span, size);
  node.check(compare(node, arith::CmpIPredicate::ne, span.step, math.constant(0)), "expected steps not to be 0");
  // The least of all steps has no opposite; one of half of it takes the same element.
  Span negatable = span;
  negatable.step = math.max(span.step, math.constant(std::numeric_limits<int64_t>::min() / 2));
  Span forward = resolveForward(node, span, size), backward = resolveBackward(node, negatable, size);
  Value rises = compare(node, arith::CmpIPredicate::sgt, span.step, math.constant(0));
  return Span{math.select(rises, forward.start, backward.start),
              {},
              span.step,
              math.select(rises, forward.count, backward.count)};
}

/// Elements of `tensor` at start + i * step, for steps of any sign.
static Value gatherSpans(Node &node, Value tensor, ArrayRef<Span> spans) {
  SmallVector<Size> counts;
  SmallVector<Value> starts, steps;
  for (const Span &span : spans) {
    counts.push_back(span.count);
    starts.push_back(node.math.value(span.start));
    steps.push_back(node.math.value(span.step));
  }
  return node.generate(counts, getElementTypeOrSelf(tensor), [&](Builder &b, ValueRange at) -> Value {
    SmallVector<Value> from;
    for (auto [index, start, step] : llvm::zip(at, starts, steps))
      from.push_back(arith::AddIOp::create(b, start, arith::MulIOp::create(b, index, step)));
    return tensor::ExtractOp::create(b, tensor, from);
  });
}

static Value takeSpans(Node &node, Value tensor, ArrayRef<Span> spans) {
  SmallVector<Size> offsets, sizes, strides;
  bool forward = true, fixed = true;
  for (const Span &span : spans) {
    offsets.push_back(span.start);
    sizes.push_back(span.count);
    strides.push_back(span.step);
    forward &= node.math.isAtLeast(span.step, 1);
    fixed &=
        IndexMath::getConstant(span.start) && IndexMath::getConstant(span.count) && IndexMath::getConstant(span.step);
  }
  bool scalars = fixed && node.scalars(tensor);
  return forward || scalars ? node.slice(tensor, offsets, sizes, strides) : gatherSpans(node, tensor, spans);
}

/// Puts the bounds for axes that are known only at run time where they belong.
static void assignAtRunTime(Node &node, SmallVectorImpl<Span> &spans, Size axis, const Span &given) {
  for (auto [dim, span] : llvm::enumerate(spans)) {
    Value here = compare(node, arith::CmpIPredicate::eq, axis, node.math.constant(dim));
    span.start = node.math.select(here, given.start, span.start);
    span.end = node.math.select(here, given.end, span.end);
    span.step = node.math.select(here, given.step, span.step);
  }
}

static FailureOr<SmallVector<Span>> getSpans(Node &node) {
  IndexMath &math = node.math;
  int64_t rank = node.rank(0);
  auto starts = node.indices(1), ends = node.indices(2);
  if (failed(starts) || failed(ends))
    return failure();
  FailureOr<SmallVector<Size>> axes = SmallVector<Size>(), steps = SmallVector<Size>(starts->size(), math.constant(1));
  for (size_t i = 0; i < starts->size(); ++i)
    axes->push_back(math.constant(i));
  if (node.has(3))
    axes = node.indices(3);
  if (node.has(4))
    steps = node.indices(4);
  if (failed(axes) || failed(steps))
    return failure();
  if (ends->size() != starts->size() || axes->size() != starts->size() || steps->size() != starts->size())
    return node.fail() << "expected as many ends, axes and steps as starts (" << starts->size() << ")";
  SmallVector<Span> spans(rank, {math.constant(0), math.constant(kFarAway), math.constant(1), {}});
  for (size_t i = 0; i < starts->size(); ++i) {
    auto axis = normalizeAxis(node, (*axes)[i], rank);
    if (failed(axis))
      return failure();
    Span given{(*starts)[i], (*ends)[i], (*steps)[i], {}};
    if (auto constant = IndexMath::getConstant(*axis))
      spans[*constant] = given;
    else
      assignAtRunTime(node, spans, *axis, given);
  }
  return spans;
}

static LogicalResult lowerSlice(Node &node) {
  auto spans = getSpans(node);
  if (failed(spans))
    return failure();
  for (auto [span, size] : llvm::zip(*spans, node.sizes(node.in(0)))) {
    auto resolved = resolveSpan(node, span, size);
    if (failed(resolved))
      return failure();
    span = *resolved;
  }
  node.set(0, takeSpans(node, node.in(0), *spans));
  return success();
}

//===----------------------------------------------------------------------===//
// Blocks and sequences
//===----------------------------------------------------------------------===//

/// The size of a dimension divided into blocks; failure if it is known not to divide.
static FailureOr<Size> divideIntoBlocks(Node &node, Size size, int64_t block) {
  auto constant = IndexMath::getConstant(size);
  if (constant && *constant % block != 0)
    return node.fail() << "expected a size to be a multiple of " << block << ", but got " << *constant;
  Size blocks = node.math.floorDiv(size, node.math.constant(block));
  Size covered = node.math.mul(blocks, node.math.constant(block));
  if (!node.math.equal(covered, size))
    node.check(compare(node, arith::CmpIPredicate::eq, covered, size), "expected a size to be a multiple of the block");
  return blocks;
}

static LogicalResult checkBlocks(Node &node, int64_t block) {
  if (node.rank(0) != 4)
    return node.fail() << "expected input 0 to have rank 4, but got " << node.type(0);
  if (block <= 0)
    return node.fail() << "expected attribute 'blocksize' to be positive, but got " << block;
  return success();
}

static LogicalResult lowerDepthToSpace(Node &node) {
  int64_t block = node.integer("blocksize");
  if (failed(checkBlocks(node, block)))
    return failure();
  SmallVector<Size> from = node.sizes(node.in(0));
  auto channels = divideIntoBlocks(node, from[1], block * block);
  if (failed(channels))
    return failure();
  Size size = node.math.constant(block);
  bool depthFirst = node.string("mode") == "DCR";
  SmallVector<Size> split = depthFirst ? SmallVector<Size>{from[0], size, size, *channels, from[2], from[3]}
                                       : SmallVector<Size>{from[0], *channels, size, size, from[2], from[3]};
  SmallVector<int64_t> order =
      depthFirst ? SmallVector<int64_t>{0, 3, 4, 1, 5, 2} : SmallVector<int64_t>{0, 1, 4, 2, 5, 3};
  Value moved = node.transpose(node.reshape(node.in(0), split), order);
  node.set(0, node.reshape(moved, {from[0], *channels, node.math.mul(from[2], size), node.math.mul(from[3], size)}));
  return success();
}

static LogicalResult lowerSpaceToDepth(Node &node) {
  int64_t block = node.integer("blocksize");
  if (failed(checkBlocks(node, block)))
    return failure();
  SmallVector<Size> from = node.sizes(node.in(0));
  auto height = divideIntoBlocks(node, from[2], block), width = divideIntoBlocks(node, from[3], block);
  if (failed(height) || failed(width))
    return failure();
  Size size = node.math.constant(block);
  bool depthFirst = node.string("mode", "DCR") == "DCR";
  SmallVector<int64_t> order =
      depthFirst ? SmallVector<int64_t>{0, 3, 5, 1, 2, 4} : SmallVector<int64_t>{0, 1, 3, 5, 2, 4};
  Value moved = node.transpose(node.reshape(node.in(0), {from[0], from[1], *height, size, *width, size}), order);
  node.set(0,
           node.reshape(moved, {from[0], node.math.mul(from[1], node.math.constant(block * block)), *height, *width}));
  return success();
}

static LogicalResult lowerReverseSequence(Node &node) {
  int64_t time = node.integer("time_axis"), batch = node.integer("batch_axis", 1);
  if (node.rank(0) < 2 || std::min(time, batch) != 0 || std::max(time, batch) != 1)
    return node.fail() << "expected time_axis and batch_axis to be 0 and 1, or 1 and 0, but got " << time << " and "
                       << batch;
  Value tensor = node.in(0), lengths = node.in(1);
  Size size = node.size(tensor, time), one = node.math.constant(1);
  if (node.rank(1) != 1)
    return node.fail() << "expected input 1 to be a vector, but got " << node.type(1);
  node.check(compare(node, arith::CmpIPredicate::eq, node.size(lengths, 0), node.size(tensor, batch)),
             "expected as many lengths as sequences");
  checkIndices(node, lengths, node.math.add(size, one));
  node.set(0, node.generate(node.sizes(tensor), node.element(0), [&](Builder &b, ValueRange at) -> Value {
    SmallVector<Value> from(at);
    Value length = tensor::ExtractOp::create(b, lengths, at[batch]);
    length = arith::IndexCastOp::create(b, b.getIndexType(), length);
    Value last = arith::SubIOp::create(b, length, arith::ConstantIndexOp::create(b, 1));
    Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, at[time], length);
    from[time] = arith::SelectOp::create(b, inside, arith::SubIOp::create(b, last, at[time]), at[time]);
    return tensor::ExtractOp::create(b, tensor, from);
  }));
  return success();
}

void addAssembleLowerings(LoweringTable &table) {
  table["onnx.Concat"] = lowerConcat;
  table["onnx.DepthToSpace"] = lowerDepthToSpace;
  table["onnx.ReverseSequence"] = lowerReverseSequence;
  table["onnx.Slice"] = lowerSlice;
  table["onnx.SpaceToDepth"] = lowerSpaceToDepth;
  table["onnx.Split"] = lowerSplit;
}

} // namespace hone::lowering
