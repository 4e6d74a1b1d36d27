// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone/runtime/collectives.h by MPI (MPI: A Message-Passing Interface Standard, version 3.1).

#include "hone/runtime/collectives.h"

#include <algorithm>
#include <cstdio>
#include <mpi.h>

namespace {

/// What one call of MPI moves at most: its counts are ints.
constexpr int64_t kMostElements = int64_t(1) << 30;

MPI_Comm ranks = MPI_COMM_NULL;
bool isOurs = false; // whether MPI was initialised here

/// Null for success, or what MPI says of `code`.
const char *describe(int code) {
  static char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (code == MPI_SUCCESS)
    return nullptr;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
    std::snprintf(text, sizeof(text), "error %d of MPI", code);
  return text;
}

/// All processes get the same bits: the standard asks for that (section 5.9.6).
const char *allReduce(const float *from, float *to, int64_t count) {
  for (int64_t at = 0; at < count; at += kMostElements) {
    int part = static_cast<int>(std::min(kMostElements, count - at));
    if (const char *error = describe(MPI_Allreduce(from + at, to + at, part, MPI_FLOAT, MPI_SUM, ranks)))
      return error;
  }
  return nullptr;
}

/// Parts lie beside each other at the end, so that one call has to move all bytes of a rank.
const char *allGather(const void *from, void *to, int64_t bytes) {
  if (bytes <= kMostElements)
    return describe(
        MPI_Allgather(from, static_cast<int>(bytes), MPI_BYTE, to, static_cast<int>(bytes), MPI_BYTE, ranks));
  return "more bytes of one rank than 2^30";
}

void leave(int hasFailed) {
  std::fflush(nullptr);
  if (hasFailed)
    MPI_Abort(ranks, 1);
  else if (isOurs)
    MPI_Finalize();
}

hone_collectives collectives = {HONE_COLLECTIVES_VERSION, 0, 1, 0, 1, 0, allReduce, allGather, leave};

/// MPI for one thread at a time, unless the application has it already.
const char *initialise() {
  int isInitialised = 0, provided = MPI_THREAD_SINGLE;
  if (const char *error = describe(MPI_Initialized(&isInitialised)))
    return error;
  if (isInitialised)
    return describe(MPI_Query_thread(&provided));
  isOurs = true;
  if (const char *error = describe(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided)))
    return error;
  return provided < MPI_THREAD_SERIALIZED ? "this MPI serves no threads" : nullptr;
}

/// Which of the processes on this machine, by the memory that they could share, this one is.
const char *findPlace() {
  MPI_Comm machine = MPI_COMM_NULL;
  if (const char *error =
          describe(MPI_Comm_split_type(ranks, MPI_COMM_TYPE_SHARED, collectives.rank, MPI_INFO_NULL, &machine)))
    return error;
  if (const char *error = describe(MPI_Comm_rank(machine, &collectives.local_rank)))
    return error;
  if (const char *error = describe(MPI_Comm_size(machine, &collectives.local_ranks)))
    return error;
  return describe(MPI_Comm_free(&machine));
}

const char *join() {
  if (const char *error = initialise())
    return error;
  if (const char *error = describe(MPI_Comm_dup(MPI_COMM_WORLD, &ranks)))
    return error;
  if (const char *error = describe(MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN)))
    return error;
  if (const char *error = describe(MPI_Comm_rank(ranks, &collectives.rank)))
    return error;
  if (const char *error = describe(MPI_Comm_size(ranks, &collectives.ranks)))
    return error;
  return findPlace();
}

} // namespace

extern "C" __attribute__((visibility("default"))) const hone_collectives *hone_open_collectives(const char **error) {
  *error = join();
  return *error ? nullptr : &collectives;
}
