// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone calibrate`: statistics of the inputs of a language model's linear layers (docs/calibration.md).

#ifndef HONE_LIB_DRIVER_CALIBRATE_H
#define HONE_LIB_DRIVER_CALIBRATE_H

#include "Compiler.h"

#include <limits>

namespace hone {

struct CalibrateOptions {
  CompileOptions rewrites; // what is done to the model before it is measured; nothing else of it counts
  std::string input;       // .onnx, .mlir or .mlirbc
  std::string tokens;      // .npy of token ids
  std::string output;      // .safetensors
  int64_t window = 512;
  int64_t maxTokens = std::numeric_limits<int64_t>::max();
  int64_t costTokens = 0; // first tokens to measure on what errors of weights cost; 0: none
  int threads = 0;        // 0: one for each processor
  std::string remarks;    // YAML file for the remarks of all passes, or empty
};

/// Compiles a copy of the model that shows the inputs of its layers, runs it on the tokens and writes the statistics; errors
/// are diagnostics of `context`. The copy lies beside the output meanwhile.
llvm::LogicalResult calibrate(const CalibrateOptions &options, mlir::MLIRContext *context);

} // namespace hone

#endif // HONE_LIB_DRIVER_CALIBRATE_H
