// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic of f32 and f64 towards zero, down and up. The processor's own rounding is set for the time of an instruction.

#include "exec/families.h"
#include "exec/lanes.h"

#include <array>
#include <cfenv>

#pragma STDC FENV_ACCESS ON

namespace hone::emulation {
namespace {

enum class Operation : uint8_t { Add, Sub, Mul, Fma, Div, Reciprocal, Root };

template <class T> T compute(Operation operation, T a, T b, T c) {
  switch (operation) {
  case Operation::Add:
    return a + b;
  case Operation::Sub:
    return a - b;
  case Operation::Mul:
    return a * b;
  case Operation::Fma:
    return std::fma(a, b, c);
  case Operation::Div:
    return a / b;
  case Operation::Reciprocal:
    return T{1} / a;
  case Operation::Root:
    return std::sqrt(a);
  }
  return a;
}

/// Inst::width is the operation, Inst::target the direction, Inst::immediate whether results are saturated (1) or flushed (2).
template <class T> void rounded(Warp &warp, const Inst &inst, uint32_t mask) {
  constexpr std::array<int, 4> kDirections{FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  T *d = warp.at<T>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  const T *b = warp.at<T>(inst.op[2]);
  const T *c = warp.at<T>(inst.op[3]);
  bool flush = (inst.immediate & 2) != 0;
  std::fesetround(kDirections[inst.target]);
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    T value =
        flush
            ? flushed(compute(static_cast<Operation>(inst.width), flushed(a[lane]), flushed(b[lane]), flushed(c[lane])))
            : compute(static_cast<Operation>(inst.width), a[lane], b[lane], c[lane]);
    d[lane] = (inst.immediate & 1) != 0 ? saturated(value) : value;
  }
  std::fesetround(FE_TONEAREST);
}

struct Named {
  std::string_view root;
  Operation operation;
  unsigned sources;
};

constexpr Named kOperations[] = {
    {"add", Operation::Add, 2},        {"sub", Operation::Sub, 2},   {"mul", Operation::Mul, 2},
    {"fma", Operation::Fma, 3},        {"mad", Operation::Fma, 3},   {"div", Operation::Div, 2},
    {"rcp", Operation::Reciprocal, 1}, {"sqrt", Operation::Root, 1},
};

} // namespace

void decodeRounded(Decoder &decoder, Statement &statement, Type type, int direction) {
  bool flush = statement.take("ftz");
  bool saturate = statement.take("sat");
  for (const Named &named : kOperations) {
    if (named.root != statement.root)
      continue;
    Handler handler = type == Type::F32 ? rounded<float> : type == Type::F64 ? rounded<double> : nullptr;
    Inst &inst = emitSame(decoder, statement, type, handler, named.sources);
    for (unsigned i = named.sources + 1; i <= 3; ++i)
      inst.op[i] = inst.op[1];
    inst.width = static_cast<uint8_t>(named.operation);
    inst.target = static_cast<uint32_t>(direction);
    inst.immediate = (saturate ? 1 : 0) | (flush ? 2 : 0);
    return;
  }
  statement.refuse("the emulation does not have it with this rounding");
}

} // namespace hone::emulation
