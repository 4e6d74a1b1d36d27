// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of small matrices: mma, and mma.sp with two of four numbers of A.

#include "exec/families.h"
#include "exec/fragments.h"
#include "exec/numbers.h"

#include <algorithm>
#include <array>
#include <limits>

namespace hone::emulation {
namespace {

/// Elements of 32 bits whose last 13 bits do not count.
struct Tf32 {
  uint32_t bits;
};
struct E4M3 {
  uint8_t bits;
};
struct E5M2 {
  uint8_t bits;
};

inline float valueOf(Half value) { return static_cast<float>(value); }
inline float valueOf(BFloat value) { return widen(value); }
inline float valueOf(Tf32 value) { return std::bit_cast<float>(value.bits & 0xffffe000u); }
inline float valueOf(E4M3 value) { return decodeE4M3(value.bits); }
inline float valueOf(E5M2 value) { return decodeE5M2(value.bits); }
inline int32_t valueOf(int8_t value) { return value; }
inline int32_t valueOf(uint8_t value) { return value; }

/// Slots of an instruction's list: D, A, B, C, and metadata.
struct Operands {
  const uint32_t *d;
  const uint32_t *a;
  const uint32_t *b;
  const uint32_t *c;
};

// Inst::target holds the shape: registers of A, of B, and of C; Inst::width how the result is written.
enum : uint8_t { kSaturate = 1, kHalfAccumulator = 2, kHalfResult = 4, kOrderedMetadata = 8 };

struct Shape {
  uint32_t a;
  uint32_t b;
  uint32_t c;
  uint32_t d;
  uint32_t pack() const { return a | b << 8 | c << 16 | d << 24; }
  static Shape unpack(uint32_t bits) { return {bits & 255, bits >> 8 & 255, bits >> 16 & 255, bits >> 24}; }
  Operands operands(const uint32_t *list) const { return {list, list + d, list + d + a, list + d + a + b}; }
};

template <class V> struct Tiles {
  alignas(64) V a[kRows][kMaxDepth];
  alignas(64) V b[kMaxDepth][kColumns];
  alignas(64) V c[kRows][kColumns];
};

template <class T, class V> void readA(Warp &warp, const uint32_t *slots, uint32_t registers, Tiles<V> &tiles) {
  constexpr uint32_t kPer = 4 / sizeof(T);
  for (uint32_t r = 0; r < registers; ++r) {
    const T *numbers = warp.at<T>(slots[r]);
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      for (uint32_t i = 0; i < kPer; ++i) {
        Position at = positionInA(lane, r, i, kPer);
        tiles.a[at.line][at.depth] = valueOf(numbers[lane * kPer + i]);
      }
  }
}

template <class T, class V> void readB(Warp &warp, const uint32_t *slots, uint32_t registers, Tiles<V> &tiles) {
  constexpr uint32_t kPer = 4 / sizeof(T);
  for (uint32_t r = 0; r < registers; ++r) {
    const T *numbers = warp.at<T>(slots[r]);
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      for (uint32_t i = 0; i < kPer; ++i) {
        Position at = positionInB(lane, r, i, kPer);
        tiles.b[at.depth][at.line] = valueOf(numbers[lane * kPer + i]);
      }
  }
}

/// Calls body(slot, element of the slot's lanes, row, column) for each accumulator; halves lie two in a register.
template <class Body> void eachAccumulator(const uint32_t *slots, bool halves, Body body) {
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      Position at = positionInC(lane, i);
      if (halves)
        body(slots[i / 2], 2 * lane + i % 2, at.line, at.depth);
      else
        body(slots[i], lane, at.line, at.depth);
    }
}

template <class V> void readC(Warp &warp, const uint32_t *slots, bool halves, Tiles<V> &tiles) {
  eachAccumulator(slots, halves, [&](uint32_t slot, uint32_t element, uint32_t row, uint32_t column) {
    tiles.c[row][column] = halves ? static_cast<V>(warp.at<Half>(slot)[element]) : warp.at<V>(slot)[element];
  });
}

template <class V> void writeD(Warp &warp, const uint32_t *slots, bool halves, const Tiles<V> &tiles) {
  eachAccumulator(slots, halves, [&](uint32_t slot, uint32_t element, uint32_t row, uint32_t column) {
    if (halves)
      warp.at<Half>(slot)[element] = static_cast<Half>(tiles.c[row][column]);
    else
      warp.at<V>(slot)[element] = tiles.c[row][column];
  });
}

/// Sums of floats in the order of the depth, each product exact before it is added.
void accumulate(Tiles<float> &tiles, uint32_t depth, bool) {
  for (uint32_t row = 0; row < kRows; ++row)
    for (uint32_t k = 0; k < depth; ++k)
      for (uint32_t column = 0; column < kColumns; ++column)
        tiles.c[row][column] = std::fma(tiles.a[row][k], tiles.b[k][column], tiles.c[row][column]);
}

/// Sums of integers wrap around, or end at the bounds of 32 bits.
void accumulate(Tiles<int32_t> &tiles, uint32_t depth, bool saturate) {
  for (uint32_t row = 0; row < kRows; ++row)
    for (uint32_t column = 0; column < kColumns; ++column) {
      int64_t sum = tiles.c[row][column];
      for (uint32_t k = 0; k < depth; ++k)
        sum += int64_t{tiles.a[row][k]} * tiles.b[k][column];
      if (saturate)
        sum = std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
      tiles.c[row][column] = static_cast<int32_t>(sum);
    }
}

template <class A, class B> void multiply(Warp &warp, const Inst &inst, uint32_t mask) {
  using V = decltype(valueOf(A{}));
  expectWholeWarp(mask);
  Shape shape = Shape::unpack(inst.target);
  Operands operands = shape.operands(inst.list);
  Tiles<V> tiles;
  readA<A>(warp, operands.a, shape.a, tiles);
  readB<B>(warp, operands.b, shape.b, tiles);
  readC(warp, operands.c, (inst.width & kHalfAccumulator) != 0, tiles);
  accumulate(tiles, shape.b * 4 * (4 / sizeof(B)), (inst.width & kSaturate) != 0);
  writeD(warp, operands.d, (inst.width & kHalfResult) != 0, tiles);
}

/// Puts the numbers of A, of which two of four columns are stored, at their columns.
void spread(Tiles<float> &tiles, const uint32_t *metadata, uint32_t depth, uint32_t selector, bool ordered) {
  float dense[kRows][kMaxDepth] = {};
  for (uint32_t row = 0; row < kRows; ++row)
    for (uint32_t group = 0; group < depth / 4; ++group) {
      Kept kept = keptColumns(metadata, row, group, depth, selector, ordered);
      dense[row][kept.first] = tiles.a[row][2 * group];
      dense[row][kept.second] = tiles.a[row][2 * group + 1];
    }
  std::copy(&dense[0][0], &dense[0][0] + kRows * kMaxDepth, &tiles.a[0][0]);
}

// The metadata's slot is op[0]; Inst::immediate is the selector.
template <class T> void multiplySparse(Warp &warp, const Inst &inst, uint32_t mask) {
  expectWholeWarp(mask);
  Shape shape = Shape::unpack(inst.target);
  Operands operands = shape.operands(inst.list);
  Tiles<float> tiles;
  readA<T>(warp, operands.a, shape.a, tiles);
  readB<T>(warp, operands.b, shape.b, tiles);
  readC(warp, operands.c, (inst.width & kHalfAccumulator) != 0, tiles);
  uint32_t depth = shape.b * 8;
  spread(tiles, warp.at<uint32_t>(inst.op[0]), depth, static_cast<uint32_t>(inst.immediate),
         (inst.width & kOrderedMetadata) != 0);
  accumulate(tiles, depth, false);
  writeD(warp, operands.d, (inst.width & kHalfResult) != 0, tiles);
}

template <class A> Handler ofSmallFloats(Type b) {
  return b == Type::E4M3 ? multiply<A, E4M3> : b == Type::E5M2 ? multiply<A, E5M2> : nullptr;
}

Handler denseOf(Type a, Type b) {
  switch (a) {
  case Type::F16:
    return b == a ? multiply<Half, Half> : nullptr;
  case Type::BF16:
    return b == a ? multiply<BFloat, BFloat> : nullptr;
  case Type::TF32:
    return b == a ? multiply<Tf32, Tf32> : nullptr;
  case Type::E4M3:
    return ofSmallFloats<E4M3>(b);
  case Type::E5M2:
    return ofSmallFloats<E5M2>(b);
  case Type::S8:
    return b == Type::S8 ? multiply<int8_t, int8_t> : b == Type::U8 ? multiply<int8_t, uint8_t> : nullptr;
  case Type::U8:
    return b == Type::S8 ? multiply<uint8_t, int8_t> : b == Type::U8 ? multiply<uint8_t, uint8_t> : nullptr;
  default:
    return nullptr;
  }
}

Handler sparseOf(Type a, Type b) {
  if (a != b)
    return nullptr;
  return a == Type::F16 ? multiplySparse<Half> : a == Type::BF16 ? multiplySparse<BFloat> : nullptr;
}

/// The depth that a shape names; 0 for another shape than 16 times 8.
uint32_t takeDepth(Statement &statement) {
  constexpr std::array<std::pair<std::string_view, uint32_t>, 5> kShapes{
      {{"m16n8k4", 4}, {"m16n8k8", 8}, {"m16n8k16", 16}, {"m16n8k32", 32}, {"m16n8k64", 64}}};
  for (auto [name, depth] : kShapes)
    if (statement.take(name))
      return depth;
  return 0;
}

void appendRegisters(Decoder &decoder, Statement &statement, const Operand &operand, uint32_t count, bool written,
                     std::vector<uint32_t> &slots) {
  bool single = operand.kind == Operand::Kind::Name && count == 1;
  if (!single && operand.elements.size() != count)
    statement.refuse("expected " + std::to_string(count) + " registers, but got " +
                     std::to_string(operand.elements.size()));
  for (uint32_t i = 0; i < count; ++i) {
    const Operand &element = single ? operand : operand.elements[i];
    slots.push_back(written ? decoder.destination(element, Type::B32) : decoder.source(element, Type::B32));
  }
}

} // namespace

void decodeMultiply(Decoder &decoder, Statement &statement) {
  int variant = statement.takeOneOf({"sp", "sp::ordered_metadata"});
  bool sparse = variant >= 0;
  statement.take("sync");
  statement.take("aligned");
  uint32_t depth = takeDepth(statement);
  if (!statement.take("row") || !statement.take("col") || depth == 0)
    statement.refuse("the emulation does not have this shape");
  uint8_t how = statement.take("satfinite") ? kSaturate : 0;
  Type d = statement.type();
  Type a = statement.type();
  Type b = statement.type();
  Type c = statement.type();
  Handler handler = sparse ? sparseOf(a, b) : denseOf(a, b);
  bool integers = isInteger(a);
  bool accumulators = integers ? d == Type::S32 && c == Type::S32
                               : (d == Type::F32 || d == Type::F16) && (c == Type::F32 || c == Type::F16);
  uint32_t perRegister = 4 / bytesOf(a);
  uint32_t stored = sparse ? depth / 2 : depth;
  Shape shape{stored * kRows / kLanes / perRegister, depth * kColumns / kLanes / perRegister, c == Type::F16 ? 2u : 4u,
              d == Type::F16 ? 2u : 4u};
  bool known = !sparse || depth == 16 || depth == 32;
  if (handler == nullptr || !accumulators || !known || shape.a < 2 || shape.a > 4 || shape.b == 0)
    statement.refuse("the emulation does not have it for these types and this shape");
  statement.expectOperands(sparse ? 6 : 4);
  std::vector<uint32_t> slots;
  appendRegisters(decoder, statement, statement.operands[0], shape.d, true, slots);
  appendRegisters(decoder, statement, statement.operands[1], shape.a, false, slots);
  appendRegisters(decoder, statement, statement.operands[2], shape.b, false, slots);
  appendRegisters(decoder, statement, statement.operands[3], shape.c, false, slots);
  Inst &inst = decoder.emit(handler);
  inst.width = static_cast<uint8_t>(how | (variant == 1 ? kOrderedMetadata : 0) |
                                    (c == Type::F16 ? kHalfAccumulator : 0) | (d == Type::F16 ? kHalfResult : 0));
  inst.target = shape.pack();
  inst.list = decoder.list(std::move(slots));
  if (!sparse)
    return;
  inst.op[0] = decoder.source(statement.operands[4], Type::B32);
  inst.immediate = static_cast<int64_t>(statement.operands[5].bits);
  if (statement.operands[5].kind != Operand::Kind::Integer || inst.immediate >= (depth == 16 ? 4 : 2))
    statement.refuse("the emulation does not have this selector");
}

} // namespace hone::emulation
