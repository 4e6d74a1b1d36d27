// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data of chips, from the table "Technical specifications per compute capability" of the CUDA C++ Programming Guide.

#include "driver/chip.h"

#include <algorithm>
#include <array>
#include <string>

namespace hone::emulation {
namespace {

constexpr int kMiB = 1024 * 1024;

constexpr std::array<Chip, 5> kChips{{
    {80, "Emulated sm_80", 108, 2048, 32, 164 * 1024, 163 * 1024, 40 * kMiB, 5120},
    {86, "Emulated sm_86", 84, 1536, 16, 100 * 1024, 99 * 1024, 6 * kMiB, 384},
    {89, "Emulated sm_89", 128, 1536, 24, 100 * 1024, 99 * 1024, 72 * kMiB, 384},
    {90, "Emulated sm_90", 132, 2048, 32, 228 * 1024, 227 * 1024, 50 * kMiB, 5120},
    {100, "Emulated sm_100", 148, 2048, 32, 228 * 1024, 227 * 1024, 126 * kMiB, 8192},
}};

} // namespace

int chipNamed(std::string_view name) {
  for (const Chip &chip : kChips)
    if (name == "sm_" + std::to_string(chip.architecture))
      return chip.architecture;
  return 0;
}

const Chip &chipOf(int architecture) {
  return *std::find_if(kChips.begin(), kChips.end(),
                       [&](const Chip &chip) { return chip.architecture == architecture; });
}

std::optional<int> attributeOf(const Chip &chip, int attribute, int device) {
  switch (attribute) {
  case 1:
    return 1024; // threads of a block
  case 2:
    return 1024; // x of a block
  case 3:
    return 1024; // y
  case 4:
    return 64; // z
  case 5:
    return 0x7fffffff; // x of a grid
  case 6:
    return 65535; // y
  case 7:
    return 65535; // z
  case 8:
    return kPlainSharedBytes; // shared memory of a block
  case 9:
    return 65536; // constant memory
  case 10:
    return 32; // lanes of a warp
  case 11:
    return 0x7fffffff; // pitch
  case 12:
    return 65536; // registers of a block
  case 13:
    return 1500000; // clock rate, kHz
  case 14:
    return 512; // alignment of textures
  case 16:
    return chip.multiprocessors;
  case 31:
    return 1; // concurrent kernels
  case 33:
    return 0; // PCI bus
  case 34:
    return device; // PCI device
  case 36:
    return 2000000; // clock rate of memory, kHz
  case 37:
    return chip.busBits;
  case 38:
    return chip.cacheBytes;
  case 39:
    return chip.threadsPerMultiprocessor;
  case 40:
    return 2; // copy engines
  case 41:
    return 1; // one address space
  case 50:
    return 0; // PCI domain
  case 75:
    return chip.architecture / 10;
  case 76:
    return chip.architecture % 10;
  case 78:
    return 1; // priorities of streams
  case 81:
    return chip.sharedPerMultiprocessor;
  case 82:
    return 65536; // registers of a multiprocessor
  case 92:
    return 1; // values written by streams
  case 95:
    return 1; // cooperative launches
  case 97:
    return chip.sharedPerBlock;
  case 106:
    return chip.blocksPerMultiprocessor;
  case 111:
    return 1024; // shared memory that the system keeps of each block
  case 115:
    return 1; // pools of memory
  case 122:
    return 1; // values of 64 bits written by streams
  // What kernels may use of these, the emulation does not have.
  case 15:
  case 17:
  case 18:
  case 19:
  case 20:
  case 32:
  case 83:
  case 84:
  case 88:
  case 89:
  case 91:
  case 96:
  case 102:
  case 116:
  case 120:
  case 127:
  case 132:
  case 133:
    return 0;
  default:
    return std::nullopt;
  }
}

} // namespace hone::emulation
