// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What speculative decoding knows beyond one text: drafters that have seen the texts before, and which drafts paid.

#ifndef HONE_RUNTIME_GENERATE_SPECULATION_H
#define HONE_RUNTIME_GENERATE_SPECULATION_H

#include "core/language_model.h"
#include "generate/text_sampler.h"
#include "speculate/replay.h"
#include "speculate/tree_expansion.h"

namespace hone::speculate {
class Drafter;
class DraftLength;
class DraftWidth;
struct Draft;
struct DrafterTimes;
} // namespace hone::speculate

namespace hone::rt {

/// Where drafts come from.
enum class DraftSource {
  Automaton, // what followed the longest suffix of the text, in it or in those before it
  Corpus,    // what followed that in a corpus
  Lookup,    // what followed the last three tokens in the text
  Model,     // what a draft model writes; not with others
  Replay,    // a known text, with some tokens wrong
};

/// "automaton", "corpus", "lookup", "model" or "replay".
const char *nameOf(DraftSource source);

struct SpeculationOptions {
  std::vector<DraftSource> sources; // of matches as long, the first one's counts
  std::string corpus;               // the file of the source Corpus
  int64_t mostDrafted = 32;         // tokens verified in one pass, besides the last one of the text
  bool draftsTrees = false;         // several continuations at once, for LanguageModel::feedTree; of a draft model too

  // Of the source Model:
  LanguageModel *draft =
      nullptr; // over a session of openDraftSession(), which outlives the Speculation; its state begins anew with each text
  Acceptance acceptance = Acceptance::Identical;
  double leastConfidence = 0.1;                                  // a chain ends where it falls below (ModelDrafter)
  speculate::TreeShape shape = {};                               // of its trees
  std::shared_ptr<const speculate::TreePruner> pruner = nullptr; // of those trees, or null

  speculate::Replay replay = {}; // of the source Replay
};

/// What became of the drafts of a source.
struct DraftCounts {
  int64_t verified = 0, accepted = 0; // tokens
};

/// Drafters of texts that a model writes one after the other: what it wrote drafts what it writes next. One text at a time.
class Speculation {
public:
  /// Fails where a model is divided among processes or gives logits of the last one alone, for a corpus that cannot be read or is of another
  /// tokenizer or vocabulary, for a rule of acceptance that the drafts are not made for, and for a draft model beside other sources.
  /// Takes over what `before`, of the same sources and models, found out of times and acceptance, but none of its texts; that is of no more use.
  static absl::StatusOr<std::unique_ptr<Speculation>>
  create(const SpeculationOptions &options, const LanguageModel &model, std::unique_ptr<Speculation> before = nullptr);
  ~Speculation();

  /// Begins a text and its counts.
  void beginText(std::span<const int64_t> prompt);
  void append(std::span<const int64_t> tokens);
  /// At most `most` tokens.
  speculate::Draft draft(int64_t most) const;
  /// How many tokens of a draft to verify: DraftWidth::choose.
  int64_t chooseWidth(const speculate::Draft &draft) const;
  /// A pass that verified the first tokens of a draft.
  void record(const speculate::Draft &draft, int64_t verified, const Verdict &verdict, double seconds);

  /// How many tokens a draft model is asked for, and what it takes, as the texts so far say.
  speculate::DraftLength &draftLength() { return *length; }
  speculate::DrafterTimes &drafterTimes() { return *times; }
  const SpeculationOptions &settings() const { return options; }
  bool usesModel() const { return options.draft != nullptr; }
  /// Of the text, by source.
  const std::vector<DraftCounts> &counts() const { return drafted; }

private:
  Speculation(SpeculationOptions options, std::unique_ptr<speculate::Drafter> drafter);

  SpeculationOptions options;
  std::unique_ptr<speculate::Drafter> drafter;
  std::unique_ptr<speculate::DraftWidth> width;
  std::unique_ptr<speculate::DraftLength> length;
  std::unique_ptr<speculate::DrafterTimes> times;
  std::vector<DraftCounts> drafted;
};

} // namespace hone::rt

#endif // HONE_RUNTIME_GENERATE_SPECULATION_H
