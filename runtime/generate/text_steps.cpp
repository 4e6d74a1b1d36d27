// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model that has its text, and for a while a step of another model after it.

#include "generate/text_steps.h"

#include "hone/sampling/arithmetic.h"

#include <algorithm>
#include <cmath>

namespace hone::rt {
namespace {

/// log p of a token, and of the likeliest one.
struct LogProbability {
  double ofToken, largest;
};

absl::StatusOr<LogProbability> logProbabilityOf(std::span<const float> logits, int64_t token) {
  HONE_ASSIGN_OR_RETURN(int32_t first, sampling::findLargest({logits.data(), logits.size()}));
  if (token < 0 || token >= std::ssize(logits))
    return io::invalid("cannot judge token ", token, " with ", logits.size(), " logits");
  double largest = logits[static_cast<size_t>(first)], sum = 0;
  for (float logit : logits)
    sum += sampling::portableExp(logit - largest);
  double ofLargest = -std::log(sum);
  return LogProbability{ofLargest + (logits[static_cast<size_t>(token)] - largest), ofLargest};
}

std::vector<float> copyOf(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

} // namespace

absl::StatusOr<StepWriter> StepWriter::create(LanguageModel &model, const text::Tokenizer &tokenizer,
                                              std::span<const int64_t> prompt, const StepOptions &options,
                                              Judgement judgement) {
  if (prompt.empty())
    return io::invalid("expected a prompt of at least one token");
  if (options.end.empty())
    return io::invalid("expected a text that ends steps, but got an empty one");
  HONE_ASSIGN_OR_RETURN(sampling::Sampler sampler, sampling::Sampler::create(options.sampling));
  model.session().state().reset();
  return StepWriter(model, tokenizer, prompt, options, judgement, sampler);
}

void StepWriter::extend(std::span<const int64_t> tokens) {
  text.insert(text.end(), tokens.begin(), tokens.end());
  for (int64_t token : tokens)
    history.push_back(static_cast<int32_t>(token));
}

/// Lets the model have all of the text.
absl::Status StepWriter::feedText() {
  if (fed == text.size())
    return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(std::span<const int64_t> rest, feedPieces(*model, std::span(text).subspan(fed), {}));
  HONE_ASSIGN_OR_RETURN(io::Array logits, model->feed(rest, /*logitsToKeep=*/1));
  fed = text.size();
  last = copyOf(lastRow(logits));
  return absl::OkStatus();
}

absl::Status StepWriter::dropJudged() {
  if (judged.empty())
    return absl::OkStatus();
  judged.clear();
  return model->session().state().truncate(static_cast<int64_t>(fed));
}

absl::StatusOr<int64_t> StepWriter::sampleNext() {
  HONE_RETURN_IF_ERROR(feedText());
  HONE_ASSIGN_OR_RETURN(int64_t token, sampler.sample({last.data(), last.size()}, history));
  extend({&token, 1});
  return token;
}

absl::StatusOr<TextStep> StepWriter::propose() {
  HONE_RETURN_IF_ERROR(dropJudged());
  HONE_RETURN_IF_ERROR(feedText());
  begin = text.size();
  atBegin = last;
  text::Detokenizer detokenizer(*tokenizer, /*skipSpecialTokens=*/false);
  std::string written;
  TextStep step;
  while (!step.isLast && std::ssize(step.tokens) < options.mostTokens && written.find(options.end) == written.npos) {
    HONE_ASSIGN_OR_RETURN(int64_t token, sampleNext());
    step.tokens.push_back(token);
    step.isLast = std::ranges::count(options.endTokens, token) > 0;
    HONE_ASSIGN_OR_RETURN(std::string piece, detokenizer.push(static_cast<int32_t>(token)));
    written += piece;
  }
  return step;
}

absl::Status StepWriter::rollBack() {
  text.resize(begin);
  history.resize(begin);
  fed = begin;
  last = atBegin;
  judged.clear();
  return model->session().state().truncate(static_cast<int64_t>(begin));
}

absl::Status StepWriter::append(const TextStep &step) {
  bool isJudged = !judged.empty() && judged == step.tokens;
  if (!isJudged)
    HONE_RETURN_IF_ERROR(dropJudged());
  extend(step.tokens);
  if (isJudged) {
    fed = text.size();
    last = std::move(afterJudged);
    judged.clear();
  }
  begin = text.size();
  return absl::OkStatus();
}

absl::StatusOr<double> StepWriter::score(const TextStep &step) {
  HONE_RETURN_IF_ERROR(dropJudged());
  HONE_RETURN_IF_ERROR(feedText());
  if (step.tokens.empty())
    return io::invalid("cannot judge a step without tokens");
  HONE_ASSIGN_OR_RETURN(io::Array logits, model->feed(step.tokens));
  judged = step.tokens;
  afterJudged = copyOf(lastRow(logits));
  size_t vocabulary = last.size();
  std::span<const float> rows = logits.as<float>();
  if (rows.size() != step.tokens.size() * vocabulary)
    return io::invalid("judging steps needs logits of several tokens, but the model gives those of the last one alone");
  double sum = 0;
  for (size_t i = 0; i < step.tokens.size(); ++i) {
    std::span<const float> row = i == 0 ? std::span<const float>(last) : rows.subspan((i - 1) * vocabulary, vocabulary);
    HONE_ASSIGN_OR_RETURN(LogProbability of, logProbabilityOf(row, step.tokens[i]));
    sum += judgement == Judgement::Likelihood ? of.ofToken : of.largest - of.ofToken;
  }
  return sum / static_cast<double>(step.tokens.size());
}

} // namespace hone::rt
