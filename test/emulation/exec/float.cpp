// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic of floats, rounded to the nearest.

#include "exec/families.h"
#include "exec/lanes.h"

namespace hone::emulation {
namespace {

struct Add {
  template <class T> static T apply(T a, T b) { return narrow<T>(widen(a) + widen(b)); }
};
struct Sub {
  template <class T> static T apply(T a, T b) { return narrow<T>(widen(a) - widen(b)); }
};
struct Mul {
  template <class T> static T apply(T a, T b) { return narrow<T>(widen(a) * widen(b)); }
};
struct Div {
  template <class T> static T apply(T a, T b) { return narrow<T>(widen(a) / widen(b)); }
};
struct Fma {
  static float apply(float a, float b, float c) { return std::fma(a, b, c); }
  static double apply(double a, double b, double c) { return std::fma(a, b, c); }
  /// Products of 16-bit floats are exact in double.
  template <class T> static T apply(T a, T b, T c) {
    return narrow<T>(sumToOdd(static_cast<double>(widen(a)) * static_cast<double>(widen(b)), widen(c)));
  }
};
/// The other number where one is NaN; -0 is below +0.
struct Min {
  template <class T> static T apply(T a, T b) {
    auto x = widen(a);
    auto y = widen(b);
    bool first = x < y || (x == y && std::signbit(x)) || y != y;
    return first ? a : b;
  }
};
struct Max {
  template <class T> static T apply(T a, T b) {
    auto x = widen(a);
    auto y = widen(b);
    bool first = x > y || (x == y && !std::signbit(x)) || y != y;
    return first ? a : b;
  }
};
/// NaN where one is NaN.
template <class F> struct WithNan {
  template <class T> static T apply(T a, T b) {
    auto x = widen(a);
    auto y = widen(b);
    return x != x || y != y ? narrow<T>(x + y) : F::apply(a, b);
  }
};
/// The smaller or larger magnitude, with the product of the signs.
template <class F> struct OfMagnitudes {
  template <class T> static T apply(T a, T b) {
    auto x = widen(a);
    auto y = widen(b);
    auto result = widen(F::apply(narrow<T>(std::fabs(x)), narrow<T>(std::fabs(y))));
    return narrow<T>(std::signbit(x) != std::signbit(y) ? -result : result);
  }
};
// The sign is a bit, that of NaN too.
struct Neg {
  static float apply(float a) { return -a; }
  static double apply(double a) { return -a; }
  template <class T> static T apply(T a) {
    return std::bit_cast<T>(static_cast<uint16_t>(std::bit_cast<uint16_t>(a) ^ 0x8000));
  }
};
struct Abs {
  static float apply(float a) { return std::fabs(a); }
  static double apply(double a) { return std::fabs(a); }
  template <class T> static T apply(T a) {
    return std::bit_cast<T>(static_cast<uint16_t>(std::bit_cast<uint16_t>(a) & 0x7fff));
  }
};
/// The magnitude of the second with the sign of the first.
struct CopySign {
  template <class T> static T apply(T a, T b) { return std::copysign(b, a); }
};

/// Subnormal numbers are zeros, in operands and results.
template <class F> struct Flushed {
  template <class... T> static auto apply(T... values) { return flushed(F::apply(flushed(values)...)); }
};
template <class F> struct Saturated {
  template <class... T> static auto apply(T... values) { return saturated(F::apply(values...)); }
};
template <class F> struct Rectified {
  template <class... T> static auto apply(T... values) { return rectified(F::apply(values...)); }
};

template <unsigned Sources, class F, class T> constexpr Handler lanesOf() {
  if constexpr (Sources == 1)
    return unaryLanes<F, T>;
  else if constexpr (Sources == 2)
    return binaryLanes<F, T>;
  else
    return ternaryLanes<F, T>;
}

template <unsigned Sources, class F, class T> constexpr Handler pairsOf() {
  if constexpr (Sources == 1)
    return unaryPairs<F, T>;
  else if constexpr (Sources == 2)
    return binaryPairs<F, T>;
  else
    return ternaryPairs<F, T>;
}

template <unsigned Sources, class F> Handler ofType(Type type) {
  switch (type) {
  case Type::F16:
    return lanesOf<Sources, F, Half>();
  case Type::BF16:
    return lanesOf<Sources, F, BFloat>();
  case Type::F32:
    return lanesOf<Sources, F, float>();
  case Type::F64:
    return lanesOf<Sources, F, double>();
  case Type::F16x2:
    return pairsOf<Sources, F, Half>();
  case Type::BF16x2:
    return pairsOf<Sources, F, BFloat>();
  case Type::F32x2:
    return pairsOf<Sources, F, float>();
  default:
    return nullptr;
  }
}

/// Modifiers of the result, in the order in which they are applied.
struct Finish {
  bool flush;
  bool saturate;
  bool rectify;
};

/// Flushing is f32's: f16 is flushed on request too, but no code that we run asks for that.
template <unsigned Sources, class F> Handler finished(Type type, Finish finish) {
  bool single = type == Type::F32 || type == Type::F32x2;
  if (finish.flush && !single)
    return nullptr;
  if (finish.rectify)
    return finish.flush || finish.saturate ? nullptr : ofType<Sources, Rectified<F>>(type);
  if (finish.flush && finish.saturate)
    return type == Type::F32 ? lanesOf<Sources, Saturated<Flushed<F>>, float>() : nullptr;
  if (finish.flush)
    return type == Type::F32 ? lanesOf<Sources, Flushed<F>, float>() : pairsOf<Sources, Flushed<F>, float>();
  return finish.saturate ? ofType<Sources, Saturated<F>>(type) : ofType<Sources, F>(type);
}

void decodeMinMax(Decoder &decoder, Statement &statement, Type type, Finish finish) {
  bool least = statement.root == "min";
  bool withNan = statement.take("NaN");
  bool magnitudes = statement.take("xorsign");
  if (magnitudes && !statement.take("abs"))
    statement.refuse("xorsign without abs");
  Handler handler = nullptr;
  if (magnitudes && withNan)
    handler = least ? finished<2, OfMagnitudes<WithNan<Min>>>(type, finish)
                    : finished<2, OfMagnitudes<WithNan<Max>>>(type, finish);
  else if (magnitudes)
    handler = least ? finished<2, OfMagnitudes<Min>>(type, finish) : finished<2, OfMagnitudes<Max>>(type, finish);
  else if (withNan)
    handler = least ? finished<2, WithNan<Min>>(type, finish) : finished<2, WithNan<Max>>(type, finish);
  else
    handler = least ? finished<2, Min>(type, finish) : finished<2, Max>(type, finish);
  emitSame(decoder, statement, type, handler, 2);
}

} // namespace

void decodeFloatArithmetic(Decoder &decoder, Statement &statement, Type type) {
  std::string_view root = statement.root;
  int direction = statement.takeOneOf({"rn", "rz", "rm", "rp", "approx", "full"});
  if (direction >= 1 && direction <= 3) {
    decodeRounded(decoder, statement, type, direction);
    return;
  }
  // Left to right, as a brace list is evaluated.
  Finish finish{statement.take("ftz"), statement.take("sat"), statement.take("relu")};
  if (root == "min" || root == "max") {
    decodeMinMax(decoder, statement, type, finish);
    return;
  }
  Handler handler = nullptr;
  unsigned sources = 2;
  if (root == "add")
    handler = finished<2, Add>(type, finish);
  else if (root == "sub")
    handler = finished<2, Sub>(type, finish);
  else if (root == "mul")
    handler = finished<2, Mul>(type, finish);
  else if (root == "div")
    handler = finished<2, Div>(type, finish);
  else if (root == "fma" || root == "mad")
    handler = finished<3, Fma>(type, finish), sources = 3;
  else if (root == "neg")
    handler = finished<1, Neg>(type, finish), sources = 1;
  else if (root == "abs")
    handler = finished<1, Abs>(type, finish), sources = 1;
  else if (root == "copysign" && type == Type::F32)
    handler = binaryLanes<CopySign, float>;
  else if (root == "copysign" && type == Type::F64)
    handler = binaryLanes<CopySign, double>;
  emitSame(decoder, statement, type, handler, sources);
}

} // namespace hone::emulation
