// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streamed text is decoded text: nothing is lost, nothing comes too early, no character comes in halves.

#include "support.h"
#include "text/unicode.h"

#include <random>

namespace hone::test {
namespace {

using testing::ElementsAre;

/// What each id adds, and what the end adds.
std::vector<std::string> stream(const text::Tokenizer &tokenizer, const std::vector<int32_t> &ids, bool skip = true) {
  text::Detokenizer detokenizer(tokenizer, skip);
  std::vector<std::string> parts;
  for (int32_t id : ids)
    parts.push_back(*detokenizer.push(id));
  parts.push_back(*detokenizer.finish());
  return parts;
}

/// Random sequences: what is streamed is valid at every step and equals what is decoded.
void expectStreamIsDecode(const text::Tokenizer &tokenizer, int vocabulary) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<int32_t> ids(random() % 30);
    for (int32_t &id : ids)
      id = static_cast<int32_t>(random() % (vocabulary + 2));
    for (bool skip : {false, true}) {
      std::string whole;
      for (const std::string &part : stream(tokenizer, ids, skip)) {
        ASSERT_EQ(text::findInvalidUtf8(part), std::string::npos);
        whole += part;
      }
      ASSERT_EQ(whole, *tokenizer.decode(ids, skip)) << testing::PrintToString(ids);
    }
  }
}

Json byteLevel() {
  Json document = bpe({"a", "Ġ", "Ã", "©", "ð", "Ł", "ĺ", "Ģ", "â", "漢", "<s>"}, {});
  document["decoder"] = {{"type", "ByteLevel"}};
  document["added_tokens"] = {addedToken("<s>", {{"special", true}})};
  return document;
}

Json sentencePiece() {
  Json document =
      bpe({"▁a", "a", "▁", "<0xC3>", "<0xA9>", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "<0x20>", "<s>"}, {});
  Json replace = {{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}};
  Json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  document["decoder"] = {{"type", "Sequence"},
                         {"decoders", {replace, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}, strip}}};
  document["added_tokens"] = {addedToken("<s>", {{"special", true}})};
  return document;
}

TEST(Detokenizer, ByteLevelCharactersComeWhole) {
  auto bytes = tokenizer(byteLevel());
  EXPECT_THAT(stream(bytes, {0, 1, 2, 3}), ElementsAre("a", " ", "", "é", ""));
  EXPECT_THAT(stream(bytes, {4, 5, 6, 7}), ElementsAre("", "", "", "😀", ""));
  EXPECT_THAT(stream(bytes, {4, 5, 0}), ElementsAre("", "", "�a", "")) << "three quarters of a character and a letter";
  EXPECT_THAT(stream(bytes, {8}), ElementsAre("", "�"));
  EXPECT_THAT(stream(bytes, {9}), ElementsAre("漢", "")) << "no character of the alphabet: stands for itself";
  expectStreamIsDecode(bytes, 11);
}

TEST(Detokenizer, SpecialTokensAreSkippedOnRequest) {
  auto bytes = tokenizer(byteLevel());
  EXPECT_THAT(stream(bytes, {10, 0}, true), ElementsAre("", "a", ""));
  EXPECT_THAT(stream(bytes, {10, 0}, false), ElementsAre("<s>", "a", ""));
  EXPECT_THAT(stream(bytes, {-1, 4711, 0}, false), ElementsAre("", "", "a", "")) << "ids without tokens";
}

TEST(Detokenizer, ByteFallbackHoldsItsRun) {
  auto pieces = tokenizer(sentencePiece());
  EXPECT_THAT(stream(pieces, {0, 0, 3, 4, 1}), ElementsAre("a", " a", "", "", "éa", ""));
  EXPECT_THAT(stream(pieces, {1, 3, 4, 3, 1}), ElementsAre("a", "", "", "", "���a", "")) << "the run is not valid";
  EXPECT_THAT(stream(pieces, {5, 6, 7, 8}), ElementsAre("", "", "", "", "😀"));
  EXPECT_THAT(stream(pieces, {9, 0}), ElementsAre("", " a", "")) << "one space is stripped from the beginning";
  expectStreamIsDecode(pieces, 11);
}

TEST(Detokenizer, StripHoldsBackTheEnd) {
  Json document = bpe({"x", "_", "a__", "__"}, {});
  document["decoder"] = {
      {"type", "Sequence"},
      {"decoders", {{{"type", "Fuse"}}, {{"type", "Strip"}, {"content", "_"}, {"start", 1}, {"stop", 2}}}}};
  auto strips = tokenizer(document);
  EXPECT_THAT(stream(strips, {3, 0, 2, 1, 0, 3, 1}), ElementsAre("", "_x", "a", "_", "__x", "", "_", ""));
  expectStreamIsDecode(strips, 4);
}

TEST(Detokenizer, WordPieceJoinsAndCleansUp) {
  Json document = bpe({"do", "##ing", "n't", "it", ".", "'s"}, {});
  document["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  auto words = tokenizer(document);
  EXPECT_EQ(*words.decode({0, 1, 3, 4}), "doing it.");
  EXPECT_EQ(*words.decode({0, 2, 3, 5, 4}), "don't it's.");
  expectStreamIsDecode(words, 6);
}

TEST(Detokenizer, MetaspaceAndSuffixes) {
  Json document = bpe({"▁a", "b</w>", "c"}, {});
  document["decoder"] = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}};
  EXPECT_EQ(*tokenizer(document).decode({0, 0}), "a a");
  document["decoder"]["prepend_scheme"] = "never";
  EXPECT_EQ(*tokenizer(document).decode({0, 0}), " a a");
  document["decoder"] = {{"type", "BPEDecoder"}, {"suffix", "</w>"}};
  auto suffixes = tokenizer(document);
  EXPECT_EQ(*suffixes.decode({1, 2, 1}), "b cb");
  EXPECT_EQ(*suffixes.decode({}), "");
  expectStreamIsDecode(suffixes, 3);
}

TEST(Detokenizer, WithoutADecoderTokensAreJoined) {
  auto plain = tokenizer(bpe({"a", "b"}, {}));
  EXPECT_EQ(*plain.decode({0, 1, 0}), "a b a");
  expectStreamIsDecode(plain, 2);
}

} // namespace
} // namespace hone::test
