// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sampling: the distribution is the enumerated one, and draws follow it.

#include "hone/sampling/arithmetic.h"
#include "hone/sampling/sampler.h"

#include <cmath>
#include <gmock/gmock.h>
#include <map>

namespace hone::sampling {
namespace {

using testing::HasSubstr;

const std::vector<float> kLogits = {1.5f, -0.5f, 3.0f, 3.0f, 0.0f, 2.25f, -4.0f, 1.0f, 2.9f, -INFINITY};
const std::vector<int32_t> kHistory = {2, 1, 2, 5};

/// The definition of the options, without any thought of speed.
std::map<int32_t, double> enumerate(const SamplingOptions &options) {
  struct Token {
    int32_t id;
    double logit, probability;
  };
  std::vector<Token> tokens;
  for (size_t id = 0; id < kLogits.size(); ++id) {
    double logit = kLogits[id];
    if (std::count(kHistory.begin(), kHistory.end(), static_cast<int32_t>(id)))
      logit = logit < 0 ? logit * options.repetitionPenalty : logit / options.repetitionPenalty;
    tokens.push_back({static_cast<int32_t>(id), logit / options.temperature, 0});
  }
  std::sort(tokens.begin(), tokens.end(),
            [](const Token &a, const Token &b) { return std::pair(-a.logit, a.id) < std::pair(-b.logit, b.id); });
  if (options.topK > 0)
    tokens.resize(std::min<size_t>(options.topK, tokens.size()));
  auto normalize = [&] {
    double total = 0;
    for (Token &token : tokens)
      total += std::exp(token.logit);
    for (Token &token : tokens)
      token.probability = std::exp(token.logit) / total;
  };
  normalize();
  double sum = 0;
  size_t kept = 0;
  do
    sum += tokens[kept++].probability;
  while (kept < tokens.size() && (sum < options.topP || options.topP == 1));
  tokens.resize(kept);
  std::erase_if(tokens,
                [&, most = tokens[0].probability](const Token &t) { return t.probability < options.minP * most; });
  normalize();
  std::map<int32_t, double> result;
  for (const Token &token : tokens)
    result[token.id] = token.probability;
  return result;
}

/// The value that a chi-square variable of `freedom` degrees exceeds once in 10,000 cases (Wilson and Hilferty 1931).
double chiSquareLimit(double freedom) {
  constexpr double kQuantile = 3.719; // of the normal distribution
  double spread = 2 / (9 * freedom);
  return freedom * std::pow(1 - spread + kQuantile * std::sqrt(spread), 3);
}

class Distributions : public testing::TestWithParam<SamplingOptions> {};

TEST_P(Distributions, AreTheEnumeratedOnes) {
  auto sampler = Sampler::create(GetParam());
  auto actual = *sampler->distribution(kLogits, kHistory);
  auto expected = enumerate(GetParam());
  ASSERT_EQ(actual.size(), expected.size());
  for (TokenProbability token : actual)
    EXPECT_NEAR(token.probability, expected[token.id], 1e-14) << token.id;
}

TEST_P(Distributions, AreWhatIsDrawn) {
  constexpr int kDraws = 100000;
  auto sampler = Sampler::create(GetParam());
  std::map<int32_t, int> counts;
  for (int i = 0; i < kDraws; ++i)
    ++counts[*sampler->sample(kLogits, kHistory)];
  auto expected = enumerate(GetParam());
  double chiSquare = 0;
  int cells = 0;
  for (auto [id, probability] : expected) {
    if (probability == 0)
      continue;
    double mean = kDraws * probability;
    chiSquare += (counts[id] - mean) * (counts[id] - mean) / mean;
    ++cells;
  }
  for (auto [id, count] : counts)
    EXPECT_GT(expected[id], 0) << "token " << id << " was drawn " << count << " times";
  if (cells > 1)
    EXPECT_LT(chiSquare, chiSquareLimit(cells - 1));
}

INSTANTIATE_TEST_SUITE_P(Options, Distributions,
                         testing::Values(SamplingOptions{.temperature = 1, .seed = 1},
                                         SamplingOptions{.temperature = 0.5, .seed = 2},
                                         SamplingOptions{.temperature = 3, .seed = 3},
                                         SamplingOptions{.temperature = 1, .topK = 3, .seed = 4},
                                         SamplingOptions{.temperature = 1, .topK = 1, .seed = 5},
                                         SamplingOptions{.temperature = 1, .topP = 0.7, .seed = 6},
                                         SamplingOptions{.temperature = 2, .topP = 0, .seed = 7},
                                         SamplingOptions{.temperature = 1.5, .minP = 0.2, .seed = 8},
                                         SamplingOptions{.temperature = 1, .repetitionPenalty = 1.8, .seed = 9},
                                         SamplingOptions{.temperature = 1, .repetitionPenalty = 0.6, .seed = 10},
                                         SamplingOptions{1.3, 7, 0.93, 0.05, 1.2, 11}));

TEST(Sampler, GreedyTakesTheLargestAndOfEqualsTheFirst) {
  auto sampler = Sampler::create({});
  EXPECT_EQ(*sampler->sample(kLogits, {}), 2);
  EXPECT_EQ(*Sampler::create({.repetitionPenalty = 2})->sample(kLogits, kHistory), 3);
}

TEST(Sampler, LargeVocabulariesAreCutAtTheRightPlace) {
  std::vector<float> logits(50000);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>((i * 7919) % logits.size()) * 1e-4f;
  auto tokens = *Sampler::create({.temperature = 1, .topP = 0.3})->distribution(logits, {});
  double total = 0, kept = 0, smallest = INFINITY;
  for (float logit : logits)
    total += std::exp(static_cast<double>(logit));
  for (TokenProbability token : tokens) {
    kept += std::exp(static_cast<double>(logits[token.id]));
    smallest = std::min(smallest, std::exp(static_cast<double>(logits[token.id])));
  }
  EXPECT_GE(kept / total, 0.3);
  EXPECT_LT((kept - smallest) / total, 0.3) << "one token fewer is too few";
}

TEST(Sampler, TheSequenceIsFixed) {
  // The C++ standard gives the 10,000th draw of mt19937_64 with this seed: 9981545732273789042.
  auto sampler = Sampler::create({.seed = 5489});
  uint64_t draw = 0;
  for (int i = 0; i < 10000; ++i)
    draw = sampler->draw();
  EXPECT_EQ(draw, 9981545732273789042u);
}

TEST(Sampler, ExponentialIsAccurate) {
  EXPECT_EQ(portableExp(0), 1);
  EXPECT_EQ(portableExp(-INFINITY), 0);
  for (double x = 0; x > -700; x -= 0.37)
    EXPECT_NEAR(portableExp(x) / std::exp(x), 1, 2 * 0x1p-52) << x;
}

TEST(Sampler, BadLogitsAreAStatus) {
  auto sampler = Sampler::create({.temperature = 1});
  auto message = [&](const std::vector<float> &logits, const std::vector<int32_t> &history = {}) {
    return std::string(sampler->sample(logits, history).status().message());
  };
  EXPECT_EQ(message({1, NAN}), "cannot sample a token: the logit of token 1 of 2 is not a number");
  EXPECT_EQ(message({INFINITY, 1}), "cannot sample a token: the logit of token 0 of 2 is infinite");
  EXPECT_EQ(message({-INFINITY}), "cannot sample a token: none of 1 logits is above minus infinity");
  EXPECT_EQ(message({}), "cannot sample a token: none of 0 logits is above minus infinity");
  sampler = Sampler::create({.repetitionPenalty = 2});
  EXPECT_EQ(message({1, 2}, {7}), "cannot sample a token: the history holds token 7, but there are 2 logits");
}

TEST(Sampler, BadOptionsAreAStatus) {
  auto message = [](const SamplingOptions &options) {
    return std::string(Sampler::create(options).status().message());
  };
  EXPECT_THAT(message({.temperature = -1}), HasSubstr("expected temperature to be from 0 to"));
  EXPECT_THAT(message({.temperature = NAN}), HasSubstr("but got nan"));
  EXPECT_THAT(message({.topK = -1}), HasSubstr("expected top-k to be 0 or more, but got -1"));
  EXPECT_THAT(message({.topP = 1.5}), HasSubstr("expected top-p to be from 0"));
  EXPECT_THAT(message({.minP = -0.1}), HasSubstr("expected min-p to be from 0"));
  EXPECT_THAT(message({.repetitionPenalty = 0}), HasSubstr("expected the repetition penalty to be above 0"));
}

} // namespace
} // namespace hone::sampling
