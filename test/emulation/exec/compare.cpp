// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Comparisons: their results are predicates, or ones in a register.

#include "exec/families.h"
#include "exec/lanes.h"

#include <array>
#include <functional>

namespace hone::emulation {
namespace {

enum class Relation : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };

template <Relation R, class T> bool related(T first, T second) {
  auto a = widen(first);
  auto b = widen(second);
  bool unordered = a != a || b != b;
  switch (R) {
  case Relation::Eq:
    return a == b;
  case Relation::Ne:
    return !unordered && a != b;
  case Relation::Lt:
    return a < b;
  case Relation::Le:
    return a <= b;
  case Relation::Gt:
    return a > b;
  case Relation::Ge:
    return a >= b;
  case Relation::Equ:
    return unordered || a == b;
  case Relation::Neu:
    return unordered || a != b;
  case Relation::Ltu:
    return unordered || a < b;
  case Relation::Leu:
    return unordered || a <= b;
  case Relation::Gtu:
    return unordered || a > b;
  case Relation::Geu:
    return unordered || a >= b;
  case Relation::Num:
    return !unordered;
  case Relation::Nan:
    return unordered;
  }
  return false;
}

template <Relation R, class T> struct Related {
  static bool apply(T a, T b) { return related<R>(a, b); }
};

/// One bit for each of eight bytes that are 0 or 1.
uint32_t gather(const uint8_t *bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return static_cast<uint32_t>(word * 0x0102040810204080u >> 56);
}

/// The relation in all lanes, as a mask. Elements lie `stride` apart, from `first` on.
using Comparison = uint32_t (*)(Warp &, const Inst &);

template <Relation R, class T, bool Flush> uint32_t compareLanes(Warp &warp, const Inst &inst) {
  const T *a = warp.at<T>(inst.op[2]);
  const T *b = warp.at<T>(inst.op[3]);
  alignas(32) uint8_t hits[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    hits[lane] =
        Flush ? Related<R, T>::apply(flushed(a[lane]), flushed(b[lane])) : Related<R, T>::apply(a[lane], b[lane]);
  return gather(hits) | gather(hits + 8) << 8 | gather(hits + 16) << 16 | gather(hits + 24) << 24;
}

/// Of pairs: the lower (0) or the upper element.
template <Relation R, class T, int Element> uint32_t comparePairs(Warp &warp, const Inst &inst) {
  const T *a = warp.at<T>(inst.op[2]);
  const T *b = warp.at<T>(inst.op[3]);
  uint32_t result = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    result |= static_cast<uint32_t>(related<R>(a[2 * lane + Element], b[2 * lane + Element])) << lane;
  return result;
}

enum class Combination : uint8_t { None, And, Or, Xor };

uint32_t combine(Combination combination, uint32_t a, uint32_t b) {
  switch (combination) {
  case Combination::And:
    return a & b;
  case Combination::Or:
    return a | b;
  case Combination::Xor:
    return a ^ b;
  default:
    return a;
  }
}

// Operands: results p and q, then a and b, then the predicate that they are combined with. Inst::immediate flips that; Inst::width says how.
template <Comparison Compare> void setPredicates(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t holds = Compare(warp, inst);
  auto how = static_cast<Combination>(inst.width);
  uint32_t other = warp.maskAt(inst.op[4]) ^ static_cast<uint32_t>(inst.immediate);
  if (inst.op[1] != 0)
    warp.setMask(inst.op[1], mask, combine(how, ~holds, other));
  warp.setMask(inst.op[0], mask, combine(how, holds, other));
}

template <class T, Relation R> void setPairs(Warp &warp, const Inst &inst, uint32_t mask) {
  auto how = static_cast<Combination>(inst.width);
  uint32_t other = warp.maskAt(inst.op[4]) ^ static_cast<uint32_t>(inst.immediate);
  uint32_t upper = comparePairs<R, T, 1>(warp, inst);
  warp.setMask(inst.op[0], mask, combine(how, comparePairs<R, T, 0>(warp, inst), other));
  warp.setMask(inst.op[1], mask, combine(how, upper, other));
}

/// Writes what stands for true, Inst::target, or 0.
template <Comparison Compare, class D> void setLanes(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t other = warp.maskAt(inst.op[4]) ^ static_cast<uint32_t>(inst.immediate);
  uint32_t holds = combine(static_cast<Combination>(inst.width), Compare(warp, inst), other);
  D *d = warp.at<D>(inst.op[0]);
  auto yes = static_cast<D>(inst.target);
  eachLane(mask, [=](uint32_t lane) { d[lane] = (holds >> lane & 1) != 0 ? yes : D{0}; });
}

template <Relation R, class T> void setHalves(Warp &warp, const Inst &inst, uint32_t mask) {
  auto *d = warp.at<uint16_t>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[2]);
  const T *b = warp.at<T>(inst.op[3]);
  auto yes = static_cast<uint16_t>(inst.target);
  eachHalf(mask, [=](uint32_t i) { d[i] = related<R>(a[i], b[i]) ? yes : 0; });
}

/// How results are written: predicates, or a register of 16 or 32 bits.
enum class Form : uint8_t { Predicates, Word16, Word32 };

template <Comparison Compare> Handler inForm(Form form) {
  switch (form) {
  case Form::Predicates:
    return setPredicates<Compare>;
  case Form::Word16:
    return setLanes<Compare, uint16_t>;
  case Form::Word32:
    return setLanes<Compare, uint32_t>;
  }
  return nullptr;
}

template <Relation R> Handler integersOf(Type type, Form form) {
  bool negative = isSigned(type);
  switch (bytesOf(type)) {
  case 2:
    return negative ? inForm<compareLanes<R, int16_t, false>>(form) : inForm<compareLanes<R, uint16_t, false>>(form);
  case 4:
    return negative ? inForm<compareLanes<R, int32_t, false>>(form) : inForm<compareLanes<R, uint32_t, false>>(form);
  case 8:
    return negative ? inForm<compareLanes<R, int64_t, false>>(form) : inForm<compareLanes<R, uint64_t, false>>(form);
  default:
    return nullptr;
  }
}

template <Relation R> Handler floatsOf(Type type, Form form, bool flush) {
  switch (type) {
  case Type::F32:
    return flush ? inForm<compareLanes<R, float, true>>(form) : inForm<compareLanes<R, float, false>>(form);
  case Type::F64:
    return inForm<compareLanes<R, double, false>>(form);
  case Type::F16:
    return inForm<compareLanes<R, Half, false>>(form);
  case Type::BF16:
    return inForm<compareLanes<R, BFloat, false>>(form);
  case Type::F16x2:
    return form == Form::Predicates ? setPairs<Half, R> : setHalves<R, Half>;
  case Type::BF16x2:
    return form == Form::Predicates ? setPairs<BFloat, R> : setHalves<R, BFloat>;
  default:
    return nullptr;
  }
}

template <Relation R> Handler handlerOf(Type type, Form form, bool flush) {
  if constexpr (R <= Relation::Ge)
    if (isInteger(type))
      return integersOf<R>(type, form);
  return floatsOf<R>(type, form, flush);
}

/// The relations by their names; those of unsigned integers have names of their own.
Handler handlerFor(int relation, Type type, Form form, bool flush) {
  using Choice = Handler (*)(Type, Form, bool);
  static constexpr std::array<Choice, 14> kChoices = {
      handlerOf<Relation::Eq>,  handlerOf<Relation::Ne>,  handlerOf<Relation::Lt>,  handlerOf<Relation::Le>,
      handlerOf<Relation::Gt>,  handlerOf<Relation::Ge>,  handlerOf<Relation::Equ>, handlerOf<Relation::Neu>,
      handlerOf<Relation::Ltu>, handlerOf<Relation::Leu>, handlerOf<Relation::Gtu>, handlerOf<Relation::Geu>,
      handlerOf<Relation::Num>, handlerOf<Relation::Nan>};
  return kChoices[static_cast<size_t>(relation)](type, form, flush);
}

int takeRelation(Statement &statement) {
  int relation =
      statement.takeOneOf({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  if (relation >= 0)
    return relation;
  int order = statement.takeOneOf({"lo", "ls", "hi", "hs"});
  if (order < 0)
    statement.refuse("a comparison of another kind");
  return static_cast<int>(Relation::Lt) + order;
}

/// The operands after the result, and the predicate that a comparison is combined with.
void decodeSources(Decoder &decoder, Statement &statement, Inst &inst, Type type) {
  int combination = statement.takeOneOf({"and", "or", "xor"});
  statement.expectOperands(combination < 0 ? 3 : 4);
  inst.width = static_cast<uint8_t>(combination + 1);
  inst.op[2] = decoder.source(statement.operands[1], type);
  inst.op[3] = decoder.source(statement.operands[2], type);
  inst.op[4] = specialSlot(kAlways);
  if (combination < 0)
    return;
  uint32_t flip = 0;
  inst.op[4] = decoder.predicate(statement.operands[3], flip);
  inst.immediate = flip;
}

} // namespace

void decodeCompare(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  bool flush = statement.take("ftz");
  Handler handler = handlerFor(takeRelation(statement), type, Form::Predicates, flush);
  if (handler == nullptr)
    statement.refuse("the emulation does not have it for this type");
  Inst &inst = decoder.emit(handler);
  decodeSources(decoder, statement, inst, type);
  const Operand &results = statement.operands[0];
  bool two = results.kind == Operand::Kind::Pair;
  inst.op[0] = decoder.destination(two ? results.elements[0] : results, Type::Pred);
  inst.op[1] = two ? decoder.destination(results.elements[1], Type::Pred) : 0;
  if (!two && (type == Type::F16x2 || type == Type::BF16x2))
    statement.refuse("one result for two numbers");
}

void decodeSet(Decoder &decoder, Statement &statement) {
  bool flush = statement.take("ftz");
  int relation = takeRelation(statement);
  Type to = statement.type();
  std::optional<Type> from = statement.takeType();
  if (!from)
    statement.refuse("no type of its operands");
  bool packed = *from == Type::F16x2 || *from == Type::BF16x2;
  Form form = bytesOf(to) == 2 ? Form::Word16 : Form::Word32;
  Handler handler = bytesOf(to) > 4 ? nullptr : handlerFor(relation, *from, form, flush);
  if (handler == nullptr)
    statement.refuse("the emulation does not have it for this type");
  Inst &inst = decoder.emit(handler);
  decodeSources(decoder, statement, inst, *from);
  if (packed && inst.width != 0)
    statement.refuse("a combination with a predicate");
  inst.op[0] = decoder.destination(statement.operands[0], to);
  // True is all ones as an integer, and 1 as a float.
  inst.target = to == Type::F32                          ? std::bit_cast<uint32_t>(1.0f)
                : to == Type::F16 || to == Type::F16x2   ? 0x3c00
                : to == Type::BF16 || to == Type::BF16x2 ? 0x3f80
                                                         : kAllLanes;
}

} // namespace hone::emulation
