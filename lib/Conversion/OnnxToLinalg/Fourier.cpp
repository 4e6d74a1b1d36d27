// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// DFT, STFT and MelWeightMatrix. Transforms are sums over a table of the roots of unity.

#include "Formula.h"
#include "Indices.h"
#include "Window.h"

using namespace mlir;

namespace hone::lowering {

/// `[N, 2]`: cosine and sine of 2 pi n / N.
static Value makeRoots(Node &node, Size length, Type element) {
  Type f64 = node.b.getF64Type();
  Value whole = arith::SIToFPOp::create(node.b, f64, node.math.scalar(length, node.b.getI64Type()));
  return node.generate({length, node.b.getIndexAttr(2)}, element, [&](Builder &b, ValueRange at) {
    Value n = arith::SIToFPOp::create(b, f64, arith::IndexCastOp::create(b, b.getI64Type(), at[0]));
    Number angle = 2.0 * M_PI * Number{&b, n} / Number{&b, whole};
    Value isCosine = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at[1], arith::ConstantIndexOp::create(b, 0));
    return convertFloat(b, select(isCosine, apply<math::CosOp>(angle), apply<math::SinOp>(angle)).value, element);
  });
}

namespace {

/// A complex number.
struct Complex {
  Number re, im;
};

/// The root of unity to the power k n, or its conjugate.
struct Roots {
  Value table, length; // index

  Complex power(Builder &b, Value k, Value n, bool isConjugate) const {
    Value phase = arith::RemUIOp::create(b, arith::MulIOp::create(b, k, n), length);
    auto read = [&](int64_t part) {
      return Number{&b,
                    tensor::ExtractOp::create(b, table, ValueRange{phase, arith::ConstantIndexOp::create(b, part)})};
    };
    Number sine = read(1);
    return {read(0), isConjugate ? -sine : sine};
  }
};

} // namespace

static Number getPart(Builder &b, Complex value, Value part) {
  Value isReal = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, part, arith::ConstantIndexOp::create(b, 0));
  return select(isReal, value.re, value.im);
}

static Complex multiply(Complex x, Complex y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }

/// Element `at` of a signal whose last dimension holds a real number or the parts of a complex one.
static Complex readSignal(Builder &b, Value signal, SmallVector<Value> at, bool isComplex, Type compute) {
  auto read = [&](int64_t part) {
    at.back() = arith::ConstantIndexOp::create(b, part);
    return Number{&b, convertFloat(b, tensor::ExtractOp::create(b, signal, at), compute)};
  };
  Number re = read(0);
  return {re, isComplex ? read(1) : re.with(0)};
}

static Size getHalf(Node &node, Size length) {
  return node.math.add(node.math.floorDiv(length, node.b.getIndexAttr(2)), node.b.getIndexAttr(1));
}

/// The only element of an integer input, which must be at least `least`, as a size.
static FailureOr<Size> readSize(Node &node, unsigned input, int64_t least = 0) {
  auto values = node.indices(input);
  if (failed(values) || values->size() != 1) {
    if (succeeded(values))
      node.fail() << "expected input " << input << " to have one element, but got " << node.type(input);
    return failure();
  }
  return requireRange(node, values->front(), least, kMostElements, "input " + Twine(input));
}

//===----------------------------------------------------------------------===//
// DFT
//===----------------------------------------------------------------------===//

namespace {

/// The axis may be known at run time only; then every size is a choice.
struct Transform {
  SmallVector<Value> isAxis; // per dimension but the last: i1
  Size from, length;         // of the input's axis, of the transform
  bool isInverse, isOneSided, isComplex;

  bool isReal() const { return isInverse && isOneSided; } // the result has one part
};

} // namespace

/// The axis counted from the front as an `index` value: input 2, the attribute of older opsets, or the last but one.
static FailureOr<Value> getAxis(Node &node) {
  int64_t rank = node.rank(0);
  auto fixed = [&](int64_t written) -> FailureOr<Value> {
    auto axis = node.axis(written, rank);
    if (succeeded(axis) && *axis == rank - 1)
      node.fail() << "expected axis to be one of the signal's dimensions but the last, but got " << written;
    if (failed(axis) || *axis == rank - 1)
      return failure();
    return Value(arith::ConstantIndexOp::create(node.b, *axis));
  };
  if (!node.has(2))
    return fixed(node.opset() >= 20 ? -2 : node.integer("axis", 1));
  auto given = getScalarIndex(node, 2);
  if (failed(given))
    return failure();
  if (auto known = IndexMath::getConstant(*given))
    return fixed(*known);
  Value axis = node.math.value(*given), zero = arith::ConstantIndexOp::create(node.b, 0);
  Value fromFront = arith::AddIOp::create(node.b, axis, arith::ConstantIndexOp::create(node.b, rank));
  Value isNegative = arith::CmpIOp::create(node.b, arith::CmpIPredicate::slt, axis, zero);
  axis = arith::SelectOp::create(node.b, isNegative, fromFront, axis);
  Value last = arith::ConstantIndexOp::create(node.b, rank - 1);
  node.check(arith::CmpIOp::create(node.b, arith::CmpIPredicate::ult, axis, last),
             "expected axis to be one of the signal's dimensions but the last");
  return axis;
}

static FailureOr<Transform> getTransform(Node &node) {
  int64_t rank = node.rank(0);
  auto parts = rank < 2 ? std::optional<int64_t>() : IndexMath::getConstant(node.size(node.in(0), rank - 1));
  if (!parts || *parts < 1 || *parts > 2) {
    node.fail() << "expected a signal whose last dimension is 1 or 2, but got " << node.type(0);
    return failure();
  }
  auto axis = getAxis(node);
  if (failed(axis))
    return failure();
  Transform result{{},         node.b.getIndexAttr(1), {}, node.integer("inverse") != 0, node.integer("onesided") != 0,
                   *parts == 2};
  for (int64_t dim = 0; dim + 1 < rank; ++dim) {
    Value index = arith::ConstantIndexOp::create(node.b, dim);
    result.isAxis.push_back(node.b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, *axis, index));
    result.from = node.math.select(result.isAxis.back(), node.size(node.in(0), dim), result.from);
  }
  Size one = node.b.getIndexAttr(1), two = node.b.getIndexAttr(2);
  result.length = result.isReal() ? node.math.mul(two, node.math.sub(result.from, one)) : result.from;
  if (node.has(1)) {
    auto length = readSize(node, 1);
    if (failed(length))
      return failure();
    result.length = *length;
  }
  return result;
}

/// How often a one-sided frequency counts: those with a conjugate that is left out count twice.
static Number countTwice(Builder &b, Number x, Value k, Value length) {
  Value zero = arith::ConstantIndexOp::create(b, 0), two = arith::ConstantIndexOp::create(b, 2);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, k, zero);
  Value isMiddle = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, arith::MulIOp::create(b, k, two), length);
  return select(arith::OrIOp::create(b, isFirst, isMiddle), x, x * 2.0);
}

static LogicalResult lowerDft(Node &node) {
  auto transform = getTransform(node);
  if (failed(transform))
    return failure();
  Value signal = node.in(0);
  Type element = node.element(0), compute = getAccumulator(element);
  Size half = getHalf(node, transform->length);
  SmallVector<Size> sizes = node.sizes(signal);
  Size transformed = transform->isOneSided && !transform->isInverse ? half : transform->length;
  for (auto [size, isAxis] : llvm::zip(sizes, transform->isAxis))
    size = node.math.select(isAxis, transformed, size);
  sizes.back() = node.b.getIndexAttr(transform->isReal() ? 1 : 2);
  // A longer transform reads zeros after the signal's end.
  Size read = node.math.min(transform->from, transform->isReal() ? half : transform->length);
  Roots roots{makeRoots(node, transform->length, compute), node.math.value(transform->length)};
  Value sum = accumulate(node, sizes, read, {}, node.zero(compute), [&](Builder &b, ValueRange, Value total) -> Value {
    SmallVector<Value> at;
    for (size_t i = 0; i <= sizes.size(); ++i)
      at.push_back(linalg::IndexOp::create(b, i));
    Value n = at.pop_back_val(), k = n, part = at.back();
    for (auto [index, isAxis] : llvm::zip(at, transform->isAxis)) {
      k = arith::SelectOp::create(b, isAxis, index, k);
      index = arith::SelectOp::create(b, isAxis, n, index);
    }
    Complex x = readSignal(b, signal, at, transform->isComplex, compute);
    Number term = getPart(b, multiply(x, roots.power(b, k, n, !transform->isInverse)), part);
    if (transform->isReal())
      term = countTwice(b, term, n, roots.length);
    return (Number{&b, total} + term).value;
  });
  Value length = arith::SIToFPOp::create(node.b, compute, node.math.scalar(transform->length, node.b.getI64Type()));
  node.set(0, node.elementwiseOver(sizes, sum, element, [&](Builder &b, ValueRange v) {
    Number x{&b, v[0]};
    return convertFloat(b, (transform->isInverse ? x / Number{&b, length} : x).value, element);
  }));
  return success();
}

//===----------------------------------------------------------------------===//
// STFT
//===----------------------------------------------------------------------===//

/// `[B, frames, K, 2]`: transforms of windows of `[B, L, 1 or 2]` that begin frame_step apart.
static LogicalResult lowerStft(Node &node) {
  Value signal = node.in(0), window = node.in(2);
  SmallVector<Size> from = node.sizes(signal);
  auto parts = from.size() == 3 ? IndexMath::getConstant(from[2]) : std::optional<int64_t>();
  if (!parts || *parts < 1 || *parts > 2)
    return node.fail() << "expected a signal [batch, length, 1 or 2], but got " << signal.getType();
  auto step = readSize(node, 1, 1);
  if (failed(step))
    return failure();
  FailureOr<Size> length = window ? FailureOr<Size>(node.size(window, 0)) : FailureOr<Size>(failure());
  if (node.has(3))
    length = readSize(node, 3);
  if (failed(length))
    return node.has(3) ? failure()
                       : LogicalResult(node.fail() << "expected 'window' or 'frame_length', but both are missing");
  Type element = node.element(0), compute = getAccumulator(element);
  Size one = node.b.getIndexAttr(1), two = node.b.getIndexAttr(2);
  Size frames = node.math.add(node.math.floorDiv(node.math.sub(from[1], *length), *step), one);
  if (failed(requireWindows(node, from[1], *length, frames)))
    return failure();
  if (window && failed(requireEqual(node, node.size(window, 0), *length, "the sizes of the window and of a frame")))
    return failure();
  SmallVector<Size> sizes = {from[0], frames, node.integer("onesided", 1) ? getHalf(node, *length) : *length, two};
  Roots roots{makeRoots(node, *length, compute), node.math.value(*length)};
  Value stride = node.math.value(*step);
  Value sum =
      accumulate(node, sizes, *length, {}, node.zero(compute), [&](Builder &b, ValueRange, Value total) -> Value {
        SmallVector<Value> at;
        for (size_t i = 0; i <= sizes.size(); ++i)
          at.push_back(linalg::IndexOp::create(b, i));
        Value time = arith::AddIOp::create(b, arith::MulIOp::create(b, at[1], stride), at[4]);
        Complex x = readSignal(b, signal, {at[0], time, at[3]}, *parts == 2, compute);
        Number term = getPart(b, multiply(x, roots.power(b, at[2], at[4], true)), at[3]);
        if (window)
          term = term * Number{&b, convertFloat(b, tensor::ExtractOp::create(b, window, at[4]), compute)};
        return (Number{&b, total} + term).value;
      });
  node.set(0, convertFloats(node, sum, element));
  return success();
}

//===----------------------------------------------------------------------===//
// MelWeightMatrix
//===----------------------------------------------------------------------===//

/// The scalar of an input as f64, whatever its type.
static Number readScalar(Node &node, unsigned input) {
  Builder &b = node.b;
  SmallVector<Value> at(node.rank(input), arith::ConstantIndexOp::create(b, 0));
  Value value = tensor::ExtractOp::create(b, node.in(input), at);
  if (isa<FloatType>(value.getType()))
    return {&b, convertFloat(b, value, b.getF64Type())};
  return {&b, arith::SIToFPOp::create(b, b.getF64Type(), value)};
}

static Number toNumber(Builder &b, Value index) {
  return {&b, arith::SIToFPOp::create(b, b.getF64Type(), arith::IndexCastOp::create(b, b.getI64Type(), index))};
}

/// Triangular filters, evenly spaced on the mel scale (2595 log10(1 + f / 700), O'Shaughnessy 1987).
static LogicalResult lowerMelWeightMatrix(Node &node) {
  auto bins = readSize(node, 0), length = readSize(node, 1);
  if (failed(bins) || failed(length))
    return failure();
  Type element = node.resultElement(0) ? node.resultElement(0) : Type(node.b.getF32Type());
  if (!isa<FloatType>(element))
    return node.fail() << "unsupported output_datatype " << element << "; supported: floats";
  auto toMel = [](Number hertz) { return 2595.0 / M_LN10 * log1p(hertz / 700.0); };
  Number low = toMel(readScalar(node, 3)), high = toMel(readScalar(node, 4)), rate = readScalar(node, 2);
  Number points = readScalar(node, 0) + 2.0, scale = readScalar(node, 1) + 1.0, step = (high - low) / points;
  node.set(0, node.generate({getHalf(node, *length), *bins}, element, [&](Builder &b, ValueRange at) {
    Number bin = toNumber(b, at[0]), filter = toNumber(b, at[1]);
    auto inner = [&](Number outer) { return Number{&b, outer.value}; };
    auto edge = [&](double shift) {
      Number mel = (filter + shift) * inner(step) + inner(low);
      return apply<math::FloorOp>(inner(scale) * (700.0 * expm1(mel * M_LN10 / 2595.0)) / inner(rate));
    };
    Number left = edge(0), center = edge(1), right = edge(2), zero = bin.with(0);
    auto both = [&](Value x, Value y) -> Value { return arith::AndIOp::create(b, x, y); };
    Number rising = select(both(bin >= left, center >= bin), (bin - left) / (center - left), zero);
    rising = select(center == left, select(bin == center, bin.with(1), zero), rising);
    Value isFalling = both(bin >= center, bin < right);
    return convertFloat(b, select(isFalling, (right - bin) / (right - center), rising).value, element);
  }));
  return success();
}

void addFourierLowerings(LoweringTable &table) {
  table["onnx.DFT"] = lowerDft;
  table["onnx.STFT"] = lowerStft;
  table["onnx.MelWeightMatrix"] = lowerMelWeightMatrix;
}

} // namespace hone::lowering
