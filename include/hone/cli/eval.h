// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How well a language model predicts tokens, for `eval` and for reports of compression.

#ifndef HONE_CLI_EVAL_H
#define HONE_CLI_EVAL_H

#include "hone/io/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hone::cli {

/// Tokens, for windows that do not overlap; at least one window and a token after it.
struct EvaluationTokens {
  std::vector<int64_t> ids;
  int64_t window = 512;
  int64_t chunk = 0; // tokens of a window that are fed at once; 0: all
};

struct Evaluation {
  double perplexity = 0, loss = 0; // the loss in nats a token
  int64_t tokens = 0;              // that were predicted
};

/// The one row of a .npy of uint16, int32 or int64. Fails where it has too few.
absl::StatusOr<EvaluationTokens> readEvaluationTokens(const std::string &file, int64_t window);

/// Runs the entry `forward` of `artefact` on each window, from nothing but the window.
absl::StatusOr<Evaluation> runEvaluation(const std::string &artefact, const EvaluationTokens &tokens, int threads);

} // namespace hone::cli

#endif // HONE_CLI_EVAL_H
