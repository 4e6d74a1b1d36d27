// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `hone calibrate` measures of attention: --kv-importance and --attention-error.

#ifndef HONE_LIB_DRIVER_ATTENTIONMEASURES_H
#define HONE_LIB_DRIVER_ATTENTIONMEASURES_H

#include "Compiler.h"

namespace hone {

struct AttentionMeasureOptions {
  const CompileOptions &compile;
  std::string tokens, output; // .npy of token ids, .safetensors
  int64_t window, maxTokens;
  int threads; // 0: one for each processor
};

/// Writes how much attention the keys of each layer get on windows of tokens, for `hone compile --kv-retention` (compress::KeyImportance).
/// Fails after an error; no file appears then.
llvm::LogicalResult measureKeyImportance(const AttentionMeasureOptions &options, mlir::MLIRContext *context);

/// Writes thresholds of SpargeAttention for each KV head, found on windows of tokens so that errors are at most `error`, for `hone compile
/// --attention-thresholds` (compress::AttentionThresholds), and to `page`, unless that is empty, a page of HTML that shows what they leave
/// out. Fails after an error; no file appears then.
llvm::LogicalResult measureAttentionThresholds(const AttentionMeasureOptions &options, double error,
                                               const std::string &page, mlir::MLIRContext *context);

} // namespace hone

#endif // HONE_LIB_DRIVER_ATTENTIONMEASURES_H
