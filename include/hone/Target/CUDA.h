// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA target: chips, and the module of the device as machine code.

#ifndef HONE_TARGET_CUDA_H
#define HONE_TARGET_CUDA_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace hone {

/// A chip that kernels are made for.
struct CudaChip {
  /// "sm_90".
  llvm::StringRef name;
  /// LLVM's name of the lowest version of PTX that knows the chip and all that generated code uses: drivers that are older than
  /// the newest version can then still compile it for newer chips.
  llvm::StringRef ptx;

  /// The chip called `name`; failure with the reason in `error`.
  static llvm::FailureOr<CudaChip> get(llvm::StringRef name, std::string &error);
};

/// How device code is made.
struct CudaOptions {
  CudaChip chip;
  /// ptxas; fatbinary and libdevice are found beside it. Empty: where the build found it.
  std::string ptxas;
  /// File for a copy of the PTX, or empty.
  std::string savePtx;
};

/// What emitDevice needs of the dialects that it translates, besides what the host's program needs.
void registerDeviceTranslations(mlir::DialectRegistry &registry);

/// Makes machine code of the module @device in `module`, which is in the dialects of LLVM and NVVM, and writes it with its PTX,
/// uncompressed, to the fat binary `path`. Removes it from `module`. A remark for each kernel says how many registers it takes; one
/// whose registers spill to memory is a missed one.
llvm::LogicalResult emitDevice(mlir::ModuleOp module, const CudaOptions &options, llvm::StringRef path);

} // namespace hone

#endif // HONE_TARGET_CUDA_H
