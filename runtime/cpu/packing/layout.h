// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layout of packed weights, as the packing code writes it and kernels read it. One layout serves every level of the
// instruction set, so that an artefact does not depend on the machine that runs it:
//
//   A panel is 16 outputs; the last panel is filled up with zeros. Within a panel, inputs follow each other:
//   f32, f16   [panel][input][16 outputs]
//   bf16       [panel][input / 2][16 outputs][2 inputs]     inputs padded to 32
//   u8         [panel][input / 4][16 outputs][4 inputs]     inputs padded to 64 and to the group
//   u4         [panel][input / 8][16 outputs][4 bytes]      likewise; byte j holds input j in its low four bits and
//                                                           input j + 4 in its high four bits
//   scales     [panel][group][16 outputs]                   f16 or f32; group 0 alone where weights have one scale an output
//   zeros      [panel][group][16 outputs]                   u8; absent where all are 128 (u8) or 8 (u4)
//
// 16 outputs of 32 bits are one register of 512 bits, or two of 256. Pairs of bf16 and quads of bytes are what the
// dot-product instructions of AVX-512 take; sixteen such rows are one tile of AMX, dense in memory.

#ifndef HONE_RUNTIME_CPU_PACKING_LAYOUT_H
#define HONE_RUNTIME_CPU_PACKING_LAYOUT_H

#include <stdint.h>

namespace hone::cpu {

constexpr int64_t kPanelOutputs = 16;
constexpr int64_t kBf16Inputs = 32;      // inputs of a bf16 tile
constexpr int64_t kQuantizedInputs = 64; // inputs of a tile of bytes
constexpr int32_t kU8Zero = 128, kU4Zero = 8;

} // namespace hone::cpu

#endif // HONE_RUNTIME_CPU_PACKING_LAYOUT_H
