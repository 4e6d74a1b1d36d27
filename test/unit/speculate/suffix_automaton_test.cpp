// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The suffix automaton beside a search of all earlier positions.

#include "speculate/suffix_automaton.h"
#include "texts.h"

#include <gmock/gmock.h>

namespace hone::test {
namespace {

using speculate::AutomatonDrafter;
using speculate::Draft;
using speculate::SuffixAutomaton;
using testing::ElementsAre;
using testing::IsEmpty;

using Text = std::vector<int64_t>;

/// The longest suffix of at most `most` tokens that also ends at an earlier position, and the first such position.
std::pair<int64_t, int64_t> search(const Text &text, size_t most = SIZE_MAX) {
  int64_t longest = 0, first = 0, size = static_cast<int64_t>(text.size());
  for (int64_t end = 1; end < size; ++end) {
    int64_t length = 0;
    while (length < std::min(end, static_cast<int64_t>(std::min(most, text.size()))) &&
           text[static_cast<size_t>(end - 1 - length)] == text[static_cast<size_t>(size - 1 - length)])
      ++length;
    if (length > longest) {
      longest = length;
      first = end;
    }
  }
  return {longest, first};
}

void expectMatches(const Text &text) {
  SuffixAutomaton automaton;
  Text soFar;
  for (int64_t token : text) {
    automaton.append(token);
    soFar.push_back(token);
    auto [length, end] = search(soFar);
    ASSERT_EQ(automaton.matchedLength(), length) << testing::PrintToString(soFar);
    if (length > 0)
      ASSERT_EQ(automaton.matchedEnd(), end) << testing::PrintToString(soFar);
    ASSERT_LE(automaton.countStates(), 2 * soFar.size() + 1);
    ASSERT_LE(automaton.countTransitions(), 3 * soFar.size() + 1);
  }
}

TEST(SuffixAutomaton, FindsWhatASearchFindsInRandomTexts) {
  std::mt19937 random(1);
  for (int64_t alphabet : {1, 2, 3, 5, 1000000})
    for (int trial = 0; trial < 20; ++trial)
      expectMatches(randomText<int64_t>(random, 200, alphabet));
}

TEST(SuffixAutomaton, FindsItInTextsThatRepeatThemselves) {
  expectMatches(fibonacciWord<int64_t>(300));
  expectMatches(Text(200, 4));
  expectMatches(periodicText<int64_t>(300, 7));
  Text runs;
  for (int64_t length = 1; length < 20; ++length) {
    runs.insert(runs.end(), static_cast<size_t>(length), 7);
    runs.push_back(length % 3);
  }
  expectMatches(runs);
}

void expectFewSteps(const Text &text) {
  SuffixAutomaton automaton;
  for (int64_t token : text)
    automaton.append(token);
  EXPECT_LE(automaton.countSteps(), 4 * static_cast<int64_t>(text.size())) << text.size() << " tokens";
}

TEST(SuffixAutomaton, TakesFourStepsATokenWhateverTheLength) {
  std::mt19937 random(2);
  for (size_t size : {10'000, 100'000, 1'000'000})
    expectFewSteps(randomText<int64_t>(random, size, 2));
  for (size_t size : {10'000, 100'000})
    for (const Text &text : {randomText<int64_t>(random, size, 50000), Text(size, 1), fibonacciWord<int64_t>(size),
                             periodicText<int64_t>(size, 100)})
      expectFewSteps(text);
}

TEST(SuffixAutomaton, MatchesDoNotCrossTokensThatOccurOnce) {
  // The last text is found in those before it, as far as they reach.
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    SuffixAutomaton automaton;
    Text all;
    for (int text = 0; text < 4; ++text) {
      if (text > 0) {
        all.push_back(-text);
        automaton.append(all.back());
        EXPECT_EQ(automaton.matchedLength(), 0);
      }
      size_t begin = all.size();
      for (int64_t token : randomText<int64_t>(random, 1 + random() % 30, 2)) {
        automaton.append(token);
        all.push_back(token);
        auto [length, end] = search(all, all.size() - begin);
        ASSERT_EQ(automaton.matchedLength(), length) << testing::PrintToString(all);
        if (length > 0)
          ASSERT_EQ(automaton.matchedEnd(), end) << testing::PrintToString(all);
      }
    }
  }
}

Draft draftAfter(const Text &text, int64_t most) {
  AutomatonDrafter drafter;
  drafter.append(text);
  return drafter.draft(most);
}

TEST(AutomatonDrafter, DraftsWhatFollowedTheMatch) {
  Draft draft = draftAfter({4, 1, 2, 3, 5, 6, 1, 2, 3}, 2);
  EXPECT_THAT(draft.tokens, ElementsAre(5, 6));
  EXPECT_EQ(draft.matched, 3);
  EXPECT_THAT(draftAfter({1, 2, 1}, 8).tokens, ElementsAre(2, 1)) << "no more than there is";
}

TEST(AutomatonDrafter, DraftsNothingWhereNothingRepeats) {
  EXPECT_THAT(draftAfter({}, 4).tokens, IsEmpty());
  EXPECT_THAT(draftAfter({1, 2, 3}, 4).tokens, IsEmpty());
  EXPECT_THAT(draftAfter({1, 2, 1}, 0).tokens, IsEmpty());
  EXPECT_THAT(draftAfter({1, 2, 1}, -1).tokens, IsEmpty());
}

TEST(AutomatonDrafter, EarlierTextsDraftLaterOnes) {
  AutomatonDrafter drafter;
  drafter.append(Text{1, 2, 3, 4});
  drafter.beginText();
  drafter.append(Text{9, 2, 3});
  EXPECT_THAT(drafter.draft(8).tokens, ElementsAre(4)) << "not what is in the next text";
  EXPECT_EQ(drafter.draft(8).matched, 2);
  drafter.beginText();
  drafter.append(Text{4});
  EXPECT_THAT(drafter.draft(8).tokens, IsEmpty()) << "the first text ends there";
}

TEST(AutomatonDrafter, ForgetsTheOlderHalf) {
  AutomatonDrafter drafter(/*mostTokens=*/8);
  drafter.append(Text{1, 2, 3, 4, 5, 6, 7});
  drafter.beginText();
  drafter.append(Text{6}); // the ninth, beside 5 6 7 and the separator
  EXPECT_EQ(drafter.countTokens(), 5u);
  EXPECT_THAT(drafter.draft(8).tokens, ElementsAre(7));
  drafter.append(Text{2});
  EXPECT_THAT(drafter.draft(8).tokens, IsEmpty());
  for (int64_t token = 0; token < 1000; ++token)
    drafter.append(Text{token % 3});
  EXPECT_LE(drafter.countTokens(), 8u);
}

} // namespace
} // namespace hone::test
