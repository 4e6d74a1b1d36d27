// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drafts of the C interface.

#include "c_api/handles.h"

#include <algorithm>

namespace hone::capi {
namespace {

absl::StatusOr<rt::DraftSource> sourceOf(int32_t given) {
  switch (given) {
  case HONE_DRAFT_AUTOMATON:
    return rt::DraftSource::Automaton;
  case HONE_DRAFT_CORPUS:
    return rt::DraftSource::Corpus;
  case HONE_DRAFT_LOOKUP:
    return rt::DraftSource::Lookup;
  case HONE_DRAFT_MODEL:
    return rt::DraftSource::Model;
  }
  return io::invalid("unknown source of drafts ", given);
}

absl::StatusOr<std::vector<rt::DraftSource>> takeSources(const hone_speculation_options &options) {
  if (options.source_count == 0)
    return std::vector{rt::DraftSource::Automaton};
  if (!options.sources)
    return io::invalid("expected ", options.source_count, " sources of drafts, but got null");
  std::vector<rt::DraftSource> sources;
  for (int32_t given : std::span(options.sources, options.source_count)) {
    HONE_ASSIGN_OR_RETURN(rt::DraftSource source, sourceOf(given));
    if (std::ranges::count(sources, source) > 0)
      return io::invalid("expected each source of drafts once, but got '", nameOf(source), "' twice");
    sources.push_back(source);
  }
  return sources;
}

absl::StatusOr<rt::Acceptance> acceptanceOf(int32_t given) {
  switch (given) {
  case HONE_ACCEPT_IDENTICAL:
    return rt::Acceptance::Identical;
  case HONE_ACCEPT_EXACT:
    return rt::Acceptance::Exact;
  case HONE_ACCEPT_TYPICAL:
    return rt::Acceptance::Typical;
  }
  return io::invalid("unknown rule of acceptance ", given);
}

/// Without the draft model.
absl::StatusOr<rt::SpeculationOptions> takeSpeculationOptions(const hone_speculation_options &given) {
  constexpr int64_t mostDrafted = 1024;
  rt::SpeculationOptions options;
  HONE_ASSIGN_OR_RETURN(options.sources, takeSources(given));
  HONE_ASSIGN_OR_RETURN(options.acceptance, acceptanceOf(given.acceptance));
  bool takesCorpus = std::ranges::count(options.sources, rt::DraftSource::Corpus) > 0;
  if (takesCorpus != (given.corpus != nullptr))
    return io::invalid(takesCorpus ? "expected a corpus for the source corpus, but got null"
                                   : "expected no corpus without the source corpus");
  if (given.most_drafted < 1 || given.most_drafted > mostDrafted)
    return io::invalid("expected most_drafted to be 1 to ", mostDrafted, ", but got ", given.most_drafted);
  if (!(given.draft_confidence >= 0 && given.draft_confidence <= 1))
    return io::invalid("expected draft_confidence to be 0 to 1, but got ", given.draft_confidence);
  options.corpus = given.corpus ? given.corpus : "";
  options.mostDrafted = given.most_drafted;
  options.draftsTrees = given.trees != 0;
  options.leastConfidence = given.draft_confidence;
  return options;
}

absl::StatusOr<std::unique_ptr<hone_speculation>> openSpeculation(const hone_session &session,
                                                                  const hone_speculation_options *given) {
  hone_speculation_options options;
  hone_speculation_options_init(&options);
  HONE_RETURN_IF_ERROR(takeOptions(given, options));
  HONE_ASSIGN_OR_RETURN(rt::SpeculationOptions taken, takeSpeculationOptions(options));
  auto opened = std::make_unique<hone_speculation>();
  opened->module = session.session->sharedModule();
  opened->entry = session.session->entry().name;
  if (std::ranges::count(taken.sources, rt::DraftSource::Model) > 0) {
    HONE_RETURN_IF_ERROR(opened->draft.open(options.draft ? options.draft->module : opened->module,
                                            options.draft ? "forward" : "draft", *session.session,
                                            session.session->threadCount()));
    taken.draft = opened->draft.get();
  } else if (options.draft) {
    return io::invalid("expected no draft model without the source model");
  }
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::over(*session.session));
  HONE_ASSIGN_OR_RETURN(opened->drafts, rt::Speculation::create(taken, model));
  return opened;
}

} // namespace
} // namespace hone::capi

using namespace hone;
using namespace hone::capi;

void hone_speculation_options_init(hone_speculation_options *options) {
  if (!options)
    return;
  *options = {};
  options->struct_size = sizeof *options;
  options->most_drafted = rt::SpeculationOptions().mostDrafted;
  options->draft_confidence = rt::SpeculationOptions().leastConfidence;
}

hone_status hone_speculation_open(const hone_session *session, const hone_speculation_options *options,
                                  hone_speculation **speculation) {
  if (!session || !speculation)
    return reportNull("session and speculation");
  return reported([=]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<hone_speculation> opened, openSpeculation(*session, options));
    *speculation = opened.release();
    return absl::OkStatus();
  });
}

void hone_speculation_close(hone_speculation *speculation) { delete speculation; }
