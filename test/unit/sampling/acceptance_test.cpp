// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of acceptance: texts of two tokens follow the enumerated distribution by each exact rule, and not by rules that are known to be wrong.

#include "hone/sampling/acceptance.h"

#include <cmath>
#include <functional>
#include <gmock/gmock.h>

namespace hone::sampling {
namespace {

using testing::HasSubstr;

constexpr int32_t kVocabulary = 8;
constexpr int kTexts = 200000;

/// The probabilities of the token after `previous`. Those of another `model` are shifted; one token in eight is never next.
Distribution distributionAfter(int32_t previous, int32_t model) {
  Distribution result;
  double total = 0;
  for (int32_t id = 0; id < kVocabulary; ++id) {
    int32_t rank = (id * 3 + previous * 5 + model * 2) % kVocabulary;
    double weight = rank == 7 ? 0 : std::exp(-0.6 * rank);
    total += weight;
    if (weight > 0)
      result.push_back({id, weight});
  }
  for (TokenProbability &token : result)
    token.probability /= total;
  return result;
}

Distribution targetAfter(int32_t previous) { return distributionAfter(previous, 0); }
Distribution drafterAfter(int32_t previous) { return distributionAfter(previous, 1); }

double probabilityOf(const Distribution &distribution, int32_t id) {
  for (const TokenProbability &token : distribution)
    if (token.id == id)
      return token.probability;
  return 0;
}

/// The most probable tokens.
std::vector<int32_t> bestOf(Distribution distribution, size_t count) {
  std::ranges::sort(distribution, {}, [](const TokenProbability &token) { return -token.probability; });
  std::vector<int32_t> best;
  for (size_t i = 0; i < count; ++i)
    best.push_back(distribution[i].id);
  return best;
}

/// What is drafted after a token, and the choice among it.
struct Rule {
  const char *name;
  std::function<std::vector<int32_t>(const Distribution &q, Draws draws)> draft;
  std::function<Choice(const Distribution &p, const Distribution &q, absl::Span<const int32_t> drafted, Draws draws)>
      choose;

  friend std::ostream &operator<<(std::ostream &stream, const Rule &rule) { return stream << rule.name; }
};

auto independent(int count) {
  return [count](const Distribution &q, Draws draws) {
    std::vector<int32_t> drafted;
    for (int i = 0; i < count; ++i)
      drafted.push_back(drawFrom(q, draws()));
    return drafted;
  };
}

std::vector<int32_t> withoutReplacement(const Distribution &q, Draws draws) {
  Distribution left = q;
  std::vector<int32_t> drafted;
  for (int i = 0; i < 3; ++i) {
    drafted.push_back(drawFrom(left, draws()));
    std::erase_if(left, [&](const TokenProbability &token) { return token.id == drafted.back(); });
  }
  return drafted;
}

std::vector<int32_t> best(const Distribution &q, Draws) { return bestOf(q, 3); }

Choice sampled(const Distribution &p, const Distribution &q, absl::Span<const int32_t> drafted, Draws draws) {
  return *chooseSampled(p, q, drafted, 0, draws);
}

Choice distinct(const Distribution &p, const Distribution &q, absl::Span<const int32_t> drafted, Draws draws) {
  return *chooseDistinct(p, q, drafted, 0, draws);
}

Choice deterministic(const Distribution &p, const Distribution &, absl::Span<const int32_t> drafted, Draws draws) {
  return *chooseDeterministic(p, drafted, 0, draws);
}

Choice typical(const Distribution &p, const Distribution &, absl::Span<const int32_t> drafted, Draws draws) {
  return *chooseTypical(p, drafted, 0, draws);
}

/// After a refusal draws from p instead of the residual.
Choice sampledWithoutResidual(const Distribution &p, const Distribution &q, absl::Span<const int32_t> drafted,
                              Draws draws) {
  Choice choice = *chooseSampled(p, q, drafted, 0, draws);
  return choice.accepted < 0 ? Choice{drawFrom(p, draws()), -1} : choice;
}

/// Texts of two tokens, drafted and verified as chains in which each position has its drafted tokens.
std::vector<int> countTexts(const Rule &rule, uint64_t seed) {
  std::mt19937_64 generator(seed);
  auto draws = [&] { return generator(); };
  std::vector<int> counts(kVocabulary * kVocabulary);
  for (int text = 0; text < kTexts; ++text) {
    int32_t first = 0, last = 0;
    for (int32_t *token : {&first, &last}) {
      int32_t previous = token == &first ? 0 : first;
      Distribution q = drafterAfter(previous);
      *token = rule.choose(targetAfter(previous), q, rule.draft(q, draws), draws).token;
    }
    ++counts[static_cast<size_t>(first * kVocabulary + last)];
  }
  return counts;
}

/// Chi-square of counts against expected ones, and the value that it exceeds once in 10,000 cases (Wilson and Hilferty 1931).
struct ChiSquare {
  double value = 0, cells = 0;

  void add(int count, double mean) {
    if (mean > 0) {
      value += (count - mean) * (count - mean) / mean;
      ++cells;
    } else {
      EXPECT_EQ(count, 0) << "a token without probability was drawn";
    }
  }
  double limit() const {
    constexpr double kQuantile = 3.719; // of the normal distribution
    double spread = 2 / (9 * (cells - 1));
    return (cells - 1) * std::pow(1 - spread + kQuantile * std::sqrt(spread), 3);
  }
};

ChiSquare ofFirstTokens(const std::vector<int> &counts) {
  ChiSquare result;
  for (int32_t first = 0; first < kVocabulary; ++first) {
    int count = 0;
    for (int32_t second = 0; second < kVocabulary; ++second)
      count += counts[static_cast<size_t>(first * kVocabulary + second)];
    result.add(count, kTexts * probabilityOf(targetAfter(0), first));
  }
  return result;
}

ChiSquare ofPairs(const std::vector<int> &counts) {
  ChiSquare result;
  for (int32_t first = 0; first < kVocabulary; ++first)
    for (int32_t second = 0; second < kVocabulary; ++second)
      result.add(counts[static_cast<size_t>(first * kVocabulary + second)],
                 kTexts * probabilityOf(targetAfter(0), first) * probabilityOf(targetAfter(first), second));
  return result;
}

class ExactRules : public testing::TestWithParam<Rule> {};

TEST_P(ExactRules, FollowTheTargetsDistribution) {
  std::vector<int> counts = countTexts(GetParam(), 11);
  ChiSquare first = ofFirstTokens(counts), pairs = ofPairs(counts);
  EXPECT_LT(first.value, first.limit());
  EXPECT_LT(pairs.value, pairs.limit());
}

INSTANTIATE_TEST_SUITE_P(Acceptance, ExactRules,
                         testing::Values(Rule{"one sampled token", independent(1), sampled},
                                         Rule{"three independent tokens", independent(3), sampled},
                                         Rule{"three tokens without replacement", withoutReplacement, distinct},
                                         Rule{"the best three tokens", best, deterministic},
                                         Rule{"no token", independent(0), sampled}));

class WrongRules : public testing::TestWithParam<Rule> {};

TEST_P(WrongRules, AreTold) {
  std::vector<int> counts = countTexts(GetParam(), 11);
  ChiSquare pairs = ofPairs(counts);
  EXPECT_GT(pairs.value, 10 * pairs.limit());
}

INSTANTIATE_TEST_SUITE_P(Acceptance, WrongRules,
                         testing::Values(Rule{"the best tokens as if they were drawn", best, sampled},
                                         Rule{"drawn tokens as if they were the best", independent(1), typical},
                                         Rule{"no residual", independent(1), sampledWithoutResidual},
                                         Rule{"replaced tokens as if they were not", withoutReplacement, sampled}));

/// Probability that the only token that is drafted is accepted.
TEST(Acceptance, OfOneTokenIsTheOverlap) {
  std::mt19937_64 generator(3);
  auto draws = [&] { return generator(); };
  Distribution p = targetAfter(2), q = drafterAfter(2);
  double overlap = 0;
  for (const TokenProbability &token : p)
    overlap += std::min(token.probability, probabilityOf(q, token.id));
  int accepted = 0;
  for (int i = 0; i < kTexts; ++i)
    accepted += chooseSampled(p, q, {drawFrom(q, draws())}, 0, draws)->accepted == 0;
  EXPECT_NEAR(static_cast<double>(accepted) / kTexts, overlap, 0.005) << "four standard deviations";
}

uint64_t noDraw() {
  ADD_FAILURE() << "this rule draws nothing here";
  return 0;
}

TEST(Acceptance, TheTargetAsItsOwnDrafterIsNeverRefused) {
  std::mt19937_64 generator(5);
  auto draws = [&] { return generator(); };
  for (int32_t previous = 0; previous < kVocabulary; ++previous) {
    Distribution p = targetAfter(previous);
    for (int i = 0; i < 1000; ++i)
      EXPECT_EQ(chooseSampled(p, p, {drawFrom(p, draws())}, 0, draws)->accepted, 0);
  }
}

TEST(Acceptance, GreedyTakesTheMostProbable) {
  Distribution p = {{1, 0.25}, {3, 0.375}, {6, 0.375}};
  EXPECT_EQ(chooseGreedy(p, {6, 3}, 0)->accepted, 1) << "of equal ones the first";
  EXPECT_EQ(chooseGreedy(p, {6, 1}, 0)->accepted, -1);
  EXPECT_EQ(chooseGreedy(p, {}, 0)->token, 3);
}

TEST(Acceptance, OneTokenWithAllProbabilityIsGreedy) {
  Distribution p = {{4, 1}}, q = {{4, 0.5}, {5, 0.5}};
  auto draws = [] { return ~uint64_t{0}; };
  EXPECT_EQ(chooseSampled(p, q, {4}, 0, draws)->accepted, 0);
  EXPECT_EQ(chooseSampled(p, q, {5}, 0, draws)->token, 4);
  EXPECT_EQ(chooseDistinct(p, q, {5, 4}, 0, draws)->accepted, 1);
  EXPECT_EQ(chooseDeterministic(p, {5, 4}, 0, draws)->accepted, 1);
}

TEST(Acceptance, TypicalComparesWithTheEntropy) {
  // H = 2 ln 2: the threshold is 0.3 / 4.
  Distribution flat = {{0, 0.25}, {1, 0.25}, {2, 0.25}, {3, 0.25}}, peaked = {{0, 0.92}, {1, 0.08}};
  EXPECT_EQ(chooseTypical(flat, {9, 2}, 0, noDraw)->accepted, 1);
  EXPECT_EQ(chooseTypical(peaked, {1, 0}, 0, noDraw)->accepted, 1) << "0.08 is below epsilon";
  EXPECT_EQ(chooseTypical(peaked, {1}, 0, noDraw, {.epsilon = 0.07})->accepted, 0);
  EXPECT_EQ(chooseTypical(flat, {2}, 0, [] { return uint64_t{0}; }, {.epsilon = 1, .delta = 4})->accepted, -1)
      << "a quarter is not above 4 / 4";
}

TEST(Acceptance, BadProbabilitiesAreRefused) {
  auto message = [](const Distribution &p) { return std::string(chooseGreedy(p, {}, 17).status().message()); };
  EXPECT_EQ(message({{1, 0.5}, {4, NAN}}), "cannot accept tokens at position 17: the probability of token 4 is nan");
  EXPECT_THAT(message({{1, -0.5}}), HasSubstr("token 1 is -0.5"));
  EXPECT_THAT(message({{1, INFINITY}}), HasSubstr("token 1 is inf"));
  EXPECT_EQ(message({{1, 0}, {2, 0}}), "cannot accept tokens at position 17: the largest of 2 probabilities is 0");
  EXPECT_THAT(message({}), HasSubstr("the largest of 0 probabilities is 0"));
  EXPECT_THAT(message({{4, 0.5}, {4, 0.5}}), HasSubstr("expected tokens by ascending id, but got 4 before 4"));
}

TEST(Acceptance, EveryRuleChecksWhatItReads) {
  Distribution good = {{0, 0.5}, {1, 0.5}}, bad = {{0, NAN}, {1, 0.5}};
  EXPECT_FALSE(chooseSampled(bad, good, {0}, 3, noDraw).ok());
  EXPECT_FALSE(chooseSampled(good, bad, {0}, 3, noDraw).ok());
  EXPECT_FALSE(chooseDistinct(good, bad, {0}, 3, noDraw).ok());
  EXPECT_FALSE(chooseDeterministic(bad, {0}, 3, noDraw).ok());
  EXPECT_FALSE(chooseTypical(bad, {0}, 3, noDraw).ok());
  EXPECT_THAT(std::string(chooseSampled(good, good, {5}, 3, noDraw).status().message()),
              HasSubstr("at position 3: token 5 was drafted, but the drafter's probability of it is 0"));
  Distribution p = {{2, 1}};
  auto draws = [] { return uint64_t{1} << 63; };
  EXPECT_THAT(std::string(chooseDistinct(p, good, {0, 0}, 3, draws).status().message()),
              HasSubstr("token 0 was drafted"));
}

} // namespace
} // namespace hone::sampling
