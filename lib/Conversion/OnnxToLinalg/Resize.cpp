// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Resize, one axis after another: each result position has a coordinate in the input, from which a table of input
// indices and one of weights are made; the result is the weighted sum. Coordinates are f64 as in ONNX's reference.

#include "Formula.h"
#include "Indices.h"
#include "Loops.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// One axis being resized.
struct Axis {
  int64_t dim;
  Size from, to;
  Value scale;            // f64
  Value roiStart, roiEnd; // f64, or null
};

/// How neighbours are weighted: distances are multiplied by `scale` (f64), the first neighbour is `first` <= 0.
struct Taps {
  Value scale;
  Size first;
};

class Resizer {
public:
  explicit Resizer(Node &node)
      : node(node), b(node.b), mode(node.string("mode", "nearest")),
        transformation(node.string("coordinate_transformation_mode", "half_pixel")) {}
  LogicalResult lower();

private:
  LogicalResult findAxes();
  LogicalResult setScales(unsigned input);
  LogicalResult setSizes(unsigned input);
  LogicalResult keepAspectRatio();
  LogicalResult setRoi(unsigned input);
  LogicalResult checkElements();
  bool isUnchanged(const Axis &axis);

  Number map(const Axis &axis, Number position, Number from, Number to);
  Value makeCoordinates(const Axis &axis);
  Value roundNearest(Builder &b, Number x);
  Value makeNearest(const Axis &axis);
  Value resizeNearest(Value x);
  Taps makeTaps(const Axis &axis);
  Value makeWeights(const Axis &axis, const Taps &taps, Size count, Value coordinates, Type element);
  Value interpolate(Value x, const Axis &axis);
  Value markOutside(Value x, const Axis &axis, Value coordinates);
  Number getTapWeight(Number distance);

  Number real(double value) { return {&b, node.constant(value, b.getF64Type())}; }
  Number real(Size size) {
    return {&b, b.createOrFold<arith::SIToFPOp>(b.getF64Type(), node.math.scalar(size, b.getI64Type()))};
  }

  Node &node;
  Builder &b;
  StringRef mode, transformation;
  SmallVector<Axis> axes;
};

} // namespace

/// Whether the node has the input and it is not the empty tensor that older opsets write for "not given".
static bool isGiven(Node &node, unsigned input) {
  return node.has(input) && !(node.type(input).hasStaticShape() && node.type(input).getNumElements() == 0);
}

/// Element `index` of a vector of floats as f64; a constant where it is one.
static Value readReal(Node &node, unsigned input, int64_t index) {
  Builder &b = node.b;
  DenseFPElementsAttr dense;
  if (matchPattern(node.in(input), m_Constant(&dense)))
    return node.constant(dense.getValues<APFloat>()[index].convertToDouble(), b.getF64Type());
  Value element = tensor::ExtractOp::create(b, node.in(input), Value(arith::ConstantIndexOp::create(b, index)));
  return convertFloat(b, element, b.getF64Type());
}

static std::optional<double> getReal(Value value) {
  FloatAttr constant;
  return matchPattern(value, m_Constant(&constant)) ? std::optional(constant.getValueAsDouble()) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Sizes and scales
//===----------------------------------------------------------------------===//

/// floor(size * scale + bias), where it is a compile-time constant if both are.
static FailureOr<Size> scaleSize(Node &node, Size size, Value scale, double bias) {
  Builder &b = node.b;
  auto fixed = IndexMath::getConstant(size);
  auto factor = getReal(scale);
  auto most = static_cast<double>(kMostElements);
  if (factor == 1.0 && bias == 0.0)
    return size;
  if (fixed && factor) {
    double scaled = std::floor(*fixed * *factor + bias);
    if (!(scaled >= 0 && scaled <= most)) // not a number is neither
      return node.fail() << "expected a size of " << *fixed << " times its scale " << *factor << " to be in [0, "
                         << kMostElements << "]";
    return Size(b.getIndexAttr(static_cast<int64_t>(scaled)));
  }
  Value from = arith::SIToFPOp::create(b, b.getF64Type(), node.math.scalar(size, b.getI64Type()));
  Value scaled = arith::AddFOp::create(b, arith::MulFOp::create(b, from, scale), node.constant(bias, b.getF64Type()));
  Value isAbove = arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, scaled, node.constant(0, b.getF64Type()));
  Value isBelow = arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, scaled, node.constant(most, b.getF64Type()));
  node.check(arith::AndIOp::create(b, isAbove, isBelow),
             "expected a size of {} times its scale to be in [0, " + Twine(kMostElements) + "]", size);
  Size result = node.math.fromScalar(arith::FPToSIOp::create(b, b.getI64Type(), scaled));
  node.math.markNonNegative(node.math.value(result));
  return result;
}

LogicalResult Resizer::findAxes() {
  int64_t rank = node.rank(0);
  SmallVector<int64_t> dims = node.integers("axes").value_or(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  for (int64_t dim : dims) {
    auto positive = node.axis(dim, rank);
    if (failed(positive))
      return failure();
    axes.push_back({*positive, node.size(node.in(0), *positive), {}, {}, {}, {}});
  }
  return success();
}

static LogicalResult checkLength(Node &node, unsigned input, int64_t length) {
  RankedTensorType type = node.type(input);
  if (type.getRank() == 1 && type.getDimSize(0) == length)
    return success();
  return node.fail() << "expected input " << input << " to be a vector of " << length << " elements, but got " << type;
}

LogicalResult Resizer::setScales(unsigned input) {
  if (failed(checkLength(node, input, axes.size())))
    return failure();
  for (auto [i, axis] : llvm::enumerate(axes)) {
    axis.scale = readReal(node, input, i);
    auto to = scaleSize(node, axis.from, axis.scale, 0.0);
    if (failed(to))
      return failure();
    axis.to = *to;
  }
  return success();
}

LogicalResult Resizer::setSizes(unsigned input) {
  auto wanted = getSizes(node, input);
  if (failed(wanted) || failed(checkLength(node, input, axes.size())))
    return failure();
  for (auto [axis, to] : llvm::zip(axes, *wanted)) {
    axis.to = to;
    auto fixedTo = IndexMath::getConstant(to), fixedFrom = IndexMath::getConstant(axis.from);
    axis.scale = fixedTo && fixedFrom && *fixedFrom ? real(static_cast<double>(*fixedTo) / *fixedFrom).value
                 : node.math.equal(axis.from, to)   ? real(1.0).value
                                                    : (real(to) / real(axis.from)).value;
  }
  return keepAspectRatio();
}

/// One scale for all axes: the least or the greatest.
LogicalResult Resizer::keepAspectRatio() {
  StringRef policy = node.string("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch")
    return success();
  Value common = axes.front().scale;
  for (const Axis &axis : ArrayRef(axes).drop_front())
    common = policy == "not_larger" ? b.createOrFold<arith::MinimumFOp>(common, axis.scale)
                                    : b.createOrFold<arith::MaximumFOp>(common, axis.scale);
  for (Axis &axis : axes) {
    axis.scale = common;
    auto to = scaleSize(node, axis.from, common, 0.5);
    if (failed(to))
      return failure();
    axis.to = *to;
  }
  return success();
}

LogicalResult Resizer::setRoi(unsigned input) {
  if (transformation != "tf_crop_and_resize")
    return success();
  if (!isGiven(node, input))
    return node.fail() << "expected 'roi' with coordinate_transformation_mode tf_crop_and_resize, but it is missing";
  if (failed(checkLength(node, input, 2 * axes.size())))
    return failure();
  for (auto [i, axis] : llvm::enumerate(axes)) {
    axis.roiStart = readReal(node, input, i);
    axis.roiEnd = readReal(node, input, axes.size() + i);
  }
  return success();
}

/// What has no elements has none to repeat.
LogicalResult Resizer::checkElements() {
  Size zero = b.getIndexAttr(0);
  for (const Axis &axis : axes) {
    auto from = IndexMath::getConstant(axis.from), to = IndexMath::getConstant(axis.to);
    if (from == 0 && to.value_or(0) != 0)
      return node.fail() << "cannot resize a dimension of 0 elements to " << *to;
    Value isFull = node.math.compare(arith::CmpIPredicate::ne, axis.from, zero);
    Value staysEmpty = node.math.compare(arith::CmpIPredicate::eq, axis.to, zero);
    node.check(node.math.simplify(b.createOrFold<arith::OrIOp>(isFull, staysEmpty)),
               "cannot resize a dimension of 0 elements to others");
  }
  return success();
}

bool Resizer::isUnchanged(const Axis &axis) {
  bool whole = !axis.roiStart || (getReal(axis.roiStart) == 0.0 && getReal(axis.roiEnd) == 1.0);
  return whole && getReal(axis.scale) == 1.0 && node.math.equal(axis.from, axis.to);
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

/// The input coordinate of a result position; `to` is the exact, possibly fractional, result size.
Number Resizer::map(const Axis &axis, Number position, Number from, Number to) {
  Number scale{position.b, axis.scale};
  auto spread = [&](Number whole, Number single) { return select(to == 1.0, single, whole); };
  if (transformation == "align_corners")
    return spread(position * (from - 1.0) / (to - 1.0), position.with(0));
  if (transformation == "asymmetric")
    return position / scale;
  Number centered = (position + 0.5) / scale - 0.5;
  if (transformation == "pytorch_half_pixel")
    return spread(centered, position.with(-0.5));
  if (transformation == "half_pixel_symmetric") {
    Number adjustment = Number{position.b, real(axis.to).value} / to;
    return from / 2.0 * (1.0 - adjustment) + centered;
  }
  if (transformation == "tf_crop_and_resize") {
    Number start{position.b, axis.roiStart}, length = Number{position.b, axis.roiEnd} - start;
    Number inside = spread(position * length * (from - 1.0) / (to - 1.0), length * (from - 1.0) / 2.0);
    return inside + start * (from - 1.0);
  }
  return centered;
}

/// The coordinate of each result position of the axis.
Value Resizer::makeCoordinates(const Axis &axis) {
  Number from = real(axis.from), to = from * Number{&b, axis.scale};
  real(axis.to); // made outside of the loop
  return node.generate(axis.to, b.getF64Type(), [&](Builder &inner, ValueRange at) {
    Value position = arith::IndexCastOp::create(inner, inner.getI64Type(), at[0]);
    position = arith::SIToFPOp::create(inner, inner.getF64Type(), position);
    return map(axis, {&inner, position}, {&inner, from.value}, {&inner, to.value}).value;
  });
}

/// A whole f64 clamped to [0, size) as an index.
static Value clampIndex(Builder &b, Value whole, Value size) {
  Value last = arith::SubIOp::create(b, size, arith::ConstantIndexOp::create(b, 1));
  Value index = arith::IndexCastOp::create(b, b.getIndexType(), arith::FPToSIOp::create(b, b.getI64Type(), whole));
  return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, index, arith::ConstantIndexOp::create(b, 0)), last);
}

//===----------------------------------------------------------------------===//
// Nearest
//===----------------------------------------------------------------------===//

Value Resizer::roundNearest(Builder &b, Number x) {
  StringRef rounding = node.string("nearest_mode", "round_prefer_floor");
  if (rounding == "floor")
    return math::FloorOp::create(b, x.value);
  if (rounding == "ceil")
    return math::CeilOp::create(b, x.value);
  if (rounding == "round_prefer_ceil")
    return math::FloorOp::create(b, (x + 0.5).value);
  return math::CeilOp::create(b, (x - 0.5).value);
}

/// The index in the input of each result position of the axis.
Value Resizer::makeNearest(const Axis &axis) {
  Value from = node.math.value(axis.from);
  return node.elementwise(makeCoordinates(axis), b.getIndexType(), [&](Builder &inner, ValueRange v) {
    return clampIndex(inner, roundNearest(inner, {&inner, v[0]}), from);
  });
}

/// All axes at once: one element of the input each.
Value Resizer::resizeNearest(Value x) {
  SmallVector<Size> sizes = node.sizes(x);
  SmallVector<Operand> tables;
  SmallVector<int64_t> resized;
  for (const Axis &axis : axes) {
    if (isUnchanged(axis))
      continue;
    sizes[axis.dim] = axis.to;
    AffineMap map = AffineMap::get(sizes.size(), 0, b.getAffineDimExpr(axis.dim), b.getContext());
    tables.push_back({makeNearest(axis), map});
    resized.push_back(axis.dim);
  }
  if (resized.empty())
    return x;
  Type element = cast<RankedTensorType>(x.getType()).getElementType();
  Value zero = node.zero(element);
  return accumulate(node, sizes, {}, tables, zero, [&](Builder &inner, ValueRange indices, Value) -> Value {
    SmallVector<Value> at;
    for (size_t i = 0; i < sizes.size(); ++i)
      at.push_back(linalg::IndexOp::create(inner, i));
    for (auto [dim, index] : llvm::zip(resized, indices))
      at[dim] = index;
    return tensor::ExtractOp::create(inner, x, at);
  });
}

//===----------------------------------------------------------------------===//
// Linear and cubic
//===----------------------------------------------------------------------===//

/// The kernel at a distance: a tent, or Keys' cubic convolution with parameter cubic_coeff_a (Keys, 1981).
Number Resizer::getTapWeight(Number distance) {
  Number d = abs(distance);
  if (mode == "linear")
    return max(1.0 - d, d.with(0));
  double a = node.real("cubic_coeff_a", -0.75);
  Number near = ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
  Number far = ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
  return select(d > 2.0, d.with(0), select(d > 1.0, far, near));
}

/// The scale that widens the kernel when antialiasing, f64, and the first neighbour counted from the one left of the
/// coordinate: floor(-reach / scale) + 1.
Taps Resizer::makeTaps(const Axis &axis) {
  double reach = mode == "linear" ? 1.0 : 2.0;
  if (!node.integer("antialias"))
    return {real(1.0).value, b.getIndexAttr(1 - static_cast<int64_t>(reach))};
  Number least = min(Number{&b, axis.scale}, real(1.0));
  if (auto known = getReal(axis.scale)) {
    double narrow = std::min(*known, 1.0);
    return {real(narrow).value, b.getIndexAttr(static_cast<int64_t>(std::floor(-reach / narrow)) + 1)};
  }
  Value first = arith::FPToSIOp::create(b, b.getI64Type(), apply<math::FloorOp>(-reach / least).value);
  return {least.value, node.math.add(node.math.fromScalar(first), b.getIndexAttr(1))};
}

/// Neighbour `tap` of a coordinate: its whole position, and how far right of the coordinate it lies.
static std::pair<Number, Number> locate(Builder &b, Value coordinate, Value tap, Value first) {
  Number at{&b, coordinate}, base = apply<math::CeilOp>(at) - 1.0;
  Value step = arith::IndexCastOp::create(b, b.getI64Type(), arith::AddIOp::create(b, tap, first));
  Number shift{&b, arith::SIToFPOp::create(b, b.getF64Type(), step)};
  return {base + shift, shift - (at - base)};
}

/// The weight of each neighbour of each coordinate, adding up to 1: `[count, axis.to]`, so that neighbours of the result read neighbours.
Value Resizer::makeWeights(const Axis &axis, const Taps &taps, Size count, Value coordinates, Type element) {
  bool excludes = node.integer("exclude_outside");
  Value first = node.math.value(taps.first);
  Number end = real(axis.from);
  Value weights = node.generate({count, axis.to}, b.getF64Type(), [&](Builder &inner, ValueRange at) -> Value {
    Value coordinate = tensor::ExtractOp::create(inner, coordinates, at[1]);
    auto [position, distance] = locate(inner, coordinate, at[0], first);
    Number weight = getTapWeight(distance * Number{&inner, taps.scale});
    if (!excludes)
      return weight.value;
    Value inside = arith::AndIOp::create(inner, position >= 0.0, position < Number{&inner, end.value});
    return select(inside, weight, weight.with(0)).value;
  });
  Value total =
      node.reduce(weights, {0}, /*keep=*/true, node.zero(b.getF64Type()),
                  [](Builder &inner, Value w, Value sum) { return Value(arith::AddFOp::create(inner, w, sum)); });
  return node.elementwise({weights, total}, element, [&](Builder &inner, ValueRange v) {
    return convertFloat(inner, arith::DivFOp::create(inner, v[0], v[1]), element);
  });
}

/// Neighbours that linear and cubic interpolation have without antialiasing.
static constexpr int64_t kFewTaps = 4;

/// Each result element is the weighted sum of the neighbours of its coordinate along the axis.
Value Resizer::interpolate(Value x, const Axis &axis) {
  Type element = cast<RankedTensorType>(x.getType()).getElementType(), compute = getAccumulator(element);
  Taps taps = makeTaps(axis);
  Size count = node.math.sub(b.getIndexAttr(2), node.math.mul(taps.first, b.getIndexAttr(2)));
  Value coordinates = makeCoordinates(axis), first = node.math.value(taps.first), from = node.math.value(axis.from);
  Value weights = makeWeights(axis, taps, count, coordinates, compute);
  Value indices = node.generate({count, axis.to}, b.getIndexType(), [&](Builder &inner, ValueRange at) {
    Value coordinate = tensor::ExtractOp::create(inner, coordinates, at[1]);
    return clampIndex(inner, locate(inner, coordinate, at[0], first).first.value, from);
  });
  SmallVector<Size> sizes = node.sizes(x);
  sizes[axis.dim] = axis.to;
  unsigned rank = sizes.size();
  auto weigh = [&](Builder &inner, Value weight, Value index, Value total) {
    SmallVector<Value> at;
    for (unsigned i = 0; i < rank; ++i)
      at.push_back(linalg::IndexOp::create(inner, i));
    at[axis.dim] = index;
    Value value = convertFloat(inner, tensor::ExtractOp::create(inner, x, at), compute);
    return addScalars(inner, total, multiplyScalars(inner, value, weight));
  };
  // Few neighbours are added up in registers.
  int64_t fixed = IndexMath::getConstant(count).value_or(0);
  bool areFew = fixed > 0 && fixed <= kFewTaps;
  SmallVector<Operand> tables;
  for (int64_t tap = 0; tap < (areFew ? fixed : 1); ++tap) {
    AffineExpr number = areFew ? b.getAffineConstantExpr(tap) : b.getAffineDimExpr(rank);
    AffineMap map = AffineMap::get(areFew ? rank : rank + 1, 0, {number, b.getAffineDimExpr(axis.dim)}, b.getContext());
    tables.append({Operand{weights, map}, Operand{indices, map}});
  }
  SmallVector<Size> reduced(areFew ? 0 : 1, count);
  Value zero = node.zero(compute);
  Value sum = accumulate(node, sizes, reduced, tables, zero, [&](Builder &inner, ValueRange v, Value total) -> Value {
    if (areFew)
      total = zero;
    for (size_t i = 0; i < v.size(); i += 2)
      total = weigh(inner, v[i], v[i + 1], total);
    return total;
  });
  return markOutside(convertFloats(node, sum, element), axis, coordinates);
}

/// tf_crop_and_resize gives what lies outside of the input extrapolation_value.
Value Resizer::markOutside(Value x, const Axis &axis, Value coordinates) {
  if (!axis.roiStart)
    return x;
  Type element = cast<RankedTensorType>(x.getType()).getElementType();
  Value other = node.constant(node.real("extrapolation_value"), element);
  Number last = real(axis.from) - 1.0;
  SmallVector<Size> sizes = node.sizes(x), column(sizes.size() - axis.dim, b.getIndexAttr(1));
  column[0] = sizes[axis.dim];
  return node.elementwiseOver(sizes, {x, node.reshape(coordinates, column)}, element,
                              [&](Builder &inner, ValueRange v) {
                                Number at{&inner, v[1]};
                                Value outside = arith::OrIOp::create(inner, at<0.0, at> Number{&inner, last.value});
                                return Value(arith::SelectOp::create(inner, outside, other, v[0]));
                              });
}

LogicalResult Resizer::lower() {
  if (failed(findAxes()))
    return failure();
  bool bySizes = isGiven(node, 3);
  if (!bySizes && !isGiven(node, 2))
    return node.fail() << "expected 'scales' or 'sizes', but both are missing";
  if (failed(bySizes ? setSizes(3) : setScales(2)) || failed(checkElements()) || failed(setRoi(1)))
    return failure();
  Value x = node.in(0);
  Type element = node.element(0);
  if (mode == "nearest") {
    Value result = resizeNearest(x);
    for (const Axis &axis : axes)
      if (!isUnchanged(axis))
        result = markOutside(result, axis, axis.roiStart ? makeCoordinates(axis) : Value());
    node.set(0, result);
    return success();
  }
  bool isInteger = !isa<FloatType>(element);
  if (isInteger)
    x = node.castElements(x, b.getF64Type(), node.isUnsigned(0), false);
  for (const Axis &axis : axes)
    if (!isUnchanged(axis))
      x = interpolate(x, axis);
  if (isInteger)
    x = node.elementwiseOver(node.sizes(x), x, b.getF64Type(), [](Builder &inner, ValueRange v) {
      return math::RoundEvenOp::create(inner, v[0]).getResult();
    });
  node.set(0, isInteger ? node.castElements(x, element, false, node.isUnsigned(0)) : x);
  return success();
}

static LogicalResult lowerResize(Node &node) { return Resizer(node).lower(); }

void addResizeLowerings(LoweringTable &table) { table["onnx.Resize"] = lowerResize; }

} // namespace hone::lowering
