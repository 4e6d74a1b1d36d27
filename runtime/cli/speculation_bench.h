// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoding with drafts beside decoding without, as Spec-Bench measures it.

#ifndef HONE_RUNTIME_CLI_SPECULATION_BENCH_H
#define HONE_RUNTIME_CLI_SPECULATION_BENCH_H

#include "cli/prompts.h"
#include "generate/speculation.h"
#include "hone/sampling/sampler.h"

namespace hone::cli {

struct SpeculationBenchOptions {
  rt::SpeculationOptions speculation; // of the source Replay, if one is to be replayed: the text follows
  std::optional<double> acceptLength; // tokens a pass on average of that replay
  sampling::SamplingOptions sampling;
  std::vector<int64_t> endTokens;                   // that end an answer
  int64_t newTokens = 64, repeats = 5, threads = 1; // `newTokens` are most of an answer
  bool json = false;
};

/// Writes the answers to `prompts` without and with drafts, one after the other, `repeats` times, and prints what became of them. The drafters know
/// nothing of the prompts and answers before; how many of their tokens are verified follows from those too.
absl::Status benchSpeculation(rt::LanguageModel &model, std::span<const Prompt> prompts,
                              const SpeculationBenchOptions &options);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_SPECULATION_BENCH_H
