// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How models are read, those of strangers too.

#ifndef HONE_LIB_DRIVER_OPTIONS_READING_H
#define HONE_LIB_DRIVER_OPTIONS_READING_H

#include "OptionSet.h"
#include "ProcessLimits.h"
#include "hone/Import/Limits.h"

namespace hone {

struct ReadOptions {
  Limits limits;
  int64_t leastOpset = 0;          // of the default domain, to which older models are converted
  bool untrusted = false;          // IR is refused: it is code, since it may hold functions of the LLVM dialect
  bool allowExternalPaths = false; // whether IR may name files of weights that are not in its folder
  std::optional<int64_t> memoryLimit, timeLimit; // bytes, seconds

  void declare(OptionSet &set) {
    constexpr int64_t mostSeconds = int64_t(1) << 31;
    set.add("untrusted", untrusted,
            "For models of strangers: read ONNX alone, and limit time and memory (--time-limit, --memory-limit)")
        .check([this] { return allowExternalPaths ? "expected no --allow-external-paths with --untrusted" : ""; });
    set.add("allow-external-paths", allowExternalPaths,
            "Let IR name files of weights outside of its folder, and by links");
    set.add("max-nodes", limits.nodes, "N", "Nodes that a model may have with its functions inlined (default: 1000000)")
        .upTo();
    set.add("max-expanded-bytes", limits.expandedBytes, "N",
            "Bytes of constants that the model says in fewer, as sparse initializers or one number for all elements "
            "(default: 268435456)")
        .upTo();
    set.add(
           "memory-limit", memoryLimit, "N",
           "Bytes of memory to take at most, mapped files not counted (default: no limit; with --untrusted 8589934592)")
        .upTo()
        .check([] { return kCanLimitMemory ? "" : "unsupported --memory-limit in a build with AddressSanitizer"; });
    set.add("time-limit", timeLimit, "N",
            "Seconds to take at most, and to compute on each processor (default: no limit; with --untrusted 600)")
        .upTo(mostSeconds);
  }

  /// Sets the limits of the process.
  void limitProcess() const {
    if (kCanLimitMemory && (memoryLimit || untrusted))
      limitMemory(memoryLimit.value_or(kUntrustedBytes));
    if (timeLimit || untrusted)
      limitTime(timeLimit.value_or(kUntrustedSeconds));
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_READING_H
