// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone calibrate --kv-importance`.

#ifndef HONE_LIB_DRIVER_KEYIMPORTANCE_H
#define HONE_LIB_DRIVER_KEYIMPORTANCE_H

#include "Compiler.h"

namespace hone {

struct KeyImportanceOptions {
  const CompileOptions &compile;
  std::string tokens, output; // .npy of token ids, .safetensors
  int64_t window, maxTokens;
  int threads; // 0: one for each processor
};

/// Writes how much attention the keys of each layer get on windows of tokens, for `hone compile --kv-retention` (compress::KeyImportance). Fails
/// after an error; no file appears then.
llvm::LogicalResult measureKeyImportance(const KeyImportanceOptions &options, mlir::MLIRContext *context);

} // namespace hone

#endif // HONE_LIB_DRIVER_KEYIMPORTANCE_H
