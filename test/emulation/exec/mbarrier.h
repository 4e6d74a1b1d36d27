// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of a barrier in shared memory. Its bits are opaque to programs.

#pragma once

#include <cstddef>
#include <cstdint>

namespace hone::emulation {

struct Mbarrier {
  uint32_t pending = 0;  // threads that have not arrived in this phase
  uint32_t expected = 0; // threads of a phase
  int64_t bytes = 0;     // that are expected and have not come
  uint32_t phase = 0;    // its parity

  static Mbarrier load(const std::byte *place);
  uint64_t bits() const;
  /// Writes it back; where nobody and nothing is missing, the next phase begins.
  void store(std::byte *place);
  void arrive(uint32_t count);
  void expect(int64_t count);
};

} // namespace hone::emulation
