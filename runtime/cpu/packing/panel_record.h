// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights that have several planes, levels and their scales, lie in memory as records: what all planes have of a panel, one record
// behind the other. A record begins with its last plane, so that scales lie before the levels that they belong to: read from a
// plane of their own, each line of scales costs as much as any access to memory that no other announces. Small planes begin at
// a multiple of 16 bytes, others and levels at a line. A record has an odd number of lines, so that panels which are read at the
// same time lie at unlike places of their pages.

#ifndef HONE_RUNTIME_CPU_PACKING_PANEL_RECORD_H
#define HONE_RUNTIME_CPU_PACKING_PANEL_RECORD_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hone::cpu {

constexpr size_t kMostPlanes = 4;

/// Where the planes begin within a record, and what a record has; bytes.
struct PanelRecord {
  std::array<int64_t, kMostPlanes> offsets{};
  int64_t bytes = 0;

  /// `planeBytes`: what each plane has of a panel, kMostPlanes planes at most.
  explicit PanelRecord(std::span<const int64_t> planeBytes) {
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

#endif // HONE_RUNTIME_CPU_PACKING_PANEL_RECORD_H
