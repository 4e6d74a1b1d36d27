// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts that are written token by token, and with drafts that are verified: they are the same, and so is what the model holds afterwards.

#include "cli_support.h"
#include "generate/decoder.h"

#include <random>

namespace hone::test {
namespace {

using rt::SpeculationOptions;
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
  Written writeText(const Tokens &prompt, SpeculationOptions::Drafts drafts, sampling::SamplingOptions sampling = {},
                    rt::GenerationOptions options = {}, int64_t stopAfter = INT64_MAX) {
    Written written;
    auto session = *rt::openLanguageSession(*rt::Module::load(folder));
    rt::LanguageModel model = *rt::LanguageModel::over(*session);
    auto decoder = rt::createDecoder(model, sampling, {drafts, 8}, prompt);
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

  int64_t kUnwelcome = -1;
  TemporaryFolder temporary;
  std::string folder = temporary.file("toy.hone");
};

constexpr auto kNone = SpeculationOptions::Drafts::None, kAutomaton = SpeculationOptions::Drafts::Automaton;

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

TEST_F(Generation, EndsInTheMiddleOfADraft) {
  for (int64_t stopAfter = 1; stopAfter < 30; ++stopAfter)
    expectSame(writeText({1, 2}, kAutomaton, {}, {}, stopAfter), writeText({1, 2}, kNone, {}, {}, stopAfter));
  rt::GenerationOptions options;
  options.endTokens = {0};
  expectSame(writeText({4, 0, 0, 0, 4}, kAutomaton, {}, options), writeText({4, 0, 0, 0, 4}, kNone, {}, options));
  kUnwelcome = 4;
  expectSame(writeText({1, 2}, kAutomaton), writeText({1, 2}, kNone));
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

TEST_F(Generation, UnknownDraftsAreRefused) {
  Outcome outcome = run({"run", folder, "--tokens", "none.npy", "--speculate=oracle"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("unknown drafts 'oracle' of --speculate; supported: none, automaton"));
}

} // namespace
} // namespace hone::test
