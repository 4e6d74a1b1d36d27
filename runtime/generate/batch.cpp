// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prompts, passes over all texts, and what each of them keeps.

#include "generate/batch.h"

#include "core/seconds.h"
#include "generate/speculation_clock.h"
#include "generate/text_drafter.h"
#include "generate/text_stream.h"

#include <algorithm>

namespace hone::rt {
namespace {

using io::invalid;

/// One text as it gets longer. It ends itself.
class BatchedText {
public:
  /// `drafter` may be null.
  BatchedText(TextSampler sampler, std::unique_ptr<TextDrafter> drafter, TextStream stream,
              const GenerationOptions &options)
      : sampler(std::move(sampler)), drafter(std::move(drafter)), stream(std::move(stream)), options(&options) {}

  /// Takes the token after the prompt from its logits.
  absl::Status begin(const io::Array &logits) {
    HONE_ASSIGN_OR_RETURN(int64_t token, sampler.sample(lastRow(logits)));
    if (drafter)
      drafter->take({{token}, {}}, logits.shape().back(), std::nullopt);
    return append({&token, 1});
  }

  /// Drafts for the next pass of `model`.
  absl::Status draft(const LanguageModel &model) {
    drafted = {};
    if (!drafter || isDone)
      return absl::OkStatus();
    int64_t most = options->maximalNewTokens - std::ssize(written) - 1;
    HONE_ASSIGN_OR_RETURN(drafted, drafter->draft(model, /*pending=*/1, most, sampler));
    return absl::OkStatus();
  }

  /// What the next pass feeds: the last token and the drafted ones. What fills a row up comes after the last of them.
  speculate::DraftTree pending(int64_t width) const {
    speculate::DraftTree fed = drafted;
    while (fed.size() + 1 < width) {
      int64_t filler = fed.size() == 0 ? written.back() : fed.tokens.back();
      if (fed.parents.empty())
        fed.tokens.push_back(filler);
      else
        fed.add(fed.size(), filler);
    }
    return fed;
  }

  /// Takes what a pass of so many seconds over pending() gave, its rows of logits; returns the numbers of the tokens that stay of those fed.
  absl::StatusOr<std::vector<int64_t>> verify(std::span<const float> logits, int64_t vocabulary, double seconds) {
    Acceptance rule = drafter ? drafter->rule() : Acceptance::Identical;
    HONE_ASSIGN_OR_RETURN(Verdict verdict, sampler.verify(rule, logits, vocabulary, drafted));
    std::vector<int64_t> kept = {0};
    kept.insert(kept.end(), verdict.path.begin(), verdict.path.end());
    if (drafter)
      drafter->take(verdict, vocabulary, seconds);
    HONE_RETURN_IF_ERROR(append(verdict.next));
    return kept;
  }

  bool hasEnded() const { return isDone; }
  int64_t draftedTokens() const { return drafted.size(); }
  bool draftsChain() const { return drafted.isChain(); }
  int64_t last() const { return written.back(); }
  const std::vector<int64_t> &tokens() const { return written; }

private:
  absl::Status append(std::span<const int64_t> tokens) {
    for (int64_t token : tokens) {
      written.push_back(token);
      HONE_RETURN_IF_ERROR(stream.push(token).status());
      isDone = std::ranges::find(options->endTokens, token) != options->endTokens.end() ||
               std::ssize(written) >= options->maximalNewTokens || stream.stopped();
      if (isDone)
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  TextSampler sampler;
  std::unique_ptr<TextDrafter> drafter;
  TextStream stream;
  const GenerationOptions *options;
  std::vector<int64_t> written;
  DraftedTokens drafted;
  bool isDone = false;
};

class Batch {
public:
  explicit Batch(const WritingOptions &options) : options(options) {}

  absl::Status readPrompts(Session &like, const text::Tokenizer *tokenizer,
                           std::span<const std::vector<int64_t>> prompts, std::span<Speculation *const> drafts);
  absl::Status write();
  BatchTexts finish();

private:
  absl::StatusOr<std::unique_ptr<Session>> readPrompt(Session &like, const text::Tokenizer *tokenizer,
                                                      std::span<const int64_t> prompt, Speculation *drafts);
  absl::Status pass(LanguageModel &model);
  absl::StatusOr<io::Array> feed(LanguageModel &model, int64_t width) const;
  absl::Status dropEnded();
  bool goesOn() const { return !std::ranges::all_of(texts, &BatchedText::hasEnded); }

  const WritingOptions &options;
  std::vector<BatchedText> texts;
  std::unique_ptr<Session> session; // of all
  GenerationStatistics statistics;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

absl::StatusOr<std::unique_ptr<Session>> Batch::readPrompt(Session &like, const text::Tokenizer *tokenizer,
                                                           std::span<const int64_t> prompt, Speculation *drafts) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Session> own, like.fork());
  HONE_ASSIGN_OR_RETURN(LanguageModel model, LanguageModel::over(*own));
  HONE_ASSIGN_OR_RETURN(sampling::Sampler sampler, sampling::Sampler::create(options.sampling));
  HONE_ASSIGN_OR_RETURN(TextStream stream, TextStream::create(tokenizer, options.stop));
  std::unique_ptr<TextDrafter> drafter;
  if (drafts) {
    HONE_ASSIGN_OR_RETURN(drafter, createTextDrafter(model, *drafts, prompt));
  }
  const GenerationOptions &generation = options.generation;
  texts.emplace_back(TextSampler(std::move(sampler), prompt, generation.rules, generation.maximalNewTokens),
                     std::move(drafter), std::move(stream), generation);
  HONE_RETURN_IF_ERROR(model.checkRoom(std::ssize(prompt)));
  model.reserve(std::ssize(prompt), 0);
  HONE_ASSIGN_OR_RETURN(std::span<const int64_t> rest, feedPieces(model, prompt, generation));
  HONE_ASSIGN_OR_RETURN(io::Array logits, model.feed(rest, /*logitsToKeep=*/1));
  HONE_RETURN_IF_ERROR(texts.back().begin(logits));
  return own;
}

absl::Status Batch::readPrompts(Session &like, const text::Tokenizer *tokenizer,
                                std::span<const std::vector<int64_t>> prompts, std::span<Speculation *const> drafts) {
  std::vector<std::unique_ptr<Session>> own;
  for (size_t i = 0; i < prompts.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<Session> read,
                          readPrompt(like, tokenizer, prompts[i], drafts.empty() ? nullptr : drafts[i]));
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

/// A pass over rows of one width. What is after the tokens of a text is not kept.
absl::StatusOr<io::Array> Batch::feed(LanguageModel &model, int64_t width) const {
  bool areChains = std::ranges::all_of(texts, &BatchedText::draftsChain);
  std::vector<int64_t> rows, ancestors;
  for (const BatchedText &text : texts) {
    speculate::DraftTree fed = text.pending(width);
    rows.push_back(text.last());
    rows.insert(rows.end(), fed.tokens.begin(), fed.tokens.end());
    if (areChains)
      continue;
    std::vector<int64_t> own = fed.ancestorsAfter(/*pending=*/1);
    ancestors.insert(ancestors.end(), own.begin(), own.end());
  }
  return areChains ? model.feedBatch(rows, std::ssize(texts)) : model.feedTrees(rows, ancestors, std::ssize(texts));
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
    HONE_RETURN_IF_ERROR(text.draft(model));
    width = std::max(width, text.draftedTokens() + 1);
    drafted += text.draftedTokens();
  }
  clock.endDraft(static_cast<size_t>(drafted));
  auto begin = std::chrono::steady_clock::now();
  HONE_ASSIGN_OR_RETURN(io::Array logits, feed(model, width));
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
  model.reserve(0, options.generation.maximalNewTokens);
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

/// Each text needs a tree of its own where one drafts trees.
absl::Status checkDrafts(Session &session, size_t texts, std::span<Speculation *const> drafts) {
  auto draftsTrees = [](const Speculation *each) { return each->settings().draftsTrees; };
  if (std::ranges::none_of(drafts, draftsTrees))
    return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(LanguageModel model, LanguageModel::over(session));
  return model.checkTrees(static_cast<int64_t>(texts));
}

} // namespace

absl::StatusOr<BatchTexts> generateBatch(Session &session, const text::Tokenizer *tokenizer,
                                         std::span<const std::vector<int64_t>> prompts, const WritingOptions &options,
                                         std::span<Speculation *const> drafts) {
  if (prompts.size() > 1 && !session.entry().hasOwnLengths)
    return invalid(session.module().folder(), ": entry '", session.entry().name,
                   "' does not take sequences of different lengths; 'hone compile --speculate=batch' lets it");
  if (session.module().manifest().ranks > 1)
    return invalid("several texts at once need a model that is not divided among processes");
  HONE_RETURN_IF_ERROR(checkDrafts(session, prompts.size(), drafts));
  Batch batch(options);
  HONE_RETURN_IF_ERROR(batch.readPrompts(session, tokenizer, prompts, drafts));
  HONE_RETURN_IF_ERROR(batch.write());
  return batch.finish();
}

} // namespace hone::rt
