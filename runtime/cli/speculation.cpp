// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which options of speculation go together.

#include "cli/speculation.h"

#include "cli/commands.h"
#include "speculate/tree_classifier.h"

#include <algorithm>
#include <charconv>

namespace hone::cli {
namespace {

using io::invalid;

absl::StatusOr<rt::DraftSource> draftSourceOf(std::string_view name) {
  for (rt::DraftSource source :
       {rt::DraftSource::Automaton, rt::DraftSource::Corpus, rt::DraftSource::Lookup, rt::DraftSource::Model})
    if (name == nameOf(source))
      return source;
  return invalid("unknown drafts '", name,
                 "' of --speculate; supported: none, model, or a list of automaton, corpus, lookup");
}

absl::StatusOr<rt::Acceptance> acceptanceOf(std::string_view name) {
  if (name == "identical")
    return rt::Acceptance::Identical;
  if (name == "exact")
    return rt::Acceptance::Exact;
  if (name == "typical")
    return rt::Acceptance::Typical;
  return invalid("unknown rule '", name, "' of --accept; supported: identical, exact, typical");
}

/// Options that belong to a source of drafts go with it.
absl::Status checkSources(const SpeculationFlags &flags, const std::string &names) {
  bool takesCorpus = flags.takes(rt::DraftSource::Corpus);
  if (takesCorpus != flags.corpus.has_value())
    return takesCorpus ? invalid("expected --draft-corpus FILE with --speculate=", names)
                       : invalid("expected corpus in --speculate with --draft-corpus, but got '", names, "'");
  bool takesModel = flags.takes(rt::DraftSource::Model);
  if (takesModel && flags.options.sources.size() > 1)
    return invalid("expected --speculate=model without other drafts, but got '", names, "'");
  for (const auto &[name, value] : {std::pair("--draft", flags.draftFile), std::pair("--accept", flags.accept)})
    if (value && !takesModel)
      return invalid("expected --speculate=model with ", name, "=", *value, ", but got ", names);
  if (flags.options.draftsTrees && flags.options.sources.empty())
    return invalid("expected automaton, corpus, lookup or model in --speculate with --draft-tree, but got ", names);
  for (const auto &[name, isGiven] :
       {std::pair("--draft-branches", flags.branches > 0), std::pair("--draft-depth", flags.depth > 0),
        std::pair("--draft-shape", flags.shape.has_value()), std::pair("--draft-pruner", flags.pruner.has_value())})
    if (isGiven && !(takesModel && flags.options.draftsTrees))
      return invalid("expected --speculate=model and --draft-tree with ", name);
  if (flags.threshold >= 0 && !flags.pruner)
    return invalid("expected --draft-pruner with --draft-threshold");
  if (flags.shape && (flags.branches > 0 || flags.depth > 0))
    return invalid("expected no ", flags.branches > 0 ? "--draft-branches" : "--draft-depth", " with --draft-shape");
  return absl::OkStatus();
}

/// Numbers from 1 on, with commas between.
absl::StatusOr<std::vector<int64_t>> readShape(const std::string &given) {
  constexpr int64_t mostTokens = speculate::kMostTreeTokens - 1;
  speculate::TreeShape shape;
  for (const std::string &word : splitList(given)) {
    int64_t count = 0;
    const char *last = word.data() + word.size();
    auto [end, error] = std::from_chars(word.data(), last, count);
    if (error != std::errc() || count < 1 || end != last)
      return invalid("expected --draft-shape to be numbers from 1 on with commas between, but got '", given, "'");
    shape.fixed.push_back(count);
  }
  if (shape.countFixed(mostTokens) > mostTokens)
    return invalid("expected a tree of at most ", mostTokens, " tokens, but --draft-shape=", given, " has more");
  return shape.fixed;
}

} // namespace

void SpeculationFlags::declare(OptionParser &parser) {
  parser.text("speculate", drafts);
  parser.text("draft-corpus", corpus);
  parser.integer("draft-tokens", options.mostDrafted, 1, 1024);
  parser.flag("draft-tree", options.draftsTrees);
  parser.text("draft", draftFile);
  parser.number("draft-confidence", options.leastConfidence, 0, 1);
  parser.integer("draft-branches", branches, 1, speculate::kMostTreeTokens - 1);
  parser.integer("draft-depth", depth, 1, speculate::kMostTreeTokens - 1);
  parser.text("draft-shape", shape);
  parser.text("draft-pruner", pruner);
  parser.number("draft-threshold", threshold, 0, 1);
  parser.text("accept", accept);
}

absl::Status SpeculationFlags::read() {
  std::string names = drafts.value_or("none");
  for (const std::string &name : names == "none" ? std::vector<std::string>() : splitList(names)) {
    HONE_ASSIGN_OR_RETURN(rt::DraftSource source, draftSourceOf(name));
    if (takes(source))
      return invalid("expected each of --speculate once, but got '", nameOf(source), "' twice");
    options.sources.push_back(source);
  }
  HONE_RETURN_IF_ERROR(checkSources(*this, names));
  options.corpus = corpus.value_or("");
  if (branches > 0)
    options.shape.branches = branches;
  if (depth > 0)
    options.shape.depth = depth;
  if (shape) {
    HONE_ASSIGN_OR_RETURN(options.shape.fixed, readShape(*shape));
  }
  if (pruner) {
    HONE_ASSIGN_OR_RETURN(speculate::TreeClassifier classifier, speculate::TreeClassifier::open(*pruner));
    constexpr double usual = 0.3; // the least of what C2T takes
    options.pruner = std::make_shared<speculate::ClassifierPruner>(classifier, threshold < 0 ? usual : threshold);
  }
  HONE_ASSIGN_OR_RETURN(options.acceptance, acceptanceOf(accept.value_or("identical")));
  return absl::OkStatus();
}

void SpeculationFlags::addInputs(io::InputFiles &inputs) const {
  inputs.add(corpus.value_or(""));
  inputs.add(draftFile.value_or(""));
  inputs.add(pruner.value_or(""));
}

bool SpeculationFlags::takes(rt::DraftSource source) const { return std::ranges::count(options.sources, source) > 0; }

absl::Status SpeculationFlags::loadDraft(const std::string &path, std::shared_ptr<const rt::Module> model,
                                         rt::Profile *profile) {
  if (!takes(rt::DraftSource::Model))
    return absl::OkStatus();
  draft = std::move(model);
  if (!draftFile && !draft->manifest().entry(draftEntry))
    return invalid(path, ": expected --draft=DRAFT.hone or an entry 'draft' in the artefact, but there is neither");
  if (!draftFile)
    return absl::OkStatus();
  draftEntry = "forward";
  HONE_ASSIGN_OR_RETURN(draft, loadModule(*draftFile, profile));
  return absl::OkStatus();
}

absl::Status SpeculationFlags::openDraft(rt::DraftModel &model, const rt::Session &target, int64_t threads) {
  if (!takes(rt::DraftSource::Model))
    return absl::OkStatus();
  HONE_RETURN_IF_ERROR(model.open(draft, draftEntry, target, static_cast<int>(threads)));
  options.draft = model.get();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OpenSpeculation>> SpeculationFlags::open(const rt::LanguageModel &target,
                                                                        int64_t threads) {
  if (options.sources.empty())
    return nullptr;
  auto opened = std::make_unique<OpenSpeculation>();
  HONE_RETURN_IF_ERROR(openDraft(opened->draft, target.session(), threads));
  HONE_ASSIGN_OR_RETURN(opened->drafters, rt::Speculation::create(options, target));
  return opened;
}

} // namespace hone::cli
