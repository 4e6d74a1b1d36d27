// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draft models: which fit a target, and how they follow a text.

#include "generate/model_drafter.h"

#include "core/seconds.h"
#include "generate/text_writer.h"
#include "hone/sampling/arithmetic.h"
#include "hone/sampling/expectation.h"
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

/// Lets the tree go on after a node with what the model expects there.
absl::Status follow(speculate::TreeExpansion &expansion, int64_t node, std::span<const float> logits) {
  HONE_ASSIGN_OR_RETURN(sampling::Expectation expected,
                        sampling::expectationOf({logits.data(), logits.size()}, expansion.branches()));
  std::vector<speculate::LikelyToken> likeliest;
  for (const sampling::TokenProbability &token : expected.likeliest)
    likeliest.push_back({token.id, token.probability});
  expansion.expand(node, likeliest, expected.entropy);
  return absl::OkStatus();
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

/// Of a tree that was fed, what the text went on with stays.
absl::Status ModelDrafter::keepPath() {
  if (fedTree.size() == 0)
    return absl::OkStatus();
  speculate::DraftTree tree = std::exchange(fedTree, {});
  std::vector<int64_t> path;
  for (int64_t node = 0; fed.size() < text.size();) {
    int64_t next = text[fed.size()];
    std::vector<int64_t> children = tree.childrenOf(node);
    auto found = std::ranges::find(children, next, [&](int64_t child) { return tree.tokenOf(child); });
    if (found == children.end())
      break;
    path.push_back(*found - 1);
    fed.push_back(next);
    node = *found;
  }
  return model->session().state().keep(path);
}

/// Leaves the session with what it has of the text, but for its last token, whose logits are needed.
absl::Status ModelDrafter::takeBack() {
  HONE_RETURN_IF_ERROR(keepPath());
  auto agreed = static_cast<size_t>(std::ranges::mismatch(fed, text).in1 - fed.begin());
  fed.resize(std::min(agreed, text.size() - 1));
  return model->session().state().truncate(static_cast<int64_t>(fed.size()));
}

absl::StatusOr<std::vector<int64_t>> ModelDrafter::catchUp() {
  HONE_RETURN_IF_ERROR(takeBack());
  if (!hasRoom(text.size() - fed.size()))
    return std::vector<int64_t>();
  while (text.size() - fed.size() > kPiece)
    HONE_RETURN_IF_ERROR(feed(std::span(text).subspan(fed.size(), kPiece)).status());
  return std::vector(text.begin() + std::ssize(fed), text.end());
}

absl::StatusOr<DraftedTokens> ModelDrafter::draft(int64_t most, Acceptance rule, TextSampler &sampler) {
  DraftedTokens drafted;
  if (most <= 0)
    return drafted;
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> pending, catchUp());
  double joint = 1;
  while (!pending.empty() && std::ssize(drafted.tokens) < most && joint >= confidence && hasRoom(pending.size())) {
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

/// In place of the tree that was fed before.
absl::StatusOr<io::Array> ModelDrafter::feedPaths(const speculate::TreeExpansion &expansion) {
  HONE_RETURN_IF_ERROR(model->session().state().truncate(std::ssize(fed)));
  fedTree = speculate::treeOf(expansion, expansion.listPaths());
  std::vector<int64_t> ancestors = fedTree.ancestorsAfter(0);
  absl::StatusOr<io::Array> logits = model->feedTree(fedTree.tokens, ancestors, std::ssize(expansion.frontier()));
  if (!logits.ok())
    fedTree = {};
  return logits;
}

absl::Status ModelDrafter::draftTree(speculate::TreeExpansion &expansion) {
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> pending, catchUp());
  bool hasPlace = !pending.empty();
  while (hasPlace && !expansion.frontier().empty()) {
    auto start = std::chrono::steady_clock::now();
    bool isRoot = expansion.depth() == 0;
    HONE_ASSIGN_OR_RETURN(io::Array logits, isRoot ? feed(pending) : feedPaths(expansion));
    size_t vocabulary = static_cast<size_t>(logits.shape().back()), count = expansion.frontier().size();
    std::span<const float> rows = logits.as<float>().last(count * vocabulary);
    for (size_t i = 0; i < count; ++i)
      HONE_RETURN_IF_ERROR(follow(expansion, expansion.frontier()[i], rows.subspan(i * vocabulary, vocabulary)));
    expansion.advance();
    if (!isRoot || pending.size() <= kFewRows)
      average(times->perToken, secondsSince(start));
    auto next = std::ssize(expansion.listPaths()), more = next - fedTree.size(); // those of the last pass go
    hasPlace = next <= speculate::kMostTreeTokens && (more <= 0 || hasRoom(static_cast<size_t>(more)));
  }
  return absl::OkStatus();
}

} // namespace hone::rt
