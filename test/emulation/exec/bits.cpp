// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations on bits.

#include "exec/families.h"
#include "exec/lanes.h"

#include <algorithm>

namespace hone::emulation {
namespace {

struct And {
  template <class T> static T apply(T a, T b) { return a & b; }
};
struct Or {
  template <class T> static T apply(T a, T b) { return a | b; }
};
struct Xor {
  template <class T> static T apply(T a, T b) { return a ^ b; }
};
struct Not {
  template <class T> static T apply(T a) { return static_cast<T>(~a); }
};
struct LogicalNot {
  template <class T> static T apply(T a) { return a == 0; }
};

template <class F> Handler binaryBits(unsigned bytes) {
  return bytes == 2 ? binaryLanes<F, uint16_t> : bytes == 4 ? binaryLanes<F, uint32_t> : binaryLanes<F, uint64_t>;
}
template <class F> Handler unaryBits(unsigned bytes) {
  return bytes == 2 ? unaryLanes<F, uint16_t> : bytes == 4 ? unaryLanes<F, uint32_t> : unaryLanes<F, uint64_t>;
}

/// Predicates are masks: Inst::immediate holds what is flipped in the first (low word) and the second operand (high word).
template <class F> void predicates(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t a = warp.maskAt(inst.op[1]) ^ static_cast<uint32_t>(inst.immediate);
  uint32_t b = warp.maskAt(inst.op[2]) ^ static_cast<uint32_t>(inst.immediate >> 32);
  warp.setMask(inst.op[0], mask, F::apply(a, b));
}
struct NotFirst {
  static uint32_t apply(uint32_t a, uint32_t) { return ~a; }
};

void decodePredicates(Decoder &decoder, Statement &statement) {
  bool unary = statement.root == "not";
  statement.expectOperands(unary ? 2 : 3);
  Handler handler = unary                     ? predicates<NotFirst>
                    : statement.root == "and" ? predicates<And>
                    : statement.root == "or"  ? predicates<Or>
                                              : predicates<Xor>;
  uint32_t flipA = 0;
  uint32_t flipB = 0;
  Inst &inst = decoder.emit(handler);
  inst.op[0] = decoder.destination(statement.operands[0], Type::Pred);
  inst.op[1] = decoder.predicate(statement.operands[1], flipA);
  inst.op[2] = unary ? inst.op[1] : decoder.predicate(statement.operands[2], flipB);
  inst.immediate = static_cast<int64_t>(uint64_t{flipB} << 32 | flipA);
}

// Shifts by more than there are bits leave zeros or signs.
template <class T> void shiftLeft(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  const uint32_t *b = warp.at<uint32_t>(inst.op[2]);
  eachLane(mask, [=](uint32_t lane) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    d[lane] = b[lane] < kBits ? static_cast<T>(a[lane] << (b[lane] & (kBits - 1))) : T{0};
  });
}
template <class T> void shiftRight(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  const uint32_t *b = warp.at<uint32_t>(inst.op[2]);
  eachLane(mask, [=](uint32_t lane) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    uint32_t by = std::min(b[lane], kBits - 1);
    T last = std::is_signed_v<T> || b[lane] < kBits ? static_cast<T>(a[lane] >> by) : T{0};
    d[lane] = last;
  });
}

template <bool Left, bool Wrap> struct Funnel {
  static uint32_t apply(uint32_t low, uint32_t high, uint32_t by) {
    by = Wrap ? by & 31 : std::min(by, 32u);
    uint64_t both = uint64_t{high} << 32 | low;
    return static_cast<uint32_t>(Left ? both << by >> 32 : both >> by);
  }
};

/// Inst::immediate is the truth table: bit (a << 2 | b << 1 | c).
void lookup(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t *d = warp.at<uint32_t>(inst.op[0]);
  const uint32_t *a = warp.at<uint32_t>(inst.op[1]);
  const uint32_t *b = warp.at<uint32_t>(inst.op[2]);
  const uint32_t *c = warp.at<uint32_t>(inst.op[3]);
  uint32_t rows[8];
  for (int i = 0; i < 8; ++i)
    rows[i] = (inst.immediate >> i & 1) != 0 ? kAllLanes : 0;
  eachLane(mask, [=](uint32_t l) {
    uint32_t x = a[l];
    uint32_t y = b[l];
    uint32_t z = c[l];
    d[l] = (rows[0] & ~x & ~y & ~z) | (rows[1] & ~x & ~y & z) | (rows[2] & ~x & y & ~z) | (rows[3] & ~x & y & z) |
           (rows[4] & x & ~y & ~z) | (rows[5] & x & ~y & z) | (rows[6] & x & y & ~z) | (rows[7] & x & y & z);
  });
}

/// Fields: the position and the length are the low eight bits of their operands.
template <class T> struct Extract {
  static T apply(T a, uint32_t position, uint32_t length) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    using U = std::make_unsigned_t<T>;
    uint32_t at = position & 255;
    uint32_t count = length & 255;
    if (count == 0)
      return 0;
    U bits = at < kBits ? static_cast<U>(static_cast<U>(a) >> at) : U{0};
    U field = count < kBits ? bits & ((U{1} << count) - 1) : bits;
    uint32_t top = std::min(at + count - 1, kBits - 1);
    bool negative = std::is_signed_v<T> && (static_cast<U>(a) >> top & 1) != 0;
    // What lies above the field, or above the number, is its sign.
    uint32_t known = std::min(count, at < kBits ? kBits - at : 0);
    if (negative && known < kBits)
      field |= static_cast<U>(~U{0} << known);
    return static_cast<T>(field);
  }
};
template <class T> void extract(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  const uint32_t *b = warp.at<uint32_t>(inst.op[2]);
  const uint32_t *c = warp.at<uint32_t>(inst.op[3]);
  eachLane(mask, [=](uint32_t lane) { d[lane] = Extract<T>::apply(a[lane], b[lane], c[lane]); });
}
template <class T> void insert(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  const T *b = warp.at<T>(inst.op[2]);
  const uint32_t *c = warp.at<uint32_t>(inst.op[3]);
  const uint32_t *e = warp.at<uint32_t>(inst.op[4]);
  eachLane(mask, [=](uint32_t lane) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    uint32_t at = c[lane] & 255;
    uint32_t count = e[lane] & 255;
    T ones = count < kBits ? static_cast<T>((T{1} << count) - 1) : static_cast<T>(~T{0});
    T field = at < kBits ? static_cast<T>(ones << at) : T{0};
    T value = at < kBits ? static_cast<T>(a[lane] << at) : T{0};
    d[lane] = static_cast<T>((b[lane] & ~field) | (value & field));
  });
}
template <bool Wrap> struct FieldMask {
  static uint32_t apply(uint32_t at, uint32_t count) {
    if (Wrap)
      at &= 31, count &= 31;
    uint64_t ones = count < 32 ? (uint64_t{1} << count) - 1 : 0xffffffff;
    return at < 32 ? static_cast<uint32_t>(ones << at) : 0;
  }
};

template <class T> struct Reverse {
  static T apply(T a) {
    T result = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i)
      result = static_cast<T>(result << 1 | (a >> i & 1));
    return result;
  }
};
struct PopCount {
  template <class T> static uint32_t apply(T a) { return static_cast<uint32_t>(std::popcount(a)); }
};
struct LeadingZeros {
  template <class T> static uint32_t apply(T a) { return static_cast<uint32_t>(std::countl_zero(a)); }
};
/// The position of the highest bit that differs from the sign, or how far it has to be shifted; all ones where there is none.
template <class T, bool ShiftAmount> struct FindLead {
  static uint32_t apply(T a) {
    using U = std::make_unsigned_t<T>;
    auto bits = static_cast<U>(a < 0 ? ~a : a);
    if (bits == 0)
      return kAllLanes;
    auto zeros = static_cast<uint32_t>(std::countl_zero(bits));
    return ShiftAmount ? zeros : 8 * sizeof(T) - 1 - zeros;
  }
};
/// The offset-th set bit from the base on, upwards or downwards (offset below 0); all ones where there is none.
struct FindNth {
  static uint32_t apply(uint32_t bits, uint32_t base, int32_t offset) {
    if (offset == 0)
      return (bits >> (base & 31) & 1) != 0 ? base & 31 : kAllLanes;
    int step = offset > 0 ? 1 : -1;
    int left = offset > 0 ? offset : -offset;
    for (int at = static_cast<int>(base & 31); at >= 0 && at < 32; at += step)
      if ((bits >> at & 1) != 0 && --left == 0)
        return static_cast<uint32_t>(at);
    return kAllLanes;
  }
};

enum class Permutation : uint8_t { Any, Forward4, Backward4, Replicate8, EdgeLeft, EdgeRight, Replicate16 };

uint8_t selectorOf(Permutation mode, uint32_t selector, int i) {
  uint32_t s = selector & 3;
  switch (mode) {
  case Permutation::Any:
    return selector >> 4 * i & 15;
  case Permutation::Forward4:
    return static_cast<uint8_t>(s + i);
  case Permutation::Backward4:
    return static_cast<uint8_t>((8 + s - i) % 8);
  case Permutation::Replicate8:
    return static_cast<uint8_t>(s);
  case Permutation::EdgeLeft:
    return static_cast<uint8_t>(std::max<uint32_t>(s, i));
  case Permutation::EdgeRight:
    return static_cast<uint8_t>(std::min<uint32_t>(s, i));
  case Permutation::Replicate16:
    return static_cast<uint8_t>((s & 1) * 2 + (i & 1));
  }
  return 0;
}

void permute(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t *d = warp.at<uint32_t>(inst.op[0]);
  const uint32_t *a = warp.at<uint32_t>(inst.op[1]);
  const uint32_t *b = warp.at<uint32_t>(inst.op[2]);
  const uint32_t *c = warp.at<uint32_t>(inst.op[3]);
  auto mode = static_cast<Permutation>(inst.width);
  eachLane(mask, [=](uint32_t lane) {
    uint64_t bytes = uint64_t{b[lane]} << 32 | a[lane];
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
      uint8_t selector = selectorOf(mode, c[lane], i);
      auto byte = static_cast<uint8_t>(bytes >> 8 * (selector & 7));
      // The top bit of a selector asks for eight times the byte's sign.
      if (selector >= 8)
        byte = (byte & 0x80) != 0 ? 0xff : 0;
      result |= uint32_t{byte} << 8 * i;
    }
    d[lane] = result;
  });
}

void decodeInsert(Decoder &decoder, Statement &statement, Type type) {
  statement.expectOperands(5);
  Inst &inst = decoder.emit(bytesOf(type) == 4 ? insert<uint32_t> : insert<uint64_t>);
  for (unsigned i = 0; i < 3; ++i)
    inst.op[i] =
        i == 0 ? decoder.destination(statement.operands[0], type) : decoder.source(statement.operands[i], type);
  for (unsigned i = 3; i < 5; ++i)
    inst.op[i] = decoder.source(statement.operands[i], Type::U32);
}

void decodeExtract(Decoder &decoder, Statement &statement, Type type) {
  statement.expectOperands(4);
  Handler handler = type == Type::U32   ? extract<uint32_t>
                    : type == Type::S32 ? extract<int32_t>
                    : type == Type::U64 ? extract<uint64_t>
                                        : extract<int64_t>;
  Inst &inst = decoder.emit(handler);
  inst.op[0] = decoder.destination(statement.operands[0], type);
  inst.op[1] = decoder.source(statement.operands[1], type);
  inst.op[2] = decoder.source(statement.operands[2], Type::U32);
  inst.op[3] = decoder.source(statement.operands[3], Type::U32);
}

} // namespace

void decodeLogic(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  std::string_view root = statement.root;
  if (type == Type::Pred) {
    decodePredicates(decoder, statement);
    return;
  }
  unsigned bytes = bytesOf(type);
  if (bytes != 2 && bytes != 4 && bytes != 8)
    statement.refuse("the emulation does not have it for this type");
  Handler handler = root == "and"   ? binaryBits<And>(bytes)
                    : root == "or"  ? binaryBits<Or>(bytes)
                    : root == "xor" ? binaryBits<Xor>(bytes)
                    : root == "not" ? unaryBits<Not>(bytes)
                                    : unaryBits<LogicalNot>(bytes);
  emitSame(decoder, statement, type, handler, root == "not" || root == "cnot" ? 1 : 2);
}

void decodeShift(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  statement.expectOperands(3);
  bool negative = isSigned(type);
  Handler handler = nullptr;
  if (statement.root == "shl")
    handler = bytesOf(type) == 2 ? shiftLeft<uint16_t> : bytesOf(type) == 4 ? shiftLeft<uint32_t> : shiftLeft<uint64_t>;
  else if (bytesOf(type) == 2)
    handler = negative ? shiftRight<int16_t> : shiftRight<uint16_t>;
  else if (bytesOf(type) == 4)
    handler = negative ? shiftRight<int32_t> : shiftRight<uint32_t>;
  else
    handler = negative ? shiftRight<int64_t> : shiftRight<uint64_t>;
  Inst &inst = decoder.emit(handler);
  inst.op[0] = decoder.destination(statement.operands[0], type);
  inst.op[1] = decoder.source(statement.operands[1], type);
  inst.op[2] = decoder.source(statement.operands[2], Type::U32);
}

void decodeFunnelShift(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  bool left = statement.takeOneOf({"r", "l"}) == 1;
  bool wrap = statement.takeOneOf({"clamp", "wrap"}) == 1;
  Handler handler =
      left ? (wrap ? ternaryLanes<Funnel<true, true>, uint32_t> : ternaryLanes<Funnel<true, false>, uint32_t>)
           : (wrap ? ternaryLanes<Funnel<false, true>, uint32_t> : ternaryLanes<Funnel<false, false>, uint32_t>);
  emitSame(decoder, statement, type, bytesOf(type) == 4 ? handler : nullptr, 3);
}

void decodeLookup(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  statement.expectOperands(5);
  if (statement.operands[4].kind != Operand::Kind::Integer)
    statement.refuse("a table that is not a number");
  auto table = static_cast<int64_t>(statement.operands[4].bits);
  statement.operands.pop_back();
  emitSame(decoder, statement, type, bytesOf(type) == 4 ? lookup : nullptr, 3).immediate = table;
}

void decodeField(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  if (bytesOf(type) != 4 && bytesOf(type) != 8)
    statement.refuse("the emulation does not have it for this type");
  if (statement.root == "bfi") {
    decodeInsert(decoder, statement, type);
  } else if (statement.root == "bfe") {
    decodeExtract(decoder, statement, type);
  } else if (statement.root == "bmsk") {
    bool wrap = statement.takeOneOf({"clamp", "wrap"}) == 1;
    emitSame(decoder, statement, type,
             wrap ? binaryLanes<FieldMask<true>, uint32_t> : binaryLanes<FieldMask<false>, uint32_t>, 2);
  } else {
    statement.refuse("the emulation does not have it");
  }
}

void decodeCount(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  std::string_view root = statement.root;
  bool wide = bytesOf(type) == 8;
  bool amount = statement.take("shiftamt");
  Handler handler = nullptr;
  if (root == "brev") {
    emitSame(decoder, statement, type,
             wide ? unaryLanes<Reverse<uint64_t>, uint64_t> : unaryLanes<Reverse<uint32_t>, uint32_t>, 1);
    return;
  }
  if (root == "fns") {
    statement.expectOperands(4);
    Inst &inst = decoder.emit(ternaryLanes<FindNth, uint32_t, uint32_t, int32_t>);
    inst.op[0] = decoder.destination(statement.operands[0], Type::U32);
    for (unsigned i = 1; i < 4; ++i)
      inst.op[i] = decoder.source(statement.operands[i], Type::U32);
    return;
  }
  if (root == "popc")
    handler = wide ? unaryLanes<PopCount, uint32_t, uint64_t> : unaryLanes<PopCount, uint32_t>;
  else if (root == "clz")
    handler = wide ? unaryLanes<LeadingZeros, uint32_t, uint64_t> : unaryLanes<LeadingZeros, uint32_t>;
  else if (isSigned(type))
    handler = wide ? (amount ? unaryLanes<FindLead<int64_t, true>, uint32_t, int64_t>
                             : unaryLanes<FindLead<int64_t, false>, uint32_t, int64_t>)
                   : (amount ? unaryLanes<FindLead<int32_t, true>, uint32_t, int32_t>
                             : unaryLanes<FindLead<int32_t, false>, uint32_t, int32_t>);
  else
    handler = wide ? (amount ? unaryLanes<FindLead<uint64_t, true>, uint32_t, uint64_t>
                             : unaryLanes<FindLead<uint64_t, false>, uint32_t, uint64_t>)
                   : (amount ? unaryLanes<FindLead<uint32_t, true>, uint32_t>
                             : unaryLanes<FindLead<uint32_t, false>, uint32_t>);
  statement.expectOperands(2);
  Inst &inst = decoder.emit(handler);
  inst.op[0] = decoder.destination(statement.operands[0], Type::U32);
  inst.op[1] = decoder.source(statement.operands[1], type);
}

void decodePermute(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  int mode = statement.takeOneOf({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  emitSame(decoder, statement, type, permute, 3).width = static_cast<uint8_t>(mode + 1);
}

} // namespace hone::emulation
