// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GridSample for any number of spatial dimensions: one interpolated element a grid point; and AffineGrid, which makes such grids.

#include "Formula.h"
#include "Indices.h"
#include "Loops.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// One spatial dimension of the input, with the borders that the coordinates -1 and 1 stand for.
struct Span {
  Value size; // index
  Value real; // f32
};

class Sampler {
public:
  Sampler(Node &node)
      : node(node), mode(node.string("mode", "linear")), padding(node.string("padding_mode", "zeros")),
        alignsCorners(node.integer("align_corners")) {}
  LogicalResult lower();

private:
  Number denormalize(Number x, const Span &span);
  Number reflect(Number x, const Span &span);
  Number applyPadding(Number x, const Span &span);
  Number border(Number x, const Span &span, bool isUpper);
  Value readPixel(Builder &b, ArrayRef<Value> row, ArrayRef<Number> at);
  Value interpolate(Builder &b, ArrayRef<Value> row, ArrayRef<Number> coordinates, SmallVectorImpl<Number> &at);
  SmallVector<Number> getWeights(Number ratio);

  Node &node;
  StringRef mode, padding;
  bool alignsCorners;
  SmallVector<Span> spans;
  Type element, compute;
};

} // namespace

Number Sampler::border(Number x, const Span &span, bool isUpper) {
  double inset = alignsCorners ? 0.0 : -0.5;
  Number size{x.b, span.real};
  return isUpper ? size - 1.0 - inset : x.with(inset);
}

Number Sampler::denormalize(Number x, const Span &span) {
  Number size{x.b, span.real};
  return alignsCorners ? (x + 1.0) / 2.0 * (size - 1.0) : ((x + 1.0) * size - 1.0) / 2.0;
}

/// Mirrors a coordinate at the borders until it lies between them.
Number Sampler::reflect(Number x, const Span &span) {
  Number low = border(x, span, false), high = border(x, span, true), range = high - low;
  Value isBelow = x < low;
  Number beyond = select(isBelow, low - x, x - high);
  Number turns = apply<math::FloorOp>(beyond / range), rest = beyond - turns * range;
  Number half = turns / 2.0;
  Value isEven = half == apply<math::FloorOp>(half);
  Value fromLow = arith::CmpIOp::create(*x.b, arith::CmpIPredicate::eq, isBelow, isEven);
  Number mirrored = select(fromLow, low + rest, high - rest);
  Value isOutside = arith::OrIOp::create(*x.b, isBelow, x > high);
  return select(isOutside, mirrored, x);
}

/// A coordinate moved to where padding_mode says that it reads.
Number Sampler::applyPadding(Number x, const Span &span) {
  if (padding == "border")
    return min(max(x, x.with(0)), Number{x.b, span.real} - 1.0);
  return padding == "reflection" ? reflect(x, span) : x;
}

/// The input element at whole coordinates; 0 outside, or what padding_mode says.
Value Sampler::readPixel(Builder &b, ArrayRef<Value> row, ArrayRef<Number> at) {
  SmallVector<Value> indices(row);
  Value inside, zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  for (auto [x, span] : llvm::zip(at, spans)) {
    Number padded = applyPadding(x, span);
    Value index = arith::FPToSIOp::create(b, b.getI64Type(), padded.value);
    index = arith::IndexCastOp::create(b, b.getIndexType(), index);
    Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, span.size);
    inside = inside ? arith::AndIOp::create(b, inside, isInside).getResult() : isInside;
    Value last = arith::SubIOp::create(b, span.size, one);
    indices.push_back(arith::MinSIOp::create(b, arith::MaxSIOp::create(b, index, zero), last));
  }
  Value pixel = tensor::ExtractOp::create(b, node.in(0), indices);
  if (padding != "zeros")
    return pixel;
  return arith::SelectOp::create(b, inside, pixel, arith::ConstantOp::create(b, b.getZeroAttr(element)));
}

/// Weights of the neighbours from floor(x) - 1 (cubic, Keys' parameter -0.75 as PyTorch) or floor(x) (linear) on.
SmallVector<Number> Sampler::getWeights(Number ratio) {
  if (mode != "cubic" && mode != "bicubic")
    return {1.0 - ratio, ratio};
  double a = -0.75;
  auto near = [&](Number d) { return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0; };
  auto far = [&](Number d) { return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a; };
  return {far(ratio + 1.0), near(ratio), near(1.0 - ratio), far(2.0 - ratio)};
}

/// The weighted sum over the neighbours in the dimensions from at.size() on.
Value Sampler::interpolate(Builder &b, ArrayRef<Value> row, ArrayRef<Number> coordinates, SmallVectorImpl<Number> &at) {
  if (at.size() == coordinates.size())
    return convertFloat(b, readPixel(b, row, at), compute);
  Number x = coordinates[at.size()], base = apply<math::FloorOp>(x);
  SmallVector<Number> weights = getWeights(x - base);
  double first = weights.size() == 4 ? -1.0 : 0.0;
  Value sum;
  for (auto [i, weight] : llvm::enumerate(weights)) {
    at.push_back(base + (first + static_cast<double>(i)));
    Value value = interpolate(b, row, coordinates, at);
    at.pop_back();
    Value term = arith::MulFOp::create(b, value, convertFloat(b, weight.value, compute));
    sum = sum ? arith::AddFOp::create(b, sum, term).getResult() : term;
  }
  return sum;
}

LogicalResult Sampler::lower() {
  Value x = node.in(0), grid = node.in(1);
  SmallVector<Size> from = node.sizes(x), points = node.sizes(grid);
  if (from.size() < 3 || points.size() != from.size() ||
      IndexMath::getConstant(points.back()) != static_cast<int64_t>(from.size()) - 2)
    return node.fail()
           << "expected X [N, C, spatial...] and a grid [N, output..., number of spatial dimensions], but got "
           << x.getType() << " and " << grid.getType();
  element = node.element(0);
  compute = isa<FloatType>(element) ? getAccumulator(element) : Type();
  bool isNearest = mode == "nearest";
  if (!compute && !isNearest)
    return node.fail() << "unsupported mode '" << mode << "' for elements of type " << element
                       << "; supported: nearest";
  if (failed(requireEqual(node, from[0], points[0], "the batches of X and grid")) ||
      failed(requireElements(node, ArrayRef(from).drop_front(2), "the spatial dimensions of X")))
    return failure();
  Type f32 = node.b.getF32Type();
  for (Size size : ArrayRef(from).drop_front(2))
    spans.push_back(
        {node.math.value(size), arith::SIToFPOp::create(node.b, f32, node.math.scalar(size, node.b.getI64Type()))});
  SmallVector<Size> sizes = {from[0], from[1]};
  sizes.append(points.begin() + 1, points.end() - 1);
  node.set(0, node.generate(sizes, element, [&](Builder &b, ValueRange at) -> Value {
    SmallVector<Value> channel = {at[0], at[1]}, point = {at[0]};
    llvm::append_range(point, at.drop_front(2));
    point.emplace_back();
    SmallVector<Number> coordinates;
    for (size_t i = 0; i < spans.size(); ++i) { // the grid names the last dimension first
      point.back() = arith::ConstantIndexOp::create(b, spans.size() - 1 - i);
      Value normalized = convertFloat(b, tensor::ExtractOp::create(b, grid, point), f32);
      Number coordinate = denormalize({&b, normalized}, spans[i]);
      if (isNearest)
        coordinate = apply<math::RoundEvenOp>(coordinate);
      coordinates.push_back(applyPadding(coordinate, spans[i]));
    }
    if (isNearest)
      return readPixel(b, channel, coordinates);
    SmallVector<Number> neighbour;
    return convertFloat(b, interpolate(b, channel, coordinates, neighbour), element);
  }));
  return success();
}

static LogicalResult lowerGridSample(Node &node) { return Sampler(node).lower(); }

//===----------------------------------------------------------------------===//
// AffineGrid
//===----------------------------------------------------------------------===//

/// Where element `index` of `size` lies between -1 and 1, which are the centers of the first and the last one, or their outer borders.
static Number getCoordinate(Builder &b, Value index, Value size, bool alignsCorners) {
  Type f32 = b.getF32Type();
  auto real = [&](Value x) {
    return Number{&b, arith::SIToFPOp::create(b, f32, arith::IndexCastOp::create(b, b.getI64Type(), x))};
  };
  Number at = real(index), count = real(size);
  if (!alignsCorners)
    return (2.0 * at + 1.0) / count - 1.0;
  Number spaces = count - 1.0;
  return select(spaces > 0.0, 2.0 * at / spaces - 1.0, at.with(-1));
}

/// theta [N, d, d + 1], for d spatial dimensions, times the coordinates of each element and 1: [N, spatial..., d].
static LogicalResult lowerAffineGrid(Node &node) {
  auto wanted = getSizes(node, 1);
  if (failed(wanted))
    return failure();
  auto dims = static_cast<int64_t>(wanted->size()) - 2;
  if (dims != 2 && dims != 3)
    return node.fail() << "expected 'size' to have four or five elements, but got " << wanted->size();
  Builder &b = node.b;
  Value theta = node.in(0);
  if (node.rank(0) != 3 ||
      failed(requireShape(node, theta, {wanted->front(), b.getIndexAttr(dims), b.getIndexAttr(dims + 1)}, "theta",
                          "[N, dimensions, dimensions + 1]")))
    return node.rank(0) == 3
               ? failure()
               : LogicalResult(node.fail() << "expected theta of three dimensions, but got " << theta.getType());
  SmallVector<Size> sizes = {wanted->front()};
  sizes.append(wanted->begin() + 2, wanted->end());
  sizes.push_back(b.getIndexAttr(dims));
  Type element = node.element(0), compute = b.getF32Type();
  if (failed(node.lowerer.requireSizes(node.op, sizes, element)))
    return failure();
  SmallVector<Value> counts;
  for (int64_t i = 0; i < dims; ++i)
    counts.push_back(node.math.value(sizes[i + 1]));
  bool alignsCorners = node.integer("align_corners") != 0;
  node.set(0, node.generate(sizes, element, [&](Builder &inner, ValueRange at) -> Value {
    auto read = [&](int64_t column) {
      Value index = arith::ConstantIndexOp::create(inner, column);
      Value found = tensor::ExtractOp::create(inner, theta, ValueRange{at[0], at[dims + 1], index});
      return Number{&inner, convertFloat(inner, found, compute)};
    };
    Number sum = read(dims);
    for (int64_t i = 0; i < dims; ++i) // theta names the last dimension first
      sum = sum + read(dims - 1 - i) * getCoordinate(inner, at[i + 1], counts[i], alignsCorners);
    return convertFloat(inner, sum.value, element);
  }));
  return success();
}

void addGridSampleLowerings(LoweringTable &table) {
  table["onnx.GridSample"] = lowerGridSample;
  table["onnx.AffineGrid"] = lowerAffineGrid;
}

} // namespace hone::lowering
