// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights with several planes (codes, scales, zero points, indices) are stored interleaved: one contiguous block a
// panel holds the part of every plane. A block begins with its last plane, so that scales precede the codes they belong
// to; in a plane of their own each line of scales would be a cache miss that no hardware prefetch hides. Small planes
// begin at a multiple of 16 bytes, others and codes at a line. A block has an odd number of lines, so that panels that
// are read together fall into different cache sets.

#ifndef HONE_CPU_PACKING_PANEL_BLOCK_H
#define HONE_CPU_PACKING_PANEL_BLOCK_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hone::cpu {

constexpr size_t kMostPlanes = 4;

/// Where the planes begin within a panel block, and the size of a block; bytes.
struct PanelBlock {
  std::array<int64_t, kMostPlanes> offsets{};
  int64_t bytes = 0;

  /// `planeBytes`: what each plane has of a panel, kMostPlanes planes at most.
  explicit PanelBlock(std::span<const int64_t> planeBytes) {
    constexpr int64_t line = 64, small = 16;
    auto roundUp = [](int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; };
    for (size_t i = planeBytes.size(); i-- > 0;) {
      offsets[i] = roundUp(bytes, i == 0 || planeBytes[i] >= line ? line : small);
      bytes = offsets[i] + planeBytes[i];
    }
    int64_t lines = roundUp(bytes, line) / line;
    bytes = (lines + (lines % 2 == 0 && lines > 0)) * line;
  }
};

} // namespace hone::cpu

#endif // HONE_CPU_PACKING_PANEL_BLOCK_H
