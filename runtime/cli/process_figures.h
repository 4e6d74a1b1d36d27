// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What benchmarks say about the process and the artefact.

#ifndef HONE_RUNTIME_CLI_PROCESS_FIGURES_H
#define HONE_RUNTIME_CLI_PROCESS_FIGURES_H

#include "core/module.h"

namespace hone::cli {

/// Seconds since the kernel started this process, to a hundredth.
double secondsSinceStart();

/// Most memory that this process had, in bytes. Not getrusage's figure, which begins with that of the process that started this one.
int64_t peakMemory();

/// The size of the artefact's files.
int64_t artefactBytes(const rt::Module &module);

/// `threads`, or as many as OpenMP takes where that is 0.
int threadCount(int64_t threads);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_PROCESS_FIGURES_H
