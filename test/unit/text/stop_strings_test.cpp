// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stop strings: what is shown, what is held back, and that it does not matter how the text arrives.

#include "text/stop_strings.h"

#include <gmock/gmock.h>

namespace hone::text {
namespace {

using testing::ElementsAre;

/// What each push shows, and what the end shows.
std::vector<std::string> shown(std::vector<std::string> stops, const std::vector<std::string> &pushes) {
  StopStrings stopStrings = *StopStrings::create(std::move(stops));
  std::vector<std::string> result;
  for (const std::string &push : pushes)
    result.push_back(stopStrings.push(push));
  result.push_back(stopStrings.finish());
  return result;
}

TEST(StopStrings, EndTheText) {
  EXPECT_THAT(shown({"\n\n"}, {"one\n", "two\n\nthree"}), ElementsAre("one", "\ntwo", ""));
  EXPECT_THAT(shown({"END"}, {"a", "E", "N", "D", "b"}), ElementsAre("a", "", "", "", "", ""));
}

TEST(StopStrings, HoldBackNoMoreThanAPrefix) {
  EXPECT_THAT(shown({"aab"}, {"xaa", "aa", "c"}), ElementsAre("x", "aa", "aac", ""));
  EXPECT_THAT(shown({"END"}, {"E", "N"}), ElementsAre("", "", "EN"));
  EXPECT_THAT(shown({}, {"any", "thing"}), ElementsAre("any", "thing", ""));
}

TEST(StopStrings, TheFirstToBeCompleteWins) {
  EXPECT_THAT(shown({"abcd", "bc"}, {"xabcd"}), ElementsAre("xa", ""));
  EXPECT_THAT(shown({"bc", "abc"}, {"xabc"}), ElementsAre("x", ""));
}

TEST(StopStrings, ReportThatTheyStopped) {
  StopStrings stops = *StopStrings::create({"é"});
  EXPECT_EQ(stops.push("caf"), "caf");
  EXPECT_FALSE(stops.stopped());
  EXPECT_EQ(stops.push("é!"), "");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.push("more"), "");
}

TEST(StopStrings, HowTextArrivesDoesNotMatter) {
  // All texts of two letters up to length 9, whole and letter by letter.
  const std::vector<std::string> stops = {"aba", "bb", "aaab"};
  for (unsigned bits = 0; bits < 512; ++bits) {
    std::string text;
    std::vector<std::string> letters;
    for (int i = 0; i < 9; ++i) {
      text += bits >> i & 1 ? 'a' : 'b';
      letters.emplace_back(1, text.back());
    }
    std::string whole, pieces;
    for (const std::string &part : shown(stops, {text}))
      whole += part;
    for (const std::string &part : shown(stops, letters))
      pieces += part;
    ASSERT_EQ(whole, pieces) << text;
    for (const std::string &stop : stops)
      ASSERT_EQ(whole.find(stop), std::string::npos) << text;
  }
}

TEST(StopStrings, EmptyOnesAreRefused) {
  EXPECT_EQ(StopStrings::create({"a", ""}).status().message(),
            "expected stop string 2 to have at least one character, but it is empty");
}

} // namespace
} // namespace hone::text
