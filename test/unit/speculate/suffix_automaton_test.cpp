// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The suffix automaton beside a search of all earlier positions.

#include "speculate/suffix_automaton.h"

#include <gmock/gmock.h>
#include <random>

namespace hone::test {
namespace {

using speculate::AutomatonDrafter;
using speculate::Draft;
using speculate::SuffixAutomaton;
using testing::ElementsAre;
using testing::IsEmpty;

using Text = std::vector<int64_t>;

/// The longest suffix that also ends at an earlier position, and the first such position.
std::pair<int64_t, int64_t> search(const Text &text) {
  int64_t longest = 0, first = 0, size = static_cast<int64_t>(text.size());
  for (int64_t end = 1; end < size; ++end) {
    int64_t length = 0;
    while (length < end && text[static_cast<size_t>(end - 1 - length)] == text[static_cast<size_t>(size - 1 - length)])
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
    for (int trial = 0; trial < 20; ++trial) {
      Text text(200);
      for (int64_t &token : text)
        token = std::uniform_int_distribution<int64_t>(0, alphabet - 1)(random);
      expectMatches(text);
    }
}

TEST(SuffixAutomaton, FindsItInTextsThatRepeatThemselves) {
  Text fibonacci = {0}, before = {1};
  while (fibonacci.size() < 300) {
    Text longer = fibonacci;
    longer.insert(longer.end(), before.begin(), before.end());
    before = std::exchange(fibonacci, longer);
  }
  expectMatches(fibonacci);
  Text runs;
  for (int64_t length = 1; length < 20; ++length) {
    runs.insert(runs.end(), static_cast<size_t>(length), 7);
    runs.push_back(length % 3);
  }
  expectMatches(runs);
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

} // namespace
} // namespace hone::test
