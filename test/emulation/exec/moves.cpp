// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moves, packing and unpacking, selection.

#include "exec/families.h"
#include "exec/lanes.h"

#include <chrono>

namespace hone::emulation {
namespace {

/// 128 bits.
struct Wide {
  uint64_t words[2];
};

template <class T> void move(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  eachLane(mask, [=](uint32_t lane) { d[lane] = a[lane]; });
}

Handler moveOf(unsigned bytes) {
  switch (bytes) {
  case 1:
    return move<uint8_t>;
  case 2:
    return move<uint16_t>;
  case 4:
    return move<uint32_t>;
  case 8:
    return move<uint64_t>;
  default:
    return move<Wide>;
  }
}

/// Inst::list are the parts, operand 0 is the whole, lowest part first.
template <class Part> void pack(Warp &warp, const Inst &inst, uint32_t mask) {
  auto *whole = warp.at<Part>(inst.op[0]);
  for (uint32_t i = 0; i < inst.count; ++i) {
    const Part *part = warp.at<Part>(inst.list[i]);
    uint32_t count = inst.count;
    eachLane(mask, [=](uint32_t lane) { whole[lane * count + i] = part[lane]; });
  }
}
template <class Part> void unpack(Warp &warp, const Inst &inst, uint32_t mask) {
  // A part may be the whole's register: what is read is read before anything is written.
  Part values[8][kLanes];
  const auto *whole = warp.at<Part>(inst.op[0]);
  uint32_t count = inst.count;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t i = 0; i < count; ++i)
      values[i][lane] = whole[lane * count + i];
  for (uint32_t i = 0; i < count; ++i) {
    Part *part = warp.at<Part>(inst.list[i]);
    const Part *from = values[i];
    eachLane(mask, [=](uint32_t lane) { part[lane] = from[lane]; });
  }
}

Type bitsOf(unsigned bytes) {
  switch (bytes) {
  case 1:
    return Type::B8;
  case 2:
    return Type::B16;
  case 4:
    return Type::B32;
  case 8:
    return Type::B64;
  default:
    return Type::B128;
  }
}

void decodeVector(Decoder &decoder, Statement &statement, Type type) {
  bool packs = statement.operands[1].kind == Operand::Kind::Vector;
  const std::vector<Operand> &parts = statement.operands[packs ? 1 : 0].elements;
  if (parts.empty() || parts.size() > 8 || bytesOf(type) % parts.size() != 0)
    statement.refuse("parts that are not equal");
  Type part = bitsOf(bytesOf(type) / static_cast<unsigned>(parts.size()));
  std::vector<uint32_t> slots;
  for (const Operand &operand : parts)
    slots.push_back(packs ? decoder.source(operand, part) : decoder.destination(operand, part));
  Handler handler = nullptr;
  switch (bytesOf(part)) {
  case 1:
    handler = packs ? pack<uint8_t> : unpack<uint8_t>;
    break;
  case 2:
    handler = packs ? pack<uint16_t> : unpack<uint16_t>;
    break;
  case 4:
    handler = packs ? pack<uint32_t> : unpack<uint32_t>;
    break;
  default:
    handler = packs ? pack<uint64_t> : unpack<uint64_t>;
    break;
  }
  Inst &inst = decoder.emit(handler);
  inst.op[0] = packs ? decoder.destination(statement.operands[0], type) : decoder.source(statement.operands[1], type);
  inst.count = static_cast<uint16_t>(slots.size());
  inst.list = decoder.list(std::move(slots));
}

void movePredicate(Warp &warp, const Inst &inst, uint32_t mask) {
  warp.setMask(inst.op[0], mask, warp.maskAt(inst.op[1]) ^ static_cast<uint32_t>(inst.immediate));
}

/// A clock that counts instructions of the warp: it never goes back, and it is the same in each run.
template <class T> void readClock(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  auto now = static_cast<T>(warp.executed);
  eachLane(mask, [=](uint32_t lane) { d[lane] = now; });
}

void readTimer(Warp &warp, const Inst &inst, uint32_t mask) {
  auto *d = warp.at<uint64_t>(inst.op[0]);
  auto now = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
  eachLane(mask, [=](uint32_t lane) { d[lane] = now; });
}

Handler clockNamed(std::string_view name) {
  if (name == "%clock" || name == "%clock_hi")
    return readClock<uint32_t>;
  if (name == "%clock64")
    return readClock<uint64_t>;
  return name == "%globaltimer" ? readTimer : nullptr;
}

template <class T> void select(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  const T *b = warp.at<T>(inst.op[2]);
  uint32_t which = warp.maskAt(inst.op[3]) ^ static_cast<uint32_t>(inst.immediate);
  eachLane(mask, [=](uint32_t lane) { d[lane] = (which >> lane & 1) != 0 ? a[lane] : b[lane]; });
}

template <class T, class C> void selectBySign(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  const T *b = warp.at<T>(inst.op[2]);
  const C *c = warp.at<C>(inst.op[3]);
  eachLane(mask, [=](uint32_t lane) { d[lane] = c[lane] >= 0 ? a[lane] : b[lane]; });
}

} // namespace

void decodeMove(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  statement.expectOperands(2);
  if (statement.operands[0].kind == Operand::Kind::Vector || statement.operands[1].kind == Operand::Kind::Vector) {
    decodeVector(decoder, statement, type);
    return;
  }
  if (type == Type::Pred) {
    uint32_t flip = 0;
    Inst &inst = decoder.emit(movePredicate);
    inst.op[0] = decoder.destination(statement.operands[0], type);
    inst.op[1] = decoder.predicate(statement.operands[1], flip);
    inst.immediate = flip;
    return;
  }
  if (Handler clock = clockNamed(statement.operands[1].name)) {
    decoder.emit(clock).op[0] = decoder.destination(statement.operands[0], type);
    return;
  }
  emitSame(decoder, statement, type, moveOf(bytesOf(type)), 1);
}

void decodeSelect(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  statement.expectOperands(4);
  unsigned bytes = bytesOf(type);
  Inst &inst = decoder.emit(bytes == 2 ? select<uint16_t> : bytes == 4 ? select<uint32_t> : select<uint64_t>);
  inst.op[0] = decoder.destination(statement.operands[0], type);
  inst.op[1] = decoder.source(statement.operands[1], type);
  inst.op[2] = decoder.source(statement.operands[2], type);
  uint32_t flip = 0;
  inst.op[3] = decoder.predicate(statement.operands[3], flip);
  inst.immediate = flip;
}

void decodeSelectBySign(Decoder &decoder, Statement &statement) {
  statement.take("ftz");
  Type type = statement.type();
  Type by = statement.type();
  statement.expectOperands(4);
  unsigned bytes = bytesOf(type);
  bool integer = by == Type::S32;
  Handler handler = bytes == 2   ? (integer ? selectBySign<uint16_t, int32_t> : selectBySign<uint16_t, float>)
                    : bytes == 4 ? (integer ? selectBySign<uint32_t, int32_t> : selectBySign<uint32_t, float>)
                                 : (integer ? selectBySign<uint64_t, int32_t> : selectBySign<uint64_t, float>);
  Inst &inst = decoder.emit(handler);
  inst.op[0] = decoder.destination(statement.operands[0], type);
  inst.op[1] = decoder.source(statement.operands[1], type);
  inst.op[2] = decoder.source(statement.operands[2], type);
  inst.op[3] = decoder.source(statement.operands[3], by);
}

} // namespace hone::emulation
