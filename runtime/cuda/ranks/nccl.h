// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVIDIA's library of what GPUs do together, opened with the first artefact for several ranks. All others need nothing of it.

#ifndef HONE_RUNTIME_CUDA_RANKS_NCCL_H
#define HONE_RUNTIME_CUDA_RANKS_NCCL_H

#include "cuda/ranks/nccl_types.h"
#include "hone/io/status.h"

#include <memory>

namespace hone::rt::cuda {

/// The functions of the library, under their names. Never closed.
class Nccl {
public:
#define HONE_NCCL_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
#include "cuda/ranks/nccl_functions.def"
#undef HONE_NCCL_FUNCTION

  /// The library that the loader finds as libnccl.so.2. Opened by the first call that succeeds, once in a process.
  static absl::StatusOr<const Nccl *> get();

  /// Opens a library. Fails, in one sentence, without it and with one that is too old.
  static absl::StatusOr<std::unique_ptr<const Nccl>> open(const char *file);

  /// OK, or "cannot <what>: <result>: <what the library said last>".
  absl::Status check(ncclResult_t result, std::string_view what) const;

private:
  Nccl() = default;
  absl::Status checkVersion(const char *file) const;
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_RANKS_NCCL_H
