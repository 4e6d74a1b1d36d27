// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of the command line about models of strangers.

#ifndef HONE_LIB_DRIVER_LIMITFLAGS_H
#define HONE_LIB_DRIVER_LIMITFLAGS_H

#include "Compiler.h"

#include "llvm/Support/CommandLine.h"

namespace hone {

/// What commands that read a model have in common.
struct LimitFlags {
  explicit LimitFlags(llvm::cl::SubCommand &command);

  /// Sets the limits of the process that the options name, and says how models are to be read. Fails with a message.
  llvm::FailureOr<ReadOptions> apply() const;

  llvm::cl::opt<bool> untrusted, allowExternalPaths;
  llvm::cl::opt<int64_t> maxNodes, maxExpandedBytes, memoryLimit, timeLimit;
};

} // namespace hone

#endif // HONE_LIB_DRIVER_LIMITFLAGS_H
