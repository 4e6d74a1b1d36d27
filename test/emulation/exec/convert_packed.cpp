// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions of two numbers to or from one register: the first operand is the upper half of the result.

#include "exec/families.h"
#include "exec/lanes.h"

namespace hone::emulation {
namespace {

/// What Inst::width says.
enum : uint8_t { kRectify = 1, kSaturate = 2, kTowardsZero = 4 };

template <class T> float largest() { return std::is_same_v<T, Half> ? 65504.0f : std::bit_cast<float>(0x7f7f0000u); }

template <class T> T roundedPart(float value, uint8_t how) {
  if ((how & kSaturate) != 0 && std::fabs(value) > largest<T>())
    value = std::copysign(largest<T>(), value);
  T result = narrow<T>(value);
  if ((how & kTowardsZero) != 0 && std::fabs(widen(result)) > std::fabs(value))
    result = std::bit_cast<T>(static_cast<uint16_t>(std::bit_cast<uint16_t>(result) - 1));
  return (how & kRectify) != 0 ? rectified(result) : result;
}

template <class T> void fromFloats(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  const float *a = warp.at<float>(inst.op[1]);
  const float *b = warp.at<float>(inst.op[2]);
  uint8_t how = inst.width;
  T results[2 * kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    results[2 * lane] = roundedPart<T>(b[lane], how);
    results[2 * lane + 1] = roundedPart<T>(a[lane], how);
  }
  eachHalf(mask, [&](uint32_t i) { d[i] = results[i]; });
}

template <uint8_t (*Encode)(float)> void smallFromFloats(Warp &warp, const Inst &inst, uint32_t mask) {
  auto *d = warp.at<uint16_t>(inst.op[0]);
  const float *a = warp.at<float>(inst.op[1]);
  const float *b = warp.at<float>(inst.op[2]);
  bool rectify = (inst.width & kRectify) != 0;
  auto code = [=](float value) { return static_cast<uint16_t>(Encode(rectify ? rectified(value) : value)); };
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    d[lane] = static_cast<uint16_t>(code(a[lane]) << 8 | code(b[lane]));
  }
}

template <uint8_t (*Encode)(float), class T> void smallFromHalves(Warp &warp, const Inst &inst, uint32_t mask) {
  auto *d = warp.at<uint8_t>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  bool rectify = (inst.width & kRectify) != 0;
  uint8_t codes[2 * kLanes];
  for (uint32_t i = 0; i < 2 * kLanes; ++i)
    codes[i] = Encode(rectify ? rectified(widen(a[i])) : widen(a[i]));
  eachHalf(mask, [&](uint32_t i) { d[i] = codes[i]; });
}

template <float (*Decode)(uint8_t), class T> void halvesFromSmall(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  const auto *a = warp.at<uint8_t>(inst.op[1]);
  bool rectify = (inst.width & kRectify) != 0;
  T results[2 * kLanes];
  for (uint32_t i = 0; i < 2 * kLanes; ++i)
    results[i] = narrow<T>(rectify ? rectified(Decode(a[i])) : Decode(a[i]));
  eachHalf(mask, [&](uint32_t i) { d[i] = results[i]; });
}

Handler handlerOf(Type to, Type from) {
  switch (to) {
  case Type::F16x2:
    return from == Type::F32      ? fromFloats<Half>
           : from == Type::E4M3x2 ? halvesFromSmall<decodeE4M3, Half>
           : from == Type::E5M2x2 ? halvesFromSmall<decodeE5M2, Half>
                                  : nullptr;
  case Type::BF16x2:
    return from == Type::F32 ? fromFloats<BFloat> : nullptr;
  case Type::E4M3x2:
    return from == Type::F32      ? smallFromFloats<encodeE4M3>
           : from == Type::F16x2  ? smallFromHalves<encodeE4M3, Half>
           : from == Type::BF16x2 ? smallFromHalves<encodeE4M3, BFloat>
                                  : nullptr;
  case Type::E5M2x2:
    return from == Type::F32      ? smallFromFloats<encodeE5M2>
           : from == Type::F16x2  ? smallFromHalves<encodeE5M2, Half>
           : from == Type::BF16x2 ? smallFromHalves<encodeE5M2, BFloat>
                                  : nullptr;
  default:
    return nullptr;
  }
}

} // namespace

bool decodeConvertPairs(Decoder &decoder, Statement &statement, Type to, Type from) {
  Handler handler = handlerOf(to, from);
  if (handler == nullptr)
    return false;
  int direction = statement.takeOneOf({"rn", "rz"});
  bool two = from == Type::F32;
  statement.expectOperands(two ? 3 : 2);
  Inst &inst = decoder.emit(handler);
  inst.width =
      static_cast<uint8_t>((statement.take("relu") ? kRectify : 0) | (statement.take("satfinite") ? kSaturate : 0) |
                           (direction == 1 ? kTowardsZero : 0));
  inst.op[0] = decoder.destination(statement.operands[0], to);
  inst.op[1] = decoder.source(statement.operands[1], from);
  if (two)
    inst.op[2] = decoder.source(statement.operands[2], from);
  return true;
}

} // namespace hone::emulation
