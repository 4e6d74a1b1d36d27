// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts that a toy writes with the drafts of another.

#ifndef HONE_TEST_UNIT_RUNTIME_DRAFT_TEXTS_H
#define HONE_TEST_UNIT_RUNTIME_DRAFT_TEXTS_H

#include "cli_support.h"
#include "generate/decoder.h"
#include "generate/model_drafter.h"

#include <cmath>

namespace hone::test {

using Tokens = std::vector<int64_t>;

constexpr int64_t kVocabulary = 8;

struct Written {
  Tokens tokens;
  std::vector<float> state;
  std::string message;
  rt::GenerationStatistics statistics;
};

/// A model in memory.
struct Model {
  std::unique_ptr<rt::Session> session;
  std::optional<rt::LanguageModel> model;
};

inline Model open(const std::string &folder) {
  Model result;
  result.session = *rt::openLanguageSession(*rt::Module::load(folder));
  result.model = *rt::LanguageModel::over(*result.session);
  return result;
}

/// The positions that a session has of the toy's state.
inline std::vector<float> stateOf(rt::Session &session) {
  rt::State &state = session.state();
  hone_tensor view = *state.slots()[0].view(state.length(), state.symbols());
  const auto *first = static_cast<const float *>(view.data);
  return {first, first + state.length() * 2};
}

/// With a target that begins anew.
inline Written write(Model &model, const Tokens &prompt, const rt::SpeculationOptions &speculation, int64_t most = 40,
                     const sampling::SamplingOptions &sampling = {}) {
  Written written;
  model.session->state().reset();
  std::unique_ptr<rt::Speculation> drafts;
  if (!speculation.sources.empty()) {
    auto created = rt::Speculation::create(speculation, *model.model);
    written.message = messageOf(created);
    if (!created.ok())
      return written;
    drafts = *std::move(created);
  }
  auto decoder = rt::createDecoder(*model.model, sampling, {}, drafts.get(), prompt);
  written.message = messageOf(decoder);
  if (!decoder.ok())
    return written;
  rt::GenerationOptions options;
  options.maximalNewTokens = most;
  auto statistics = rt::generate(*model.model, prompt, options, **decoder, [&](int64_t token) -> absl::StatusOr<bool> {
    written.tokens.push_back(token);
    return true;
  });
  written.message = messageOf(statistics);
  if (statistics.ok()) {
    written.statistics = *statistics;
    written.state = stateOf(*model.session);
  }
  return written;
}

/// Chi-square of the second, third and fourth token of texts against their enumerated probabilities.
inline double chiSquareOf(const std::map<Tokens, int> &counts, const Tokens &prompt,
                          const sampling::SamplingOptions &sampling, int texts) {
  auto probability = [&](int64_t sum, int64_t token) {
    double top = std::exp(1 / sampling.temperature);
    return (token == sum % kVocabulary ? top : 1) / (top + kVocabulary - 1);
  };
  double result = 0;
  for (int64_t code = 0; code < kVocabulary * kVocabulary * kVocabulary; ++code) {
    Tokens text = {code / 64, code / 8 % 8, code % 8};
    double mean = texts;
    int64_t sum = 0;
    for (int64_t token : prompt)
      sum += token;
    for (int64_t token : text) {
      mean *= probability(sum, token);
      sum += token;
    }
    auto found = counts.find(text);
    int count = found == counts.end() ? 0 : found->second;
    result += (count - mean) * (count - mean) / mean;
  }
  return result;
}

/// Chi-square of 100,000 texts of each rule of acceptance: those of the lossy one alone are far off.
inline void expectOnlyTheLossyRuleChangesProbabilities(Model &model, rt::SpeculationOptions speculation) {
  constexpr int kTexts = 100000;
  constexpr double kLimit = 635.2; // that a chi-square variable of 511 degrees exceeds once in 10,000 cases
  Tokens prompt = {1, 2};
  for (rt::Acceptance rule : {rt::Acceptance::Identical, rt::Acceptance::Exact, rt::Acceptance::Typical}) {
    speculation.acceptance = rule;
    std::map<Tokens, int> counts;
    sampling::SamplingOptions sampling{.temperature = 0.7};
    for (int text = 0; text < kTexts; ++text) {
      sampling.seed = static_cast<uint64_t>(text);
      ++counts[write(model, prompt, speculation, 3, sampling).tokens];
    }
    double chiSquare = chiSquareOf(counts, prompt, sampling, kTexts);
    if (rule == rt::Acceptance::Typical)
      EXPECT_GT(chiSquare, 10 * kLimit);
    else
      EXPECT_LT(chiSquare, kLimit) << static_cast<int>(rule);
  }
}

} // namespace hone::test

#endif // HONE_TEST_UNIT_RUNTIME_DRAFT_TEXTS_H
