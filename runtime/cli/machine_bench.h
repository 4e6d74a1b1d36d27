// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `bench --machine`: what this machine is, as kernels see it, and how fast it reads memory.

#ifndef HONE_RUNTIME_CLI_MACHINE_BENCH_H
#define HONE_RUNTIME_CLI_MACHINE_BENCH_H

#include "absl/status/statusor.h"

namespace hone::cli {

/// What bench --help says about the members of its object.
#define HONE_MACHINE_BENCH_HELP                                                                                        \
  R"(members of the object of --machine
  processor                   its name, as the system has it
  isa, supported_isas         the instruction set (ISA) that kernels are of, and all that this build and the processor have
  processors                  how many the process may run on
  l1_data_bytes, l2_bytes, l3_bytes  caches, as the system reports them; 0 where it does not
  read_bandwidth_bytes_per_second  objects of threads and bytes_per_second: one thread, and --threads
)"

/// Bytes of memory that `threads` threads read in a second: the best of three passes over more than caches hold.
absl::StatusOr<double> measureBandwidth(int threads);

/// `threads` as for threadCount.
absl::Status benchMachine(int64_t threads, bool json);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_MACHINE_BENCH_H
