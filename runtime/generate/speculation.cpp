// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drafters as options name them, for the model at hand.

#include "generate/speculation.h"

#include "hone/io/file.h"
#include "speculate/combined_drafter.h"
#include "speculate/corpus.h"
#include "speculate/draft_length.h"
#include "speculate/lookup.h"
#include "speculate/suffix_automaton.h"

#include <algorithm>
#include <filesystem>

namespace hone::rt {
namespace {

using io::invalid;

absl::Status checkModel(const LanguageModel &model) {
  Session &session = model.session();
  if (session.module().manifest().ranks > 1)
    return invalid("speculation needs a model that is not divided among processes");
  const io::Dim &rows = session.entry().outputs[0].shape[1];
  if (rows.isFixed() && rows.size == 1)
    return invalid("speculation needs logits of several tokens, but the model gives those of the last one alone");
  return absl::OkStatus();
}

/// The tokens of a corpus must mean to the model what they meant to whoever made it.
absl::Status checkCorpus(const speculate::Corpus &corpus, const LanguageModel &model) {
  const Module &module = model.session().module();
  std::optional<int64_t> vocabulary = model.vocabulary();
  if (vocabulary && corpus.vocabulary() > *vocabulary)
    return invalid(corpus.path(), ": expected tokens of the model's vocabulary of ", *vocabulary, ", but got token ",
                   corpus.vocabulary() - 1);
  if (module.manifest().tokenizer.empty())
    return vocabulary ? absl::OkStatus()
                      : invalid(corpus.path(), ": cannot draft for ", module.folder(),
                                ": it has neither a tokenizer nor a fixed vocabulary to compare with");
  std::string path = (std::filesystem::path(module.folder()) / module.manifest().tokenizer).string();
  HONE_ASSIGN_OR_RETURN(io::MappedFile tokenizer, io::MappedFile::open(path));
  uint64_t fingerprint = speculate::fingerprintOf(tokenizer.text());
  if (fingerprint == corpus.tokenizer())
    return absl::OkStatus();
  return invalid(corpus.path(), ": expected a corpus of the tokenizer ", speculate::showFingerprint(fingerprint),
                 " of ", module.folder(), ", but it is of ", speculate::showFingerprint(corpus.tokenizer()));
}

absl::StatusOr<std::unique_ptr<speculate::Drafter>> createDrafter(DraftSource source, const SpeculationOptions &options,
                                                                  const LanguageModel &model) {
  switch (source) {
  case DraftSource::Automaton:
    return std::make_unique<speculate::AutomatonDrafter>();
  case DraftSource::Lookup:
    return std::make_unique<speculate::LookupDrafter>();
  case DraftSource::Replay:
    return std::make_unique<speculate::ReplayDrafter>(options.replay);
  case DraftSource::Corpus:
  case DraftSource::Model: // has no drafter of this kind
    break;
  }
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const speculate::Corpus> corpus, speculate::Corpus::open(options.corpus));
  HONE_RETURN_IF_ERROR(checkCorpus(*corpus, model));
  return std::make_unique<speculate::CorpusDrafter>(std::move(corpus));
}

/// A draft model is told what to draw and how its drafts are accepted; what was not drawn is accepted by the draw as often as by any exact rule.
absl::Status checkSources(const SpeculationOptions &options) {
  constexpr int64_t mostTokens = speculate::kMostTreeTokens - 1;
  if (options.shape.countFixed(mostTokens) > mostTokens)
    return invalid("expected a tree of at most ", mostTokens, " tokens, but the fixed shape has more");
  bool takesModel = std::ranges::count(options.sources, DraftSource::Model) > 0;
  if (takesModel && options.sources.size() > 1)
    return invalid("expected drafts of a model alone, but got them beside those of ",
                   nameOf(options.sources[options.sources[0] == DraftSource::Model ? 1 : 0]));
  if (takesModel != (options.draft != nullptr))
    return invalid(takesModel ? "expected a draft model" : "expected no draft model without the source model");
  if (takesModel && options.draftsTrees)
    HONE_RETURN_IF_ERROR(options.draft->checkTrees());
  if (!takesModel && options.acceptance != Acceptance::Identical)
    return invalid("expected drafts of a model for this rule of acceptance, but got others");
  return absl::OkStatus();
}

} // namespace

const char *nameOf(DraftSource source) {
  switch (source) {
  case DraftSource::Automaton:
    return "automaton";
  case DraftSource::Corpus:
    return "corpus";
  case DraftSource::Lookup:
    return "lookup";
  case DraftSource::Model:
    return "model";
  case DraftSource::Replay:
    return "replay";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<Speculation>> Speculation::create(const SpeculationOptions &options,
                                                                 const LanguageModel &model,
                                                                 std::unique_ptr<Speculation> before) {
  HONE_RETURN_IF_ERROR(checkModel(model));
  if (options.draftsTrees)
    HONE_RETURN_IF_ERROR(model.checkTrees());
  HONE_RETURN_IF_ERROR(checkSources(options));
  std::vector<std::unique_ptr<speculate::Drafter>> drafters;
  for (DraftSource source : options.draft ? std::vector<DraftSource>() : options.sources) {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<speculate::Drafter> drafter, createDrafter(source, options, model));
    drafters.push_back(std::move(drafter));
  }
  auto combined = std::make_unique<speculate::CombinedDrafter>(std::move(drafters));
  std::unique_ptr<Speculation> created(new Speculation(options, std::move(combined)));
  if (before) {
    created->width = std::move(before->width);
    created->length = std::move(before->length);
    created->times = std::move(before->times);
  }
  return created;
}

Speculation::Speculation(SpeculationOptions options, std::unique_ptr<speculate::Drafter> drafter)
    : options(std::move(options)), drafter(std::move(drafter)),
      width(std::make_unique<speculate::DraftWidth>(this->options.mostDrafted, this->options.sources.size())),
      length(std::make_unique<speculate::DraftLength>(this->options.mostDrafted)),
      times(std::make_unique<speculate::DrafterTimes>()) {}

Speculation::~Speculation() = default;

void Speculation::beginText(std::span<const int64_t> prompt) {
  drafted.assign(options.sources.size(), {});
  drafter->beginText();
  drafter->append(prompt);
}

void Speculation::append(std::span<const int64_t> tokens) { drafter->append(tokens); }

speculate::Draft Speculation::draft(int64_t most) const {
  most = std::min(most, width->most());
  if (!options.draftsTrees)
    return drafter->draft(most);
  return drafter->draftTree(std::min(most, speculate::kMostTreeTokens - 1));
}

int64_t Speculation::chooseWidth(const speculate::Draft &draft) const { return width->choose(draft); }

void Speculation::record(const speculate::Draft &draft, int64_t verified, const Verdict &verdict, double seconds) {
  width->record(draft, verified, verdict.path, seconds);
  if (verified == 0)
    return width->observe(draft, verdict.next.front());
  drafted[draft.drafter].verified += verified;
  drafted[draft.drafter].accepted += std::ssize(verdict.path);
}

} // namespace hone::rt
