// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trees that a draft model grows: texts and states are those without drafts, and no exact rule changes what texts are like.

#include "draft_texts.h"
#include "speculate/tree_classifier.h"

#include <random>

namespace hone::test {
namespace {

using rt::Acceptance;
using testing::HasSubstr;

class ModelTrees : public testing::Test {
protected:
  void SetUp() override {
    writeArtefact(right, HONE_TEST_PROGRAM_TREES, toyManifestWithTrees());
    writeArtefact(wrong, HONE_TEST_PROGRAM_OTHER_TREES, toyManifestWithTrees());
  }

  static rt::SpeculationOptions grownBy(Model &draft, speculate::TreeShape shape, int64_t most = 32) {
    rt::SpeculationOptions options;
    options.sources = {rt::DraftSource::Model};
    options.mostDrafted = most;
    options.draftsTrees = true;
    options.draft = &*draft.model;
    options.shape = std::move(shape);
    return options;
  }

  TemporaryFolder temporary;
  std::string right = temporary.file("right.hone"), wrong = temporary.file("wrong.hone"),
              chains = temporary.file("chains.hone");
};

TEST_F(ModelTrees, AnOracleIsAcceptedToTheTreesDepth) {
  Model model = open(right), draft = open(right);
  // All tokens but the likeliest are equally likely: where few are verified, they are those of the likeliest path.
  for (const speculate::TreeShape &shape :
       {speculate::TreeShape{.branches = 3, .depth = 4}, speculate::TreeShape{.branches = 1, .depth = 4},
        speculate::TreeShape{.fixed = {3, 2, 1, 1}}}) {
    rt::SpeculationOptions speculation = grownBy(draft, shape);
    speculation.acceptance = Acceptance::Exact; // as much is drafted as is allowed, whatever passes take
    Written plain = write(model, {1, 2}, {}), drafted = write(model, {1, 2}, speculation);
    EXPECT_EQ(drafted.tokens, plain.tokens);
    EXPECT_EQ(drafted.state, plain.state);
    EXPECT_EQ(drafted.statistics.passes, (39 + 4) / 5) << "all but the first token, five a pass";
    EXPECT_EQ(drafted.statistics.speculation.accepted, 39 - drafted.statistics.passes);
  }
}

TEST_F(ModelTrees, NoMoreIsVerifiedThanIsAllowed) {
  Model model = open(right), draft = open(wrong);
  for (int64_t most : {1, 5, 12}) {
    rt::SpeculationOptions speculation = grownBy(draft, {.branches = 4, .depth = 5}, most);
    speculation.acceptance = Acceptance::Exact;
    Written drafted = write(model, {1, 2}, speculation, 20);
    EXPECT_LE(drafted.statistics.speculation.drafted, most * drafted.statistics.passes);
    EXPECT_GE(drafted.statistics.speculation.drafted, most * (drafted.statistics.passes - 5));
  }
}

TEST_F(ModelTrees, RandomPromptsAndDrawsAreContinuedAlike) {
  Model model = open(right), drafts[] = {open(right), open(wrong)};
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
    speculate::TreeShape shape = {.branches = 1 + trial % 6, .depth = 1 + trial % 7};
    if (trial % 3 == 1)
      shape.fixed = {2, 3, 1};
    rt::SpeculationOptions speculation = grownBy(drafts[trial % 2], shape, 1 + trial % 30);
    int64_t most = 1 + static_cast<int64_t>(random() % 50);
    Written plain = write(model, prompt, {}, most, sampling),
            drafted = write(model, prompt, speculation, most, sampling);
    EXPECT_EQ(drafted.message, "OK");
    EXPECT_EQ(drafted.tokens, plain.tokens);
    EXPECT_EQ(drafted.state, plain.state);
    accepted += drafted.statistics.speculation.accepted;
    refused += drafted.statistics.speculation.drafted - drafted.statistics.speculation.accepted;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

/// Whatever was grown and however the text goes on, the draft model's session has the text, and what stays of a tree is what it would have
/// of the text.
TEST_F(ModelTrees, TheDraftsStateIsThatOfTheText) {
  Model drafted = open(wrong), plain = open(wrong);
  Tokens text = {1, 2, 3};
  speculate::DrafterTimes times;
  rt::ModelDrafter drafter(*drafted.model, text, 0, times);
  std::mt19937 random(5);
  size_t kept = 0;
  for (int pass = 0; pass < 60; ++pass) {
    speculate::TreeExpansion expansion(
        {.branches = 1 + static_cast<int64_t>(random() % 4), .depth = 1 + static_cast<int64_t>(random() % 5)}, nullptr);
    ASSERT_EQ(messageOf(drafter.draftTree(expansion)), "OK");
    speculate::Draft draft = expansion.rank();
    Tokens next; // along the tree, and then a token of any kind
    for (int64_t node = 0, steps = static_cast<int64_t>(random() % 6); steps > 0; --steps) {
      Tokens children = draft.childrenOf(node);
      if (children.empty())
        break;
      node = children[random() % children.size()];
      next.push_back(draft.tokenOf(node));
    }
    next.push_back(static_cast<int64_t>(random() % kVocabulary));
    drafter.append(next);
    text.insert(text.end(), next.begin(), next.end());
    speculate::TreeExpansion none({.depth = 1}, nullptr);
    int64_t before = drafted.session->state().length();
    ASSERT_EQ(messageOf(drafter.draftTree(none)), "OK"); // which feeds the text to its end and nothing else
    kept += static_cast<size_t>(before) > text.size() - next.size() ? 1 : 0;
    plain.session->state().reset();
    ASSERT_EQ(messageOf(plain.model->feed(text)), "OK");
    EXPECT_EQ(stateOf(*drafted.session), stateOf(*plain.session));
  }
  EXPECT_GT(kept, 10) << "trees were fed beyond the text";
}

TEST_F(ModelTrees, OnlyTheLossyRuleChangesProbabilities) {
  Model model = open(right), draft = open(wrong);
  expectOnlyTheLossyRuleChangesProbabilities(model, grownBy(draft, {.branches = 3, .depth = 2}));
}

TEST_F(ModelTrees, AShorterDraftModelDraftsUntilItsLastPosition) {
  io::Manifest manifest = toyManifestWithTrees();
  for (io::EntryInfo &entry : manifest.entries)
    if (entry.name == "forward" || entry.name == "verify")
      entry.limits = {{{"sequence"}, true, 10, "places"}};
  writeArtefact(wrong, HONE_TEST_PROGRAM_TREES, manifest);
  Model model = open(right), draft = open(wrong);
  rt::SpeculationOptions speculation = grownBy(draft, {.branches = 2, .depth = 3});
  speculation.acceptance = Acceptance::Exact;
  Written plain = write(model, {1, 2}, {}), drafted = write(model, {1, 2}, speculation);
  EXPECT_EQ(drafted.message, "OK");
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_GT(drafted.statistics.speculation.accepted, 3);
}

TEST_F(ModelTrees, BothModelsNeedAnEntryForTrees) {
  writeArtefact(chains, HONE_TEST_PROGRAM, toyManifest());
  Model trees = open(right), none = open(chains);
  for (auto [model, draft] : {std::pair(&trees, &none), std::pair(&none, &trees)})
    EXPECT_EQ(write(*model, {1, 2}, grownBy(*draft, {})).message,
              chains + ": drafts that are trees need an entry 'verify' of tokens and ancestors over the state of "
                       "'forward'; 'hone compile --speculate=tree' adds one");
  EXPECT_EQ(write(trees, {1, 2}, grownBy(trees, {.fixed = {7, 9}})).message,
            "expected a tree of at most 63 tokens, but the fixed shape has more");
}

TEST_F(ModelTrees, AreGrownAtTheCommandLine) {
  std::string prompts = temporary.file("prompts.npy"), plain = temporary.file("plain.npy"),
              drafted = temporary.file("drafted.npy");
  ASSERT_EQ(messageOf(io::writeNpy(prompts, makeArray<int64_t>(HONE_I64, {1, 4}, {1, 2, 0, 1}))), "OK");
  auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"run", right, "--tokens", prompts, "--ignore-end", "--output-tokens"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  std::vector<std::string> trees = {drafted, "--speculate=model", "--draft=" + wrong, "--draft-tree"};
  auto treesWith = [&](const std::vector<std::string> &more) {
    std::vector<std::string> words = trees;
    words.insert(words.end(), more.begin(), more.end());
    return with(words);
  };
  EXPECT_EQ(with({plain}).code, 0);
  for (const std::vector<std::string> &shape :
       {std::vector<std::string>{}, {"--draft-branches=2", "--draft-depth=3"}, {"--draft-shape=3,1,1"}}) {
    Outcome outcome = treesWith(shape);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(*io::readFile(plain), *io::readFile(drafted));
  }
  EXPECT_THAT(treesWith({"--draft-shape=8,8"}).err,
              HasSubstr("expected a tree of at most 63 tokens, but --draft-shape=8,8 has more"));
  for (const char *shape : {"", "4,", "4,0", "a", "4;2", "-1", "99999999999999999999"})
    EXPECT_THAT(treesWith({std::string("--draft-shape=") + shape}).err,
                HasSubstr(io::cat("expected --draft-shape to be numbers from 1 on with commas between, but got '",
                                  shape, "'")));
  EXPECT_THAT(treesWith({"--draft-shape=2", "--draft-depth=2"}).err,
              HasSubstr("expected no --draft-depth with --draft-shape"));
  EXPECT_THAT(with({drafted, "--speculate=automaton", "--draft-tree", "--draft-branches=2"}).err,
              HasSubstr("expected --speculate=model and --draft-tree with --draft-branches"));
}

/// Whatever a classifier says, texts are the same.
TEST_F(ModelTrees, APrunerChangesNoText) {
  Model model = open(right), draft = open(wrong);
  std::mt19937 random(13);
  Written plain = write(model, {3, 1}, {});
  for (double threshold : {0.0, 0.4, 0.6, 1.0}) {
    int64_t drafted = 0;
    for (int trial = 0; trial < 10; ++trial) {
      speculate::TreeClassifier::Parameters parameters;
      for (float &parameter : parameters)
        parameter = static_cast<float>(static_cast<int>(random() % 201) - 100) / 1000;
      rt::SpeculationOptions speculation = grownBy(draft, {.branches = 3, .depth = 3});
      speculation.acceptance = Acceptance::Exact;
      speculation.pruner =
          std::make_shared<speculate::ClassifierPruner>(speculate::TreeClassifier(parameters), threshold);
      Written pruned = write(model, {3, 1}, speculation);
      EXPECT_EQ(pruned.tokens, plain.tokens);
      EXPECT_EQ(pruned.state, plain.state);
      drafted += pruned.statistics.speculation.drafted;
    }
    if (threshold == 0 || threshold == 1)
      EXPECT_EQ(drafted > 0, threshold == 0);
  }
}

TEST_F(ModelTrees, TheCommandLineTrainsAPruner) {
  std::string prompts = temporary.file("prompts.npy"), pruner = temporary.file("pruner.safetensors");
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < 200 * 3; ++i)
    tokens.push_back(i * i % kVocabulary);
  ASSERT_EQ(messageOf(io::writeNpy(prompts, makeArray<int64_t>(HONE_I64, {200, 3}, tokens))), "OK");
  std::vector<std::string> train = {"speculate",       "train", right,  "--tokens",          prompts, "--draft", right,
                                    "--temperature=2", "-o",    pruner, "--draft-branches=3"};
  Outcome outcome = run(train);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("area under the curve"));
  std::vector<std::string> write = {"run",
                                    right,
                                    "--tokens",
                                    prompts,
                                    "--stats",
                                    "--speculate=model",
                                    "--draft-tree",
                                    "--draft=" + wrong,
                                    "--draft-pruner=" + pruner};
  auto with = [&](const std::string &more) {
    std::vector<std::string> words = write;
    words.push_back(more);
    return run(words);
  };
  EXPECT_EQ(with("--draft-threshold=0.5").code, 0);
  EXPECT_THAT(with("--draft-threshold=2").err, HasSubstr("--draft-threshold"));
  EXPECT_THAT(with("--output-tokens=" + pruner).err, HasSubstr(pruner));
  shorten(pruner, 300);
  EXPECT_THAT(with("--ignore-end").err, HasSubstr(pruner));
  EXPECT_EQ(with("--ignore-end").code, 1);
  EXPECT_THAT(run({"speculate", "test"}).err, HasSubstr("expected 'train', but got 'test'"));
  EXPECT_THAT(run({"speculate", "train", right}).err,
              HasSubstr("expected either --prompts or --tokens, but got neither"));
  EXPECT_THAT(run({"speculate", "train", right, "--tokens", prompts}).err, HasSubstr("expected -o FILE.safetensors"));
  EXPECT_THAT(run({"speculate", "train", right, "--tokens", prompts, "-o", prompts}).err, HasSubstr(prompts));
}

} // namespace
} // namespace hone::test
