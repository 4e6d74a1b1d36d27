// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions in which the lanes of a warp exchange values. Those that name their members wait until all of them have come.

#include "exec/families.h"
#include "exec/lanes.h"

#include <algorithm>

namespace hone::emulation {
namespace {

enum class Shuffle : uint8_t { Up, Down, Butterfly, Index };

/// Takes the members' mask from operand `at` and waits for them; false where they have not all come yet.
bool gather(Warp &warp, const Inst &inst, unsigned at, uint32_t &mask) {
  if (mask == 0) {
    warp.advance();
    return false;
  }
  return warp.gather(warp.at<uint32_t>(inst.op[at])[firstLane(mask)], mask);
}

/// The lane that a lane reads, and whether it lies in the lane's segment. The formulas are those of the PTX ISA, "shfl.sync".
std::pair<uint32_t, bool> partner(Shuffle kind, uint32_t lane, uint32_t b, uint32_t c) {
  uint32_t segment = c >> 8 & 31;
  auto most = static_cast<int>((lane & segment) | (c & 31 & ~segment));
  auto at = static_cast<int>(lane);
  auto by = static_cast<int>(b & 31);
  int from = 0;
  switch (kind) {
  case Shuffle::Up:
    from = at - by;
    break;
  case Shuffle::Down:
    from = at + by;
    break;
  case Shuffle::Butterfly:
    from = at ^ by;
    break;
  case Shuffle::Index:
    from = static_cast<int>((lane & segment) | (b & 31 & ~segment));
    break;
  }
  bool inside = kind == Shuffle::Up ? from >= most : from <= most;
  return {static_cast<uint32_t>(inside ? from : at), inside};
}

// Operands: result, a, b, c, members; list[0] is the predicate.
void shuffle(Warp &warp, const Inst &inst, uint32_t mask) {
  if (!gather(warp, inst, 4, mask))
    return;
  auto *d = warp.at<uint32_t>(inst.op[0]);
  const auto *a = warp.at<uint32_t>(inst.op[1]);
  const auto *b = warp.at<uint32_t>(inst.op[2]);
  const auto *c = warp.at<uint32_t>(inst.op[3]);
  uint32_t values[kLanes];
  uint32_t insides = 0;
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    uint32_t lane = firstLane(lanes);
    auto [from, inside] = partner(static_cast<Shuffle>(inst.width), lane, b[lane], c[lane]);
    // What a lane reads from one that does not take part has no meaning: NaN shows it.
    values[lane] = (mask >> from & 1) != 0 ? a[from] : kAllLanes;
    insides |= static_cast<uint32_t>(inside) << lane;
  }
  eachLane(mask, [&](uint32_t lane) { d[lane] = values[lane]; });
  if (inst.count != 0)
    warp.setMask(inst.list[0], mask, insides);
  warp.advance();
}

enum class Vote : uint8_t { All, Any, Uniform, Ballot };

// Operands: result, predicate, members; Inst::immediate flips the predicate.
void vote(Warp &warp, const Inst &inst, uint32_t mask) {
  if (!gather(warp, inst, 2, mask))
    return;
  uint32_t holds = (warp.maskAt(inst.op[1]) ^ static_cast<uint32_t>(inst.immediate)) & mask;
  switch (static_cast<Vote>(inst.width)) {
  case Vote::All:
    warp.setMask(inst.op[0], mask, holds == mask ? kAllLanes : 0);
    break;
  case Vote::Any:
    warp.setMask(inst.op[0], mask, holds != 0 ? kAllLanes : 0);
    break;
  case Vote::Uniform:
    warp.setMask(inst.op[0], mask, holds == 0 || holds == mask ? kAllLanes : 0);
    break;
  case Vote::Ballot: {
    auto *d = warp.at<uint32_t>(inst.op[0]);
    eachLane(mask, [=](uint32_t lane) { d[lane] = holds; });
    break;
  }
  }
  warp.advance();
}

void activeMask(Warp &warp, const Inst &inst, uint32_t mask) {
  auto *d = warp.at<uint32_t>(inst.op[0]);
  eachLane(mask, [=](uint32_t lane) { d[lane] = mask; });
}

// Operands: result, value, members; list[0] is the predicate of match.all.
template <class T, bool All> void match(Warp &warp, const Inst &inst, uint32_t mask) {
  if (!gather(warp, inst, 2, mask))
    return;
  auto *d = warp.at<uint32_t>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  uint32_t results[kLanes];
  uint32_t same = 0;
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    uint32_t lane = firstLane(lanes);
    same = 0;
    for (uint32_t others = mask; others != 0; others &= others - 1)
      same |= static_cast<uint32_t>(a[firstLane(others)] == a[lane]) << firstLane(others);
    results[lane] = same;
  }
  // If all are the same as the last one, all are the same.
  bool all = same == mask;
  eachLane(mask, [&](uint32_t lane) { d[lane] = All ? (all ? mask : 0) : results[lane]; });
  if (inst.count != 0)
    warp.setMask(inst.list[0], mask, all ? kAllLanes : 0);
  warp.advance();
}

struct Add {
  template <class T> static T of(T a, T b) { return a + b; }
};
struct Min {
  template <class T> static T of(T a, T b) { return std::min(a, b); }
};
struct Max {
  template <class T> static T of(T a, T b) { return std::max(a, b); }
};
struct And {
  template <class T> static T of(T a, T b) { return a & b; }
};
struct Or {
  template <class T> static T of(T a, T b) { return a | b; }
};
struct Xor {
  template <class T> static T of(T a, T b) { return a ^ b; }
};

// Operands: result, value, members.
template <class F, class T> void reduce(Warp &warp, const Inst &inst, uint32_t mask) {
  if (!gather(warp, inst, 2, mask))
    return;
  const T *a = warp.at<T>(inst.op[1]);
  T sum = a[firstLane(mask)];
  for (uint32_t lanes = mask & (mask - 1); lanes != 0; lanes &= lanes - 1)
    sum = F::of(sum, a[firstLane(lanes)]);
  T *d = warp.at<T>(inst.op[0]);
  eachLane(mask, [=](uint32_t lane) { d[lane] = sum; });
  warp.advance();
}

// Operands: the elected lane, the predicate, members.
void elect(Warp &warp, const Inst &inst, uint32_t mask) {
  if (!gather(warp, inst, 2, mask))
    return;
  uint32_t leader = firstLane(mask);
  auto *d = warp.at<uint32_t>(inst.op[0]);
  eachLane(mask, [=](uint32_t lane) { d[lane] = leader; });
  warp.setMask(inst.op[1], mask, 1u << leader);
  warp.advance();
}

/// Takes a result that may come with a predicate: d|p.
void decodeResult(Decoder &decoder, Statement &statement, Inst &inst) {
  const Operand &result = statement.operands[0];
  bool two = result.kind == Operand::Kind::Pair;
  inst.op[0] = decoder.destination(two ? result.elements[0] : result, Type::B32);
  if (!two)
    return;
  inst.list = decoder.list({decoder.destination(result.elements[1], Type::Pred)});
  inst.count = 1;
}

Inst &emitGathered(Decoder &decoder, Handler handler) {
  Inst &inst = decoder.emit(handler);
  inst.control = true;
  return inst;
}

} // namespace

void decodeShuffle(Decoder &decoder, Statement &statement) {
  int kind = statement.takeOneOf({"up", "down", "bfly", "idx"});
  statement.type();
  statement.expectOperands(5);
  if (!statement.take("sync") || kind < 0)
    statement.refuse("a shuffle of another kind");
  Inst &inst = emitGathered(decoder, shuffle);
  inst.width = static_cast<uint8_t>(kind);
  decodeResult(decoder, statement, inst);
  for (unsigned i = 1; i < 5; ++i)
    inst.op[i] = decoder.source(statement.operands[i], Type::B32);
}

void decodeVote(Decoder &decoder, Statement &statement) {
  int kind = statement.takeOneOf({"all", "any", "uni", "ballot"});
  Type type = statement.type();
  statement.expectOperands(3);
  if (!statement.take("sync") || kind < 0)
    statement.refuse("a vote of another kind");
  Inst &inst = emitGathered(decoder, vote);
  inst.width = static_cast<uint8_t>(kind);
  inst.op[0] = decoder.destination(statement.operands[0], type);
  uint32_t flip = 0;
  inst.op[1] = decoder.predicate(statement.operands[1], flip);
  inst.immediate = flip;
  inst.op[2] = decoder.source(statement.operands[2], Type::B32);
}

void decodeActiveMask(Decoder &decoder, Statement &statement) {
  statement.expectOperands(1);
  decoder.emit(activeMask).op[0] = decoder.destination(statement.operands[0], statement.type());
}

void decodeMatch(Decoder &decoder, Statement &statement) {
  bool all = statement.takeOneOf({"any", "all"}) == 1;
  bool wide = bytesOf(statement.type()) == 8;
  statement.take("sync");
  statement.expectOperands(3);
  Handler handler = wide ? (all ? match<uint64_t, true> : match<uint64_t, false>)
                         : (all ? match<uint32_t, true> : match<uint32_t, false>);
  Inst &inst = emitGathered(decoder, handler);
  decodeResult(decoder, statement, inst);
  inst.op[1] = decoder.source(statement.operands[1], wide ? Type::B64 : Type::B32);
  inst.op[2] = decoder.source(statement.operands[2], Type::B32);
}

void decodeReduce(Decoder &decoder, Statement &statement) {
  int kind = statement.takeOneOf({"add", "min", "max", "and", "or", "xor"});
  bool negative = isSigned(statement.type());
  statement.take("sync");
  statement.expectOperands(3);
  Handler handler = nullptr;
  switch (kind) {
  case 0:
    handler = reduce<Add, uint32_t>;
    break;
  case 1:
    handler = negative ? reduce<Min, int32_t> : reduce<Min, uint32_t>;
    break;
  case 2:
    handler = negative ? reduce<Max, int32_t> : reduce<Max, uint32_t>;
    break;
  case 3:
    handler = reduce<And, uint32_t>;
    break;
  case 4:
    handler = reduce<Or, uint32_t>;
    break;
  case 5:
    handler = reduce<Xor, uint32_t>;
    break;
  default:
    statement.refuse("a reduction of another kind");
  }
  Inst &inst = emitGathered(decoder, handler);
  inst.op[0] = decoder.destination(statement.operands[0], Type::B32);
  inst.op[1] = decoder.source(statement.operands[1], Type::B32);
  inst.op[2] = decoder.source(statement.operands[2], Type::B32);
}

void decodeElect(Decoder &decoder, Statement &statement) {
  statement.take("sync");
  statement.expectOperands(2);
  const Operand &result = statement.operands[0];
  if (result.kind != Operand::Kind::Pair)
    statement.refuse("no predicate");
  Inst &inst = emitGathered(decoder, elect);
  inst.op[0] = decoder.destination(result.elements[0], Type::B32);
  inst.op[1] = decoder.destination(result.elements[1], Type::Pred);
  inst.op[2] = decoder.source(statement.operands[1], Type::B32);
}

} // namespace hone::emulation
