// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts whose steps are of two models: at the ends of the threshold they are those of one of them, and what was given back leaves nothing.

#include "draft_texts.h"
#include "generate/text_steps.h"

#include <random>

namespace hone::test {
namespace {

using rt::StepWriter;
using rt::TextStep;
using speculate::RoutingRule;
using testing::HasSubstr;

class Routes : public testing::Test {
protected:
  void SetUp() override {
    writeWithTokenizer(large, HONE_TEST_PROGRAM);
    writeWithTokenizer(small, HONE_TEST_PROGRAM_OTHER_TOKENS);
  }

  /// Letters a to h are the tokens 0 to 7; h ends a text.
  static void writeWithTokenizer(const std::string &folder, const std::string &program) {
    io::Manifest manifest = toyManifest();
    manifest.tokenizer = "tokenizer.json";
    writeArtefact(folder, program, manifest);
    ASSERT_EQ(messageOf(io::writeFile(folder + "/tokenizer.json", kTokenizer)), "OK");
    signArtefact(folder);
  }

  static StepWriter writerOf(Model &model, const Tokens &prompt, const sampling::SamplingOptions &sampling,
                             StepWriter::Judgement judgement = StepWriter::Judgement::Regret) {
    static const auto tokenizer = text::Tokenizer::fromJson(kTokenizer);
    rt::StepOptions options = {.end = "c", .mostTokens = 5, .endTokens = {7}, .sampling = sampling};
    return *StepWriter::create(*model.model, *tokenizer, prompt, options, judgement);
  }

  /// `count` tokens of a text of both, and the state of the large model.
  static Tokens write(Model &draft, Model &target, const Tokens &prompt, const speculate::RoutingOptions &options,
                      const sampling::SamplingOptions &sampling, size_t count) {
    StepWriter proposer = writerOf(draft, prompt, sampling), writer = writerOf(target, prompt, sampling);
    speculate::BlockRouter<TextStep> router(proposer, writer, writer, options);
    Tokens text;
    while (text.size() < count) {
      auto step = router.next();
      EXPECT_TRUE(step.ok()) << messageOf(step);
      text.insert(text.end(), step->block.tokens.begin(), step->block.tokens.end());
    }
    text.resize(count);
    return text;
  }

  static constexpr const char *kTokenizer =
      R"({"version":"1.0","added_tokens":[],"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","merges":[],"vocab":)"
      R"({"a":0,"b":1,"c":2,"d":3,"e":4,"f":5,"g":6,"h":7}}})";

  TemporaryFolder temporary;
  std::string large = temporary.file("large.hone"), small = temporary.file("small.hone");
};

TEST_F(Routes, InfiniteThresholdsGiveTheTextOfOneModel) {
  Model draft = open(small), target = open(large), plain = open(large), other = open(small);
  std::mt19937 random(3);
  for (int trial = 0; trial < 60; ++trial) {
    Tokens prompt(1 + random() % 6);
    for (int64_t &token : prompt)
      token = static_cast<int64_t>(random() % kVocabulary);
    sampling::SamplingOptions sampling{.temperature = trial % 2 ? 0.8 : 0, .seed = static_cast<uint64_t>(trial)};
    Tokens ofLarge = hone::test::write(plain, prompt, {}, 40, sampling).tokens;
    Tokens ofSmall = hone::test::write(other, prompt, {}, 40, sampling).tokens;
    for (RoutingRule rule : {RoutingRule::Advantage, RoutingRule::Oracle, RoutingRule::Quality}) {
      double always = rule == RoutingRule::Quality ? INFINITY : -INFINITY;
      EXPECT_EQ(write(draft, target, prompt, {rule, always}, sampling, 40), ofLarge);
      EXPECT_EQ(write(draft, target, prompt, {rule, -always}, sampling, 40), ofSmall);
    }
  }
}

/// After steps of which some were given back, both models hold what they would hold of the text alone.
TEST_F(Routes, WhatWasGivenBackLeavesNothing) {
  Model draft = open(small), target = open(large), plain = open(large);
  sampling::SamplingOptions sampling{.temperature = 0.9, .seed = 4};
  Tokens prompt = {1, 2, 3}, text = prompt;
  StepWriter proposer = writerOf(draft, prompt, sampling), writer = writerOf(target, prompt, sampling);
  speculate::BlockRouter<TextStep> router(proposer, writer, writer, {RoutingRule::Advantage, 0.85});
  for (int i = 0; i < 60; ++i) {
    auto step = router.next();
    ASSERT_TRUE(step.ok()) << messageOf(step);
    text.insert(text.end(), step->block.tokens.begin(), step->block.tokens.end());
    ASSERT_EQ(messageOf(writer.score({{0}})), "OK"); // which feeds the whole text
    ASSERT_EQ(messageOf(writer.append({})), "OK");   // and takes back what was judged
    plain.session->state().reset();
    ASSERT_EQ(messageOf(plain.model->feed(text)), "OK");
    EXPECT_EQ(stateOf(*target.session), stateOf(*plain.session));
  }
  EXPECT_GT(router.counts().escalated, 10);
  EXPECT_GT(router.counts().blocks - router.counts().escalated, 10);
}

TEST_F(Routes, StepsEndWhereTheyAreSaidTo) {
  Model model = open(large);
  StepWriter writer = writerOf(model, {1}, {}); // b, c, e, a, a, …: sums of all before, modulo 8
  EXPECT_EQ(writer.propose()->tokens, Tokens({1, 2})) << "to the first c";
  EXPECT_EQ(writer.propose()->tokens, Tokens({4, 0, 0, 0, 0})) << "five tokens at most";
  ASSERT_EQ(messageOf(writer.append({{6, 1}})), "OK"); // 15 in all
  auto last = writer.propose();
  EXPECT_EQ(last->tokens, Tokens({7}));
  EXPECT_TRUE(last->isLast);
}

TEST_F(Routes, StepsAreJudgedByTheModelsProbabilities) {
  Model model = open(large);
  double top = std::log(std::exp(1.0) / (std::exp(1.0) + 7)), other = top - 1; // logits are 1 and 0
  StepWriter likelihood = writerOf(model, {1}, {}, StepWriter::Judgement::Likelihood);
  EXPECT_NEAR(*likelihood.score({{1, 2, 4}}), top, 1e-6);
  EXPECT_NEAR(*likelihood.score({{3, 4}}), (other + top) / 2, 1e-6);
  StepWriter regret = writerOf(model, {1}, {});
  EXPECT_NEAR(*regret.score({{1, 2, 4}}), 0, 1e-6);
  EXPECT_NEAR(*regret.score({{3, 4, 7}}), 2.0 / 3, 1e-6);
  EXPECT_THAT(messageOf(regret.score({})), HasSubstr("cannot judge a step without tokens"));
}

TEST_F(Routes, AreTakenAtTheCommandLine) {
  auto with = [&](const std::string &router, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"run", large, "--prompt", "b", "--max-new-tokens=20", "--ignore-end"};
    if (!router.empty())
      words.push_back("--router=" + router);
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  std::string plain = with("").out;
  EXPECT_EQ(with(small + ",arbitrage,threshold=-inf").out, plain);
  EXPECT_EQ(with(small + ",quality,threshold=inf").out, plain);
  EXPECT_NE(with(small + ",arbitrage,threshold=inf").out, plain);
  EXPECT_EQ(with(small + ",arbitrage", {"--router-step=c", "--stats"}).code, 0);
  EXPECT_THAT(with(small + ",blocks,threshold=-9", {"--router-tokens=4", "--stats"}).err,
              HasSubstr("router: 5 steps, 4 of 4 proposed ones accepted, 1 by the target"));
  EXPECT_THAT(with(small).err, HasSubstr("expected --router=DRAFT.hone,RULE[,threshold=T], but got '"));
  EXPECT_THAT(with(small + ",best").err, HasSubstr("unknown rule 'best' of --router"));
  EXPECT_THAT(with(small + ",oracle,threshold=nan").err, HasSubstr("expected a number, inf or -inf as the threshold"));
  EXPECT_THAT(with(small + ",oracle,step=2").err, HasSubstr("expected threshold=NUMBER after the rule of --router"));
  EXPECT_THAT(with("", {"--router-step=c"}).err, HasSubstr("expected --router with --router-step"));
  EXPECT_THAT(with(small + ",oracle", {"--router-step="}).err, HasSubstr("expected a text that ends steps"));
  EXPECT_THAT(with(small + ",oracle", {"--speculate=automaton"}).err, HasSubstr("expected --prompt or --prompt-file"));
  EXPECT_THAT(with(large + "/none,oracle").err, HasSubstr("none"));
  EXPECT_EQ(with(large + "/none,oracle").code, 1);
}

} // namespace
} // namespace hone::test
