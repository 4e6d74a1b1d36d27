// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trees of draft tokens that are verified in one pass: what is accepted, what the model holds afterwards, and that no rule but the lossy one
// changes what texts are like.

#include "cli_support.h"
#include "generate/decoder.h"
#include "generate/verification.h"
#include "speculate/corpus_builder.h"

#include <cmath>
#include <random>

namespace hone::test {
namespace {

using rt::Acceptance;
using rt::DraftSource;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Tokens = std::vector<int64_t>;

constexpr int64_t kVocabulary = 8;

/// The toy continues a text by the sum of its tokens.
int64_t sumOf(const Tokens &tokens) {
  int64_t sum = 0;
  for (int64_t token : tokens)
    sum += token;
  return sum;
}

struct Model {
  std::unique_ptr<rt::Session> session;
  std::optional<rt::LanguageModel> model;

  /// What is held of tokens and positions.
  std::vector<float> state() {
    rt::State &state = session->state();
    hone_tensor view = *state.slots()[0].view(state.length(), state.symbols());
    const auto *first = static_cast<const float *>(view.data);
    return {first, first + state.length() * 2};
  }
};

class DraftTrees : public testing::Test {
protected:
  void SetUp() override { writeArtefact(folder, HONE_TEST_PROGRAM_TREES, toyManifestWithTrees()); }

  Model open() {
    Model result;
    result.session = *rt::openLanguageSession(*rt::Module::load(folder));
    result.model = *rt::LanguageModel::over(*result.session);
    return result;
  }

  /// Feeds all of `text` but the last token, and then that with the draft.
  static absl::StatusOr<rt::Verification> verify(Model &model, const Tokens &text, const rt::DraftedTokens &drafted,
                                                 Acceptance rule = Acceptance::Identical,
                                                 const sampling::SamplingOptions &sampling = {}) {
    model.session->state().reset();
    std::span<const int64_t> all = text;
    if (text.size() > 1)
      EXPECT_EQ(messageOf(model.model->feed(all.first(all.size() - 1))), "OK");
    rt::TextSampler sampler(*sampling::Sampler::create(sampling), text);
    rt::SpeculationStatistics counted;
    rt::SpeculationClock clock(counted);
    return rt::verifyDraft(*model.model, all.last(1), drafted, rule, sampler, clock);
  }

  /// The state after tokens that nobody drafted.
  std::vector<float> stateAfter(const Tokens &text) {
    Model plain = open();
    EXPECT_EQ(messageOf(plain.model->feed(text)), "OK");
    return plain.state();
  }

  TemporaryFolder temporary;
  std::string folder = temporary.file("toy.hone"), corpus = temporary.file("toy.corpus");
};

/// `depth` tokens that the toy goes on with, each beside `others` wrong ones that are followed by wrong ones.
rt::DraftedTokens treeWithTruth(Tokens text, int64_t depth, int64_t others) {
  rt::DraftedTokens drafted;
  int64_t node = 0;
  for (int64_t level = 0; level < depth; ++level) {
    int64_t right = sumOf(text) % kVocabulary;
    for (int64_t other = 1; other <= others; ++other) {
      int64_t wrong = drafted.add(node, (right + other) % kVocabulary);
      drafted.add(wrong, right);
    }
    node = drafted.add(node, right);
    text.push_back(right);
  }
  return drafted;
}

TEST_F(DraftTrees, AncestorsAreThoseOfTheTextAndOfTheTree) {
  speculate::DraftTree tree;
  tree.add(tree.add(0, 5), 6);
  tree.add(0, 7);
  tree.add(2, 8);
  EXPECT_THAT(tree.ancestorsAfter(1), ElementsAre(0b1, 0b11, 0b111, 0b1001, 0b10111));
  EXPECT_THAT(tree.ancestorsAfter(3), ElementsAre(0b1, 0b11, 0b111, 0b1111, 0b11111, 0b100111, 0b1011111));
  EXPECT_FALSE(tree.isChain());
  EXPECT_TRUE(tree.first(2).isChain());
  EXPECT_THAT(tree.childrenOf(0), ElementsAre(1, 3));
  speculate::DraftTree chain = {{5, 6, 7}};
  EXPECT_TRUE(chain.isChain());
  EXPECT_THAT(chain.ancestorsAfter(1), ElementsAre(0b1, 0b11, 0b111, 0b1111));
}

TEST_F(DraftTrees, AnOracleInATreeIsAcceptedToItsEnd) {
  Model model = open();
  for (int64_t others : {0, 1, 3})
    for (int64_t depth : {1, 2, 8}) {
      Tokens text = {1, 2, 4};
      rt::Verification verified = *verify(model, text, treeWithTruth(text, depth, others));
      ASSERT_EQ(std::ssize(verified.next), depth + 1);
      for (int64_t token : verified.next) {
        EXPECT_EQ(token, sumOf(text) % kVocabulary);
        text.push_back(token);
      }
      text.pop_back(); // the last one is not fed
      EXPECT_EQ(model.state(), stateAfter(text)) << others << " others, depth " << depth;
    }
}

TEST_F(DraftTrees, ATreeThatIsAlwaysWrongGivesATokenAndLeavesNothing) {
  Model model = open();
  Tokens text = {3, 1};
  rt::DraftedTokens drafted;
  for (int64_t token : {0, 1, 2, 3, 5, 6, 7}) // 4 would be right
    drafted.add(drafted.add(0, token), (4 + token) % kVocabulary);
  rt::Verification verified = *verify(model, text, drafted);
  EXPECT_THAT(verified.next, ElementsAre(4));
  EXPECT_THAT(verified.path, IsEmpty());
  EXPECT_EQ(model.state(), stateAfter(text));
}

/// Some of many random trees are right here and there: the text is the sampler's own.
TEST_F(DraftTrees, RandomTreesChangeNothing) {
  Model model = open(), plain = open();
  std::mt19937 random(11);
  int64_t accepted = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Tokens text = {static_cast<int64_t>(random() % kVocabulary), static_cast<int64_t>(random() % kVocabulary)};
    rt::DraftedTokens drafted;
    for (size_t i = 0, nodes = random() % 60; i < nodes; ++i)
      drafted.add(static_cast<int64_t>(random() % (i + 1)), static_cast<int64_t>(random() % kVocabulary));
    sampling::SamplingOptions sampling{.temperature = trial % 2 ? 0.9 : 0, .seed = static_cast<uint64_t>(trial)};
    rt::Verification verified = *verify(model, text, drafted, Acceptance::Identical, sampling);
    accepted += std::ssize(verified.path);
    rt::TextSampler sampler(*sampling::Sampler::create(sampling), text);
    plain.session->state().reset();
    Tokens fed = text;
    for (int64_t token : verified.next) {
      EXPECT_EQ(token, *sampler.sample(rt::lastRow(*plain.model->feed(fed))));
      fed = {token};
    }
    EXPECT_EQ(model.state(), plain.state());
  }
  EXPECT_GT(accepted, 100);
}

/// Chi-square of the first two tokens against their enumerated probabilities. Siblings are the best of a drafter, so that accepting them as if
/// they were drawn would be wrong.
double chiSquareOf(Model &model, Acceptance rule, int texts) {
  const Tokens text = {1, 2};
  const sampling::SamplingOptions base{.temperature = 0.7};
  rt::DraftedTokens drafted;
  for (int64_t token : {3, 5, 0})
    for (int64_t node = drafted.add(0, token); int64_t next : {6, 1})
      drafted.add(node, next);
  std::vector<int> counts(kVocabulary * kVocabulary);
  sampling::SamplingOptions sampling = base;
  for (int i = 0; i < texts; ++i) {
    sampling.seed = static_cast<uint64_t>(i);
    model.session->state().reset();
    EXPECT_EQ(messageOf(model.model->feed(std::span(text).first(1))), "OK");
    rt::TextSampler sampler(*sampling::Sampler::create(sampling), text);
    rt::SpeculationStatistics counted;
    rt::SpeculationClock clock(counted);
    Tokens next = rt::verifyDraft(*model.model, std::span(text).last(1), drafted, rule, sampler, clock)->next;
    if (next.size() == 1)
      next.push_back(*sampler.sample(rt::lastRow(*model.model->feed(next))));
    ++counts[static_cast<size_t>(next[0] * kVocabulary + next[1])];
  }
  double result = 0, top = std::exp(1 / base.temperature), all = top + kVocabulary - 1;
  for (int64_t first = 0; first < kVocabulary; ++first)
    for (int64_t second = 0; second < kVocabulary; ++second) {
      double mean = texts * (first == 3 ? top : 1) / all * (second == (3 + first) % kVocabulary ? top : 1) / all;
      int count = counts[static_cast<size_t>(first * kVocabulary + second)];
      result += (count - mean) * (count - mean) / mean;
    }
  return result;
}

TEST_F(DraftTrees, OnlyTheLossyRuleChangesProbabilities) {
  constexpr double kLimit = 112.6; // that a chi-square variable of 63 degrees exceeds once in 10,000 cases
  constexpr int kTexts = 100000;
  Model model = open();
  EXPECT_LT(chiSquareOf(model, Acceptance::Identical, kTexts), kLimit);
  EXPECT_LT(chiSquareOf(model, Acceptance::Exact, kTexts), kLimit);
  EXPECT_GT(chiSquareOf(model, Acceptance::Typical, kTexts), 10 * kLimit);
}

/// Texts of a corpus whose drafts are trees, and without drafts.
class TreeTexts : public DraftTrees {
protected:
  void buildCorpus(const std::vector<std::vector<int32_t>> &texts) {
    speculate::CorpusBuilder builder;
    for (const std::vector<int32_t> &text : texts)
      ASSERT_EQ(messageOf(builder.add(text)), "OK");
    ASSERT_EQ(messageOf(std::move(builder).write(corpus, 0)), "OK");
  }

  std::string write(Model &model, std::vector<DraftSource> sources, const Tokens &prompt,
                    const sampling::SamplingOptions &sampling, Tokens &tokens, rt::GenerationStatistics &statistics) {
    model.session->state().reset();
    std::unique_ptr<rt::Speculation> speculation;
    if (!sources.empty()) {
      auto created = rt::Speculation::create({.sources = sources, .corpus = corpus, .draftsTrees = true}, *model.model);
      if (!created.ok())
        return messageOf(created);
      speculation = *std::move(created);
    }
    rt::GenerationOptions options;
    options.maximalNewTokens = 60;
    auto decoder = *rt::createDecoder(*model.model, sampling, {}, speculation.get(), prompt);
    auto written = rt::generate(*model.model, prompt, options, *decoder, [&](int64_t token) -> absl::StatusOr<bool> {
      tokens.push_back(token);
      return true;
    });
    if (written.ok())
      statistics = *written;
    return messageOf(written);
  }
};

TEST_F(TreeTexts, AreThoseWithoutDrafts) {
  std::mt19937 random(3);
  std::vector<std::vector<int32_t>> texts(30, std::vector<int32_t>(100));
  for (std::vector<int32_t> &text : texts)
    for (int32_t &token : text)
      token = static_cast<int32_t>(random() % kVocabulary);
  buildCorpus(texts);
  Model plain = open(), drafted = open();
  rt::GenerationStatistics statistics, ofTrees;
  int64_t accepted = 0;
  for (int trial = 0; trial < 60; ++trial) {
    Tokens prompt(1 + random() % 20), expected, got;
    for (int64_t &token : prompt)
      token = static_cast<int64_t>(random() % 3);
    sampling::SamplingOptions sampling{.temperature = trial % 3 ? 0.6 : 0,
                                       .repetitionPenalty = trial % 2 ? 1 : 1.2,
                                       .seed = static_cast<uint64_t>(trial)};
    EXPECT_EQ(write(plain, {}, prompt, sampling, expected, statistics), "OK");
    EXPECT_EQ(write(drafted, {DraftSource::Automaton, DraftSource::Corpus}, prompt, sampling, got, ofTrees), "OK");
    EXPECT_EQ(got, expected);
    EXPECT_EQ(drafted.state(), plain.state());
    accepted += ofTrees.speculation.accepted;
  }
  EXPECT_GT(accepted, 0);
}

TEST_F(TreeTexts, NeedAnEntryThatVerifiesTrees) {
  writeArtefact(folder, HONE_TEST_PROGRAM, toyManifestWithVerification());
  Model model = open();
  Tokens tokens;
  rt::GenerationStatistics statistics;
  EXPECT_THAT(write(model, {DraftSource::Automaton}, {1}, {}, tokens, statistics),
              HasSubstr("need an entry 'verify' of tokens and ancestors over the state of 'forward'; 'hone compile "
                        "--speculate=tree' adds one"));
}

TEST_F(TreeTexts, AreWrittenByTheCommandLine) {
  std::string prompts = temporary.file("prompts.npy"), plain = temporary.file("plain.npy"),
              drafted = temporary.file("drafted.npy");
  ASSERT_EQ(messageOf(io::writeNpy(prompts, makeArray<int64_t>(HONE_I64, {1, 4}, {1, 2, 0, 1}))), "OK");
  std::vector<std::string> words = {"run", folder, "--tokens", prompts, "--ignore-end", "--output-tokens"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run(more);
  };
  EXPECT_EQ(with({plain}).code, 0);
  Outcome outcome = with({drafted, "--speculate", "automaton", "--draft-tree", "--stats"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("drafts of automaton: "));
  EXPECT_EQ(*io::readFile(plain), *io::readFile(drafted));
  outcome = with({drafted, "--speculate", "none", "--draft-tree"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err,
              HasSubstr("expected automaton, corpus, lookup or model in --speculate with --draft-tree, but got none"));
}

} // namespace
} // namespace hone::test
