// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handlers that apply one function to the operands of each lane, and how decoders choose among them.

#pragma once

#include "exec/numbers.h"
#include "ptx/decoder.h"
#include "ptx/warp.h"

namespace hone::emulation {

/// d = F(a), d = F(a, b), d = F(a, b, c): the result may have a type of its own.
template <class F, class D, class A = D> void unaryLanes(Warp &warp, const Inst &inst, uint32_t mask) {
  D *d = warp.at<D>(inst.op[0]);
  const A *a = warp.at<A>(inst.op[1]);
  eachLane(mask, [=](uint32_t lane) { d[lane] = F::apply(a[lane]); });
}

template <class F, class D, class A = D> void binaryLanes(Warp &warp, const Inst &inst, uint32_t mask) {
  D *d = warp.at<D>(inst.op[0]);
  const A *a = warp.at<A>(inst.op[1]);
  const A *b = warp.at<A>(inst.op[2]);
  eachLane(mask, [=](uint32_t lane) { d[lane] = F::apply(a[lane], b[lane]); });
}

template <class F, class D, class A = D, class C = D> void ternaryLanes(Warp &warp, const Inst &inst, uint32_t mask) {
  D *d = warp.at<D>(inst.op[0]);
  const A *a = warp.at<A>(inst.op[1]);
  const A *b = warp.at<A>(inst.op[2]);
  const C *c = warp.at<C>(inst.op[3]);
  eachLane(mask, [=](uint32_t lane) { d[lane] = F::apply(a[lane], b[lane], c[lane]); });
}

/// The same for values that are two numbers of type T side by side.
template <class F, class T> void unaryPairs(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  eachHalf(mask, [=](uint32_t i) { d[i] = F::apply(a[i]); });
}

template <class F, class T> void binaryPairs(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  const T *b = warp.at<T>(inst.op[2]);
  eachHalf(mask, [=](uint32_t i) { d[i] = F::apply(a[i], b[i]); });
}

template <class F, class T> void ternaryPairs(Warp &warp, const Inst &inst, uint32_t mask) {
  T *d = warp.at<T>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  const T *b = warp.at<T>(inst.op[2]);
  const T *c = warp.at<T>(inst.op[3]);
  eachHalf(mask, [=](uint32_t i) { d[i] = F::apply(a[i], b[i], c[i]); });
}

/// Emits an instruction whose operands, the result first, all have the type.
inline Inst &emitSame(Decoder &decoder, Statement &statement, Type type, Handler handler, unsigned sources) {
  statement.expectOperands(sources + 1);
  if (handler == nullptr)
    statement.refuse("the emulation does not have it for this type");
  Inst &inst = decoder.emit(handler);
  inst.op[0] = decoder.destination(statement.operands[0], type);
  for (unsigned i = 1; i <= sources; ++i)
    inst.op[i] = decoder.source(statement.operands[i], type);
  return inst;
}

} // namespace hone::emulation
