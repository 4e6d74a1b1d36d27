// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Joining other processes, and what ranks agree on.

#include "core/communicator.h"

#include "core/shared_library.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>
#include <zlib.h>

namespace hone::rt {
namespace {

using io::cat;
using io::invalid;

constexpr const char *kLibrary = "libhone_mpi.so", *kOpen = "hone_open_collectives";

std::atomic<Communicator *> joined = nullptr;
std::mutex joining; // of threads that load artefacts at the same time

} // namespace

Communicator *Communicator::current() { return joined; }

absl::StatusOr<Communicator *> Communicator::open() {
  // Open MPI loads parts of itself later, which look for its symbols everywhere.
  HONE_ASSIGN_OR_RETURN(void *symbol, findInLibrary(kLibrary, kOpen, SymbolScope::Global));
  const char *error = nullptr;
  const hone_collectives *library = reinterpret_cast<hone_open_collectives_fn>(symbol)(&error);
  if (!library)
    return absl::UnavailableError(cat("cannot join other processes: ", error ? error : "no reason given"));
  return adopt(library);
}

absl::StatusOr<Communicator *> Communicator::adopt(const hone_collectives *library) {
  if (library->version != HONE_COLLECTIVES_VERSION)
    return invalid("unsupported version ", library->version, " of ", kLibrary,
                   "; supported: ", HONE_COLLECTIVES_VERSION);
  joined = new Communicator(library); // until the process ends
  std::atexit([] { current()->leave(); });
  return current();
}

absl::StatusOr<Communicator *> Communicator::join(int64_t ranks, std::string_view artefact) {
  std::lock_guard lock(joining);
  Communicator *all = current();
  if (!all) {
    HONE_ASSIGN_OR_RETURN(all, open());
  }
  if (all->ranks() != ranks)
    return all->failTogether(
        invalid("expected ", ranks, " processes, but got ", all->ranks(), "; 'mpirun -n ", ranks, "' starts as many"));
  HONE_RETURN_IF_ERROR(all->checkArtefact(artefact));
  return all;
}

/// What all processes find at once.
absl::Status Communicator::failTogether(absl::Status status, int64_t by) {
  isKnownToAll = true;
  speaker = by;
  return status;
}

absl::Status Communicator::agree(absl::Status mine) {
  uint8_t isFailure = !mine.ok();
  std::vector<uint8_t> all(static_cast<size_t>(ranks()));
  HONE_RETURN_IF_ERROR(allGather(&isFailure, all.data(), sizeof(isFailure)));
  int64_t first = std::ranges::find(all, 1) - all.begin();
  if (first == ranks())
    return mine;
  return failTogether(mine.ok() ? absl::UnavailableError(cat("rank ", first, " has failed")) : std::move(mine), first);
}

absl::Status Communicator::checkArtefact(std::string_view artefact) {
  uint64_t mine = crc32_z(0, reinterpret_cast<const Bytef *>(artefact.data()), artefact.size());
  std::vector<uint64_t> all(static_cast<size_t>(ranks()));
  HONE_RETURN_IF_ERROR(allGather(&mine, all.data(), sizeof(mine)));
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      return failTogether(
          invalid("expected the same artefact and kernels on all ranks, but rank ", rank, " has others than rank 0"));
  return absl::OkStatus();
}

absl::Status Communicator::check(const char *error) {
  if (!error)
    return absl::OkStatus();
  hasFailed = true;
  return absl::UnavailableError(cat("cannot reach the other processes: ", error));
}

absl::Status Communicator::allReduce(std::span<const float> from, float *to) {
  return check(library->all_reduce_f32(from.data(), to, static_cast<int64_t>(from.size())));
}

absl::Status Communicator::allGather(const void *from, void *to, int64_t bytes) {
  return check(library->all_gather(from, to, bytes));
}

absl::StatusOr<int64_t> Communicator::takeFirst(int64_t value) {
  std::vector<int64_t> all(static_cast<size_t>(ranks()));
  HONE_RETURN_IF_ERROR(allGather(&value, all.data(), sizeof(value)));
  return all[0];
}

void Communicator::leave() {
  if (!hasLeft.exchange(true))
    library->leave(hasFailed && !isKnownToAll);
}

void failRanks() {
  if (Communicator *all = Communicator::current())
    all->fail();
}

bool isFirstRank() {
  const Communicator *all = Communicator::current();
  return !all || all->rank() == 0;
}

} // namespace hone::rt
