//===- collectives.h - what ranks of a parallel program do together -------------------------------------------*- C -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An artefact for several ranks is one program that each of as many processes runs with its own weights. It imports the kernels
// below. The processes are joined by a library of its own, libhone_mpi, opened when such an artefact is loaded and not before, so that
// all others need nothing of it. Programs of the CPU exchange everything by it. Those of CUDA exchange by NCCL what lies in the memory
// of GPUs; libhone_mpi then says who is who.
//
//===--------------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_RUNTIME_COLLECTIVES_H
#define HONE_RUNTIME_COLLECTIVES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Kernels that programs import, with the signature of hone_kernel_fn, under these names after "hone." on the CPU and "cuda." on GPUs.
/// Operands: an input, and an output that does not overlap it; any strides. All ranks make the same calls in the same order, with
/// operands of the same sizes.
///   all_reduce.f32  output = the sum of all ranks' inputs, in f32, of the input's shape, in the order of the library, MPI or NCCL. On
///                   the CPU each rank gets the same bits
///   all_gather      ints: axis. output = all ranks' inputs beside each other along that axis, in the order of the ranks
///   all_slice       ints: axis. output = this rank's part of the input, of as many equal ones along that axis as there are ranks, in
///                   their order
/// Where one fails, the call ends as by hone_rt_fail.
#define HONE_ALL_REDUCE "all_reduce.f32"
#define HONE_ALL_GATHER "all_gather"
#define HONE_ALL_SLICE "all_slice"

#define HONE_COLLECTIVES_VERSION 2u

/// The processes of a parallel program. Functions take memory of the host, and have happened when they return: null, or what went
/// wrong, in a sentence without its end that is valid until the next call. One thread at a time.
typedef struct hone_collectives {
  uint32_t version; // HONE_COLLECTIVES_VERSION
  int32_t rank;     // 0 … ranks - 1
  int32_t ranks;
  int32_t local_rank;  // 0 … local_ranks - 1, among those on this machine
  int32_t local_ranks; // on this machine
  uint32_t reserved;
  /// `to`, of `count` numbers, becomes the sum of all ranks' `from`; the same bits on each.
  const char *(*all_reduce_f32)(const float *from, float *to, int64_t count);
  /// `to`, of `ranks` times `bytes`, becomes what all ranks have at `from`, in their order.
  const char *(*all_gather)(const void *from, void *to, int64_t bytes);
  /// Leaves for good, once, before the process ends. Having succeeded it waits for the others; else it ends them with exit code 1,
  /// and this process too.
  void (*leave)(int has_failed);
} hone_collectives;

/// What such a library exports as `hone_open_collectives`: joins the other processes, once in a process. Null with a reason in
/// `error` where that fails.
typedef const hone_collectives *(*hone_open_collectives_fn)(const char **error);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // HONE_RUNTIME_COLLECTIVES_H
