// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types and constants of NVIDIA's NCCL (libnccl.so.2) that the runtime uses, under the names of its documentation, for the reason
// that driver_types.h has. They are the same in all versions 2.

#ifndef HONE_RUNTIME_CUDA_RANKS_NCCL_TYPES_H
#define HONE_RUNTIME_CUDA_RANKS_NCCL_TYPES_H

#include <cstddef>

struct CUstream_st;
struct ncclComm;

namespace hone::rt::cuda {

using ncclComm_t = ::ncclComm *;

struct ncclUniqueId {
  char internal[128];
};

/// Values that are not listed here may be returned.
enum ncclResult_t : int { ncclSuccess = 0, ncclInProgress = 7 };

enum ncclRedOp_t : int { ncclSum = 0 };
enum ncclDataType_t : int { ncclInt8 = 0, ncclFloat32 = 7 };

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_RANKS_NCCL_TYPES_H
