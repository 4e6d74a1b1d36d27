// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which rank has which GPU, and how they are connected.

#include "cuda/ranks/gpu_ranks.h"

#include <algorithm>
#include <array>
#include <vector>

namespace hone::rt::cuda {
namespace {

using io::cat;

using Uuid = std::array<char, 16>;

/// What the driver shows a rank; nothing where there is none.
struct Offer {
  int32_t count = 0;
  Uuid first = {}; // of the first GPU
};

Offer lookAround() {
  Offer offer;
  absl::StatusOr<const Driver *> driver = Driver::get();
  if (!driver.ok() || (*driver)->cuDeviceGetCount(&offer.count) != CUDA_SUCCESS || offer.count == 0 ||
      (*driver)->cuDeviceGetUuid(offer.first.data(), 0) != CUDA_SUCCESS)
    return {};
  return offer;
}

absl::Status fromOthers(const char *error) {
  return error ? absl::UnavailableError(cat("cannot reach the other processes: ", error)) : absl::OkStatus();
}

} // namespace

absl::StatusOr<int> chooseGpu(const hone_collectives *ranks) {
  if (!ranks)
    return 0;
  Offer mine = lookAround();
  std::vector<Offer> all(static_cast<size_t>(ranks->ranks));
  HONE_RETURN_IF_ERROR(fromOthers(ranks->all_gather(&mine, all.data(), sizeof mine)));
  if (mine.count == 0 || mine.count >= ranks->local_ranks)
    return mine.count == 0 ? 0 : ranks->local_rank;
  if (std::ranges::count(all, mine.first, &Offer::first) == 1) // nobody else was shown it
    return 0;
  return io::invalid("expected a GPU for each of the ", ranks->local_ranks, " ranks on this machine, but got ",
                     mine.count);
}

absl::StatusOr<GpuRanks *> GpuRanks::connect(std::shared_ptr<Context> context, const hone_collectives &processes) {
  static GpuRanks *connected = nullptr;
  if (connected) {
    HONE_RETURN_IF_ERROR(connected->checkUsable());
    return connected;
  }
  HONE_ASSIGN_OR_RETURN(const Nccl *nccl, Nccl::get());
  std::unique_ptr<GpuRanks> ranks(new GpuRanks(*nccl, std::move(context), processes.rank));
  HONE_RETURN_IF_ERROR(ranks->open(processes));
  connected = ranks.release();
  return connected;
}

/// Rank 0 gives out the name under which all find each other.
absl::Status GpuRanks::open(const hone_collectives &processes) {
  constexpr const char *what = "connect the GPUs of ranks by NCCL";
  struct Name {
    ncclUniqueId id = {};
    int32_t isMade = false;
  } mine;
  ncclResult_t result = number == 0 ? nccl.ncclGetUniqueId(&mine.id) : ncclSuccess;
  mine.isMade = result == ncclSuccess;
  std::vector<Name> all(static_cast<size_t>(processes.ranks));
  HONE_RETURN_IF_ERROR(fromOthers(processes.all_gather(&mine, all.data(), sizeof mine)));
  HONE_RETURN_IF_ERROR(nccl.check(result, what));
  if (!all[0].isMade)
    return absl::UnavailableError(cat("cannot ", what, ": rank 0 has no name for it"));
  Context::Scope current(*context);
  return nccl.check(nccl.ncclCommInitRank(&communicator, processes.ranks, all[0].id, processes.rank), what);
}

absl::Status GpuRanks::checkUsable() const {
  if (communicator && !context->isLost())
    return absl::OkStatus();
  return absl::UnavailableError(
      "cannot go on after a failure: the GPUs of the ranks are no longer connected; start all "
      "processes again");
}

absl::Status GpuRanks::allReduce(CUdeviceptr from, CUdeviceptr to, uint64_t count, CUstream stream) {
  HONE_RETURN_IF_ERROR(checkUsable());
  return nccl.check(nccl.ncclAllReduce(reinterpret_cast<const void *>(from), reinterpret_cast<void *>(to), count,
                                       ncclFloat32, ncclSum, communicator, stream),
                    "add up over the ranks by NCCL");
}

absl::Status GpuRanks::allGather(CUdeviceptr from, CUdeviceptr to, uint64_t bytes, CUstream stream) {
  HONE_RETURN_IF_ERROR(checkUsable());
  return nccl.check(nccl.ncclAllGather(reinterpret_cast<const void *>(from), reinterpret_cast<void *>(to), bytes,
                                       ncclInt8, communicator, stream),
                    "gather from the ranks by NCCL");
}

absl::Status GpuRanks::check() {
  HONE_RETURN_IF_ERROR(checkUsable());
  ncclResult_t result = ncclSuccess, asked = nccl.ncclCommGetAsyncError(communicator, &result);
  if (asked == ncclSuccess && (result == ncclSuccess || result == ncclInProgress))
    return absl::OkStatus();
  absl::Status status = nccl.check(asked == ncclSuccess ? result : asked, "reach the GPUs of the other ranks by NCCL");
  nccl.ncclCommAbort(std::exchange(communicator, nullptr));
  return status;
}

} // namespace hone::rt::cuda
