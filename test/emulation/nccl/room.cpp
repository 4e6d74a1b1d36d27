// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exchange in pieces: each rank writes its piece into its place, waits until all have, and reads.

#include "nccl/room.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hone::emulation {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr auto kLongestEntrance = std::chrono::minutes(2);
std::string created; // whose name is removed when the process ends, if nobody has entered until then

void removeName() { shm_unlink(created.c_str()); }

} // namespace

struct Room::Place {
  std::atomic<uint64_t> entered, written, read; // how often
  std::atomic<bool> hasLeft;
  pid_t process;
  Uuid device;
  CollectiveCall call;
  std::byte piece[kPieceBytes];
};

struct Room::Memory {
  Place places[kMostRanks];
};

std::string Room::create() {
  auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  created = "/hone-nccl-" + std::to_string(getpid()) + "-" + std::to_string(now);
  int file = shm_open(created.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
  if (file < 0)
    return "";
  std::atexit(removeName);
  bool hasRoom = ftruncate(file, sizeof(Memory)) == 0; // places that nobody takes stay empty
  close(file);
  return hasRoom ? created : "";
}

Room *Room::enter(const std::string &name, int ranks, int rank, const Uuid &device, std::string &reason) {
  int file = ranks <= kMostRanks ? shm_open(name.c_str(), O_RDWR, 0600) : -1;
  void *mapped = file < 0 ? MAP_FAILED : mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0)
    close(file);
  if (mapped == MAP_FAILED) {
    reason = "no shared memory '" + name + "': " + std::strerror(errno);
    return nullptr;
  }
  auto *room = new Room(static_cast<Memory *>(mapped), ranks, rank);
  Place &place = room->memory->places[rank];
  place.process = getpid();
  place.device = device;
  place.entered = 1;
  auto begin = std::chrono::steady_clock::now();
  auto isEmpty = [](const Place &other) { return other.entered == 0; };
  while (std::any_of(room->memory->places, room->memory->places + ranks, isEmpty)) {
    if (std::chrono::steady_clock::now() - begin > kLongestEntrance) {
      reason = "not all ranks came";
      return nullptr;
    }
    usleep(100);
  }
  shm_unlink(name.c_str());
  reason = room->checkDevices();
  return reason.empty() ? room : nullptr;
}

std::string Room::checkDevices() const {
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < a; ++b)
      if (memory->places[a].device == memory->places[b].device)
        return "Duplicate GPU detected : rank " + std::to_string(b) + " and rank " + std::to_string(a) +
               " are both on one";
  return "";
}

void Room::leave() { memory->places[self].hasLeft = true; }

bool Room::isThere(const Place &place) const {
  return !place.hasLeft && (kill(place.process, 0) == 0 || errno != ESRCH);
}

/// False where one of those that are waited for is gone.
bool Room::waitForAll(std::atomic<uint64_t> Place::*counter, uint64_t value) {
  for (int rank = 0; rank < count; ++rank)
    for (const Place &place = memory->places[rank]; place.*counter < value; sched_yield())
      if (!isThere(place) && place.*counter < value)
        return false;
  return true;
}

Room::Outcome Room::exchange(const CollectiveCall &call, std::span<const std::byte> mine, std::span<std::byte> all) {
  Place &place = memory->places[self];
  for (size_t done = 0; done < mine.size();) {
    size_t bytes = std::min(kPieceBytes, mine.size() - done);
    if (!waitForAll(&Place::read, turn++))
      return Outcome::Alone;
    place.call = call;
    std::memcpy(place.piece, mine.data() + done, bytes);
    place.written = turn;
    if (!waitForAll(&Place::written, turn))
      return Outcome::Alone;
    for (int rank = 0; rank < count; ++rank) {
      if (memory->places[rank].call != call)
        return Outcome::Different;
      std::memcpy(all.data() + static_cast<size_t>(rank) * mine.size() + done, memory->places[rank].piece, bytes);
    }
    place.read = turn;
    done += bytes;
  }
  return Outcome::Done;
}

} // namespace hone::emulation
