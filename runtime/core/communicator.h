// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The processes that run one artefact together, of which this is one.

#ifndef HONE_RUNTIME_CORE_COMMUNICATOR_H
#define HONE_RUNTIME_CORE_COMMUNICATOR_H

#include "hone/io/status.h"
#include "hone/runtime/collectives.h"
#include "hone/runtime/program.h"

#include <atomic>
#include <span>

namespace hone::rt {

/// One for the process, from the first artefact for several ranks on. It leaves when the process ends: in peace, or if a call
/// has failed, by ending the others too, which may wait for this one.
class Communicator {
public:
  /// Joins `ranks` processes, or finds that they are joined. `artefact` tells what they run: it has to be the same on all. Fails
  /// where there is no library for it, or another number of processes.
  static absl::StatusOr<Communicator *> join(int64_t ranks, std::string_view artefact);
  /// The processes that are joined, or null.
  static Communicator *current();
  /// Takes processes that `library` has joined, once, before any artefact is loaded.
  static absl::StatusOr<Communicator *> adopt(const hone_collectives *library);

  int64_t rank() const { return library->rank; }
  int64_t ranks() const { return library->ranks; }

  /// As in hone/runtime/collectives.h.
  absl::Status allReduce(std::span<const float> from, float *to);
  absl::Status allGather(const void *from, void *to, int64_t bytes);

  /// The processes, as libraries of devices take them.
  const hone_collectives &processes() const { return *library; }

  /// `mine`, what has become here of something that all ranks have tried. Where any of them has failed, all fail: this one with what
  /// another says, if it has not failed itself; the first of those that have says why.
  absl::Status agree(absl::Status mine);

  /// What rank 0 has for `value`.
  absl::StatusOr<int64_t> takeFirst(int64_t value);

  /// Notes that a call has failed here; others may be waiting for this process.
  void fail() { hasFailed = true; }
  /// Leaves, once. After a failure it ends all processes with exit code 1, this one too.
  void leave();
  /// Whether this process says what went wrong: what all know, one says.
  bool speaks() const { return rank() == speaker || !isKnownToAll; }

private:
  explicit Communicator(const hone_collectives *library) : library(library) {}
  static absl::StatusOr<Communicator *> open();
  absl::Status check(const char *error);
  absl::Status checkArtefact(std::string_view artefact);
  absl::Status failTogether(absl::Status status, int64_t by = 0);

  const hone_collectives *library;
  std::atomic<bool> hasFailed = false, hasLeft = false, isKnownToAll = false; // calls of several threads say so
  std::atomic<int64_t> speaker = 0;                                           // of what all know
};

/// Whether this process prints and writes files: rank 0, or one that runs alone.
bool isFirstRank();

/// Notes a failure here for the processes that are joined, if there are any.
void failRanks();

/// A kernel that ranks run together (hone/runtime/collectives.h) by its name, or null.
hone_kernel_fn findCollective(std::string_view name);

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_COMMUNICATOR_H
