// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats of 8 bits and less, held in bytes: their conversion from and to f32 in integer arithmetic. What a format looks
// like is asked of llvm::APFloat.

#include "Formula.h"

#include <cmath>

using namespace mlir;

namespace hone::lowering {

namespace {

/// Field widths of f32.
constexpr int kSingleMantissa = 23, kSingleBias = 127;

/// A small binary format: sign, exponent and mantissa from the high bits down.
struct Format {
  explicit Format(FloatType type)
      : semantics(type.getFloatSemantics()), bits(type.getWidth()),
        mantissa(llvm::APFloat::semanticsPrecision(semantics) - 1),
        bias(1 - llvm::APFloat::semanticsMinExponent(semantics)),
        largest(llvm::APFloat::getLargest(semantics).bitcastToAPInt().getZExtValue()),
        hasInfinity(llvm::APFloat::semanticsHasInf(semantics)), hasNaN(llvm::APFloat::semanticsHasNaN(semantics)),
        nan(hasNaN ? llvm::APFloat::getNaN(semantics).bitcastToAPInt().getZExtValue() : 0) {}

  uint32_t signBit() const { return 1u << (bits - 1); }
  /// E4M3FNUZ and E5M2FNUZ write their only NaN as minus zero.
  bool hasMinusZero() const { return !hasNaN || nan != signBit(); }

  const llvm::fltSemantics &semantics;
  int bits, mantissa, bias;
  uint32_t largest;
  bool hasInfinity, hasNaN;
  uint32_t nan;
};

/// 32-bit integers with operators.
struct Bits {
  Builder *b;
  Value value;

  Bits with(uint32_t constant) const {
    return {b, arith::ConstantOp::create(*b, b->getI32IntegerAttr(static_cast<int32_t>(constant)))};
  }
  template <typename Op>
  Bits apply(Bits other) const {
    return {b, Op::create(*b, value, other.value)};
  }
  Bits operator+(Bits o) const { return apply<arith::AddIOp>(o); }
  Bits operator-(Bits o) const { return apply<arith::SubIOp>(o); }
  Bits operator|(Bits o) const { return apply<arith::OrIOp>(o); }
  Bits operator&(uint32_t c) const { return apply<arith::AndIOp>(with(c)); }
  Bits operator<<(int c) const { return apply<arith::ShLIOp>(with(c)); }
  Bits operator>>(int c) const { return apply<arith::ShRUIOp>(with(c)); }
  /// Unsigned comparison.
  Value is(arith::CmpIPredicate predicate, uint32_t c) const {
    return arith::CmpIOp::create(*b, predicate, value, with(c).value);
  }
  Number asFloat() const { return {b, arith::BitcastOp::create(*b, b->getF32Type(), value)}; }
};

} // namespace

static Bits choose(Value condition, Bits ifTrue, Bits ifFalse) {
  return {ifTrue.b, arith::SelectOp::create(*ifTrue.b, condition, ifTrue.value, ifFalse.value)};
}

static Bits asBits(Number x) { return {x.b, arith::BitcastOp::create(*x.b, x.b->getI32Type(), x.value)}; }

static double powerOfTwo(int exponent) { return std::ldexp(1.0, exponent); }

/// E8M0 is an exponent and nothing else: no sign, no zero, 255 is NaN.
static Value decodeExponent(Builder &b, Bits byte) {
  Bits normal = byte << kSingleMantissa, least = byte.with(1u << (kSingleMantissa - 1));
  Bits bits = choose(byte.is(arith::CmpIPredicate::eq, 0), least, normal);
  return choose(byte.is(arith::CmpIPredicate::eq, 0xff), byte.with(0x7fc00000), bits).asFloat().value;
}

Value decodeNarrowFloat(Builder &b, Value held, FloatType type) {
  Bits byte{&b, arith::ExtUIOp::create(b, b.getI32Type(), held)};
  if (isa<Float8E8M0FNUType>(type))
    return decodeExponent(b, byte);
  Format format(type);
  Bits magnitude = byte & (format.signBit() - 1), sign = (byte & format.signBit()) << (32 - format.bits);
  // In the place of f32's fields the number is off by the difference of the biases; multiplying is exact, and it
  // normalises subnormal numbers.
  Number scaled = (magnitude << (kSingleMantissa - format.mantissa)).asFloat() * powerOfTwo(kSingleBias - format.bias);
  Bits bits = asBits(scaled);
  if (format.hasInfinity) {
    bits = choose(magnitude.is(arith::CmpIPredicate::eq, format.largest + 1), byte.with(0x7f800000), bits);
    bits = choose(magnitude.is(arith::CmpIPredicate::ugt, format.largest + 1), byte.with(0x7fc00000), bits);
  } else if (format.hasNaN && format.hasMinusZero()) {
    bits = choose(magnitude.is(arith::CmpIPredicate::ugt, format.largest), byte.with(0x7fc00000), bits);
  }
  bits = bits | sign;
  if (format.hasNaN && !format.hasMinusZero())
    bits = choose((byte & 0xff).is(arith::CmpIPredicate::eq, format.nan), byte.with(0x7fc00000), bits);
  return bits.asFloat().value;
}

static Value asByte(Bits bits) { return arith::TruncIOp::create(*bits.b, bits.b->getI8Type(), bits.value); }

static Value encodeExponent(Builder &b, Number x, const CastOptions &options) {
  constexpr uint32_t kHalf = 1u << (kSingleMantissa - 1), kNaN = 0xff, kLargest = 0xfe;
  Bits bits = asBits(x) & 0x7fffffff;
  Bits exponent = bits >> kSingleMantissa, fraction = bits & ((1u << kSingleMantissa) - 1);
  Bits code = exponent;
  if (options.roundMode != "down") {
    Value up = options.roundMode == "nearest" ? fraction.is(arith::CmpIPredicate::uge, kHalf)
                                              : fraction.is(arith::CmpIPredicate::ne, 0);
    code = exponent + Bits{&b, arith::ExtUIOp::create(b, b.getI32Type(), up)};
  }
  if (options.saturate)
    code = choose(code.is(arith::CmpIPredicate::ugt, kLargest), code.with(kLargest), code);
  else // less than the least value, which is half of f32's least normal number
    code = choose(bits.is(arith::CmpIPredicate::ult, kHalf), code.with(kNaN), code);
  return asByte(choose(x != x, code.with(kNaN), code));
}

Value encodeNarrowFloat(Builder &b, Value scalar, FloatType type, const CastOptions &options) {
  Number x{&b, scalar};
  if (isa<Float8E8M0FNUType>(type))
    return encodeExponent(b, x, options);
  Format format(type);
  int dropped = kSingleMantissa - format.mantissa;
  Bits bits = asBits(x), magnitude = bits & 0x7fffffff;
  // Normal results: move the exponent, round to nearest even on the mantissa bits that stay.
  Bits odd = (magnitude >> dropped) & 1;
  Bits rounded = magnitude + odd + magnitude.with((1u << (dropped - 1)) - 1);
  Bits normal =
      (rounded - rounded.with(static_cast<uint32_t>(kSingleBias - format.bias) << kSingleMantissa)) >> dropped;
  // Subnormal results: adding the number whose last place is theirs lets the addition round.
  int magic = 1 - format.bias - format.mantissa + kSingleMantissa;
  Number shifted = magnitude.asFloat() + powerOfTwo(magic);
  Bits subnormal = asBits(shifted) - bits.with(static_cast<uint32_t>(magic + kSingleBias) << kSingleMantissa);
  uint32_t leastNormal = static_cast<uint32_t>(1 - format.bias + kSingleBias) << kSingleMantissa;
  Bits code = choose(magnitude.is(arith::CmpIPredicate::ult, leastNormal), subnormal, normal);
  bool clamps = options.saturate || !format.hasNaN;
  uint32_t beyond = clamps ? format.largest : format.hasInfinity ? format.largest + 1 : format.nan;
  code = choose(code.is(arith::CmpIPredicate::sgt, format.largest), code.with(beyond), code);
  Bits sign = (bits >> (32 - format.bits)) & format.signBit();
  if (!format.hasMinusZero())
    sign = choose(code.is(arith::CmpIPredicate::eq, 0), sign.with(0), sign);
  // A format without NaN turns it into minus zero.
  uint32_t nan = format.hasNaN ? format.nan : format.signBit();
  return asByte(choose(x != x, code.with(nan), code | sign));
}

} // namespace hone::lowering
