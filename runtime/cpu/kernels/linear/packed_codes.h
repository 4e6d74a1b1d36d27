// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Codes of few bits as they lie in panels (packing/layout.h), unpacked to bytes by shifts and masks.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_PACKED_CODES_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_PACKED_CODES_H

#include "../vector.h"
#include "columns.h"
#include "hone/cpu/packing/layout.h"

#include <immintrin.h>

namespace {

/// Four bytes of each output of a panel.
typedef uint16_t Line __attribute__((ext_vector_type(32)));
constexpr int64_t kLineBytes = sizeof(Line);

/// Codes of `BITS` bits as they lie in panels. Loops over the quads of a step are to be unrolled: what a quad takes then is known.
template <const hone::cpu::BitLayout &LAYOUT, int BITS = LAYOUT.bits> struct Codes {
  static constexpr int kBits = BITS, kZero = 1 << (BITS - 1);
  static constexpr int kInputs = LAYOUT.inputs(), kQuads = LAYOUT.quads, kLines = LAYOUT.lines;
  static constexpr int64_t kStepBytes = kLines * kLineBytes;

  /// Quad `q` of the step at `from`, each code in a byte.
  static Line quad(const uint8_t *from, int q) {
    Line codes = bitsOf(from, LAYOUT.parts[q][0]);
    for (int field = 1; field < hone::cpu::kMostFields && LAYOUT.parts[q][field].bits > 0; ++field)
      codes |= bitsOf(from, LAYOUT.parts[q][field]);
    return codes;
  }

  static void prefetch(const uint8_t *from, int64_t panel = 0) {
    for (int line = 0; line < kLines; ++line)
      prefetchWeights(from + line * kLineBytes, panel);
  }
  static void prefetchCached(const uint8_t *from) {
    for (int line = 0; line < kLines; ++line)
      prefetchCachedWeights(from + line * kLineBytes);
  }

private:
  /// Shifts move bits from one byte to the next, where none of them are prefetched.
  static Line bitsOf(const uint8_t *from, const hone::cpu::BitField &part) {
    auto mask = static_cast<uint16_t>((((1 << part.bits) - 1) << part.to) * 0x0101);
    return (loadAs<Line>(from + part.line * kLineBytes) >> static_cast<uint16_t>(part.shift - part.to)) & mask;
  }
};

using U8Codes = Codes<hone::cpu::kU8Layout>;
using U6Codes = Codes<hone::cpu::kU6Layout>;
using U5Codes = Codes<hone::cpu::kU5Layout>;
using U4Codes = Codes<hone::cpu::kU4Layout>;
using U3Codes = Codes<hone::cpu::kU3Layout>;
using U2Codes = Codes<hone::cpu::kU2Layout>;

/// Codes of `BITS` bits, each in a byte, as they are unpacked in the cache.
template <int BITS> struct ByteCodes : Codes<hone::cpu::kU8Layout, BITS> {
  static void prefetch(const uint8_t *, int64_t = 0) {}
  static void prefetchCached(const uint8_t *) {}
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_PACKED_CODES_H
