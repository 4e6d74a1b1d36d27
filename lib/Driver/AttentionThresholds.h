// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone calibrate --attention-error`.

#ifndef HONE_LIB_DRIVER_ATTENTIONTHRESHOLDS_H
#define HONE_LIB_DRIVER_ATTENTIONTHRESHOLDS_H

#include "Compiler.h"

namespace hone {

struct AttentionThresholdOptions {
  const CompileOptions &compile;
  std::string tokens, output; // .npy of token ids, .safetensors
  int64_t window, maxTokens;
  double error;
  int threads; // 0: one for each processor
};

/// Writes thresholds of SpargeAttention for each KV head, found on windows of tokens, for `hone compile --attention-thresholds`
/// (compress::AttentionThresholds). Fails after an error; no file appears then.
llvm::LogicalResult measureAttentionThresholds(const AttentionThresholdOptions &options, mlir::MLIRContext *context);

} // namespace hone

#endif // HONE_LIB_DRIVER_ATTENTIONTHRESHOLDS_H
