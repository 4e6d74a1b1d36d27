// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone calibrate --pqi`: what rounding each element of the weights does to the loss.

#ifndef HONE_LIB_DRIVER_PQI_H
#define HONE_LIB_DRIVER_PQI_H

#include "Compiler.h"

namespace hone {

struct PqiOptions {
  const CompileOptions &compile; // with the compression whose path it is
  std::string tokens, output;    // .npy of token ids, .safetensors
  int64_t window, maxTokens;
  int64_t intervals; // of the midpoint rule
  int threads;       // 0: one for each processor
};

/// Writes the post-quantization integral (PQI) of each weight that the compression changes, and prints what its sum and a first-order
/// estimate say of the loss, beside the loss itself. With the weight w, what it becomes w̃, and Δ = w̃ - w, PQI = Δ ⊙ ∫ ∇F(w + sΔ) ds over s
/// from 0 to 1, whose sum is F(w̃) - F(w). Fails after an error; no file appears then.
llvm::LogicalResult measurePqi(const PqiOptions &options, mlir::MLIRContext *context);

} // namespace hone

#endif // HONE_LIB_DRIVER_PQI_H
