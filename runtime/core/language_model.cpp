// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Feeding tokens and generating them.

#include "core/language_model.h"

#include "core/communicator.h"
#include "core/seconds.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ranges>

namespace hone::rt {
namespace {

using io::cat;
using io::invalid;

constexpr std::string_view kAncestors = "ancestors";

/// The entry that verifies trees for an entry of tokens.
std::string verifierOf(const io::EntryInfo &entry) {
  return entry.name == "forward" ? "verify" : entry.name + "_verify";
}

/// Sets for how many positions a call computes logits; its end restores what was set before.
class KeptLogits {
public:
  KeptLogits(State &state, int64_t count) : state(state), before(state.setLogitsToKeep(count)) {}
  ~KeptLogits() { state.setLogitsToKeep(before); }
  KeptLogits(const KeptLogits &) = delete;
  KeptLogits &operator=(const KeptLogits &) = delete;

private:
  State &state;
  int64_t before;
};

/// The last piece of a prompt is the decoder's; returns its token.
absl::StatusOr<std::vector<int64_t>> prefill(LanguageModel &model, std::span<const int64_t> prompt,
                                             const GenerationOptions &options, Decoder &decoder) {
  HONE_ASSIGN_OR_RETURN(std::span<const int64_t> rest, feedPieces(model, prompt, options));
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> tokens, decoder.decode(model, rest, /*most=*/1));
  if (options.onPromptFed)
    options.onPromptFed(std::ssize(prompt));
  return tokens;
}

} // namespace

absl::StatusOr<std::span<const int64_t>> feedPieces(LanguageModel &model, std::span<const int64_t> prompt,
                                                    const GenerationOptions &options) {
  auto piece = static_cast<size_t>(options.prefillChunk);
  size_t fed = 0;
  while (prompt.size() - fed > piece) {
    HONE_RETURN_IF_ERROR(model.feed(prompt.subspan(fed, piece), /*logitsToKeep=*/1).status());
    fed += piece;
    if (options.onPromptFed)
      options.onPromptFed(static_cast<int64_t>(fed));
  }
  return prompt.subspan(fed);
}

SpeculationStatistics SpeculationStatistics::since(const SpeculationStatistics &before) const {
  return {drafted - before.drafted, accepted - before.accepted, draftSeconds - before.draftSeconds,
          verifySeconds - before.verifySeconds, commitSeconds - before.commitSeconds};
}

absl::StatusOr<std::unique_ptr<Session>> openLanguageSession(std::shared_ptr<const Module> module, int threads,
                                                             const std::optional<std::string> &offload) {
  if (!module->manifest().entry("forward"))
    return invalid(module->folder(), ": not a language model: it has no entry 'forward'");
  std::shared_ptr<StateMemory> memory;
  if (offload) {
    HONE_ASSIGN_OR_RETURN(memory, offloadedStateMemory(*offload));
  }
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                        Session::create(std::move(module), "forward", std::move(memory)));
  session->setThreads(threads);
  return session;
}

absl::StatusOr<std::vector<int64_t>> chooseStart(LanguageModel &model) {
  std::vector<int64_t> start;
  for (const std::vector<int64_t> &choice : model.session().module().manifest().generation.startTokens) {
    int64_t best = choice.front();
    if (choice.size() > 1 && !start.empty()) {
      HONE_ASSIGN_OR_RETURN(io::Array logits, model.feed(start, /*logitsToKeep=*/1));
      model.session().state().reset();
      std::span<const float> row = lastRow(logits);
      for (int64_t token : choice) {
        if (token < 0 || token >= std::ssize(row))
          return invalid("expected a text to begin with tokens of the vocabulary of ", row.size(), ", but got ", token);
        if (row[static_cast<size_t>(token)] > row[static_cast<size_t>(best)])
          best = token;
      }
    }
    start.push_back(best);
  }
  return start;
}

absl::StatusOr<LanguageModel> LanguageModel::over(Session &session) {
  LanguageModel model(session);
  HONE_RETURN_IF_ERROR(model.checkSignature());
  const std::optional<io::FeatureInfo> &features = session.module().manifest().features;
  if (features && session.checkContextName(features->input).ok())
    HONE_RETURN_IF_ERROR(session.fillContext(features->input));
  return model;
}

absl::Status LanguageModel::checkSignature() const {
  const io::EntryInfo &entry = memory->entry();
  bool takesTokens = !entry.inputs.empty() && entry.inputs[0].shape.size() == 2 &&
                     (entry.inputs[0].dtype == HONE_I64 || entry.inputs[0].dtype == HONE_I32) &&
                     std::ranges::all_of(entry.inputs | std::views::drop(1), &io::TensorInfo::isContext);
  if (!takesTokens)
    return invalid(memory->module().folder(), ": expected entry '", entry.name,
                   "' to take tokens (i64 or i32, [batch, sequence]) and nothing else but context");
  bool givesLogits = !entry.outputs.empty() && entry.outputs[0].dtype == HONE_F32 && entry.outputs[0].shape.size() == 3;
  if (!givesLogits)
    return invalid(memory->module().folder(), ": expected entry '", entry.name,
                   "' to give logits (f32, [batch, sequence, vocabulary]) first");
  return absl::OkStatus();
}

std::optional<int64_t> LanguageModel::vocabulary() const {
  const io::Dim &dim = memory->entry().outputs[0].shape[2];
  return dim.isFixed() ? std::optional(dim.size) : std::nullopt;
}

absl::Status LanguageModel::checkTokens(std::span<const int64_t> tokens) const {
  if (tokens.empty())
    return invalid("expected at least one token");
  int64_t end = vocabulary().value_or(std::numeric_limits<int32_t>::max());
  for (size_t i = 0; i < tokens.size(); ++i)
    if (int64_t position = length() + static_cast<int64_t>(i);
        (tokens[i] < 0 || tokens[i] >= end) && !findFeature(position))
      return invalid("token ", tokens[i], " at position ", position, " is outside the vocabulary of ", end);
  return absl::OkStatus();
}

/// The row of the features that is at a position, or nothing.
std::optional<int64_t> LanguageModel::findFeature(int64_t position) const {
  auto place = std::ranges::lower_bound(places, position);
  return place != places.end() && *place == position ? std::optional(place - places.begin()) : std::nullopt;
}

/// The tokens to feed next, with the ids of the features that stand among them.
std::vector<int64_t> LanguageModel::withFeatures(std::span<const int64_t> tokens) const {
  std::vector<int64_t> ids(tokens.begin(), tokens.end());
  if (places.empty() || places.back() < length())
    return ids;
  for (size_t i = 0; i < ids.size(); ++i)
    if (std::optional<int64_t> row = findFeature(length() + static_cast<int64_t>(i)))
      ids[i] = io::kFirstFeatureId + *row;
  return ids;
}

absl::StatusOr<std::vector<int64_t>> LanguageModel::placeFeatures(std::span<const int64_t> prompt) {
  std::vector<int64_t> placed(prompt.begin(), prompt.end());
  const std::optional<io::FeatureInfo> &features = memory->module().manifest().features;
  if (!features)
    return placed;
  const io::Array *rows = memory->givenContext(features->input);
  int64_t stands = std::ranges::count(prompt, features->token), count = rows ? rows->shape()[0] : 0;
  if (stands == 0 && count == 0)
    return placed;
  if (count == 0)
    return invalid("expected a prompt without token ", features->token,
                   ", which stands for features, as the session has none of '", features->input, "'");
  if (stands == 0 || count < stands || count % stands != 0)
    return invalid("expected the prompt to have token ", features->token, " where the ", count,
                   " features go: once, or as often as divides them, but got ", stands);
  placed.clear();
  places.clear();
  for (int64_t token : prompt)
    for (int64_t i = 0; i < (token == features->token ? count / stands : 1); ++i) {
      if (token == features->token)
        places.push_back(length() + std::ssize(placed));
      placed.push_back(token);
    }
  return placed;
}

absl::StatusOr<io::Array> LanguageModel::tokensAsInput(std::span<const int64_t> tokens, int64_t sequences) const {
  HONE_ASSIGN_OR_RETURN(io::Array array, io::Array::create(memory->entry().inputs[0].dtype,
                                                           std::vector{sequences, std::ssize(tokens) / sequences}));
  if (array.dtype() == HONE_I64)
    std::ranges::copy(withFeatures(tokens), array.as<int64_t>().begin());
  else
    std::ranges::transform(withFeatures(tokens), array.as<int32_t>().begin(),
                           [](int64_t token) { return static_cast<int32_t>(token); });
  return array;
}

absl::Status LanguageModel::checkRoom(int64_t tokens) const {
  const io::Dim &positions = memory->entry().inputs[0].shape[1];
  Symbols symbols;
  if (!positions.isFixed())
    symbols[positions.symbol] = {tokens, "the tokens"};
  return checkLimits(memory->entry(), symbols, length());
}

void LanguageModel::reserve(int64_t promptTokens, int64_t newTokens) {
  constexpr int64_t mostNew = 1024; // an end token may come long before a large limit
  memory->state().reserve(length() + promptTokens + std::clamp<int64_t>(newTokens, 0, mostNew));
}

absl::StatusOr<io::Array> LanguageModel::feed(std::span<const int64_t> tokens, int64_t logitsToKeep) {
  HONE_RETURN_IF_ERROR(checkTokens(tokens));
  HONE_ASSIGN_OR_RETURN(io::Array array, tokensAsInput(tokens));
  NamedTensor input = {memory->entry().inputs[0].name, array.view()};
  KeptLogits kept(memory->state(), logitsToKeep);
  return takeLogits(memory->forward({&input, 1}), std::ssize(tokens), logitsToKeep);
}

absl::StatusOr<io::Array> LanguageModel::feedBatch(std::span<const int64_t> tokens, int64_t sequences) {
  HONE_RETURN_IF_ERROR(checkTokens(tokens));
  HONE_ASSIGN_OR_RETURN(io::Array array, tokensAsInput(tokens, sequences));
  NamedTensor input = {memory->entry().inputs[0].name, array.view()};
  KeptLogits kept(memory->state(), 0);
  return takeLogits(memory->forward({&input, 1}), std::ssize(tokens) / sequences, /*logitsToKeep=*/0, sequences);
}

/// Those of a call for `count` tokens of each sequence.
absl::StatusOr<io::Array> LanguageModel::takeLogits(absl::StatusOr<std::vector<io::Array>> called, int64_t count,
                                                    int64_t logitsToKeep, int64_t sequences) const {
  HONE_ASSIGN_OR_RETURN(std::vector<io::Array> outputs, std::move(called));
  std::span<const int64_t> shape = outputs[0].shape();
  bool isAll = shape[1] == count, isKept = logitsToKeep > 0 && shape[1] == std::min(logitsToKeep, count),
       isLast = shape[1] == 1;
  if (shape[0] != sequences || !(isAll || isKept || isLast) || shape[2] == 0)
    return absl::InternalError(
        cat("the program gave logits of shape ", io::shapeText(shape), " for ", count, " tokens"));
  return std::move(outputs[0]);
}

absl::StatusOr<io::Array> LanguageModel::feedTree(std::span<const int64_t> tokens, std::span<const int64_t> ancestors,
                                                  int64_t logitsToKeep) {
  return callVerifier(tokens, ancestors, logitsToKeep, /*sequences=*/1);
}

absl::StatusOr<io::Array> LanguageModel::feedTrees(std::span<const int64_t> tokens, std::span<const int64_t> ancestors,
                                                   int64_t sequences) {
  return callVerifier(tokens, ancestors, /*logitsToKeep=*/0, sequences);
}

/// Ancestors are [sequence], or [batch, sequence] of an entry that takes a tree for each.
absl::StatusOr<io::Array> LanguageModel::callVerifier(std::span<const int64_t> tokens,
                                                      std::span<const int64_t> ancestors, int64_t logitsToKeep,
                                                      int64_t sequences) {
  HONE_RETURN_IF_ERROR(checkTokens(tokens));
  HONE_ASSIGN_OR_RETURN(io::Array array, tokensAsInput(tokens, sequences));
  std::string verifier = verifierOf(memory->entry());
  HONE_ASSIGN_OR_RETURN(const io::EntryInfo *entry, memory->module().findEntryInfo(verifier));
  std::vector<int64_t> sizes = {std::ssize(ancestors) / sequences};
  if (entry->inputs[1].shape.size() == 2)
    sizes.insert(sizes.begin(), sequences);
  hone_tensor words = io::denseView(const_cast<int64_t *>(ancestors.data()), HONE_I64, sizes); // which is read alone
  std::array inputs = {NamedTensor{memory->entry().inputs[0].name, array.view()}, NamedTensor{kAncestors, words}};
  KeptLogits kept(memory->state(), logitsToKeep);
  return takeLogits(memory->call(verifier, inputs), std::ssize(tokens) / sequences, logitsToKeep, sequences);
}

absl::Status LanguageModel::checkTrees(int64_t sequences) const {
  const io::EntryInfo &own = memory->entry();
  std::string name = verifierOf(own);
  const io::EntryInfo *verify = memory->module().manifest().entry(name);
  bool takesTree = verify && verify->state == own.state && verify->inputs.size() == own.inputs.size() + 1 &&
                   verify->inputs[0].name == own.inputs[0].name && verify->inputs[0].dtype == own.inputs[0].dtype &&
                   verify->inputs[1].name == kAncestors && verify->inputs[1].dtype == HONE_I64 &&
                   (verify->inputs[1].shape.size() == 1 || verify->inputs[1].shape.size() == 2);
  bool givesLogits = takesTree && !verify->outputs.empty() && verify->outputs[0].dtype == HONE_F32 &&
                     verify->outputs[0].shape.size() == 3;
  bool takesEach = givesLogits && verify->inputs[1].shape.size() == 2;
  if (givesLogits && (takesEach || sequences == 1))
    return absl::OkStatus();
  if (givesLogits)
    return invalid(memory->module().folder(), ": entry '", name, "' takes one tree for all texts; 'hone compile ",
                   "--speculate=tree,batch' lets each have its own");
  return invalid(memory->module().folder(), ": drafts that are trees need an entry '", name, "' of tokens and ",
                 kAncestors, " over the state of '", own.name, "'; 'hone compile --speculate=tree' adds one");
}

absl::StatusOr<int64_t> LanguageModel::sample(std::span<const int64_t> tokens, uint64_t draw) {
  HONE_RETURN_IF_ERROR(checkTokens(tokens));
  HONE_ASSIGN_OR_RETURN(io::Array array, tokensAsInput(tokens));
  NamedTensor input = {memory->entry().inputs[0].name, array.view()};
  KeptLogits kept(memory->state(), 1);
  return memory->sample({&input, 1}, draw);
}

std::span<const float> lastRow(const io::Array &logits) {
  return logits.as<float>().last(static_cast<size_t>(logits.shape().back()));
}

namespace {

/// A text as it gets longer.
class Generation {
public:
  Generation(LanguageModel &model, const GenerationOptions &options, const TokenReceiver &receive)
      : model(model), options(options), receive(receive) {}

  absl::Status run(std::span<const int64_t> prompt, Decoder &decoder) {
    statistics.promptTokens = static_cast<int64_t>(prompt.size());
    std::span<const int64_t> fresh = prompt.subspan(static_cast<size_t>(options.promptHeld));
    HONE_RETURN_IF_ERROR(model.checkRoom(std::ssize(fresh)));
    model.reserve(std::ssize(fresh), options.maximalNewTokens);
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> tokens, prefill(model, fresh, options, decoder));
    ofPrompt = decoder.statistics();
    while (true) {
      HONE_ASSIGN_OR_RETURN(bool goesOn, take(tokens));
      if (!goesOn)
        return absl::OkStatus();
      ++statistics.passes;
      HONE_ASSIGN_OR_RETURN(tokens, decoder.decode(model, {&last, 1}, options.maximalNewTokens - statistics.newTokens));
    }
  }

  /// Takes back what the decoder fed after the last token that was received.
  absl::Status takeBack() {
    int64_t received = before + statistics.promptTokens + statistics.newTokens - 1;
    bool hasMore = statistics.newTokens > 0 && model.length() > received;
    return hasMore ? model.session().state().truncate(received) : absl::OkStatus();
  }

  GenerationStatistics finish(const Decoder &decoder) {
    statistics.speculation = decoder.statistics().since(ofPrompt);
    statistics.decodeSeconds = secondsSince(start) - statistics.firstTokenSeconds;
    return statistics;
  }

private:
  /// Whether the text goes on after these tokens.
  absl::StatusOr<bool> take(std::span<const int64_t> tokens) {
    for (int64_t token : tokens) {
      if (model.session().module().manifest().ranks > 1) { // all go on with the same token, whatever their logits
        HONE_ASSIGN_OR_RETURN(token, Communicator::current()->takeFirst(token));
      }
      last = token;
      if (statistics.newTokens++ == 0)
        statistics.firstTokenSeconds = secondsSince(start);
      HONE_ASSIGN_OR_RETURN(bool goesOn, receive(token));
      bool atEnd = std::ranges::find(options.endTokens, token) != options.endTokens.end();
      if (!goesOn || atEnd || statistics.newTokens >= options.maximalNewTokens)
        return false;
    }
    return true;
  }

  LanguageModel &model;
  const GenerationOptions &options;
  const TokenReceiver &receive;
  GenerationStatistics statistics;
  SpeculationStatistics ofPrompt;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  int64_t before = model.length() - options.promptHeld, last = 0; // before: tokens that are no part of the text
};

} // namespace

absl::StatusOr<GenerationStatistics> generate(LanguageModel &model, std::span<const int64_t> prompt,
                                              const GenerationOptions &options, Decoder &decoder,
                                              const TokenReceiver &receive) {
  Generation generation(model, options, receive);
  absl::Status status = generation.run(prompt, decoder);
  HONE_RETURN_IF_ERROR(generation.takeBack());
  HONE_RETURN_IF_ERROR(status);
  return generation.finish(decoder);
}

} // namespace hone::rt
