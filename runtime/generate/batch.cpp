// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prompts, passes over all texts, and what each of them keeps.

#include "generate/batch.h"

#include "core/seconds.h"
#include "generate/speculation_clock.h"
#include "speculate/drafter.h"

#include <algorithm>
#include <numeric>

namespace hone::rt {
namespace {

using io::invalid;

/// One text as it gets longer. It ends itself.
class BatchedText {
public:
  BatchedText(TextSampler sampler, Speculation *speculation, const GenerationOptions &options)
      : sampler(std::move(sampler)), speculation(speculation), options(options) {}

  /// Takes the token after the prompt from its logits.
  absl::Status begin(const io::Array &logits, std::span<const int64_t> prompt) {
    HONE_ASSIGN_OR_RETURN(int64_t token, sampler.sample(lastRow(logits)));
    if (speculation) {
      speculation->beginText(prompt);
      speculation->append({&token, 1});
    }
    take({&token, 1});
    return absl::OkStatus();
  }

  /// Drafts for the next pass, which has room for so many drafted tokens.
  void draft(int64_t room) {
    drafted = {};
    chosen = 0;
    if (!speculation || isDone)
      return;
    drafted = speculation->draft(options.maximalNewTokens - std::ssize(written) - 1);
    chosen = std::min(speculation->chooseWidth(drafted), room);
  }

  /// What the next pass feeds: the last token and the drafted ones.
  std::vector<int64_t> pending() const {
    std::vector<int64_t> tokens = {written.back()};
    tokens.insert(tokens.end(), drafted.tokens.begin(), drafted.tokens.begin() + chosen);
    return tokens;
  }

  /// Takes what a pass of so many seconds over pending() gave, its rows of logits; returns the numbers of the tokens that stay of those fed.
  absl::StatusOr<std::vector<int64_t>> verify(std::span<const float> logits, int64_t vocabulary, double seconds) {
    DraftedTokens fed = {drafted.first(chosen)};
    HONE_ASSIGN_OR_RETURN(Verdict verdict, sampler.verify(Acceptance::Identical, logits, vocabulary, fed));
    std::vector<int64_t> kept = {0};
    kept.insert(kept.end(), verdict.path.begin(), verdict.path.end());
    if (speculation) {
      speculation->record(drafted, chosen, verdict, seconds);
      speculation->append(verdict.next);
    }
    take(verdict.next);
    return kept;
  }

  bool hasEnded() const { return isDone; }
  int64_t draftedTokens() const { return chosen; }
  const std::vector<int64_t> &tokens() const { return written; }

private:
  void take(std::span<const int64_t> tokens) {
    for (int64_t token : tokens) {
      written.push_back(token);
      isDone = std::ranges::find(options.endTokens, token) != options.endTokens.end() ||
               std::ssize(written) >= options.maximalNewTokens;
      if (isDone)
        return;
    }
  }

  TextSampler sampler;
  Speculation *speculation;
  const GenerationOptions &options;
  std::vector<int64_t> written;
  speculate::Draft drafted;
  int64_t chosen = 0; // of the drafted tokens
  bool isDone = false;
};

class Batch {
public:
  explicit Batch(const GenerationOptions &options) : options(options) {}

  absl::Status readPrompts(Session &like, std::span<const std::vector<int64_t>> prompts,
                           const sampling::SamplingOptions &sampling, std::span<Speculation *const> drafts);
  absl::Status write();
  BatchTexts finish();

private:
  absl::StatusOr<std::unique_ptr<Session>> readPrompt(Session &like, std::span<const int64_t> prompt,
                                                      BatchedText &text);
  absl::Status pass(LanguageModel &model);
  absl::Status dropEnded();
  std::vector<int64_t> pendingRows(int64_t width) const;
  bool goesOn() const { return !std::ranges::all_of(texts, &BatchedText::hasEnded); }

  const GenerationOptions &options;
  std::vector<BatchedText> texts;
  std::unique_ptr<Session> session; // of all
  GenerationStatistics statistics;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

absl::StatusOr<std::unique_ptr<Session>> Batch::readPrompt(Session &like, std::span<const int64_t> prompt,
                                                           BatchedText &text) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Session> own, like.fork());
  HONE_ASSIGN_OR_RETURN(LanguageModel model, LanguageModel::over(*own));
  HONE_RETURN_IF_ERROR(model.checkRoom(std::ssize(prompt)));
  model.reserve(std::ssize(prompt), 0);
  HONE_ASSIGN_OR_RETURN(std::span<const int64_t> rest, feedPieces(model, prompt, options));
  HONE_ASSIGN_OR_RETURN(io::Array logits, model.feed(rest, /*logitsToKeep=*/1));
  HONE_RETURN_IF_ERROR(text.begin(logits, prompt));
  return own;
}

absl::Status Batch::readPrompts(Session &like, std::span<const std::vector<int64_t>> prompts,
                                const sampling::SamplingOptions &sampling, std::span<Speculation *const> drafts) {
  std::vector<std::unique_ptr<Session>> own;
  for (size_t i = 0; i < prompts.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(sampling::Sampler sampler, sampling::Sampler::create(sampling));
    texts.emplace_back(TextSampler(std::move(sampler), prompts[i], options.rules, options.maximalNewTokens),
                       drafts.empty() ? nullptr : drafts[i], options);
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<Session> read, readPrompt(like, prompts[i], texts.back()));
    own.push_back(std::move(read));
    statistics.promptTokens += std::ssize(prompts[i]);
  }
  statistics.firstTokenSeconds = secondsSince(start);
  std::vector<const Session *> all;
  for (const std::unique_ptr<Session> &each : own)
    all.push_back(each.get());
  HONE_ASSIGN_OR_RETURN(session, Session::join(all));
  return absl::OkStatus();
}

/// What the texts feed, rows of one width. What is after the tokens of a text is not kept.
std::vector<int64_t> Batch::pendingRows(int64_t width) const {
  std::vector<int64_t> rows;
  for (const BatchedText &text : texts) {
    std::vector<int64_t> own = text.pending();
    own.resize(static_cast<size_t>(width), own.back());
    rows.insert(rows.end(), own.begin(), own.end());
  }
  return rows;
}

/// Of a text that has ended nothing is kept, as its length would count as that of the longest.
absl::Status Batch::dropEnded() {
  State &state = session->state();
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < texts.size(); ++i)
    lengths.push_back(texts[i].hasEnded() ? 0 : state.lengths().of(static_cast<int64_t>(i)));
  return state.truncateEach(std::move(lengths));
}

absl::Status Batch::pass(LanguageModel &model) {
  SpeculationClock clock(statistics.speculation);
  int64_t width = 1, drafted = 0, accepted = 0;
  for (BatchedText &text : texts) {
    text.draft(std::numeric_limits<int64_t>::max());
    width = std::max(width, text.draftedTokens() + 1);
  }
  if (width > 1 && !model.checkRoom(width).ok()) { // for the longest; there is none for drafts of any text then
    for (BatchedText &text : texts)
      text.draft(0);
    width = 1;
  }
  for (const BatchedText &text : texts)
    drafted += text.draftedTokens();
  clock.endDraft(static_cast<size_t>(drafted));
  auto begin = std::chrono::steady_clock::now();
  HONE_ASSIGN_OR_RETURN(io::Array logits, model.feedBatch(pendingRows(width), std::ssize(texts)));
  double seconds = secondsSince(begin);
  int64_t vocabulary = logits.shape().back();
  std::vector<std::vector<int64_t>> kept(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].hasEnded())
      continue;
    std::span<const float> rows = logits.as<float>().subspan(
        i * static_cast<size_t>(width * vocabulary), static_cast<size_t>((texts[i].draftedTokens() + 1) * vocabulary));
    HONE_ASSIGN_OR_RETURN(kept[i], texts[i].verify(rows, vocabulary, seconds));
    accepted += std::ssize(kept[i]) - 1;
  }
  clock.endVerification(static_cast<size_t>(accepted));
  HONE_RETURN_IF_ERROR(session->state().keepEach(kept));
  clock.endCommit();
  ++statistics.passes;
  return absl::OkStatus();
}

absl::Status Batch::write() {
  HONE_ASSIGN_OR_RETURN(LanguageModel model, LanguageModel::over(*session));
  model.reserve(0, options.maximalNewTokens);
  while (goesOn()) {
    HONE_RETURN_IF_ERROR(dropEnded());
    HONE_RETURN_IF_ERROR(pass(model));
  }
  return absl::OkStatus();
}

BatchTexts Batch::finish() {
  BatchTexts result;
  for (const BatchedText &text : texts) {
    statistics.newTokens += std::ssize(text.tokens());
    result.tokens.push_back(text.tokens());
  }
  statistics.decodeSeconds = secondsSince(start) - statistics.firstTokenSeconds;
  result.statistics = statistics;
  return result;
}

absl::Status checkDrafts(std::span<Speculation *const> drafts) {
  for (const Speculation *each : drafts)
    if (each->usesModel() || each->settings().draftsTrees)
      return invalid("expected chains of automaton, corpus or lookup for several texts at once, but got ",
                     each->usesModel() ? "drafts of a model" : "trees");
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<BatchTexts> generateBatch(Session &session, std::span<const std::vector<int64_t>> prompts,
                                         const GenerationOptions &options, const sampling::SamplingOptions &sampling,
                                         std::span<Speculation *const> drafts) {
  HONE_RETURN_IF_ERROR(checkDrafts(drafts));
  if (prompts.size() > 1 && !session.entry().hasOwnLengths)
    return invalid(session.module().folder(), ": entry '", session.entry().name,
                   "' does not take sequences of different lengths; 'hone compile --speculate=batch' lets it");
  if (session.module().manifest().ranks > 1)
    return invalid("several texts at once need a model that is not divided among processes");
  Batch batch(options);
  HONE_RETURN_IF_ERROR(batch.readPrompts(session, prompts, sampling, drafts));
  HONE_RETURN_IF_ERROR(batch.write());
  return batch.finish();
}

} // namespace hone::rt
