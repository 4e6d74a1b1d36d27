// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draft models: which fit a target, and how they follow a text.

#include "generate/model_drafter.h"

#include "core/seconds.h"
#include "generate/text_writer.h"
#include "hone/sampling/arithmetic.h"
#include "hone/text/tokenizer.h"

#include <algorithm>
#include <chrono>

namespace hone::rt {
namespace {

using io::invalid;

constexpr size_t kPiece = 512; // most tokens of a text fed at a time
constexpr size_t kFewRows =
    4; // a pass over more tokens takes what its rows take, rather than what reading the weights takes
constexpr double kNewTime = 0.25; // the share of a new time in the average

std::string tokenizerFile(const Module &module) { return module.folder() + "/" + module.manifest().tokenizer; }

/// Of two artefacts that have one: most drafts have the target's, which need not be parsed.
absl::StatusOr<bool> haveSameFile(const Module &target, const Module &draft) {
  HONE_ASSIGN_OR_RETURN(std::string expected, io::readFile(tokenizerFile(target)));
  HONE_ASSIGN_OR_RETURN(std::string got, io::readFile(tokenizerFile(draft)));
  return expected == got;
}

/// A drafted token is an id, so that ids have to mean the same; how a text is cut into them does not matter.
absl::Status checkTokenizers(const Module &target, const Module &draft, int64_t vocabulary) {
  if (target.manifest().tokenizer.empty() || draft.manifest().tokenizer.empty())
    return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(bool isSame, haveSameFile(target, draft));
  if (isSame)
    return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const text::Tokenizer> ofTarget, loadTokenizer(target));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const text::Tokenizer> ofDraft, loadTokenizer(draft));
  std::optional<text::TokenDifference> other = text::findDifference(*ofTarget, *ofDraft, vocabulary);
  if (!other)
    return absl::OkStatus();
  return invalid(draft.folder(), ": expected the draft model to have the tokenizer of ", target.folder(),
                 ", where token ", other->id, " is ", other->expected, ", but got ", other->got);
}

absl::Status checkVocabulary(const Session &target, const Session &draft, int64_t vocabulary) {
  const io::Dim &dim = draft.entry().outputs[0].shape[2];
  if (!dim.isFixed() || dim.size == vocabulary)
    return absl::OkStatus();
  return invalid(draft.module().folder(), ": expected the draft model to have the vocabulary of ",
                 target.module().folder(), ", ", vocabulary, " tokens, but got ", dim.size);
}

absl::Status checkDraft(Session &draft) {
  const std::string &folder = draft.module().folder();
  if (int64_t ranks = draft.module().manifest().ranks; ranks > 1)
    return invalid(folder, ": expected a draft model that is not divided among processes, but it is for ", ranks);
  if (const Slot *slot = draft.state().findWithoutHistory())
    return invalid(folder, ": a draft model takes back tokens, but state '", slot->description().name,
                   "' has no history to return to");
  auto context = std::ranges::find_if(draft.entry().inputs, &io::TensorInfo::isContext);
  if (context != draft.entry().inputs.end())
    return invalid(folder, ": expected a draft model without context, but it reads '", context->name, "'");
  return absl::OkStatus();
}

void average(double &known, double time) { known = known > 0 ? known + kNewTime * (time - known) : time; }

/// Probability of a token by the model itself, at temperature 1.
double probabilityOf(std::span<const float> logits, int64_t token) {
  double largest = *std::ranges::max_element(logits), sum = 0;
  for (float logit : logits)
    sum += sampling::portableExp(logit - largest);
  return sampling::portableExp(logits[static_cast<size_t>(token)] - largest) / sum;
}

} // namespace

absl::StatusOr<std::unique_ptr<Session>> openDraftSession(std::shared_ptr<const Module> draft, std::string_view entry,
                                                          const Session &target, int threads) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::create(draft, entry));
  session->setThreads(threads);
  HONE_RETURN_IF_ERROR(LanguageModel::over(*session).status());
  HONE_RETURN_IF_ERROR(checkDraft(*session));
  const io::Dim &vocabulary = target.entry().outputs[0].shape[2];
  const io::Dim &ofDraft = session->entry().outputs[0].shape[2];
  if (vocabulary.isFixed())
    HONE_RETURN_IF_ERROR(checkVocabulary(target, *session, vocabulary.size));
  if (draft.get() != &target.module())
    HONE_RETURN_IF_ERROR(
        checkTokenizers(target.module(), *draft, vocabulary.isFixed() ? vocabulary.size : ofDraft.size));
  return session;
}

absl::Status DraftModel::open(std::shared_ptr<const Module> draft, std::string_view entry, const Session &target,
                              int threads) {
  HONE_ASSIGN_OR_RETURN(session, openDraftSession(std::move(draft), entry, target, threads));
  HONE_ASSIGN_OR_RETURN(model, LanguageModel::over(*session));
  return absl::OkStatus();
}

ModelDrafter::ModelDrafter(LanguageModel &model, std::span<const int64_t> prompt, double confidence,
                           speculate::DrafterTimes &times)
    : model(&model), text(prompt.begin(), prompt.end()), confidence(confidence), times(&times) {
  model.session().state().reset();
}

speculate::DrafterCosts ModelDrafter::costs() const {
  size_t missing = text.size() - std::min(text.size(), fed.size());
  return {times->perToken, missing > kFewRows ? static_cast<double>(missing) * times->perRow : 0};
}

absl::StatusOr<io::Array> ModelDrafter::feed(std::span<const int64_t> tokens) {
  auto start = std::chrono::steady_clock::now();
  HONE_ASSIGN_OR_RETURN(io::Array logits, model->feed(tokens, /*logitsToKeep=*/1));
  if (tokens.size() > kFewRows)
    average(times->perRow, secondsSince(start) / static_cast<double>(tokens.size()));
  fed.insert(fed.end(), tokens.begin(), tokens.end());
  logitCount = logits.shape().back();
  return logits;
}

/// Leaves the session with what it has of the text, but for its last token, whose logits are needed.
absl::Status ModelDrafter::takeBack() {
  auto agreed = static_cast<size_t>(std::ranges::mismatch(fed, text).in1 - fed.begin());
  fed.resize(std::min(agreed, text.size() - 1));
  return model->session().state().truncate(static_cast<int64_t>(fed.size()));
}

absl::StatusOr<DraftedTokens> ModelDrafter::draft(int64_t most, Acceptance rule, TextSampler &sampler) {
  DraftedTokens drafted;
  HONE_RETURN_IF_ERROR(takeBack());
  if (most <= 0 || !hasRoom(text.size() - fed.size()))
    return drafted;
  while (text.size() - fed.size() > kPiece)
    HONE_RETURN_IF_ERROR(feed(std::span(text).subspan(fed.size(), kPiece)).status());
  std::vector<int64_t> pending(text.begin() + static_cast<int64_t>(fed.size()), text.end());
  double joint = 1;
  while (std::ssize(drafted.tokens) < most && joint >= confidence && hasRoom(pending.size())) {
    auto start = std::chrono::steady_clock::now();
    HONE_ASSIGN_OR_RETURN(io::Array logits, feed(pending));
    HONE_RETURN_IF_ERROR(sampler.draft(rule, lastRow(logits), drafted));
    joint *= probabilityOf(lastRow(logits), drafted.tokens.back());
    if (pending.size() <= kFewRows)
      average(times->perToken, secondsSince(start));
    pending.assign(1, drafted.tokens.back());
  }
  return drafted;
}

} // namespace hone::rt
