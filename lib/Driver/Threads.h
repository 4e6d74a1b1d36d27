// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads that the system may refuse: by a limit of processes, or of the memory that their stacks take. LLVM ends the process then.

#ifndef HONE_LIB_DRIVER_THREADS_H
#define HONE_LIB_DRIVER_THREADS_H

#include "mlir/IR/MLIRContext.h"

namespace hone {

/// Whether the process may have so many more threads at once: makes them, and ends them when all are there.
bool canMakeThreads(size_t count);

/// Lets everything in `context` run in this thread where the system refuses those that LLVM would make.
void limitThreads(mlir::MLIRContext &context);

} // namespace hone

#endif // HONE_LIB_DRIVER_THREADS_H
