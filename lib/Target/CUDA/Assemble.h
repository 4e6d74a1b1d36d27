// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX to a fat binary, by CUDA's own tools.

#ifndef HONE_LIB_TARGET_CUDA_ASSEMBLE_H
#define HONE_LIB_TARGET_CUDA_ASSEMBLE_H

#include "hone/Target/CUDA.h"

#include <vector>

namespace hone {

/// What ptxas says of a kernel.
struct KernelUsage {
  std::string name;
  int64_t registers = 0, sharedBytes = 0, spilledBytes = 0;
};

/// ptxas and what comes with it.
struct CudaTools {
  std::string ptxas, fatbinary, libdevice;

  /// Those of `options`; fails after an error that says which is missing and where from it comes.
  static llvm::FailureOr<CudaTools> find(const CudaOptions &options, mlir::Location loc);
};

/// Assembles `ptx` for `chip` and writes the fat binary `path` with both; what every kernel takes, or failure after an error.
llvm::FailureOr<std::vector<KernelUsage>> assemble(const CudaTools &tools, llvm::StringRef ptx, const CudaChip &chip,
                                                   llvm::StringRef path, mlir::Location loc);

} // namespace hone

#endif // HONE_LIB_TARGET_CUDA_ASSEMBLE_H
