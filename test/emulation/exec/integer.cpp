// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic of integers.

#include "exec/families.h"
#include "exec/lanes.h"

#include <algorithm>
#include <limits>

namespace hone::emulation {
namespace {

template <class T> using Unsigned = std::make_unsigned_t<T>;
/// A type of twice the bits.
template <class T>
using Twice =
    std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                       std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                                          std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

// All of these wrap around, as unsigned arithmetic does.
template <class T> T wrapped(uint64_t value) { return static_cast<T>(value); }

struct Add {
  template <class T> static T apply(T a, T b) {
    return wrapped<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct Sub {
  template <class T> static T apply(T a, T b) {
    return wrapped<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};
template <class T> T clamped(int64_t value) {
  return static_cast<T>(std::clamp<int64_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}
struct AddSaturated {
  template <class T> static T apply(T a, T b) { return clamped<T>(static_cast<int64_t>(a) + b); }
};
struct SubSaturated {
  template <class T> static T apply(T a, T b) { return clamped<T>(static_cast<int64_t>(a) - b); }
};
struct MulLow {
  template <class T> static T apply(T a, T b) {
    return wrapped<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
struct MulHigh {
  template <class T> static T apply(T a, T b) {
    return static_cast<T>(static_cast<Twice<T>>(a) * b >> (8 * sizeof(T)));
  }
};
struct MadLow {
  template <class T> static T apply(T a, T b, T c) { return Add::apply(MulLow::apply(a, b), c); }
};
struct MadHigh {
  template <class T> static T apply(T a, T b, T c) { return Add::apply(MulHigh::apply(a, b), c); }
};
struct MadHighSaturated {
  static int32_t apply(int32_t a, int32_t b, int32_t c) { return AddSaturated::apply(MulHigh::apply(a, b), c); }
};
struct MulWide {
  template <class T> static Twice<T> apply(T a, T b) { return static_cast<Twice<T>>(a) * b; }
};
struct MadWide {
  template <class T> static Twice<T> apply(T a, T b, Twice<T> c) { return Add::apply(MulWide::apply(a, b), c); }
};
/// Division by zero and overflow have no defined result; on a device they have all ones, and do not trap.
struct Div {
  template <class T> static T apply(T a, T b) {
    if (b == 0)
      return static_cast<T>(~T{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return Sub::apply(T{0}, a);
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T> static T apply(T a, T b) {
    if (b == 0)
      return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return 0;
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T> static T apply(T a, T b) { return std::min(a, b); }
};
struct Max {
  template <class T> static T apply(T a, T b) { return std::max(a, b); }
};
struct Neg {
  template <class T> static T apply(T a) { return Sub::apply(T{0}, a); }
};
struct Abs {
  template <class T> static T apply(T a) { return a < 0 ? Sub::apply(T{0}, a) : a; }
};
struct Sad {
  template <class T> static T apply(T a, T b, T c) {
    return Add::apply(c, a < b ? Sub::apply(b, a) : Sub::apply(a, b));
  }
};
/// Negative results become 0.
template <class F> struct Rectified {
  template <class T> static T apply(T a, T b) { return std::max(F::apply(a, b), T{0}); }
};

template <class F> Handler binaryOf(Type type) {
  switch (type) {
  case Type::U16:
    return binaryLanes<F, uint16_t>;
  case Type::S16:
    return binaryLanes<F, int16_t>;
  case Type::U32:
    return binaryLanes<F, uint32_t>;
  case Type::S32:
    return binaryLanes<F, int32_t>;
  case Type::U64:
    return binaryLanes<F, uint64_t>;
  case Type::S64:
    return binaryLanes<F, int64_t>;
  default:
    return nullptr;
  }
}

template <class F> Handler ternaryOf(Type type) {
  switch (type) {
  case Type::U16:
    return ternaryLanes<F, uint16_t>;
  case Type::S16:
    return ternaryLanes<F, int16_t>;
  case Type::U32:
    return ternaryLanes<F, uint32_t>;
  case Type::S32:
    return ternaryLanes<F, int32_t>;
  case Type::U64:
    return ternaryLanes<F, uint64_t>;
  case Type::S64:
    return ternaryLanes<F, int64_t>;
  default:
    return nullptr;
  }
}

template <class F> Handler signedUnaryOf(Type type) {
  switch (type) {
  case Type::S16:
    return unaryLanes<F, int16_t>;
  case Type::S32:
    return unaryLanes<F, int32_t>;
  case Type::S64:
    return unaryLanes<F, int64_t>;
  default:
    return nullptr;
  }
}

Handler mulWideOf(Type type) {
  switch (type) {
  case Type::U16:
    return binaryLanes<MulWide, uint32_t, uint16_t>;
  case Type::S16:
    return binaryLanes<MulWide, int32_t, int16_t>;
  case Type::U32:
    return binaryLanes<MulWide, uint64_t, uint32_t>;
  case Type::S32:
    return binaryLanes<MulWide, int64_t, int32_t>;
  default:
    return nullptr;
  }
}

Handler madWideOf(Type type) {
  switch (type) {
  case Type::U16:
    return ternaryLanes<MadWide, uint32_t, uint16_t, uint32_t>;
  case Type::S16:
    return ternaryLanes<MadWide, int32_t, int16_t, int32_t>;
  case Type::U32:
    return ternaryLanes<MadWide, uint64_t, uint32_t, uint64_t>;
  case Type::S32:
    return ternaryLanes<MadWide, int64_t, int32_t, int64_t>;
  default:
    return nullptr;
  }
}

void decodeWide(Decoder &decoder, Statement &statement, Type type, bool adds) {
  statement.expectOperands(adds ? 4 : 3);
  Handler handler = adds ? madWideOf(type) : mulWideOf(type);
  if (handler == nullptr)
    statement.refuse("no wide product of this type");
  Type wide = bytesOf(type) == 2 ? Type::B32 : Type::B64;
  Inst &inst = decoder.emit(handler);
  inst.op[0] = decoder.destination(statement.operands[0], wide);
  inst.op[1] = decoder.source(statement.operands[1], type);
  inst.op[2] = decoder.source(statement.operands[2], type);
  if (adds)
    inst.op[3] = decoder.source(statement.operands[3], wide);
}

void decodeProduct(Decoder &decoder, Statement &statement, Type type) {
  bool adds = statement.root == "mad";
  int part = statement.takeOneOf({"lo", "hi", "wide"});
  if (part == 2) {
    decodeWide(decoder, statement, type, adds);
    return;
  }
  bool saturates = statement.take("sat");
  if (part < 0 || (saturates && !(adds && part == 1 && type == Type::S32)))
    statement.refuse("a product of another kind");
  Handler handler = nullptr;
  if (saturates)
    handler = ternaryLanes<MadHighSaturated, int32_t>;
  else if (adds)
    handler = part == 0 ? ternaryOf<MadLow>(type) : ternaryOf<MadHigh>(type);
  else
    handler = part == 0 ? binaryOf<MulLow>(type) : binaryOf<MulHigh>(type);
  emitSame(decoder, statement, type, handler, adds ? 3 : 2);
}

Handler pairsOf(std::string_view root, bool isSigned, bool rectified) {
  if (root == "add")
    return isSigned ? binaryPairs<Add, int16_t> : binaryPairs<Add, uint16_t>;
  if (root == "min" && rectified)
    return isSigned ? binaryPairs<Rectified<Min>, int16_t> : nullptr;
  if (root == "max" && rectified)
    return isSigned ? binaryPairs<Rectified<Max>, int16_t> : nullptr;
  if (root == "min")
    return isSigned ? binaryPairs<Min, int16_t> : binaryPairs<Min, uint16_t>;
  if (root == "max")
    return isSigned ? binaryPairs<Max, int16_t> : binaryPairs<Max, uint16_t>;
  return nullptr;
}

template <class A, class B> struct Dot4 {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    for (int i = 0; i < 4; ++i)
      c += static_cast<uint32_t>(static_cast<int32_t>(static_cast<A>(a >> 8 * i)) * static_cast<B>(b >> 8 * i));
    return c;
  }
};
template <class A, class B, int First> struct Dot2 {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    using Word = std::conditional_t<std::is_signed_v<A>, int16_t, uint16_t>;
    for (int i = 0; i < 2; ++i)
      c += static_cast<uint32_t>(static_cast<int32_t>(static_cast<Word>(a >> 16 * i)) *
                                 static_cast<B>(b >> 8 * (First + i)));
    return c;
  }
};

template <class A, class B> Handler dotOf(int kind) {
  if (kind == 0)
    return ternaryLanes<Dot4<A, B>, uint32_t>;
  return kind == 1 ? ternaryLanes<Dot2<A, B, 0>, uint32_t> : ternaryLanes<Dot2<A, B, 2>, uint32_t>;
}

} // namespace

void decodeIntegerArithmetic(Decoder &decoder, Statement &statement, Type type) {
  std::string_view root = statement.root;
  if (root == "mul" || root == "mad") {
    decodeProduct(decoder, statement, type);
    return;
  }
  bool saturates = statement.take("sat");
  bool rectified = statement.take("relu");
  if ((saturates && type != Type::S32) || (rectified && (type != Type::S32 || (root != "min" && root != "max"))))
    statement.refuse("a modifier that the type does not have");
  Handler handler = nullptr;
  unsigned sources = 2;
  if (root == "add")
    handler = saturates ? binaryLanes<AddSaturated, int32_t> : binaryOf<Add>(type);
  else if (root == "sub")
    handler = saturates ? binaryLanes<SubSaturated, int32_t> : binaryOf<Sub>(type);
  else if (root == "div")
    handler = binaryOf<Div>(type);
  else if (root == "rem")
    handler = binaryOf<Rem>(type);
  else if (root == "min")
    handler = rectified ? binaryLanes<Rectified<Min>, int32_t> : binaryOf<Min>(type);
  else if (root == "max")
    handler = rectified ? binaryLanes<Rectified<Max>, int32_t> : binaryOf<Max>(type);
  else if (root == "sad")
    handler = ternaryOf<Sad>(type), sources = 3;
  else if (root == "neg")
    handler = signedUnaryOf<Neg>(type), sources = 1;
  else if (root == "abs")
    handler = signedUnaryOf<Abs>(type), sources = 1;
  emitSame(decoder, statement, type, handler, sources);
}

void decodePackedIntegers(Decoder &decoder, Statement &statement, Type type) {
  Handler handler = pairsOf(statement.root, type == Type::S16x2, statement.take("relu"));
  emitSame(decoder, statement, type, handler, 2);
}

void decodeDotProduct(Decoder &decoder, Statement &statement) {
  int kind = 0;
  if (statement.root == "dp2a") {
    int half = statement.takeOneOf({"lo", "hi"});
    if (half < 0)
      statement.refuse("neither lo nor hi");
    kind = 1 + half;
  }
  bool a = isSigned(statement.type());
  bool b = isSigned(statement.type());
  Handler handler = a ? (b ? dotOf<int8_t, int8_t>(kind) : dotOf<int8_t, uint8_t>(kind))
                      : (b ? dotOf<uint8_t, int8_t>(kind) : dotOf<uint8_t, uint8_t>(kind));
  emitSame(decoder, statement, Type::B32, handler, 3);
}

} // namespace hone::emulation
