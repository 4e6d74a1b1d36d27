// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions of one number.

#include "exec/families.h"
#include "exec/lanes.h"

#include <algorithm>
#include <limits>

namespace hone::emulation {
namespace {

enum class Rounding : uint8_t { Nearest, Zero, Down, Up };

/// Inst::target: how to convert. Inst::op[2] and op[3]: bytes of the source's and of the result's register.
struct Mode {
  Rounding rounding;
  bool toInteger; // rounds a float to an integer
  bool saturate;
  bool flush;
  bool rectify;
  uint32_t pack() const {
    return static_cast<uint32_t>(rounding) | toInteger << 2 | saturate << 3 | flush << 4 | rectify << 5;
  }
  static Mode unpack(uint32_t bits) {
    return {static_cast<Rounding>(bits & 3), (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0, (bits & 32) != 0};
  }
};

template <class T> T roundedToInteger(T value, Rounding rounding) {
  switch (rounding) {
  case Rounding::Nearest:
    return std::nearbyint(value);
  case Rounding::Zero:
    return std::trunc(value);
  case Rounding::Down:
    return std::floor(value);
  case Rounding::Up:
    return std::ceil(value);
  }
  return value;
}

template <class T> using BitsOf =
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

/// The neighbour of a float that is not 0: nearer to zero or farther from it.
template <class T> T neighbour(T value, bool outwards) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(std::bit_cast<BitsOf<T>>(value) + (outwards ? 1 : -1)));
}

/// A number that long double holds exactly, rounded in a direction: what is nearest, or its neighbour.
template <class D> D roundedTo(long double exact, D nearest, Rounding rounding) {
  long double got = widen(nearest);
  bool wanted = rounding == Rounding::Zero   ? std::fabs(got) > std::fabs(exact)
                : rounding == Rounding::Down ? got > exact
                                             : got < exact;
  if (rounding == Rounding::Nearest || std::isnan(exact) || std::isinf(exact) || !wanted)
    return nearest;
  if (got == 0)
    return std::bit_cast<D>(static_cast<BitsOf<D>>(
        std::bit_cast<BitsOf<D>>(narrow<D>(std::copysign(0.0f, static_cast<float>(exact)))) | 1));
  bool outwards = rounding != Rounding::Zero && (rounding == Rounding::Up) == (got > 0);
  return neighbour(nearest, outwards);
}

template <class D, class A> D integerToInteger(A value, Mode mode) {
  if (!mode.saturate)
    return static_cast<D>(value);
  auto wide = static_cast<__int128>(value);
  return static_cast<D>(std::clamp<__int128>(wide, std::numeric_limits<D>::min(), std::numeric_limits<D>::max()));
}

/// Floats become the nearest integer that the type has. NaN is 0, or the highest bit where either type has 64 bits.
template <class D, class A> D floatToInteger(A value, Mode mode) {
  auto wide = mode.flush ? flushed(widen(value)) : widen(value);
  if (wide != wide)
    return sizeof(A) == 8 || sizeof(D) == 8 ? static_cast<D>(D{1} << (8 * sizeof(D) - 1)) : D{0};
  wide = roundedToInteger(wide, mode.rounding);
  // The bounds are powers of two, which floats hold.
  auto above = std::ldexp(static_cast<decltype(wide)>(1), std::numeric_limits<D>::digits);
  if (wide >= above)
    return std::numeric_limits<D>::max();
  if (wide <= (std::is_signed_v<D> ? -above : 0))
    return std::numeric_limits<D>::min();
  return static_cast<D>(wide);
}

template <class D, class A> D integerToFloat(A value, Mode mode) {
  D nearest;
  if constexpr (sizeof(D) == 2) {
    // An odd last bit keeps what double cannot hold away from ties.
    auto wide = static_cast<double>(value);
    if (static_cast<long double>(wide) != static_cast<long double>(value))
      wide = std::bit_cast<double>(std::bit_cast<uint64_t>(wide) | 1);
    nearest = narrow<D>(wide);
  } else {
    nearest = static_cast<D>(value);
  }
  return roundedTo(static_cast<long double>(value), nearest, mode.rounding);
}

template <class D, class A> D floatToFloat(A value, Mode mode) {
  auto wide = widen(value);
  if (mode.flush)
    wide = flushed(wide);
  if (mode.toInteger)
    wide = roundedToInteger(wide, mode.rounding);
  D result = narrow<D>(wide);
  if (!mode.toInteger && mode.rounding != Rounding::Nearest)
    result = roundedTo(static_cast<long double>(wide), result, mode.rounding);
  if (mode.flush)
    result = flushed(result);
  if (mode.saturate)
    result = saturated(result);
  return mode.rectify ? rectified(result) : result;
}

template <class D, class A> D convertNumber(A value, Mode mode) {
  constexpr bool kToInteger = std::is_integral_v<D>;
  constexpr bool kFromInteger = std::is_integral_v<A>;
  if constexpr (kToInteger && kFromInteger)
    return integerToInteger<D>(value, mode);
  else if constexpr (kToInteger)
    return floatToInteger<D>(value, mode);
  else if constexpr (kFromInteger)
    return integerToFloat<D>(value, mode);
  else
    return floatToFloat<D>(value, mode);
}

template <class D, class A> void convertLanes(Warp &warp, const Inst &inst, uint32_t mask) {
  Mode mode = Mode::unpack(inst.target);
  std::byte *d = warp.at<std::byte>(inst.op[0]);
  const std::byte *a = warp.at<std::byte>(inst.op[1]);
  uint32_t from = inst.op[2];
  uint32_t to = inst.op[3];
  D results[kLanes] = {};
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    uint32_t lane = firstLane(lanes);
    A value;
    std::memcpy(&value, a + lane * from, sizeof value);
    results[lane] = convertNumber<D>(value, mode);
  }
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    // Narrow integers are extended in wide registers.
    if constexpr (std::is_integral_v<D>) {
      auto wide = static_cast<uint64_t>(static_cast<int64_t>(results[lane]));
      std::memcpy(d + lane * to, &wide, std::max<uint32_t>(to, sizeof(D)) > 8 ? 8 : to);
    } else {
      std::memcpy(d + lane * to, &results[lane], sizeof(D));
    }
  }
}

/// The plain case of types that fill their registers, in a loop of its own.
struct Plain {
  template <class D, class A> struct To {
    static D apply(A value) {
      if constexpr (std::is_integral_v<D> || std::is_integral_v<A>)
        return static_cast<D>(value);
      else
        return narrow<D>(widen(value));
    }
  };
};

template <class D, class A> Handler plainOrNot(bool plain) {
  // Floats that become integers saturate, and two roundings of an integer are not one.
  constexpr bool kPlain = std::is_integral_v<D> ? std::is_integral_v<A> : (!std::is_integral_v<A> || sizeof(D) >= 4);
  if constexpr (kPlain)
    if (plain)
      return unaryLanes<Plain::To<D, A>, D, A>;
  return convertLanes<D, A>;
}

template <class D> Handler from(Type type, bool plain) {
  switch (type) {
  case Type::U8:
    return plainOrNot<D, uint8_t>(plain);
  case Type::S8:
    return plainOrNot<D, int8_t>(plain);
  case Type::U16:
    return plainOrNot<D, uint16_t>(plain);
  case Type::S16:
    return plainOrNot<D, int16_t>(plain);
  case Type::U32:
    return plainOrNot<D, uint32_t>(plain);
  case Type::S32:
    return plainOrNot<D, int32_t>(plain);
  case Type::U64:
    return plainOrNot<D, uint64_t>(plain);
  case Type::S64:
    return plainOrNot<D, int64_t>(plain);
  case Type::F16:
    return plainOrNot<D, Half>(plain);
  case Type::BF16:
    return plainOrNot<D, BFloat>(plain);
  case Type::F32:
    return plainOrNot<D, float>(plain);
  case Type::F64:
    return plainOrNot<D, double>(plain);
  default:
    return nullptr;
  }
}

Handler converter(Type to, Type type, bool plain) {
  switch (to) {
  case Type::U8:
    return from<uint8_t>(type, plain);
  case Type::S8:
    return from<int8_t>(type, plain);
  case Type::U16:
    return from<uint16_t>(type, plain);
  case Type::S16:
    return from<int16_t>(type, plain);
  case Type::U32:
    return from<uint32_t>(type, plain);
  case Type::S32:
    return from<int32_t>(type, plain);
  case Type::U64:
    return from<uint64_t>(type, plain);
  case Type::S64:
    return from<int64_t>(type, plain);
  case Type::F16:
    return from<Half>(type, plain);
  case Type::BF16:
    return from<BFloat>(type, plain);
  case Type::F32:
    return from<float>(type, plain);
  case Type::F64:
    return from<double>(type, plain);
  default:
    return nullptr;
  }
}

Mode takeMode(Statement &statement) {
  int integer = statement.takeOneOf({"rni", "rzi", "rmi", "rpi"});
  int plain = statement.takeOneOf({"rn", "rz", "rm", "rp"});
  Mode mode{};
  mode.toInteger = integer >= 0;
  mode.rounding = static_cast<Rounding>(std::max({integer, plain, 0}));
  mode.flush = statement.take("ftz");
  mode.saturate = statement.take("sat");
  mode.rectify = statement.take("relu");
  return mode;
}

/// f32 with a mantissa of 10 bits. Inst::width: 1 rounds ties away from zero, 0 to even; 2 is added for .relu.
void toTf32(Warp &warp, const Inst &inst, uint32_t mask) {
  auto *d = warp.at<uint32_t>(inst.op[0]);
  const auto *a = warp.at<uint32_t>(inst.op[1]);
  constexpr uint32_t kDropped = 13;
  eachLane(mask, [=](uint32_t lane) {
    uint32_t bits = a[lane];
    uint32_t half = (inst.width & 1) != 0 ? 1u << (kDropped - 1) : (1u << (kDropped - 1)) - 1 + (bits >> kDropped & 1);
    bool finite = (bits & 0x7f800000) != 0x7f800000;
    bits = finite ? (bits + half) & ~((1u << kDropped) - 1) : bits;
    bool negative = (inst.width & 2) != 0 && (bits >> 31) != 0 && (bits & 0x7fffffff) <= 0x7f800000;
    d[lane] = negative ? 0 : bits;
  });
}

void decodeToTf32(Decoder &decoder, Statement &statement) {
  int ties = statement.takeOneOf({"rn", "rna"});
  if (ties < 0 || statement.type() != Type::F32)
    statement.refuse("the emulation does not have this conversion");
  statement.take("satfinite");
  Inst &inst = emitSame(decoder, statement, Type::F32, toTf32, 1);
  inst.width = static_cast<uint8_t>(ties | (statement.take("relu") ? 2 : 0));
}

/// Two integers that saturate to fewer bits, the first one above, and what is above them from the third operand.
template <class T> void packIntegers(Warp &warp, const Inst &inst, uint32_t mask) {
  auto *d = warp.at<uint32_t>(inst.op[0]);
  const auto *a = warp.at<int32_t>(inst.op[1]);
  const auto *b = warp.at<int32_t>(inst.op[2]);
  const auto *c = warp.at<uint32_t>(inst.op[3]);
  eachLane(mask, [=](uint32_t lane) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    auto bits = [](int32_t value) {
      auto clamped = std::clamp<int32_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
      return static_cast<uint32_t>(static_cast<std::make_unsigned_t<T>>(clamped));
    };
    d[lane] = (kBits == 8 ? c[lane] << 16 : 0) | bits(a[lane]) << kBits | bits(b[lane]);
  });
}

} // namespace

void decodeConvertPack(Decoder &decoder, Statement &statement) {
  statement.take("sat");
  Type to = statement.type();
  statement.type();
  bool third = statement.takeType().has_value();
  statement.expectOperands(third ? 4 : 3);
  Handler handler = to == Type::S16   ? packIntegers<int16_t>
                    : to == Type::U16 ? packIntegers<uint16_t>
                    : to == Type::S8  ? packIntegers<int8_t>
                    : to == Type::U8  ? packIntegers<uint8_t>
                                      : nullptr;
  if (handler == nullptr)
    statement.refuse("the emulation does not have this conversion");
  Inst &inst = decoder.emit(handler);
  inst.op[0] = decoder.destination(statement.operands[0], Type::B32);
  inst.op[1] = decoder.source(statement.operands[1], Type::S32);
  inst.op[2] = decoder.source(statement.operands[2], Type::S32);
  inst.op[3] = third ? decoder.source(statement.operands[3], Type::B32) : decoder.constant(0, 4);
}

void decodeConvert(Decoder &decoder, Statement &statement) {
  if (statement.take("pack")) {
    decodeConvertPack(decoder, statement);
    return;
  }
  Type to = statement.type();
  if (to == Type::TF32) {
    decodeToTf32(decoder, statement);
    return;
  }
  Type type = statement.type();
  if (decodeConvertPairs(decoder, statement, to, type))
    return;
  Mode mode = takeMode(statement);
  statement.expectOperands(2);
  unsigned fromBytes = 0;
  unsigned toBytes = 0;
  uint32_t d = decoder.wideDestination(statement.operands[0], to, toBytes);
  uint32_t a = decoder.wideSource(statement.operands[1], type, fromBytes);
  if (fromBytes < bytesOf(type) || toBytes < bytesOf(to))
    statement.refuse("a register with fewer bits than the type");
  bool plain = mode.pack() == 0 && fromBytes == bytesOf(type) && toBytes == bytesOf(to);
  Handler handler = converter(to, type, plain);
  if (handler == nullptr)
    statement.refuse("the emulation does not have this conversion");
  Inst &inst = decoder.emit(handler);
  inst.op = {d, a, fromBytes, toBytes};
  inst.target = mode.pack();
}

} // namespace hone::emulation
