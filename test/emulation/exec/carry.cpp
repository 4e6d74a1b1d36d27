// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic with the condition code: sums and products of several words.

#include "exec/families.h"
#include "exec/lanes.h"

namespace hone::emulation {
namespace {

enum class Product : uint8_t { None, Low, High, SignedHigh };

/// What Inst::width says.
struct Kind {
  bool subtracts;
  bool reads;
  bool writes;
  Product product;
  uint8_t pack() const {
    return static_cast<uint8_t>(subtracts | reads << 1 | writes << 2 | static_cast<uint8_t>(product) << 3);
  }
  static Kind unpack(uint8_t bits) {
    return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, static_cast<Product>(bits >> 3)};
  }
};

template <class T> T productOf(Product product, T a, T b) {
  constexpr int kBits = 8 * sizeof(T);
  if (product == Product::SignedHigh)
    return static_cast<T>(
        static_cast<__int128>(static_cast<std::make_signed_t<T>>(a)) * static_cast<std::make_signed_t<T>>(b) >> kBits);
  auto wide = static_cast<unsigned __int128>(a) * b;
  return static_cast<T>(product == Product::High ? wide >> kBits : wide);
}

template <class T> void withCarry(Warp &warp, const Inst &inst, uint32_t mask) {
  Kind kind = Kind::unpack(inst.width);
  T *d = warp.at<T>(inst.op[0]);
  const T *a = warp.at<T>(inst.op[1]);
  const T *b = warp.at<T>(inst.op[2]);
  const T *c = warp.at<T>(inst.op[3]);
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    T x = kind.product == Product::None ? a[lane] : productOf(kind.product, a[lane], b[lane]);
    T y = kind.product == Product::None ? b[lane] : c[lane];
    unsigned __int128 in = kind.reads ? warp.carry >> lane & 1 : 0;
    unsigned __int128 sum =
        kind.subtracts ? static_cast<unsigned __int128>(x) - y - in : static_cast<unsigned __int128>(x) + y + in;
    d[lane] = static_cast<T>(sum);
    if (kind.writes)
      warp.carry = (warp.carry & ~(1u << lane)) | static_cast<uint32_t>(sum >> (8 * sizeof(T)) & 1) << lane;
  }
}

} // namespace

void decodeCarry(Decoder &decoder, Statement &statement, Type type) {
  std::string_view root = statement.root;
  Kind kind{root.starts_with("sub"), root.ends_with('c'), true, Product::None};
  // Without .cc, addc and the others read the condition code only; the decoder of arithmetic took it for the rest.
  if (kind.reads)
    kind.writes = statement.take("cc");
  if (root.starts_with("mad")) {
    int part = statement.takeOneOf({"lo", "hi"});
    if (part < 0)
      statement.refuse("neither lo nor hi");
    kind.product = part == 0 ? Product::Low : isSigned(type) ? Product::SignedHigh : Product::High;
  }
  if (bytesOf(type) != 4 && bytesOf(type) != 8)
    statement.refuse("the emulation does not have it for this type");
  Handler handler = bytesOf(type) == 4 ? withCarry<uint32_t> : withCarry<uint64_t>;
  emitSame(decoder, statement, type, handler, kind.product == Product::None ? 2 : 3).width = kind.pack();
}

} // namespace hone::emulation
