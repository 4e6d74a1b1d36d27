// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory that the compiler planned for a call: one block in slots, kept for the calls that follow.

#ifndef HONE_RUNTIME_CORE_ARENA_H
#define HONE_RUNTIME_CORE_ARENA_H

#include <cstdint>
#include <span>

namespace hone::rt {

/// Used by one call at a time. With AddressSanitizer, what lies between two slots may not be touched.
class Arena {
public:
  Arena() = default;
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;
  ~Arena();

  /// Places one slot for each of `bytes`, aligned to 64 bytes, uninitialised, valid until the next call of this. False if
  /// there is not so much memory.
  [[nodiscard]] bool place(std::span<const uint64_t> bytes, std::span<void *> slots);

  /// The bytes that place() asks for in all, gaps included, or the largest number where they are more than can exist.
  static uint64_t totalBytes(std::span<const uint64_t> bytes);

  /// How often memory was taken from the operating system.
  int64_t growths() const { return growthCount; }

private:
  bool grow(uint64_t bytes);
  void clear();

  uint8_t *memory = nullptr;
  uint64_t capacity = 0;
  int64_t growthCount = 0;
};

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_ARENA_H
