// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening the library that knows other processes, and what ranks agree on.

#include "core/communicator.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <vector>
#include <zlib.h>

namespace hone::rt {
namespace {

using io::cat;
using io::invalid;

constexpr const char *kLibrary = "libhone_mpi.so", *kOpen = "hone_open_collectives";

Communicator *joined = nullptr;

/// Where the library may be: with the library or the program that this code is in, or in `lib` beside its folder.
std::vector<std::string> listPlaces() {
  std::vector<std::string> places;
  Dl_info self = {};
  std::error_code error;
  if (dladdr(reinterpret_cast<const void *>(&listPlaces), &self) && self.dli_fname) {
    std::filesystem::path folder = std::filesystem::canonical(self.dli_fname, error).parent_path();
    if (!error)
      places = {(folder / kLibrary).string(), (folder.parent_path() / "lib" / kLibrary).string()};
  }
  std::erase_if(places, [&](const std::string &place) { return !std::filesystem::exists(place, error); });
  places.emplace_back(kLibrary); // where the system looks for libraries
  return places;
}

absl::StatusOr<hone_open_collectives_fn> loadLibrary() {
  // Open MPI loads parts of itself later, which look for its symbols everywhere.
  void *library = dlopen(listPlaces().front().c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    return absl::NotFoundError(cat("cannot load ", dlerror()));
  auto open = reinterpret_cast<hone_open_collectives_fn>(dlsym(library, kOpen));
  if (!open)
    return invalid(kLibrary, ": has no symbol ", kOpen);
  return open;
}

} // namespace

Communicator *Communicator::current() { return joined; }

absl::StatusOr<Communicator *> Communicator::open() {
  HONE_ASSIGN_OR_RETURN(hone_open_collectives_fn function, loadLibrary());
  const char *error = nullptr;
  const hone_collectives *library = function(&error);
  if (!library)
    return absl::UnavailableError(cat("cannot join other processes: ", error ? error : "no reason given"));
  return adopt(library);
}

absl::StatusOr<Communicator *> Communicator::adopt(const hone_collectives *library) {
  if (library->version != HONE_COLLECTIVES_VERSION)
    return invalid("unsupported version ", library->version, " of ", kLibrary,
                   "; supported: ", HONE_COLLECTIVES_VERSION);
  joined = new Communicator(library); // until the process ends
  std::atexit([] { joined->leave(); });
  return joined;
}

absl::StatusOr<Communicator *> Communicator::join(int64_t ranks, std::string_view artefact) {
  if (!joined) {
    HONE_ASSIGN_OR_RETURN(joined, open());
  }
  if (joined->ranks() != ranks)
    return joined->failTogether(invalid("expected ", ranks, " processes, but got ", joined->ranks(), "; 'mpirun -n ",
                                        ranks, "' starts as many"));
  HONE_RETURN_IF_ERROR(joined->checkArtefact(artefact));
  return joined;
}

/// What all processes find at once.
absl::Status Communicator::failTogether(absl::Status status) {
  isKnownToAll = true;
  return status;
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
  return check(library->all_reduce_f32(from.data(), to, static_cast<int64_t>(from.size()), nullptr));
}

absl::Status Communicator::allGather(const void *from, void *to, int64_t bytes) {
  return check(library->all_gather(from, to, bytes, nullptr));
}

absl::StatusOr<int64_t> Communicator::takeFirst(int64_t value) {
  std::vector<int64_t> all(static_cast<size_t>(ranks()));
  HONE_RETURN_IF_ERROR(allGather(&value, all.data(), sizeof(value)));
  return all[0];
}

void Communicator::leave() {
  if (!hasLeft)
    library->leave(hasFailed && !isKnownToAll);
  hasLeft = true;
}

void failRanks() {
  if (joined)
    joined->fail();
}

bool isFirstRank() { return !joined || joined->rank() == 0; }

} // namespace hone::rt
