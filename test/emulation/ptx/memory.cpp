// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device memory in two ranges of the process.

#include "ptx/memory.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace hone::emulation {
namespace {

constexpr uint64_t kAlignment = 512;
// Addresses that are not used again at once show uses of memory that was freed.
constexpr uint64_t kRangesPerLimit = 4;
// Programs reserve as many addresses as there is memory for each thing that may become so large.
constexpr uint64_t kReservationsPerLimit = 64;
constexpr int kFill = 0xff;
// Runs of more granules are looked up in the list of allocations.
constexpr uint64_t kFewGranules = 80;

uint64_t reserve(uint64_t bytes, int protection) {
  void *range = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    throw std::bad_alloc();
  return reinterpret_cast<uint64_t>(range);
}

uint64_t roundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Room for an allocation, with a gap after it that nothing may touch.
uint64_t roomFor(uint64_t bytes) { return roundUp(bytes, kAlignment) + kAlignment; }

} // namespace

DeviceMemory::DeviceMemory(uint64_t limit)
    : total(limit), plain(roundUp(limit * kRangesPerLimit, kPage) + kPage),
      reserved(plain + kReservationsPerLimit * (roundUp(limit, kPage) + kPage)) {
  // What is mapped begins at a page of the device.
  range = reserve(reserved + kPage, PROT_NONE);
  base = roundUp(range, kPage);
  distance = reserve(reserved, PROT_READ | PROT_WRITE) - base;
  valid = reinterpret_cast<uint16_t *>(reserve(reserved / kGranule * sizeof(uint16_t), PROT_READ | PROT_WRITE));
}

DeviceMemory::~DeviceMemory() {
  for (auto &[handle, piece] : pieces)
    close(piece.file);
  munmap(reinterpret_cast<void *>(range), reserved + kPage);
  munmap(reinterpret_cast<void *>(base + distance), reserved);
  munmap(valid, reserved / kGranule * sizeof(uint16_t));
}

std::optional<uint64_t> DeviceMemory::place(uint64_t bytes) {
  uint64_t room = roomFor(bytes);
  if (plain - fresh >= room) {
    uint64_t at = fresh;
    fresh += room;
    return at;
  }
  uint64_t at = 0;
  for (auto [begin, size] : allocations) {
    if (begin - at >= room)
      return at;
    at = begin + roomFor(size);
  }
  return plain - at >= room ? std::optional(at) : std::nullopt;
}

std::optional<uint64_t> DeviceMemory::allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > available())
    return std::nullopt;
  std::optional<uint64_t> at = place(bytes);
  if (!at)
    return std::nullopt;
  allocations.emplace(*at, bytes);
  used += bytes;
  mark(*at, bytes, true);
  std::memset(this->bytes(base + *at), kFill, bytes);
  return base + *at;
}

bool DeviceMemory::release(uint64_t address) {
  auto found = allocations.find(address - base);
  if (found == allocations.end())
    return false;
  auto [at, bytes] = *found;
  allocations.erase(found);
  used -= bytes;
  mark(at, bytes, false);
  // Whole pages go back to the system.
  uint64_t page = 4096;
  uint64_t from = roundUp(at, page);
  uint64_t to = (at + bytes) / page * page;
  if (from < to)
    madvise(this->bytes(base + from), to - from, MADV_DONTNEED);
  return true;
}

void DeviceMemory::mark(uint64_t at, uint64_t bytes, bool live) {
  for (uint64_t done = 0; done < bytes; done += kGranule)
    valid[(at + done) / kGranule] = live ? static_cast<uint16_t>(std::min(bytes - done, kGranule)) : 0;
}

bool DeviceMemory::holdsMany(uint64_t at, uint64_t bytes) const {
  // Between two allocations there is always a granule that belongs to neither.
  uint64_t first = at / kGranule;
  uint64_t last = (at + bytes - 1) / kGranule;
  if (last - first < kFewGranules || at >= plain) {
    for (uint64_t granule = first; granule < last; ++granule)
      if (valid[granule] != kGranule)
        return false;
    return (at + bytes - 1) % kGranule < valid[last];
  }
  auto next = allocations.upper_bound(at);
  if (next == allocations.begin())
    return false;
  auto [begin, size] = *std::prev(next);
  return at + bytes <= begin + size;
}

std::optional<std::pair<uint64_t, uint64_t>> DeviceMemory::find(uint64_t address) const {
  auto next = allocations.upper_bound(address - base);
  if (!owns(address) || next == allocations.begin())
    return std::nullopt;
  auto [begin, size] = *std::prev(next);
  if (address - base >= begin + size)
    return std::nullopt;
  return std::pair(base + begin, size);
}

} // namespace hone::emulation
