// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic of the types that C++ has no type for, and what it needs of those it has.

#pragma once

#include <bit>
#include <cfloat>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace hone::emulation {

using Half = _Float16;

/// bfloat16: the upper half of a float.
struct BFloat {
  uint16_t bits;
};

/// The float nearest to `value`, ties to even, but with an odd last bit where that is not exact: rounding such a double to fewer bits
/// gives what rounding the exact sum would (Boldo and Melquiond, 2008, "Emulation of a FMA and correctly rounded sums").
inline double sumToOdd(double a, double b) {
  double sum = a + b;
  double other = sum - a;
  double error = (a - (sum - other)) + (b - other);
  auto bits = std::bit_cast<uint64_t>(sum);
  if (!(error != 0) || (bits & 1) != 0 || !std::isfinite(sum))
    return sum;
  bits += (error > 0) == (sum > 0) ? 1 : -1;
  return std::bit_cast<double>(bits);
}

inline BFloat roundToBFloat(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

/// From double through a float that is odd where it is not exact: the nearest bfloat16.
inline BFloat roundToBFloat(double value) {
  auto nearest = static_cast<float>(value);
  auto bits = std::bit_cast<uint32_t>(nearest);
  double error = value - nearest;
  if (error != 0 && (bits & 1) == 0 && std::isfinite(nearest))
    bits += (error > 0) == (nearest > 0) ? 1 : -1;
  return roundToBFloat(std::bit_cast<float>(bits));
}

/// A number in a type that holds it and in which C++ computes.
inline float widen(Half value) { return static_cast<float>(value); }
inline float widen(BFloat value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }
inline float widen(float value) { return value; }
inline double widen(double value) { return value; }
template <std::integral T> T widen(T value) { return value; }

/// The nearest number of a type, ties to even.
template <class T, class W> inline T narrow(W value) {
  if constexpr (std::is_same_v<T, BFloat>)
    return roundToBFloat(value);
  else
    return static_cast<T>(value);
}

inline float flushed(float value) { return std::fabs(value) < FLT_MIN ? std::copysign(0.0f, value) : value; }
template <class T> inline T flushed(T value) { return value; }

/// NaN becomes 0, as everything below it.
template <class T> inline T saturated(T value) {
  auto wide = widen(value);
  return narrow<T>(wide > 0 ? (wide < 1 ? wide : decltype(wide){1}) : decltype(wide){0});
}

/// Negative numbers become 0; NaN stays.
template <class T> inline T rectified(T value) {
  auto wide = widen(value);
  return narrow<T>(wide < 0 ? decltype(wide){0} : wide);
}

/// A small float with `mantissa` bits after the point and `exponent` bits before them, as bits: the nearest number, or the largest finite
/// one. `special` is the code of NaN, `largest` that of the largest finite number.
inline uint8_t encodeSmall(float value, int exponent, int mantissa, uint8_t largest, uint8_t special) {
  if (std::isnan(value))
    return special;
  auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
  int bias = (1 << (exponent - 1)) - 1;
  double magnitude = std::fabs(static_cast<double>(value));
  int least = 1 - bias; // exponent of the smallest normal number
  int scale = magnitude == 0 || std::isinf(magnitude) ? least : std::max(std::ilogb(magnitude), least);
  if (std::isinf(magnitude) || scale > bias + 1)
    return sign | largest;
  auto units = static_cast<int64_t>(std::nearbyint(std::ldexp(magnitude, mantissa - scale)));
  int64_t code = units + (static_cast<int64_t>(scale - least) << mantissa);
  return static_cast<uint8_t>(sign | std::min<int64_t>(code, largest));
}

inline uint8_t encodeE4M3(float value) { return encodeSmall(value, 4, 3, 0x7e, 0x7f); }
inline uint8_t encodeE5M2(float value) { return encodeSmall(value, 5, 2, 0x7b, 0x7f); }

inline float decodeSmall(uint8_t code, int exponent, int mantissa) {
  int bias = (1 << (exponent - 1)) - 1;
  int biased = code >> mantissa & ((1 << exponent) - 1);
  int fraction = code & ((1 << mantissa) - 1);
  float magnitude = biased == 0 ? std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa)
                                : std::ldexp(static_cast<float>(fraction + (1 << mantissa)), biased - bias - mantissa);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

inline float decodeE4M3(uint8_t code) { return (code & 0x7f) == 0x7f ? NAN : decodeSmall(code, 4, 3); }
inline float decodeE5M2(uint8_t code) {
  // Its codes are the upper half of those of f16.
  return static_cast<float>(std::bit_cast<Half>(static_cast<uint16_t>(code << 8)));
}

} // namespace hone::emulation
