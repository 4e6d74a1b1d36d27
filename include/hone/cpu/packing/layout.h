// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layout of packed weights, as the packing code writes it and kernels read it. One layout serves every
// instruction set, so that an artefact does not depend on the machine that runs it:
//
//   A panel is 16 outputs; the last panel is filled up with zeros. Within a panel, inputs follow each other:
//   f32, f16   [panel][input][16 outputs]
//   bf16       [panel][input / 2][16 outputs][2 inputs]     inputs padded to 32
//   codes     [panel][step][line][16 outputs][4 bytes]     inputs padded to 64 and to the group
//   scales     [panel][group][16 outputs]                   f16 or f32; group 0 alone where weights have one scale an output
//   zeros      [panel][group][16 outputs]                   u8; absent where all are the middle value, 128 (u8) to 2 (u2)
//
// Planes of one weight are interleaved panel by panel (panel_block.h).
//
// Codes are what quantized weights store, integers from 0 on of 8, 6, 5, 4, 3 or 2 bits (u8 … u2). A step of them has quads
// of four inputs: byte j of an output holds input j of every quad of its line, in the bits that BitLayout gives.
//
// 16 outputs of 32 bits are one register of 512 bits, or two of 256. Pairs of bf16 and quads of bytes are what the
// dot-product instructions of AVX-512 take; sixteen such rows are one tile of AMX, dense in memory.

#ifndef HONE_CPU_PACKING_LAYOUT_H
#define HONE_CPU_PACKING_LAYOUT_H

#include <stdint.h>

namespace hone::cpu {

constexpr int64_t kPanelOutputs = 16;
constexpr int64_t kBf16Inputs = 32;      // inputs of a bf16 tile
constexpr int64_t kQuantizedInputs = 64; // inputs of a tile of bytes

/// `bits` bits of a byte of a line, from bit `shift` on, which are those of a code from bit `to` on.
struct BitField {
  int32_t line, shift, bits, to;
};

constexpr int kMostFields = 3;

/// How a step of codes lies in its lines: a quad in one field, or in up to three where its bits are left over from others.
struct BitLayout {
  int32_t bits, lines, quads;
  BitField parts[8][kMostFields];

  constexpr int32_t inputs() const { return 4 * quads; }
  /// What zero points are where none are stored.
  constexpr int32_t middle() const { return 1 << (bits - 1); }
};

constexpr BitLayout kU8Layout = {8, 1, 1, {{{0, 0, 8, 0}}}};
constexpr BitLayout kU4Layout = {4, 1, 2, {{{0, 0, 4, 0}}, {{0, 4, 4, 0}}}};
constexpr BitLayout kU2Layout = {2, 1, 4, {{{0, 0, 2, 0}}, {{0, 2, 2, 0}}, {{0, 4, 2, 0}}, {{0, 6, 2, 0}}}};

/// Two quads a line leave two bits of each byte, which are two quads more. Two bits of each code in one plane and the
/// third in another would be simpler, and take 29 instructions to read, where these take 17.
constexpr BitLayout kU3Layout = {3,
                                 3,
                                 8,
                                 {{{0, 0, 3, 0}},
                                  {{0, 3, 3, 0}},
                                  {{1, 0, 3, 0}},
                                  {{1, 3, 3, 0}},
                                  {{2, 0, 3, 0}},
                                  {{2, 3, 3, 0}},
                                  {{0, 6, 2, 0}, {2, 6, 1, 2}},
                                  {{1, 6, 2, 0}, {2, 7, 1, 2}}}};

/// A quad a line leaves three bits of each byte, which are three quads more in five lines.
constexpr BitLayout kU5Layout = {5,
                                 5,
                                 8,
                                 {{{0, 0, 5, 0}},
                                  {{1, 0, 5, 0}},
                                  {{2, 0, 5, 0}},
                                  {{3, 0, 5, 0}},
                                  {{4, 0, 5, 0}},
                                  {{0, 5, 3, 0}, {3, 5, 2, 3}},
                                  {{1, 5, 3, 0}, {4, 5, 2, 3}},
                                  {{2, 5, 3, 0}, {3, 7, 1, 3}, {4, 7, 1, 4}}}};

/// A quad a line leaves two bits of each byte, which are a fourth quad in three lines.
constexpr BitLayout kU6Layout = {
    6, 3, 4, {{{0, 0, 6, 0}}, {{1, 0, 6, 0}}, {{2, 0, 6, 0}}, {{0, 6, 2, 0}, {1, 6, 2, 2}, {2, 6, 2, 4}}}};

} // namespace hone::cpu

#endif // HONE_CPU_PACKING_LAYOUT_H
