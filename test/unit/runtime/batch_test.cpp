// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts that are written several at once, with drafts of every kind: each is the one that its prompt gives alone.

#include "draft_texts.h"
#include "generate/batch.h"

#include <deque>
#include <random>

namespace hone::test {
namespace {

using rt::DraftSource;
using testing::HasSubstr;

class Batches : public testing::Test {
protected:
  void SetUp() override {
    writeArtefact(target, HONE_TEST_PROGRAM_TREES, toyManifestWithTreesForEach());
    writeArtefact(wrong, HONE_TEST_PROGRAM_OTHER_TREES, toyManifestWithTreesForEach());
  }

  /// With drafters for each of so many texts, and a draft model of its own from `draft` where it takes one.
  rt::BatchTexts write(const std::vector<Tokens> &prompts, rt::SpeculationOptions speculation, const std::string &draft,
                       const rt::WritingOptions &options) {
    Model model = open(target);
    std::deque<Model> models;
    std::vector<std::unique_ptr<rt::Speculation>> drafters;
    std::vector<rt::Speculation *> drafts;
    while (!speculation.sources.empty() && drafts.size() < prompts.size()) {
      if (speculation.sources.front() == DraftSource::Model) {
        models.push_back(open(draft));
        speculation.draft = &*models.back().model;
      }
      drafters.push_back(*rt::Speculation::create(speculation, *model.model));
      drafts.push_back(drafters.back().get());
    }
    auto written = rt::generateBatch(*model.session, nullptr, prompts, options, drafts);
    EXPECT_EQ(messageOf(written), "OK");
    EXPECT_EQ(model.session->state().length(), 0) << "it is the pattern of those that write";
    return written.ok() ? *std::move(written) : rt::BatchTexts();
  }

  Tokens writeAlone(const Tokens &prompt, const rt::WritingOptions &options) {
    Model model = open(target);
    Tokens tokens;
    auto statistics = rt::writeText(*model.model, nullptr, prompt, options,
                                    [&](int64_t token, std::string_view) -> absl::StatusOr<bool> {
                                      tokens.push_back(token);
                                      return true;
                                    });
    EXPECT_EQ(messageOf(statistics), "OK");
    return tokens;
  }

  TemporaryFolder temporary;
  std::string target = temporary.file("target.hone"), wrong = temporary.file("wrong.hone");
};

/// How a batch drafts.
struct Manner {
  std::vector<DraftSource> sources;
  bool draftsTrees = false, isWrong = false;
};

const Manner kManners[] = {{{}},
                           {{DraftSource::Automaton}},
                           {{DraftSource::Automaton, DraftSource::Lookup}},
                           {{DraftSource::Automaton}, /*draftsTrees=*/true},
                           {{DraftSource::Model}},
                           {{DraftSource::Model}, false, /*isWrong=*/true},
                           {{DraftSource::Model}, true},
                           {{DraftSource::Model}, true, true}};

TEST_F(Batches, WriteWhatEachPromptGivesAlone) {
  std::mt19937 random(11);
  int64_t accepted = 0, refused = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Manner &manner = kManners[static_cast<size_t>(trial) % std::size(kManners)];
    rt::WritingOptions options;
    options.sampling.temperature = trial / 8 % 2 ? 0.7 : 0;
    options.sampling.repetitionPenalty = trial / 16 % 2 ? 1.3 : 1;
    options.sampling.seed = static_cast<uint64_t>(trial);
    options.generation.maximalNewTokens = 1 + static_cast<int64_t>(random() % 50);
    options.generation.endTokens = {static_cast<int64_t>(random() % 16)};
    options.generation.prefillChunk = 1 + static_cast<int64_t>(random() % 8);
    rt::SpeculationOptions speculation;
    speculation.sources = manner.sources;
    speculation.mostDrafted = 8;
    speculation.leastConfidence = 0; // all tokens of the toy but one are as likely
    speculation.draftsTrees = manner.draftsTrees;
    speculation.shape = {.branches = 2, .depth = 4};
    // Greedy texts are the same by this rule, and as much is drafted as is allowed, whatever passes take.
    bool draftsAll = manner.sources == std::vector{DraftSource::Model} && options.sampling.temperature == 0;
    speculation.acceptance = draftsAll ? rt::Acceptance::Exact : rt::Acceptance::Identical;
    std::vector<Tokens> prompts(1 + random() % 4);
    for (Tokens &prompt : prompts) {
      prompt.resize(1 + random() % 12);
      for (int64_t &token : prompt)
        token = static_cast<int64_t>(random() % 3);
    }
    rt::BatchTexts written = write(prompts, speculation, manner.isWrong ? wrong : target, options);
    ASSERT_EQ(written.tokens.size(), prompts.size());
    for (size_t i = 0; i < prompts.size(); ++i)
      EXPECT_EQ(written.tokens[i], writeAlone(prompts[i], options)) << "trial " << trial << ", text " << i;
    accepted += written.statistics.speculation.accepted;
    refused += written.statistics.speculation.drafted - written.statistics.speculation.accepted;
  }
  EXPECT_GT(accepted, 200);
  EXPECT_GT(refused, 500);
}

TEST_F(Batches, OraclesAreAcceptedInEveryText) {
  rt::WritingOptions options;
  options.generation.maximalNewTokens = 41;
  for (bool draftsTrees : {false, true}) {
    rt::SpeculationOptions speculation;
    speculation.sources = {DraftSource::Model};
    speculation.mostDrafted = draftsTrees ? 8 : 4;
    speculation.leastConfidence = 0;
    speculation.draftsTrees = draftsTrees;
    speculation.shape = {.fixed = {2, 1, 1, 1}};
    speculation.acceptance = rt::Acceptance::Exact;
    rt::BatchTexts written = write({{1, 2}, {3}, {4, 4, 1, 2, 5}}, speculation, target, options);
    EXPECT_EQ(written.statistics.passes, 40 / 5) << "all but the first token, five a pass of all";
    EXPECT_EQ(written.statistics.speculation.accepted, 3 * 4 * 40 / 5);
  }
}

TEST_F(Batches, ThatCannotBeAreRefused) {
  auto refusal = [this](const std::vector<Tokens> &prompts, const rt::SpeculationOptions &options) {
    Model model = open(target);
    std::vector<std::unique_ptr<rt::Speculation>> drafters;
    std::vector<rt::Speculation *> drafts;
    while (!options.sources.empty() && drafts.size() < prompts.size()) {
      drafters.push_back(*rt::Speculation::create(options, *model.model));
      drafts.push_back(drafters.back().get());
    }
    return messageOf(rt::generateBatch(*model.session, nullptr, prompts, {}, drafts));
  };
  EXPECT_THAT(refusal({{}}, {}), HasSubstr("expected at least one token"));
  EXPECT_THAT(refusal({{1, 8}}, {}), HasSubstr("token 8 at position 1 is outside the vocabulary of 8"));
  io::Manifest oneTree = toyManifestWithTrees();
  for (io::EntryInfo *entry : {&oneTree.entries[1], &oneTree.entries.back()})
    entry->hasOwnLengths = true;
  std::filesystem::remove_all(target);
  writeArtefact(target, HONE_TEST_PROGRAM_TREES, oneTree);
  rt::SpeculationOptions trees;
  trees.sources = {DraftSource::Automaton};
  trees.draftsTrees = true;
  EXPECT_EQ(refusal({{1}}, trees), "OK") << "one text has one tree";
  EXPECT_THAT(refusal({{1}, {2}}, trees), HasSubstr("entry 'verify' takes one tree for all texts"));
  std::filesystem::remove_all(target);
  writeArtefact(target, HONE_TEST_PROGRAM_TREES, toyManifestWithTrees());
  EXPECT_THAT(refusal({{1}, {2}}, {}), HasSubstr("entry 'forward' does not take sequences of different lengths"));
}

} // namespace
} // namespace hone::test
