// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses and memory apart from each other: a piece of memory is a file without a name, mapped where the bytes of an address lie.

#include "ptx/memory.h"

#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace hone::emulation {
namespace {

constexpr int kFill = 0xff;

uint64_t roundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Puts memory of a file, or none, at an address of the process.
void mapFile(std::byte *at, uint64_t bytes, int file) {
  int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  if (mmap(at, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file, 0) == MAP_FAILED)
    throw std::bad_alloc();
}

} // namespace

std::optional<uint64_t> DeviceMemory::reserveAddresses(uint64_t bytes, uint64_t alignment) {
  uint64_t multiple = alignment > kPage ? alignment : kPage, at = roundUp(plain, multiple);
  for (auto [begin, size] : reservations) {
    if (begin >= at && begin - at >= bytes + kPage)
      break;
    at = roundUp(begin + size + kPage, multiple); // a page that nobody may touch lies between two
  }
  if (at > reserved || bytes > reserved - at)
    return std::nullopt;
  reservations.emplace(at, bytes);
  return base + at;
}

bool DeviceMemory::freeAddresses(uint64_t address, uint64_t bytes) {
  auto found = reservations.find(address - base);
  if (found == reservations.end() || found->second != bytes)
    return false;
  auto mapped = mappings.lower_bound(found->first);
  if (mapped != mappings.end() && mapped->first < found->first + bytes)
    return false;
  reservations.erase(found);
  return true;
}

std::optional<uint64_t> DeviceMemory::create(uint64_t bytes) {
  if (bytes > available())
    return std::nullopt;
  int file = memfd_create("device memory", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0)
    throw std::bad_alloc();
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  std::memset(memory, kFill, bytes);
  munmap(memory, bytes);
  used += bytes;
  pieces.emplace(++latestPiece, Piece{file, bytes});
  return latestPiece;
}

void DeviceMemory::drop(uint64_t piece) {
  const Piece &dropped = pieces.at(piece);
  if (!dropped.isReleased || dropped.mappings > 0)
    return;
  used -= dropped.bytes;
  close(dropped.file);
  pieces.erase(piece);
}

bool DeviceMemory::releasePiece(uint64_t piece) {
  auto found = pieces.find(piece);
  if (found == pieces.end() || found->second.isReleased)
    return false;
  found->second.isReleased = true;
  drop(piece);
  return true;
}

bool DeviceMemory::map(uint64_t address, uint64_t bytes, uint64_t piece) {
  uint64_t at = address - base;
  auto reservation = reservations.upper_bound(at);
  auto found = pieces.find(piece);
  if (reservation == reservations.begin() || found == pieces.end() || found->second.isReleased ||
      bytes > found->second.bytes)
    return false;
  auto [begin, size] = *--reservation;
  auto next = mappings.lower_bound(at);
  bool isFree = next == mappings.end() || next->first >= at + bytes;
  if (next != mappings.begin())
    isFree = isFree && std::prev(next)->first + std::prev(next)->second.bytes <= at;
  if (!isFree || at + bytes > begin + size)
    return false;
  mapFile(this->bytes(address), bytes, found->second.file);
  mappings.emplace(at, Mapping{bytes, piece});
  ++found->second.mappings;
  return true;
}

bool DeviceMemory::coversMappings(uint64_t at, uint64_t bytes) const {
  uint64_t end = at + bytes;
  for (auto next = mappings.find(at); at < end; ++next) {
    if (next == mappings.end() || next->first != at)
      return false;
    at += next->second.bytes;
  }
  return at == end;
}

bool DeviceMemory::unmap(uint64_t address, uint64_t bytes) {
  uint64_t at = address - base, end = at + bytes;
  if (!coversMappings(at, bytes))
    return false;
  mark(at, bytes, false);
  mapFile(this->bytes(address), bytes, -1);
  for (auto next = mappings.find(at); next != mappings.end() && next->first < end; next = mappings.erase(next)) {
    --pieces.at(next->second.piece).mappings;
    drop(next->second.piece);
  }
  return true;
}

bool DeviceMemory::allow(uint64_t address, uint64_t bytes) {
  if (!coversMappings(address - base, bytes))
    return false;
  mark(address - base, bytes, true);
  return true;
}

bool DeviceMemory::isMapped(uint64_t address) const {
  auto next = mappings.upper_bound(address - base);
  if (!owns(address) || next == mappings.begin())
    return false;
  --next;
  return address - base < next->first + next->second.bytes;
}

} // namespace hone::emulation
