// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the options about models of strangers are, and what they set.

#include "LimitFlags.h"

#include "FlagChecks.h"
#include "ProcessLimits.h"

namespace cl = llvm::cl;

namespace hone {

LimitFlags::LimitFlags(cl::SubCommand &command)
    : untrusted{"untrusted",
                cl::desc("For models of strangers: read ONNX alone, and limit time and memory (--time-limit, "
                         "--memory-limit)"),
                cl::sub(command)},
      allowExternalPaths{"allow-external-paths",
                         cl::desc("Let IR name files of weights outside of its folder, and by links"),
                         cl::sub(command)},
      maxNodes{"max-nodes", cl::desc("Nodes that a model may have with its functions inlined (default: 1000000)"),
               cl::init(Limits().nodes), cl::value_desc("N"), cl::sub(command)},
      maxExpandedBytes{"max-expanded-bytes",
                       cl::desc("Bytes of constants that the model says in fewer, as sparse initializers or one number "
                                "for all elements (default: 268435456)"),
                       cl::init(Limits().expandedBytes), cl::value_desc("N"), cl::sub(command)},
      memoryLimit{"memory-limit",
                  cl::desc("Bytes of memory to take at most, mapped files not counted (default: no limit; with "
                           "--untrusted 8589934592)"),
                  cl::value_desc("N"), cl::sub(command)},
      timeLimit{"time-limit",
                cl::desc("Seconds to take at most, and to compute on each processor (default: no limit; with "
                         "--untrusted 600)"),
                cl::value_desc("N"), cl::sub(command)} {}

llvm::FailureOr<ReadOptions> LimitFlags::apply() const {
  constexpr int64_t unbounded = std::numeric_limits<int64_t>::max();
  constexpr int64_t mostSeconds = int64_t(1) << 31;
  if (failed(checkRange(maxNodes, unbounded)) || failed(checkRange(maxExpandedBytes, unbounded)) ||
      failed(checkRange(memoryLimit, unbounded)) || failed(checkRange(timeLimit, mostSeconds)))
    return llvm::failure();
  if (untrusted && allowExternalPaths) {
    fail("expected no --allow-external-paths with --untrusted");
    return llvm::failure();
  }
  if (int64_t bytes = memoryLimit ? memoryLimit : untrusted ? kUntrustedBytes : 0)
    limitMemory(bytes);
  if (int64_t seconds = timeLimit ? timeLimit : untrusted ? kUntrustedSeconds : 0)
    limitTime(seconds);
  ReadOptions options;
  options.limits = {maxNodes, maxExpandedBytes};
  options.allowExternalPaths = allowExternalPaths;
  options.onnxAlone = untrusted;
  return options;
}

} // namespace hone
