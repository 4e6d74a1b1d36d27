// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device memory: what the host cannot touch, and kernels only where it is allocated.
//
// A device address is an address in a range of the process that is never accessible. The bytes lie in a second range, at the
// same distance for all of them, which only copies and kernels know. So a host that follows a device pointer crashes, also
// while a kernel runs.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace hone::emulation {

class DeviceMemory {
public:
  /// Memory of so many bytes; addresses are used again only when a multiple of that has been given out.
  explicit DeviceMemory(uint64_t limit);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  /// The address of new memory, a multiple of 512, filled with ones (NaN in every type); none where too little is left.
  std::optional<uint64_t> allocate(uint64_t bytes);
  /// Gives memory back; false where the address is not one that allocate() returned.
  bool release(uint64_t address);

  /// Whether all of these bytes lie in one live allocation.
  bool holds(uint64_t address, uint64_t bytes) const {
    uint64_t at = address - base;
    if (at >= reserved || bytes > reserved - at)
      return false;
    uint64_t granule = at / kGranule;
    if (at % kGranule + bytes <= kGranule)
      return at % kGranule + bytes <= valid[granule];
    return holdsMany(at, bytes);
  }
  /// Whether the address is in the range of device memory, allocated or not.
  bool owns(uint64_t address) const { return address - base < reserved; }
  /// Where the bytes of an address lie.
  std::byte *bytes(uint64_t address) const { return reinterpret_cast<std::byte *>(address + distance); }

  uint64_t limit() const { return total; }
  uint64_t available() const { return total - used; }
  /// The allocation that holds an address: its beginning and size in bytes.
  std::optional<std::pair<uint64_t, uint64_t>> find(uint64_t address) const;

private:
  static constexpr uint64_t kGranule = 256;

  bool holdsMany(uint64_t at, uint64_t bytes) const;
  std::optional<uint64_t> place(uint64_t bytes);
  void mark(uint64_t at, uint64_t bytes, bool live);

  uint64_t total;
  uint64_t used = 0;
  uint64_t reserved;
  uint64_t base = 0;
  uint64_t distance = 0;
  uint64_t fresh = 0;                       // what lies behind this offset was never given out
  uint16_t *valid = nullptr;                // bytes of each granule that are allocated, from its beginning
  std::map<uint64_t, uint64_t> allocations; // offset, bytes
};

} // namespace hone::emulation
