// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions written for Oniguruma match what Oniguruma matches. The expected values were observed with it.

#include "text/regex.h"

#include <gmock/gmock.h>

namespace hone::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  auto regex = Regex::compile(pattern);
  if (!regex.ok())
    return {std::string(regex.status().message())};
  RegexScratch scratch;
  RegexMatches found(*regex, text, scratch);
  std::vector<std::string> result;
  for (Range match; *found.next(match);)
    result.emplace_back(text.substr(match.begin, match.end - match.begin));
  return result;
}

std::string fault(std::string_view pattern) { return std::string(Regex::compile(pattern).status().message()); }

TEST(Regex, IntervalsRepeatGreedily) {
  EXPECT_THAT(matches("a{1,2}+", "aaaaab"), ElementsAre("aaaaa"));
  EXPECT_THAT(matches("xa{2}?", "xaaa xa"), ElementsAre("xaa", "x"));
  EXPECT_THAT(matches("a{,2}b", "aaab"), ElementsAre("aab"));
  EXPECT_THAT(matches("(?:ab){2}+c", "ababababc"), ElementsAre("ababababc"));
  EXPECT_THAT(matches("a{x}", "a{x}"), ElementsAre("a{x}"));
}

TEST(Regex, PossessiveQuantifiersDoNotGiveBack) {
  EXPECT_THAT(matches("a?+a", "a"), IsEmpty());
  EXPECT_THAT(matches("a++a", "aaa"), IsEmpty());
}

TEST(Regex, OptionsReachToTheEndOfTheGroup) {
  EXPECT_THAT(matches("x(?i)ab|cd", "xABCDx xCD cd"), ElementsAre("xAB", "xCD"));
  EXPECT_THAT(matches("(?:x(?i)a)b", "xAb xAB"), ElementsAre("xAb"));
  EXPECT_THAT(matches("(?i:a)b", "Ab AB"), ElementsAre("Ab"));
  EXPECT_THAT(matches(".+", "ab\ncd"), ElementsAre("ab", "cd"));
  EXPECT_THAT(matches("(?m).+", "ab\ncd"), ElementsAre("ab\ncd"));
}

TEST(Regex, AnchorsAreOfLines) {
  EXPECT_THAT(matches("^a", "a\na\n"), ElementsAre("a", "a"));
  EXPECT_THAT(matches("a$", "a\na\n"), ElementsAre("a", "a"));
  EXPECT_THAT(matches("\\Aa", "a\na"), ElementsAre("a"));
}

TEST(Regex, ShorthandsAreUnicode) {
  EXPECT_THAT(matches("\\s+", "a\u180eb\u200bc\u0085d\u00a0e\u3000"), ElementsAre("\u0085", "\u00a0", "\u3000"));
  EXPECT_THAT(matches("\\w+", "a\u0301b\u203fc_ d\u2160\u00b2"), ElementsAre("a\u0301b\u203fc_", "d\u2160\u00b2"));
  EXPECT_THAT(matches("[[:word:]]+", "d\u00b2"), ElementsAre("d"));
  EXPECT_THAT(matches("\\d+", "a12\u0663b"), ElementsAre("12\u0663"));
  EXPECT_THAT(matches("\\h+", "xyz12AFG"), ElementsAre("12AF"));
  EXPECT_THAT(matches("\\bfoo\\b", "a foo b foobar é foo"), ElementsAre("foo", "foo"));
  EXPECT_THAT(matches("[^\\S\\n]+", " \t\n x"), ElementsAre(" \t", " "));
  EXPECT_THAT(matches("\\v", "\n\v"), ElementsAre("\v"));
}

TEST(Regex, ClassesNestAndIntersect) {
  EXPECT_THAT(matches("[\\p{L}&&[^\\p{Han}]]+", "ab漢c"), ElementsAre("ab", "c"));
  EXPECT_THAT(matches("[a-z&&[^aeiou]&&[^b-d]]+", "abcdefgh"), ElementsAre("fgh"));
  EXPECT_THAT(matches("[a[0-9]x]+", "a1xb"), ElementsAre("a1x"));
  EXPECT_THAT(matches("[^a[^b]]+", "abc"), ElementsAre("b"));
  EXPECT_THAT(matches("[^\\W\\d]+", "ab12_c"), ElementsAre("ab", "_c"));
  EXPECT_THAT(matches("[]a]+", "]a["), ElementsAre("]a"));
  EXPECT_THAT(matches("[a\\-z.*(-]+", "a-z.*("), ElementsAre("a-z.*("));
  EXPECT_THAT(matches("[\\u0041-\\x{43}]+", "ABCD"), ElementsAre("ABC"));
}

TEST(Regex, PropertiesAreNamedLoosely) {
  EXPECT_THAT(matches("\\p{Han}+", "漢々〆、ー字"), ElementsAre("漢々", "字")) << "the script, not its extensions";
  EXPECT_THAT(matches("\\p{Lowercase_Letter}+|\\p{^L}", "aB1"), ElementsAre("a", "1"));
  EXPECT_THAT(matches("\\P{L}+", "ab12"), ElementsAre("12"));
  EXPECT_THAT(matches("[[:punct:]]+", "a+b$c!d。e€"), ElementsAre("+", "$", "!", "。", "€"));
  EXPECT_THAT(matches("\\p{Punct}+", "a+b!"), ElementsAre("!"));
  EXPECT_THAT(matches("[[:^alpha:]]+", "a1b"), ElementsAre("1"));
}

TEST(Regex, EmptyMatchesAdvance) {
  EXPECT_THAT(matches("", "aé"), ElementsAre("", "", ""));
  EXPECT_THAT(matches("x*", "axxb"), ElementsAre("", "xx", ""));
}

TEST(Regex, LongTextsNeedNoDepth) {
  EXPECT_THAT(matches("(?:a|b)+", std::string(1 << 20, 'a')), ElementsAre(std::string(1 << 20, 'a')));
  EXPECT_EQ(matches("\\s+(?!\\S)|\\s+", std::string(1 << 20, ' ')).size(), 1);
}

TEST(Regex, EndlessBacktrackingIsAStatus) {
  auto regex = Regex::compile("(?:a+)+$");
  ASSERT_TRUE(regex.ok());
  RegexScratch scratch;
  Range match;
  auto found = regex->find(std::string(64, 'a') + "b", 0, scratch, match);
  EXPECT_THAT(std::string(found.status().message()),
              HasSubstr("cannot match regular expression '(?:a+)+$' against 65 bytes: match limit exceeded"));
}

TEST(Regex, FaultsNameThePattern) {
  EXPECT_THAT(fault("[a"), HasSubstr("cannot read regular expression '[a': unclosed class at byte 2"));
  EXPECT_THAT(fault("(a"), HasSubstr("unclosed group"));
  EXPECT_THAT(fault("a)"), HasSubstr("unmatched ')'"));
  EXPECT_THAT(fault("a\\"), HasSubstr("dangling backslash"));
  EXPECT_THAT(fault("[z-a]"), HasSubstr("range out of order"));
  EXPECT_THAT(fault("\\p{Nonsense}"), HasSubstr("unknown property"));
  EXPECT_THAT(fault("\\pL"), HasSubstr("expected \\p to be followed by a name in braces"));
  EXPECT_THAT(fault("\\x{110000}"), HasSubstr("escape that names no character"));
  EXPECT_THAT(fault("\\xe2"), HasSubstr("unsupported escape of a single byte"));
  EXPECT_THAT(fault("(?~abc)"), HasSubstr("unsupported absence operator"));
  EXPECT_THAT(fault("\\y"), HasSubstr("unsupported escape \\y"));
  EXPECT_THAT(fault("*a"), HasSubstr("quantifier does not follow a repeatable item"));
  EXPECT_THAT(fault("[a&&]"), HasSubstr("empty side of &&"));
  EXPECT_THAT(fault(std::string(1000, '[')), HasSubstr("classes nested too deeply"));
  EXPECT_THAT(fault(std::string(1000, '(')), HasSubstr("unclosed group"));
  EXPECT_THAT(fault(std::string(1000, '(') + std::string(1000, ')')), HasSubstr("parentheses are too deeply nested"));
}

} // namespace
} // namespace hone::text
