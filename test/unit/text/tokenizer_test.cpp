// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tokenizers in small: each rule of the format in the smallest file that shows it. The differential suite compares whole
// tokenizers with the reference.

#include "support.h"

#include <thread>

namespace hone::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Bpe, MergesTheMostImportantPairFirst) {
  auto both = tokenizer(bpe({"a", "b", "c", "ab", "bc"}, {"b c", "a b"}));
  EXPECT_THAT(tokens(both, "abcab"), ElementsAre("a", "bc", "ab"));
}

TEST(Bpe, MergesAreStringsOrPairs) {
  Json document = bpe({"a", "b", " ", "a ", "ab"}, {"#version: 0.2", "a b"});
  EXPECT_THAT(tokens(tokenizer(document), "ab"), ElementsAre("ab"));
  document["model"]["merges"] = Json::array({Json::array({"a", " "}), Json::array({"a", "b"})});
  EXPECT_THAT(tokens(tokenizer(document), "a ab"), ElementsAre("a ", "ab"));
}

TEST(Bpe, LongWordsMergeLikeShortOnes) {
  auto pairs = tokenizer(bpe({"a", "aa", "aaaa", "b", "ab"}, {"a b", "a a", "aa aa"}));
  std::string shortWord, longWord;
  std::vector<std::string> expected;
  for (int i = 0; i < 3; ++i)
    shortWord += "aaaaaab";
  EXPECT_THAT(tokens(pairs, shortWord), ElementsAre("aaaa", "a", "ab", "aaaa", "a", "ab", "aaaa", "a", "ab"));
  for (int i = 0; i < 1000; ++i) {
    longWord += "aaaaaab";
    expected.insert(expected.end(), {"aaaa", "a", "ab"});
  }
  EXPECT_EQ(tokens(pairs, longWord), expected);
}

TEST(Bpe, IgnoreMergesTakesWholeWords) {
  Json document = bpe({"a", "b", "ab"}, {});
  EXPECT_THAT(tokens(tokenizer(document), "ab"), ElementsAre("a", "b"));
  document["model"]["ignore_merges"] = true;
  EXPECT_THAT(tokens(tokenizer(document), "ab"), ElementsAre("ab"));
}

TEST(Bpe, UnknownCharacters) {
  Json document = bpe({"a", "<unk>", "<0xC3>", "<0xA9>"}, {});
  EXPECT_THAT(tokens(tokenizer(document), "éaxx"), ElementsAre("a")) << "left out";
  document["model"]["unk_token"] = "<unk>";
  EXPECT_THAT(tokens(tokenizer(document), "axxéa"), ElementsAre("a", "<unk>", "<unk>", "<unk>", "a"));
  document["model"]["fuse_unk"] = true;
  EXPECT_THAT(tokens(tokenizer(document), "axxéa"), ElementsAre("a", "<unk>", "a"));
  document["model"]["byte_fallback"] = true;
  EXPECT_THAT(tokens(tokenizer(document), "aéxa"), ElementsAre("a", "<0xC3>", "<0xA9>", "<unk>", "a"));
  document["model"]["unk_token"] = "[none]";
  EXPECT_THAT(tokens(tokenizer(document), "x"),
              ElementsAre("cannot tokenize a word that needs the unknown token: '[none]' is not in the vocabulary"));
}

TEST(Bpe, AffixesMarkThePlaceInTheWord) {
  Json document = bpe({"a", "##a", "##b", "##b</w>", "a##b", "ab</w>", "ab"}, {"a ##b</w>", "a ##b"});
  document["model"]["continuing_subword_prefix"] = "##";
  document["model"]["end_of_word_suffix"] = "</w>";
  EXPECT_THAT(tokens(tokenizer(document), "ab"), ElementsAre("ab</w>"));
  EXPECT_THAT(tokens(tokenizer(document), "abb"), ElementsAre("ab", "##b</w>"));
}

TEST(WordPiece, TakesTheLongestPieces) {
  Json document = {{"model",
                    {{"type", "WordPiece"},
                     {"unk_token", "[UNK]"},
                     {"continuing_subword_prefix", "##"},
                     {"max_input_chars_per_word", 6},
                     {"vocab", {{"[UNK]", 0}, {"un", 1}, {"##é", 2}, {"##éa", 3}, {"u", 4}, {"##a", 5}}}}}};
  auto pieces = tokenizer(document);
  EXPECT_THAT(tokens(pieces, "unéaa"), ElementsAre("un", "##éa", "##a"));
  EXPECT_THAT(tokens(pieces, "unx"), ElementsAre("[UNK]"));
  EXPECT_THAT(tokens(pieces, "unaaaaa"), ElementsAre("[UNK]")) << "longer than a word may be";
}

TEST(Unigram, TakesTheMostProbablePath) {
  Json vocabulary = Json::array();
  for (auto [token, score] : std::vector<std::pair<std::string, double>>{
           {"<unk>", 0}, {"a", -2}, {"b", -2}, {"ab", -3}, {"abb", -9}, {"<0xC3>", -20}, {"<0xA9>", -20}})
    vocabulary.push_back(Json::array({token, score}));
  Json document = {{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}}}};
  EXPECT_THAT(tokens(tokenizer(document), "abb"), ElementsAre("ab", "b"));
  EXPECT_THAT(tokens(tokenizer(document), "axyéb"), ElementsAre("a", "<unk>", "b"));
  document["model"]["byte_fallback"] = true;
  EXPECT_THAT(tokens(tokenizer(document), "aéb"), ElementsAre("a", "<0xC3>", "<0xA9>", "b"));
  EXPECT_THAT(tokens(tokenizer(document), "éx"), ElementsAre("<unk>")) << "one of the bytes has no token";
  document["model"]["unk_id"] = nullptr;
  EXPECT_THAT(tokens(tokenizer(document), "x"),
              ElementsAre("cannot tokenize a character that no token covers: the model has no unk_id"));
}

TEST(ByteLevel, EveryByteHasACharacter) {
  std::vector<std::string> alphabet;
  Json document = bpe({"h", "i", "Ġ", "Ċ", "Ã", "©", "Ā", "Ġh", "Ġhi"}, {"Ġ h", "Ġh i"});
  document["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  document["decoder"] = {{"type", "ByteLevel"}};
  auto bytes = tokenizer(document);
  const std::string input("hi hi\né\0", 9);
  EXPECT_THAT(tokens(bytes, input), ElementsAre("h", "i", "Ġhi", "Ċ", "Ã", "©", "Ā"));
  EXPECT_EQ(*bytes.decode(*bytes.encode(input)), input);
}

TEST(Metaspace, PrefixSchemes) {
  Json document = bpe({"▁", "a", "▁a", "<s>"}, {"▁ a"});
  document["added_tokens"] = {addedToken("<s>")};
  document["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}};
  EXPECT_THAT(tokens(tokenizer(document), "a<s>a a"), ElementsAre("▁a", "<s>", "▁a", "▁a"));
  document["pre_tokenizer"]["prepend_scheme"] = "first";
  EXPECT_THAT(tokens(tokenizer(document), "a<s>a a"), ElementsAre("▁a", "<s>", "a", "▁a"));
  document["pre_tokenizer"]["prepend_scheme"] = "never";
  EXPECT_THAT(tokens(tokenizer(document), "a<s>a a"), ElementsAre("a", "<s>", "a", "▁a"));
  EXPECT_THAT(tokens(tokenizer(document), "  a"), ElementsAre("▁", "▁a"));
}

TEST(Normalizer, SentencePieceInItsOldForm) {
  Json document = bpe({"▁", "a", "▁a", "<s>"}, {"▁ a"});
  document["added_tokens"] = {addedToken("<s>")};
  Json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}};
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "Prepend"}, {"prepend", "▁"}}, replace}}};
  EXPECT_THAT(tokens(tokenizer(document), "a a<s>a"), ElementsAre("▁a", "▁a", "<s>", "▁a"));
  EXPECT_THAT(tokens(tokenizer(document), "<s>"), ElementsAre("<s>"));
  EXPECT_THAT(tokens(tokenizer(document), ""), IsEmpty());
}

TEST(Normalizer, UnicodeForms) {
  Json document = bpe({"é", "e", "\u0301", "ﬁ", "f", "i"}, {});
  const std::string input = "e\u0301é\ufb01";
  document["normalizer"] = {{"type", "NFC"}};
  EXPECT_THAT(tokens(tokenizer(document), input), ElementsAre("é", "é", "ﬁ"));
  document["normalizer"]["type"] = "NFKD";
  EXPECT_THAT(tokens(tokenizer(document), input), ElementsAre("e", "\u0301", "e", "\u0301", "f", "i"));
}

TEST(AddedTokens, TakeTheSpaceTheyAskFor) {
  Json document = bpe({"a", " "}, {});
  document["added_tokens"] = {addedToken("<l>", {{"lstrip", true}}), addedToken("<r>", {{"rstrip", true}}),
                              addedToken("<lr>", {{"lstrip", true}, {"rstrip", true}})};
  auto strips = tokenizer(document);
  EXPECT_THAT(tokens(strips, "a <l> a"), ElementsAre("a", "<l>", " ", "a"));
  EXPECT_THAT(tokens(strips, "a <r> a"), ElementsAre("a", " ", "<r>", "a"));
  EXPECT_THAT(tokens(strips, " <lr> \u00a0a"), ElementsAre("<lr>", "a"));
}

TEST(AddedTokens, SingleWordsStandAlone) {
  Json document = bpe({"a", "b", "é", " "}, {});
  document["added_tokens"] = {addedToken("b", {{"single_word", true}, {"id", 1}})};
  auto words = tokenizer(document);
  EXPECT_EQ(*words.encode("b ab bé b"), (std::vector<int32_t>{1, 3, 0, 1, 3, 1, 2, 3, 1}));
}

TEST(AddedTokens, TheLongestWins) {
  Json document = bpe({"x"}, {});
  document["added_tokens"] = {addedToken("<a"), addedToken("<a><b>"), addedToken("<a>")};
  EXPECT_THAT(tokens(tokenizer(document), "<a><b><a>x<a"), ElementsAre("<a><b>", "<a>", "x", "<a"));
}

TEST(AddedTokens, LookIntoTheTextBehindAMatch) {
  Json document = bpe({"a", "b", "c", "d"}, {});
  document["added_tokens"] = Json::array({addedToken("bc"), addedToken("abcd"), addedToken("b"), addedToken("cda")});
  auto added = tokenizer(document);
  EXPECT_THAT(tokens(added, "abcd"), ElementsAre("abcd"));
  EXPECT_THAT(tokens(added, "abcabcd"), ElementsAre("a", "bc", "abcd"));
  EXPECT_THAT(tokens(added, "acdabcda"), ElementsAre("a", "cda", "bc", "d", "a"));
  EXPECT_THAT(tokens(added, "bb"), ElementsAre("b", "b"));
}

/// Each of these took hours where the time grew with the square of the text.
TEST(AddedTokens, TakeTimeThatGrowsWithTheText) {
  constexpr size_t length = 1 << 20;
  for (const char *side : {"lstrip", "rstrip"}) {
    Json document = bpe({"a"}, {});
    document["added_tokens"] = Json::array({addedToken(" ", {{side, true}})});
    EXPECT_EQ(tokens(tokenizer(document), std::string(length, ' ')).size(), length) << side;
  }
  Json document = bpe({"a", "b"}, {});
  document["added_tokens"] = Json::array({addedToken(std::string(length / 2, 'a') + "b"), addedToken("aa")});
  EXPECT_EQ(tokens(tokenizer(document), std::string(length, 'a')).size(), length / 2);
}

TEST(AddedTokens, AreNumberedAfterTheVocabulary) {
  Json document = bpe({"x", "y"}, {});
  document["added_tokens"] = {addedToken("<a>", {{"id", 77}}), addedToken("y", {{"id", 1}}), addedToken("<b>")};
  EXPECT_EQ(*tokenizer(document).encode("<b>y<a>"), (std::vector<int32_t>{3, 1, 2}));
}

TEST(AddedTokens, NormalizedOnesMatchNormalizedText) {
  Json document = bpe({"a", "b", "A"}, {});
  document["normalizer"] = {{"type", "Lowercase"}};
  document["added_tokens"] = {addedToken("AB", {{"normalized", true}}), addedToken("BA")};
  EXPECT_EQ(*tokenizer(document).encode("aBBAba"), (std::vector<int32_t>{3, 4, 1, 0}));
}

TEST(PostProcessor, SurroundsTheText) {
  Json document = bpe({"a", "<s>", "</s>"}, {});
  Json specials = {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}},
                   {"</s>", {{"id", "</s>"}, {"ids", {2, 2}}, {"tokens", {"</s>", "</s>"}}}}};
  Json single = {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
                 {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
                 {{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}}};
  document["post_processor"] = {{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", specials}};
  auto marks = tokenizer(document);
  EXPECT_EQ(*marks.encode("a"), (std::vector<int32_t>{1, 0, 2, 2}));
  EXPECT_EQ(*marks.encode(""), (std::vector<int32_t>{1, 2, 2}));
  EXPECT_EQ(*marks.encode("a", false), (std::vector<int32_t>{0}));
  document["post_processor"] = {{"type", "RobertaProcessing"}, {"cls", {"<s>", 1}}, {"sep", {"</s>", 2}}};
  EXPECT_EQ(*tokenizer(document).encode("a"), (std::vector<int32_t>{1, 0, 2}));
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  EXPECT_THAT(tokens(tokenizer(bpe({"a"}, {})), "aa\xff"),
              ElementsAre("cannot tokenize text that is not valid UTF-8, from byte 2 of 3"));
}

TEST(Tokenizer, ServesSeveralThreads) {
  auto shared = tokenizer(bpe({"a", "b", "ab", "abab"}, {"a b", "ab ab"}));
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 1; round < 200; ++round) {
        std::string input;
        for (int k = 0; k < round % 17 + i; ++k)
          input += "abab";
        wrong[i] += shared.encode(input)->size() != input.size() / 4;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

} // namespace
} // namespace hone::test
