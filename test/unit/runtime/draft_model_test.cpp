// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts that are written with the drafts of a second model. By the default rule they are those without drafts, and so is what both models hold
// afterwards; by the exact rule they have the same probabilities.

#include "draft_texts.h"

#include <random>

namespace hone::test {
namespace {

using rt::Acceptance;
using testing::HasSubstr;

class DraftModel : public testing::Test {
protected:
  void SetUp() override {
    writeArtefact(target, HONE_TEST_PROGRAM, toyManifest());
    writeArtefact(wrong, HONE_TEST_PROGRAM_OTHER_TOKENS, toyManifest());
  }

  static rt::SpeculationOptions draftedBy(Model &draft, int64_t most = 8) {
    rt::SpeculationOptions options;
    options.sources = {rt::DraftSource::Model};
    options.mostDrafted = most;
    options.draft = &*draft.model;
    options.leastConfidence = 0;
    return options;
  }

  /// Why the draft in `folder` is refused.
  std::string complaint(const std::string &folder, std::string_view entry = "forward") {
    Model model = open(target);
    return messageOf(rt::openDraftSession(*rt::Module::load(folder), entry, *model.session));
  }

  TemporaryFolder temporary;
  std::string target = temporary.file("target.hone"), wrong = temporary.file("wrong.hone"),
              other = temporary.file("other.hone");
};

TEST_F(DraftModel, AnOracleGivesAWholeDraftAndATokenEachPass) {
  Model model = open(target), draft = open(target);
  for (int64_t most : {1, 3, 8}) {
    rt::SpeculationOptions speculation = draftedBy(draft, most);
    speculation.acceptance = Acceptance::Exact; // as many are drafted as are allowed, whatever passes take
    Written plain = write(model, {1, 2}, {}), drafted = write(model, {1, 2}, speculation);
    EXPECT_EQ(drafted.tokens, plain.tokens);
    EXPECT_EQ(drafted.state, plain.state);
    EXPECT_EQ(drafted.statistics.passes, (39 + most) / (most + 1)) << "all but the first token, rounded up";
    EXPECT_EQ(drafted.statistics.speculation.accepted, drafted.statistics.speculation.drafted);
    EXPECT_EQ(drafted.statistics.speculation.accepted, 39 - drafted.statistics.passes);
  }
}

TEST_F(DraftModel, ADraftThatIsAlwaysWrongChangesNothing) {
  Model model = open(target), draft = open(wrong);
  Written plain = write(model, {1, 2}, {});
  for (Acceptance rule : {Acceptance::Identical, Acceptance::Exact, Acceptance::Typical}) {
    rt::SpeculationOptions speculation = draftedBy(draft);
    speculation.acceptance = rule;
    Written drafted = write(model, {1, 2}, speculation);
    EXPECT_EQ(drafted.tokens, plain.tokens);
    EXPECT_EQ(drafted.state, plain.state);
    EXPECT_EQ(drafted.statistics.passes, plain.statistics.passes);
    EXPECT_EQ(drafted.statistics.speculation.accepted, 0);
    EXPECT_GT(drafted.statistics.speculation.drafted, 0);
  }
}

TEST_F(DraftModel, RandomPromptsAndDrawsAreContinuedAlike) {
  Model model = open(target), right = open(target), other = open(wrong);
  std::mt19937 random(7);
  int64_t accepted = 0, refused = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Tokens prompt(1 + random() % 12);
    for (int64_t &token : prompt)
      token = static_cast<int64_t>(random() % kVocabulary);
    sampling::SamplingOptions sampling;
    sampling.temperature = trial % 4 ? 0.4 : 0;
    sampling.repetitionPenalty = trial % 3 ? 1 : 1.3;
    sampling.topK = trial % 5 ? 0 : 3;
    sampling.seed = static_cast<uint64_t>(trial);
    rt::SpeculationOptions speculation = draftedBy(trial % 2 ? right : other, 1 + trial % 9);
    speculation.leastConfidence = trial % 7 ? 0 : 0.1;
    int64_t most = 1 + static_cast<int64_t>(random() % 50);
    Written plain = write(model, prompt, {}, most, sampling),
            drafted = write(model, prompt, speculation, most, sampling);
    EXPECT_EQ(drafted.tokens, plain.tokens);
    EXPECT_EQ(drafted.state, plain.state);
    EXPECT_EQ(drafted.message, "OK");
    accepted += drafted.statistics.speculation.accepted;
    refused += drafted.statistics.speculation.drafted - drafted.statistics.speculation.accepted;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

/// Tokens follow the text in the drafter's session, whatever was drafted and refused.
TEST_F(DraftModel, TheDraftsStateIsThatOfTheText) {
  Model drafted = open(wrong), plain = open(wrong);
  auto sampler = *sampling::Sampler::create({.temperature = 1, .seed = 3});
  Tokens text = {1, 2, 3};
  speculate::DrafterTimes times;
  rt::ModelDrafter drafter(*drafted.model, text, 0, times);
  std::mt19937 random(5);
  for (int pass = 0; pass < 50; ++pass) {
    rt::TextSampler ahead(sampler, text);
    int64_t most = 1 + static_cast<int64_t>(random() % 6);
    rt::DraftedTokens tokens = *drafter.draft(most, Acceptance::Identical, ahead);
    ASSERT_EQ(std::ssize(tokens.tokens), most);
    Tokens fed = text;
    fed.insert(fed.end(), tokens.tokens.begin(), tokens.tokens.end() - 1);
    plain.session->state().reset();
    ASSERT_EQ(messageOf(plain.model->feed(fed)), "OK");
    EXPECT_EQ(stateOf(*drafted.session), stateOf(*plain.session));
    Tokens next(tokens.tokens.begin(), tokens.tokens.begin() + static_cast<int64_t>(random() % tokens.tokens.size()));
    next.push_back(static_cast<int64_t>(random() % kVocabulary));
    drafter.append(next);
    text.insert(text.end(), next.begin(), next.end());
  }
}

TEST_F(DraftModel, ADraftEndsWhereConfidenceIsLost) {
  Model draft = open(target);
  auto sampler = *sampling::Sampler::create({});
  // The likeliest token has e / (e + 7) of the probability, 0.28: three of them 0.022.
  for (auto [confidence, expected] : {std::pair(0.0, 8), std::pair(0.02, 4), std::pair(0.03, 3), std::pair(0.9, 1)}) {
    speculate::DrafterTimes times;
    rt::ModelDrafter drafter(*draft.model, Tokens{1, 2}, confidence, times);
    rt::TextSampler ahead(sampler, Tokens{1, 2});
    EXPECT_EQ(drafter.draft(8, Acceptance::Identical, ahead)->tokens.size(), expected) << confidence;
  }
}

TEST_F(DraftModel, AShorterDraftModelDraftsUntilItsLastPosition) {
  io::Manifest manifest = toyManifest();
  manifest.entries[1].limits = {{{"sequence"}, true, 10, "places"}};
  writeArtefact(other, HONE_TEST_PROGRAM, manifest);
  Model model = open(target), draft = open(other);
  rt::SpeculationOptions speculation = draftedBy(draft, 3);
  speculation.acceptance = Acceptance::Exact;
  Written plain = write(model, {1, 2}, {}), drafted = write(model, {1, 2}, speculation);
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_EQ(drafted.message, "OK");
  EXPECT_GT(drafted.statistics.speculation.drafted, 0);
  EXPECT_LE(drafted.statistics.speculation.drafted, 10);
  Written longer = write(model, Tokens(600, 1), speculation, 20);
  EXPECT_EQ(longer.tokens, write(model, Tokens(600, 1), {}, 20).tokens);
  EXPECT_EQ(longer.statistics.speculation.drafted, 0) << "the prompt itself does not fit";
}

TEST_F(DraftModel, OnlyTheLossyRuleChangesProbabilities) {
  Model model = open(target), draft = open(wrong);
  expectOnlyTheLossyRuleChangesProbabilities(model, draftedBy(draft, 3));
}

TEST_F(DraftModel, ExactTextsAreRepeatable) {
  Model model = open(target), draft = open(wrong);
  rt::SpeculationOptions speculation = draftedBy(draft, 4);
  speculation.acceptance = Acceptance::Exact;
  sampling::SamplingOptions sampling{.temperature = 0.7, .topP = 0.9, .repetitionPenalty = 1.2, .seed = 9};
  EXPECT_EQ(write(model, {1}, speculation, 40, sampling).tokens, write(model, {1}, speculation, 40, sampling).tokens);
}

TEST_F(DraftModel, OtherVocabulariesAreRefused) {
  io::Manifest manifest = toyManifest();
  manifest.entries[1].outputs[0].shape[2] = io::Dim::fixed(9);
  writeArtefact(other, HONE_TEST_PROGRAM_OTHER_VOCABULARY, manifest);
  EXPECT_EQ(complaint(other),
            other + ": expected the draft model to have the vocabulary of " + target + ", 8 tokens, but got 9");
  manifest.entries[1].outputs[0].shape[2] = io::Dim::symbolic("vocabulary");
  writeArtefact(other, HONE_TEST_PROGRAM_OTHER_VOCABULARY, manifest);
  EXPECT_EQ(complaint(other), "OK") << "it is not known yet";
  Model model = open(target), draft = open(other);
  EXPECT_THAT(write(model, {1, 2}, draftedBy(draft)).message, HasSubstr("vocabulary of 8 tokens, but got 9"));
}

TEST_F(DraftModel, OtherTokenizersAreRefused) {
  auto writeWith = [](const std::string &folder, const std::string &vocabulary) {
    io::Manifest manifest = toyManifest();
    manifest.tokenizer = "tokenizer.json";
    writeArtefact(folder, HONE_TEST_PROGRAM, manifest);
    std::string json = R"({"version":"1.0","added_tokens":[],"decoder":{"type":"ByteLevel"},"model":{"type":"BPE",)"
                       R"("merges":[],"vocab":{)" +
                       vocabulary + "}}}";
    ASSERT_EQ(messageOf(io::writeFile(folder + "/tokenizer.json", json)), "OK");
    signArtefact(folder);
  };
  writeWith(target, R"("a":0,"b":1,"c":2)");
  writeWith(other, R"("a":0,"b":1,"d":2)");
  EXPECT_EQ(complaint(other), other + ": expected the draft model to have the tokenizer of " + target +
                                  ", where token 2 is 'c', but got 'd'");
  writeWith(other, R"("a":0,"b":1)");
  EXPECT_THAT(complaint(other), HasSubstr("where token 2 is 'c', but got no token"));
  writeWith(other, R"( "c":2, "b":1, "a":0 )");
  EXPECT_EQ(complaint(other), "OK") << "the same tokens in another file";
  EXPECT_EQ(complaint(wrong), "OK") << "it has none";
}

TEST_F(DraftModel, WhatCannotDraftIsRefused) {
  io::Manifest manifest = toyManifest();
  manifest.states[0].slots.push_back({"memory", HONE_F32, {io::Dim::fixed(1)}, {}});
  writeArtefact(other, HONE_TEST_PROGRAM, manifest);
  EXPECT_THAT(complaint(other), HasSubstr("a draft model takes back tokens, but state 'memory' has no history"));
  writeArtefact(other, HONE_TEST_PROGRAM, toyManifestWithContext());
  EXPECT_THAT(complaint(other), HasSubstr("expected a draft model without context, but it reads 'encoded'"));
  EXPECT_THAT(complaint(target, "draft"), HasSubstr("has no entry 'draft'"));
  EXPECT_THAT(complaint(target, "count"), HasSubstr("to take tokens"));
}

TEST_F(DraftModel, LogitsThatAreNoNumbersAreRefused) {
  writeArtefact(other, HONE_TEST_PROGRAM_NO_NUMBERS, toyManifest());
  Model model = open(target), draft = open(other);
  for (Acceptance rule : {Acceptance::Identical, Acceptance::Exact}) {
    rt::SpeculationOptions speculation = draftedBy(draft);
    speculation.acceptance = rule;
    EXPECT_THAT(write(model, {1, 2}, speculation, 40, {.temperature = 1}).message, HasSubstr("is not a number"));
  }
}

TEST_F(DraftModel, AnEntryOfTheTargetsArtefactMayDraft) {
  io::Manifest manifest = toyManifest();
  io::EntryInfo draft = manifest.entries[1];
  draft.name = "draft";
  draft.state = "other history";
  manifest.states.push_back({draft.state, manifest.states[0].slots});
  manifest.entries.push_back(draft);
  writeArtefact(target, HONE_TEST_PROGRAM, manifest);
  std::string tokens = temporary.file("prompt.npy");
  ASSERT_EQ(messageOf(io::writeNpy(tokens, makeArray<int64_t>(HONE_I64, {2}, {1, 2}))), "OK");
  Outcome outcome = run({"run", target, "--tokens", tokens, "--speculate=model", "--accept=exact",
                         "--draft-confidence=0", "--draft-tokens=3", "--stats", "--max-new-tokens=9"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, run({"run", target, "--tokens", tokens, "--max-new-tokens=9"}).out);
  EXPECT_THAT(outcome.err, HasSubstr("speculation: 2 passes, 4.00 tokens a pass, 6 of 6 drafted tokens accepted"));
}

TEST_F(DraftModel, OptionsThatDoNotFitAreRefused) {
  std::string tokens = temporary.file("prompt.npy");
  ASSERT_EQ(messageOf(io::writeNpy(tokens, makeArray<int64_t>(HONE_I64, {2}, {1, 2}))), "OK");
  auto complaintOf = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", target, "--tokens", tokens});
    Outcome outcome = run(options);
    EXPECT_EQ(outcome.code, 1);
    return outcome.err;
  };
  EXPECT_THAT(complaintOf({"--speculate=automaton", "--accept=exact"}),
              HasSubstr("expected --speculate=model with --accept=exact, but got automaton"));
  EXPECT_THAT(complaintOf({"--draft=" + wrong}), HasSubstr("expected --speculate=model with --draft="));
  EXPECT_THAT(complaintOf({"--speculate=model", "--accept=all"}),
              HasSubstr("unknown rule 'all' of --accept; supported: identical, exact, typical"));
  EXPECT_THAT(complaintOf({"--speculate=model"}),
              HasSubstr("or an entry 'draft' in the artefact, but there is neither"));
  EXPECT_THAT(complaintOf({"--speculate=model", "--draft=" + wrong, "--output-tokens=" + wrong + "/program.so"}),
              HasSubstr("program.so"));
  Outcome outcome = run({"run", target, "--tokens", tokens, "--speculate=model", "--draft=" + wrong, "--stats"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, testing::ContainsRegex("tokens a pass, [0-9]+ of [0-9]+ drafted tokens accepted"));
  EXPECT_THAT(outcome.err, testing::ContainsRegex("s to draft, [0-9.]+ s to verify, [0-9.]+ s to commit"));
}

} // namespace
} // namespace hone::test
