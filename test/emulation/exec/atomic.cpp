// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Atomic operations, on shared memory and on memory that blocks on other threads of the host use too.

#include "exec/addresses.h"
#include "exec/families.h"
#include "exec/lanes.h"

#include <algorithm>
#include <atomic>

namespace hone::emulation {
namespace {

// What becomes of the old number, with the operands of the instruction.
struct And {
  template <class T> static T of(T old, T b, T) { return old & b; }
};
struct Or {
  template <class T> static T of(T old, T b, T) { return old | b; }
};
struct Xor {
  template <class T> static T of(T old, T b, T) { return old ^ b; }
};
struct Exchange {
  template <class T> static T of(T, T b, T) { return b; }
};
struct CompareAndSwap {
  template <class T> static T of(T old, T b, T c) { return old == b ? c : old; }
};
struct Increment {
  template <class T> static T of(T old, T b, T) { return old >= b ? 0 : old + 1; }
};
struct Decrement {
  template <class T> static T of(T old, T b, T) { return old == 0 || old > b ? b : old - 1; }
};
struct Add {
  template <class T> static T of(T old, T b, T) { return narrow<T>(widen(old) + widen(b)); }
  static uint32_t of(uint32_t old, uint32_t b, uint32_t) { return old + b; }
  static uint64_t of(uint64_t old, uint64_t b, uint64_t) { return old + b; }
};
/// Of floats, the other number where one is NaN.
struct Min {
  template <class T> static T of(T old, T b, T) {
    if constexpr (std::is_integral_v<T>)
      return std::min(old, b);
    else
      return widen(old) < widen(b) || widen(b) != widen(b) ? old : b;
  }
};
struct Max {
  template <class T> static T of(T old, T b, T) {
    if constexpr (std::is_integral_v<T>)
      return std::max(old, b);
    else
      return widen(old) > widen(b) || widen(b) != widen(b) ? old : b;
  }
};

/// Two numbers in one word.
template <class T> struct Two {
  T low;
  T high;
};
template <class F> struct OfBoth {
  template <class T> static Two<T> of(Two<T> old, Two<T> b, Two<T> c) {
    return {F::of(old.low, b.low, c.low), F::of(old.high, b.high, c.high)};
  }
};

template <class T> using WordOf =
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

template <class F, class T> T replace(std::byte *place, T b, T c) {
  using Word = WordOf<T>;
  std::atomic_ref<Word> word(*reinterpret_cast<Word *>(place));
  Word old = word.load();
  while (!word.compare_exchange_weak(old, std::bit_cast<Word>(F::of(std::bit_cast<T>(old), b, c))))
    continue;
  return std::bit_cast<T>(old);
}

// Operands: result (0 for none), address, b, c. The elements of vectors are in the list: results, then b.
template <class F, class T> void atomic(Warp &warp, const Inst &inst, uint32_t mask) {
  std::byte *places[kLanes];
  locateLanes(warp, inst, mask, 1, sizeof(T), places);
  T *d = inst.op[0] == 0 ? nullptr : warp.at<T>(inst.op[0]);
  const T *b = warp.at<T>(inst.op[2]);
  const T *c = warp.at<T>(inst.op[3]);
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    T old = replace<F, T>(places[lane], b[lane], c[lane]);
    if (d != nullptr)
      d[lane] = old;
  }
}

template <class F, class T> void atomicVector(Warp &warp, const Inst &inst, uint32_t mask) {
  std::byte *places[kLanes];
  uint32_t elements = inst.count / 2;
  locateLanes(warp, inst, mask, 1, sizeof(T) * elements, places);
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    for (uint32_t i = 0; i < elements; ++i) {
      T b = warp.at<T>(inst.list[elements + i])[lane];
      T old = replace<F, T>(places[lane] + i * sizeof(T), b, b);
      if (inst.list[i] != 0)
        warp.at<T>(inst.list[i])[lane] = old;
    }
  }
}

/// The handlers for one number and for a vector.
struct Handlers {
  Handler one = nullptr;
  Handler vector = nullptr;
};

template <class F, class T> Handlers both() { return {atomic<F, T>, atomicVector<F, T>}; }

template <class F> Handlers ofBits(Type type) {
  switch (bytesOf(type)) {
  case 2:
    return both<F, uint16_t>();
  case 4:
    return both<F, uint32_t>();
  case 8:
    return both<F, uint64_t>();
  default:
    return {};
  }
}

template <class F> Handlers ofOrder(Type type) {
  switch (type) {
  case Type::U32:
    return both<F, uint32_t>();
  case Type::S32:
    return both<F, int32_t>();
  case Type::U64:
    return both<F, uint64_t>();
  case Type::S64:
    return both<F, int64_t>();
  case Type::F16:
    return both<F, Half>();
  case Type::BF16:
    return both<F, BFloat>();
  case Type::F16x2:
    return both<OfBoth<F>, Two<Half>>();
  case Type::BF16x2:
    return both<OfBoth<F>, Two<BFloat>>();
  default:
    return {};
  }
}

Handlers sumOf(Type type) {
  switch (type) {
  case Type::U32:
  case Type::S32:
    return both<Add, uint32_t>();
  case Type::U64:
  case Type::S64:
    return both<Add, uint64_t>();
  case Type::F32:
    return both<Add, float>();
  case Type::F64:
    return both<Add, double>();
  case Type::F16:
    return both<Add, Half>();
  case Type::BF16:
    return both<Add, BFloat>();
  case Type::F16x2:
    return both<OfBoth<Add>, Two<Half>>();
  case Type::BF16x2:
    return both<OfBoth<Add>, Two<BFloat>>();
  default:
    return {};
  }
}

Handlers handlersOf(int operation, Type type) {
  switch (operation) {
  case 0:
    return ofBits<And>(type);
  case 1:
    return ofBits<Or>(type);
  case 2:
    return ofBits<Xor>(type);
  case 3:
    return ofBits<Exchange>(type);
  case 4:
    return ofBits<CompareAndSwap>(type);
  case 5:
    return sumOf(type);
  case 6:
    return type == Type::U32 ? both<Increment, uint32_t>() : Handlers{};
  case 7:
    return type == Type::U32 ? both<Decrement, uint32_t>() : Handlers{};
  case 8:
    return ofOrder<Min>(type);
  case 9:
    return ofOrder<Max>(type);
  default:
    return {};
  }
}

void decodeElements(Decoder &decoder, Statement &statement, Inst &inst, Type type, const Operand *result,
                    const Operand &b) {
  std::vector<uint32_t> slots;
  for (size_t i = 0; i < b.elements.size(); ++i)
    slots.push_back(result == nullptr ? 0 : decoder.destination(result->elements.at(i), type));
  for (const Operand &element : b.elements)
    slots.push_back(decoder.source(element, type));
  inst.count = static_cast<uint16_t>(slots.size());
  inst.list = decoder.list(std::move(slots));
}

} // namespace

void decodeAtomic(Decoder &decoder, Statement &statement) {
  bool returns = statement.root == "atom";
  int operation = statement.takeOneOf({"and", "or", "xor", "exch", "cas", "add", "inc", "dec", "min", "max"});
  while (statement.takeOneOf({"relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "noftz"}) >=
         0)
    continue;
  bool hinted = statement.take("L2::cache_hint");
  int space = statement.takeOneOf({"global", "shared", "shared::cta", "shared::cluster"});
  bool vector = statement.takeOneOf({"v2", "v4", "v8"}) >= 0;
  Type type = statement.type();
  Handlers handlers = handlersOf(operation, type);
  if (handlers.one == nullptr)
    statement.refuse("the emulation does not have this operation on this type");
  size_t first = returns ? 1 : 0; // the operand that is the address
  bool swaps = operation == 4;
  statement.expectOperands(first + (swaps ? 3 : 2) + (hinted ? 1 : 0));
  const std::vector<Operand> &operands = statement.operands;
  Inst &inst = decoder.emit(vector ? handlers.vector : handlers.one);
  decoder.address(inst, operands[first], space < 0 ? Space::Generic : space == 0 ? Space::Global : Space::Shared, 1);
  bool used = returns && operands[0].kind != Operand::Kind::Sink;
  if (vector) {
    if (operands[first + 1].elements.empty() ||
        (used && operands[0].elements.size() != operands[first + 1].elements.size()))
      statement.refuse("vectors of several sizes");
    decodeElements(decoder, statement, inst, type, used ? operands.data() : nullptr, operands[first + 1]);
    return;
  }
  inst.op[0] = used ? decoder.destination(operands[0], type) : 0;
  inst.op[2] = decoder.source(operands[first + 1], type);
  inst.op[3] = swaps ? decoder.source(operands[first + 2], type) : inst.op[2];
}

} // namespace hone::emulation
