// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The GPUs of the processes that run one artefact together.

#ifndef HONE_RUNTIME_CUDA_RANKS_GPU_RANKS_H
#define HONE_RUNTIME_CUDA_RANKS_GPU_RANKS_H

#include "cuda/context.h"
#include "cuda/ranks/nccl.h"
#include "hone/runtime/collectives.h"

namespace hone::rt::cuda {

/// The number of the GPU, among those that the driver shows, of this process. `ranks` are all that run the artefact, which call this
/// together; null where it runs alone, on the first GPU. Where the driver shows as many as there are ranks on this machine, each takes
/// that of its number there; a launcher may also show each rank one of its own. Fails where there are fewer GPUs than ranks; where there
/// is no driver, opening it says so.
absl::StatusOr<int> chooseGpu(const hone_collectives *ranks);

/// This process's GPU connected with those of the other ranks by NCCL. One for the process, until it ends: to leave it would need all
/// ranks, also those that wait for one that has failed. One thread at a time.
class GpuRanks {
public:
  /// Connects, together with all ranks, or returns what is connected. Fails where NCCL does, or where a fault of this GPU or a failure of
  /// another rank has ended what was connected.
  static absl::StatusOr<GpuRanks *> connect(std::shared_ptr<Context> context, const hone_collectives &processes);

  int64_t rank() const { return number; }

  /// These enqueue. `to`, of `count` numbers, becomes the sum of all ranks' `from`.
  absl::Status allReduce(CUdeviceptr from, CUdeviceptr to, uint64_t count, CUstream stream);
  /// `to`, of as many times `bytes` as there are ranks, becomes what all ranks have at `from`, in their order.
  absl::Status allGather(CUdeviceptr from, CUdeviceptr to, uint64_t bytes, CUstream stream);

  /// Whether everything that was enqueued can end: fails once another rank cannot be reached. Kernels that wait for it are ended then.
  absl::Status check();

private:
  GpuRanks(const Nccl &nccl, std::shared_ptr<Context> context, int64_t number)
      : nccl(nccl), context(std::move(context)), number(number) {}
  absl::Status open(const hone_collectives &processes);
  absl::Status checkUsable() const;

  const Nccl &nccl;
  std::shared_ptr<Context> context;
  int64_t number;
  ncclComm_t communicator = nullptr; // null where it was ended
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_RANKS_GPU_RANKS_H
