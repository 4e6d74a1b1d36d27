// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts that are written token by token, and with drafts that are verified: they are the same, and so is what the model holds afterwards.

#include "cli_support.h"
#include "generate/batch.h"
#include "generate/decoder.h"
#include "speculate/corpus.h"
#include "speculate/corpus_builder.h"
#include "speculate/drafter.h"
#include <random>

namespace hone::test {
namespace {

using rt::DraftSource;
using testing::HasSubstr;

using Tokens = std::vector<int64_t>;

struct Written {
  Tokens tokens;
  int64_t length = 0, passes = 0;
  std::string message;
};

class Generation : public testing::Test {
protected:
  void SetUp() override { write(toyManifest()); }

  void write(const io::Manifest &manifest, const char *program = HONE_TEST_PROGRAM) {
    std::filesystem::remove_all(folder);
    writeArtefact(folder, program, manifest);
  }

  /// `stopAfter` tokens are received at most.
  Written writeText(const Tokens &prompt, std::vector<DraftSource> drafts, sampling::SamplingOptions sampling = {},
                    rt::GenerationOptions options = {}, int64_t stopAfter = INT64_MAX) {
    Written written;
    auto session = *rt::openLanguageSession(*rt::Module::load(folder));
    rt::LanguageModel model = *rt::LanguageModel::over(*session);
    std::unique_ptr<rt::Speculation> speculation;
    if (!drafts.empty()) {
      auto created = rt::Speculation::create({drafts, corpus, 8}, model);
      written.message = messageOf(created);
      if (!created.ok())
        return written;
      speculation = *std::move(created);
    }
    auto decoder = rt::createDecoder(model, sampling, options, speculation.get(), prompt);
    written.message = messageOf(decoder);
    if (!decoder.ok())
      return written;
    auto statistics = rt::generate(model, prompt, options, **decoder, [&](int64_t token) -> absl::StatusOr<bool> {
      written.tokens.push_back(token);
      if (token == kUnwelcome)
        return absl::CancelledError("enough");
      return static_cast<int64_t>(written.tokens.size()) < stopAfter;
    });
    written.message = messageOf(statistics);
    written.passes = statistics.ok() ? statistics->passes : 0;
    written.length = model.length();
    return written;
  }

  void expectSame(const Written &drafted, const Written &plain) {
    EXPECT_EQ(drafted.tokens, plain.tokens);
    EXPECT_EQ(drafted.length, plain.length);
    EXPECT_EQ(drafted.message, plain.message);
    EXPECT_LE(drafted.passes, plain.passes);
  }

  /// What the drafts of a corpus come from.
  void buildCorpus(const std::vector<std::vector<int32_t>> &texts, uint64_t tokenizer = 0) {
    speculate::CorpusBuilder builder;
    for (const std::vector<int32_t> &text : texts)
      ASSERT_EQ(messageOf(builder.add(text)), "OK");
    ASSERT_EQ(messageOf(std::move(builder).write(corpus, tokenizer)), "OK");
  }

  int64_t kUnwelcome = -1;
  TemporaryFolder temporary;
  std::string corpus = temporary.file("toy.corpus");
  std::string folder = temporary.file("toy.hone");
};

const std::vector<DraftSource> kNone, kAutomaton = {DraftSource::Automaton}, kCorpus = {DraftSource::Corpus},
                                      kAll = {DraftSource::Automaton, DraftSource::Corpus, DraftSource::Lookup};

TEST_F(Generation, DraftsSavePassesAndChangeNothing) {
  rt::GenerationOptions options;
  options.maximalNewTokens = 40;
  Written plain = writeText({1, 2}, kNone, {}, options), drafted = writeText({1, 2}, kAutomaton, {}, options);
  expectSame(drafted, plain);
  EXPECT_EQ(plain.passes, 39);
  EXPECT_LT(drafted.passes, plain.passes)
      << "from the fourth token on all are 0; how many passes less follows from times";
  EXPECT_EQ(plain.length, 41) << "the last token was not fed";
}

TEST_F(Generation, RandomPromptsAndDrawsAreContinuedAlike) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    Tokens prompt(1 + random() % 12);
    for (int64_t &token : prompt)
      token = static_cast<int64_t>(random() % 3);
    sampling::SamplingOptions sampling;
    sampling.temperature = trial % 2 ? 0.7 : 0;
    sampling.repetitionPenalty = trial % 3 ? 1 : 1.3;
    sampling.seed = static_cast<uint64_t>(trial);
    rt::GenerationOptions options;
    options.maximalNewTokens = 1 + static_cast<int64_t>(random() % 50);
    expectSame(writeText(prompt, kAutomaton, sampling, options), writeText(prompt, kNone, sampling, options));
  }
}

TEST_F(Generation, FollowsTheRulesOfTokens) {
  io::Manifest manifest = toyManifest();
  manifest.entries[1].hasOwnLengths = true;
  write(manifest);
  auto session = *rt::openLanguageSession(*rt::Module::load(folder));
  std::mt19937 random(12);
  int kept = 0, changed = 0;
  for (int trial = 0; trial < 60; ++trial) {
    Tokens prompt(1 + random() % 12);
    for (int64_t &token : prompt)
      token = static_cast<int64_t>(random() % 8);
    sampling::SamplingOptions sampling;
    sampling.temperature = trial % 2 ? 0.9 : 0;
    rt::GenerationOptions options;
    options.maximalNewTokens = 1 + static_cast<int64_t>(random() % 30);
    Tokens free = writeText(prompt, kNone, sampling, options).tokens;
    auto rare = static_cast<int64_t>(random() % 8);
    options.rules = {
        {rare, 1 << 20}, {free.front()}, (rare + 1) % 8}; // a token outside of the vocabulary is none that comes
    Written plain = writeText(prompt, kNone, sampling, options);
    ASSERT_EQ(std::ssize(plain.tokens), options.maximalNewTokens);
    EXPECT_EQ(plain.tokens.back(), (rare + 1) % 8);
    EXPECT_EQ(std::ranges::count(plain.tokens, rare), 0);
    if (options.maximalNewTokens > 1) {
      EXPECT_NE(plain.tokens.front(), free.front());
    }
    (plain.tokens == free ? kept : changed)++;
    expectSame(writeText(prompt, kAutomaton, sampling, options), plain);
    auto batch = rt::generateBatch(*session, nullptr, std::vector<Tokens>{prompt, prompt}, {options, sampling}, {});
    ASSERT_EQ(messageOf(batch), "OK");
    EXPECT_EQ(batch->tokens[1], plain.tokens);
  }
  EXPECT_GT(changed, kept);
}

TEST_F(Generation, EndsInTheMiddleOfADraft) {
  for (int64_t stopAfter = 1; stopAfter < 30; ++stopAfter)
    expectSame(writeText({1, 2}, kAutomaton, {}, {}, stopAfter), writeText({1, 2}, kNone, {}, {}, stopAfter));
  rt::GenerationOptions options;
  options.endTokens = {0};
  expectSame(writeText({4, 0, 0, 0, 4}, kAutomaton, {}, options), writeText({4, 0, 0, 0, 4}, kNone, {}, options));
  kUnwelcome = 4;
  expectSame(writeText({1, 2}, kAutomaton), writeText({1, 2}, kNone));
}

TEST_F(Generation, ACorpusSavesPassesWhereNothingWasBefore) {
  buildCorpus({{5, 5}, {1, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}});
  rt::GenerationOptions options;
  options.maximalNewTokens = 20;
  Written plain = writeText({4}, kNone, {}, options), drafted = writeText({4}, kCorpus, {}, options);
  expectSame(drafted, plain);
  EXPECT_LT(drafted.passes, plain.passes);
}

TEST_F(Generation, ACorpusThatIsAlwaysWrongChangesNothing) {
  // The toy writes what its tokens add up to; none of these does.
  buildCorpus({{1, 6, 2, 7, 3, 6, 4, 3, 5, 1, 0, 5, 6, 2, 7, 1}, {0, 3}, {2, 5}, {4, 1}});
  std::mt19937 random(8);
  for (int trial = 0; trial < 40; ++trial) {
    Tokens prompt(1 + random() % 12);
    for (int64_t &token : prompt)
      token = static_cast<int64_t>(random() % 8);
    rt::GenerationOptions options;
    options.maximalNewTokens = 1 + static_cast<int64_t>(random() % 50);
    sampling::SamplingOptions sampling;
    sampling.temperature = trial % 2 ? 0.9 : 0;
    expectSame(writeText(prompt, kCorpus, sampling, options), writeText(prompt, kNone, sampling, options));
    expectSame(writeText(prompt, kAll, sampling, options), writeText(prompt, kNone, sampling, options));
  }
}

TEST_F(Generation, ACorpusOfOtherTokensIsRefused) {
  buildCorpus({{1, 9}});
  EXPECT_THAT(writeText({1}, kCorpus).message,
              HasSubstr("expected tokens of the model's vocabulary of 8, but got token 9"));
  io::Manifest manifest = toyManifest();
  manifest.tokenizer = "tokenizer.json";
  write(manifest);
  ASSERT_EQ(messageOf(io::writeFile(folder + "/tokenizer.json", "{}")), "OK");
  signArtefact(folder);
  buildCorpus({{1, 2}}, speculate::fingerprintOf("[]"));
  EXPECT_THAT(writeText({1}, kCorpus).message,
              HasSubstr("expected a corpus of the tokenizer CRC-32 a3a6bf43 of 2 bytes of " + folder +
                        ", but it is of CRC-32 "));
  buildCorpus({{1, 2}}, speculate::fingerprintOf("{}"));
  EXPECT_EQ(writeText({1}, kCorpus).message, "OK");
}

TEST_F(Generation, WhatWasWrittenDraftsWhatIsWrittenNext) {
  auto session = *rt::openLanguageSession(*rt::Module::load(folder));
  rt::LanguageModel model = *rt::LanguageModel::over(*session);
  auto speculation = *rt::Speculation::create({kAutomaton, "", 8}, model);
  const Tokens prompt = {1, 2};
  speculation->beginText(prompt);
  speculation->append(Tokens{3, 6, 4});
  EXPECT_TRUE(speculation->draft(8).tokens.empty());
  speculation->beginText(prompt);
  EXPECT_EQ(speculation->draft(8).tokens, (Tokens{3, 6, 4})) << "and not the separator";
  EXPECT_EQ(speculation->draft(100).matched, 2);
}

TEST_F(Generation, WhatPaidIsKnownWithoutTheTexts) {
  auto session = *rt::openLanguageSession(*rt::Module::load(folder));
  rt::LanguageModel model = *rt::LanguageModel::over(*session);
  auto speculation = *rt::Speculation::create({kAutomaton, "", 8}, model);
  speculate::Draft draft = {{{3, 6, 4}}, /*matched=*/2};
  speculation->beginText(Tokens{1, 2, 3, 6, 4, 1, 2});
  EXPECT_EQ(speculation->chooseWidth(draft), 0) << "it is not known what a pass takes";
  speculation->record(draft, 0, {.next = {3}, .path = {}}, /*seconds=*/1);
  EXPECT_EQ(speculation->chooseWidth(draft), 2);
  speculation = *rt::Speculation::create({kAutomaton, "", 8}, model, std::move(speculation));
  EXPECT_EQ(speculation->chooseWidth(draft), 2);
  speculation->beginText(Tokens{1, 2});
  EXPECT_TRUE(speculation->draft(8).tokens.empty());
}

TEST_F(Generation, SpeculationNeedsLogitsOfSeveralTokens) {
  io::Manifest manifest = toyManifest();
  for (io::EntryInfo &entry : manifest.entries)
    if (entry.name == "forward")
      entry.outputs[0].shape[1] = {1, ""};
  write(manifest, HONE_TEST_PROGRAM_LAST_LOGITS);
  EXPECT_THAT(writeText({1}, kAutomaton).message, HasSubstr("the model gives those of the last one alone"));
  EXPECT_EQ(writeText({1}, kNone).message, "OK");
}

TEST_F(Generation, DraftsThatCannotBeAreRefused) {
  auto errorOf = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", folder, "--tokens", "none.npy"});
    Outcome outcome = run(options);
    EXPECT_EQ(outcome.code, 1);
    return outcome.err;
  };
  EXPECT_THAT(
      errorOf({"--speculate=oracle"}),
      HasSubstr(
          "unknown drafts 'oracle' of --speculate; supported: none, model, or a list of automaton, corpus, lookup"));
  EXPECT_THAT(errorOf({"--speculate=automaton,"}), HasSubstr("unknown drafts ''"));
  EXPECT_THAT(errorOf({"--speculate=automaton,none"}), HasSubstr("unknown drafts 'none'"));
  EXPECT_THAT(errorOf({"--speculate=lookup,automaton,lookup"}), HasSubstr("once, but got 'lookup' twice"));
  EXPECT_THAT(errorOf({"--speculate=lookup,corpus"}),
              HasSubstr("expected --draft-corpus FILE with --speculate=lookup,corpus"));
  EXPECT_THAT(errorOf({"--draft-corpus=x"}),
              HasSubstr("expected corpus in --speculate with --draft-corpus, but got 'none'"));
}

} // namespace
} // namespace hone::test
