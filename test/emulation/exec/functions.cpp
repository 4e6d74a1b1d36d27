// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of one float. Approximations of a device are computed to the nearest here: no test may depend on their last bits.

#include "exec/families.h"
#include "exec/lanes.h"

#include <numbers>

namespace hone::emulation {
namespace {

struct Reciprocal {
  template <class T> static T of(T a) { return T{1} / a; }
};
struct Root {
  template <class T> static T of(T a) { return std::sqrt(a); }
};
struct ReciprocalRoot {
  static float of(float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))); }
  static double of(double a) { return 1.0 / std::sqrt(a); }
};
struct Exp2 {
  template <class T> static T of(T a) { return std::exp2(a); }
};
struct Log2 {
  template <class T> static T of(T a) { return std::log2(a); }
};
struct Sin {
  template <class T> static T of(T a) { return std::sin(a); }
};
struct Cos {
  template <class T> static T of(T a) { return std::cos(a); }
};
struct Tanh {
  template <class T> static T of(T a) { return std::tanh(a); }
};

template <class F, bool Flush> struct Lifted {
  template <class T> static T apply(T a) {
    if constexpr (Flush)
      return narrow<T>(flushed(F::of(flushed(widen(a)))));
    else
      return narrow<T>(F::of(widen(a)));
  }
};

template <class F> Handler functionOf(Type type, bool flush) {
  switch (type) {
  case Type::F32:
    return flush ? unaryLanes<Lifted<F, true>, float> : unaryLanes<Lifted<F, false>, float>;
  case Type::F64:
    return unaryLanes<Lifted<F, false>, double>;
  case Type::F16:
    return unaryLanes<Lifted<F, false>, Half>;
  case Type::BF16:
    return unaryLanes<Lifted<F, false>, BFloat>;
  case Type::F16x2:
    return unaryPairs<Lifted<F, false>, Half>;
  case Type::BF16x2:
    return unaryPairs<Lifted<F, false>, BFloat>;
  default:
    return nullptr;
  }
}

Handler functionNamed(std::string_view root, Type type, bool flush) {
  if (root == "rcp")
    return functionOf<Reciprocal>(type, flush);
  if (root == "sqrt")
    return functionOf<Root>(type, flush);
  if (root == "rsqrt")
    return functionOf<ReciprocalRoot>(type, flush);
  if (root == "ex2")
    return functionOf<Exp2>(type, flush);
  if (root == "lg2")
    return functionOf<Log2>(type, flush);
  if (root == "sin")
    return functionOf<Sin>(type, flush);
  if (root == "cos")
    return functionOf<Cos>(type, flush);
  return functionOf<Tanh>(type, flush);
}

enum class Test : uint8_t { Finite, Infinite, Number, NotANumber, Normal, Subnormal };

template <class T> bool holds(Test test, T value) {
  switch (test) {
  case Test::Finite:
    return std::isfinite(value);
  case Test::Infinite:
    return std::isinf(value);
  case Test::Number:
    return !std::isnan(value);
  case Test::NotANumber:
    return std::isnan(value);
  case Test::Normal:
    return std::isnormal(value);
  case Test::Subnormal:
    return std::fpclassify(value) == FP_SUBNORMAL;
  }
  return false;
}

template <class T> void testLanes(Warp &warp, const Inst &inst, uint32_t mask) {
  const T *a = warp.at<T>(inst.op[1]);
  uint32_t result = 0;
  eachLane(mask, [&](uint32_t lane) {
    result |= static_cast<uint32_t>(holds(static_cast<Test>(inst.width), a[lane])) << lane;
  });
  warp.setMask(inst.op[0], mask, result);
}

} // namespace

void decodeFunction(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  int direction = statement.takeOneOf({"rn", "rz", "rm", "rp", "approx"});
  if (direction >= 1 && direction <= 3) {
    decodeRounded(decoder, statement, type, direction);
    return;
  }
  bool flush = statement.take("ftz");
  emitSame(decoder, statement, type, functionNamed(statement.root, type, flush), 1);
}

void decodeTest(Decoder &decoder, Statement &statement) {
  Type type = statement.type();
  int test = statement.takeOneOf({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  statement.expectOperands(2);
  if (test < 0 || (type != Type::F32 && type != Type::F64))
    statement.refuse("the emulation does not have this test");
  Inst &inst = decoder.emit(type == Type::F32 ? testLanes<float> : testLanes<double>);
  inst.width = static_cast<uint8_t>(test);
  inst.op[0] = decoder.destination(statement.operands[0], Type::Pred);
  inst.op[1] = decoder.source(statement.operands[1], type);
}

} // namespace hone::emulation
