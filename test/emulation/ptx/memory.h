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

  // Virtual memory management (virtual_memory.cpp): addresses, the memory that is mapped there, and who may touch it, each by itself.
  // All sizes and addresses are multiples of kPage.
  static constexpr uint64_t kPage = uint64_t{2} << 20;

  /// Addresses that nothing else gets; what is touched there without being mapped is a fault.
  std::optional<uint64_t> reserveAddresses(uint64_t bytes, uint64_t alignment);
  /// False where the range is not what reserveAddresses() gave, or something is mapped in it.
  bool freeAddresses(uint64_t address, uint64_t bytes);
  /// A piece of memory without an address, filled with ones; none where too little is left.
  std::optional<uint64_t> create(uint64_t bytes);
  /// The piece goes once it is mapped nowhere; false where it was not there.
  bool releasePiece(uint64_t piece);
  /// False where the range is not reserved, is mapped already, or the piece is smaller or gone.
  bool map(uint64_t address, uint64_t bytes, uint64_t piece);
  /// False where the range does not consist of whole mappings.
  bool unmap(uint64_t address, uint64_t bytes);
  /// Lets kernels and copies touch a range; false where it does not consist of whole mappings.
  bool allow(uint64_t address, uint64_t bytes);
  bool isMapped(uint64_t address) const;

private:
  struct Piece {
    int file; // of memory
    uint64_t bytes;
    uint64_t mappings = 0;
    bool isReleased = false;
  };
  struct Mapping {
    uint64_t bytes;
    uint64_t piece;
  };
  void drop(uint64_t piece);
  bool coversMappings(uint64_t at, uint64_t bytes) const;
  static constexpr uint64_t kGranule = 256;

  bool holdsMany(uint64_t at, uint64_t bytes) const;
  std::optional<uint64_t> place(uint64_t bytes);
  void mark(uint64_t at, uint64_t bytes, bool live);

  uint64_t total;
  uint64_t used = 0;
  uint64_t plain;     // bytes of the range that allocations are from; after them lie addresses that are reserved
  uint64_t reserved;  // bytes of the range
  uint64_t range = 0; // that the system gave; the base is the first page in it
  uint64_t base = 0;
  uint64_t distance = 0;
  uint64_t fresh = 0;                        // what follows this offset was never given out
  uint16_t *valid = nullptr;                 // bytes of each granule that are allocated, from its beginning
  std::map<uint64_t, uint64_t> allocations;  // offset, bytes
  std::map<uint64_t, uint64_t> reservations; // offset, bytes
  std::map<uint64_t, Mapping> mappings;      // by offset
  std::map<uint64_t, Piece> pieces;
  static inline uint64_t latestPiece = 0; // of all devices
};

} // namespace hone::emulation
