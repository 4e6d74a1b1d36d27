// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `bench` with tensors: how long calls of an entry take.

#ifndef HONE_RUNTIME_CLI_CALL_BENCH_H
#define HONE_RUNTIME_CLI_CALL_BENCH_H

#include "core/module.h"

#include <optional>
#include <string>

namespace hone::cli {

struct CallBenchOptions {
  std::optional<std::string> inputs; // a .npz with an array for every input
  std::string entry = "main";
  double seconds = 3;     // calls are repeated for so long
  int64_t leastCalls = 5; // and at least so often
  int threads = 0;        // 0: OpenMP's
  bool json = false;
  double loadSeconds = 0; // what opening the artefact took
};

/// What bench --help says about the members of its object.
#define HONE_CALL_BENCH_HELP                                                                                           \
  R"(members of the object of --inputs; percentiles are of the calls that count, which come after one that does not
  latency_seconds             the median, with _min, _mean, _p90, _p99 and _max beside it
  calls_per_second            one call after the other
  first_call_seconds          the call that does not count
  input_bytes, output_bytes   of a call
  load_seconds, peak_rss_bytes, artefact_bytes, calls, threads
)"

absl::Status benchCalls(const rt::Module &module, const CallBenchOptions &options);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_CALL_BENCH_H
