// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tokenizers of SentencePiece models, written here field by field.

#include "hone/text/marian.h"
#include "hone/text/tokenizer.h"

#include <bit>
#include <gmock/gmock.h>

namespace hone::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A field of protocol buffers with bytes, fewer than 128.
std::string message(int number, const std::string &bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

std::string piece(const std::string &text, float score, char type = 1) {
  auto bits = std::bit_cast<uint32_t>(score);
  std::string fixed = {static_cast<char>(2 << 3 | 5)};
  for (int i = 0; i < 4; ++i)
    fixed += static_cast<char>(bits >> (8 * i));
  return message(1, message(1, text) + fixed + std::string{static_cast<char>(3 << 3), type});
}

const std::string kPieces = piece("<unk>", 0, 2) + piece("</s>", 0, 3) + piece("▁a", -1) + piece("▁", -3) +
                            piece("a", -2) + piece("b", -2.5f) + piece("ab", -4);
constexpr const char *kVocabulary =
    R"({"</s>": 0, "<unk>": 1, "▁a": 2, "▁": 3, "a": 4, "b": 5, "ab": 6, "ß": 7, "aß": 8, ">>fr<<": 9, "<pad>": 10})";

std::vector<int32_t> encode(const std::string &text) {
  auto json = makeMarianTokenizer(kPieces, kVocabulary, "source.spm");
  EXPECT_TRUE(json.ok()) << json.status().message();
  auto tokenizer = Tokenizer::fromJson(*json);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return *tokenizer->encode(text);
}

TEST(Marian, CutsTextsAsItsPiecesDo) {
  EXPECT_THAT(encode("ab"), ElementsAre(2, 5, 0)); // ▁a b scores -3.5, ▁ ab -7
  EXPECT_THAT(encode("  a   ab "), ElementsAre(2, 2, 5, 0));
  EXPECT_THAT(encode("ba"), ElementsAre(3, 5, 4, 0));
  EXPECT_THAT(encode(""), ElementsAre(0));
}

TEST(Marian, TakesTheTargetsPiecesForUnknownCharactersAlone) {
  EXPECT_THAT(encode("baß"), ElementsAre(3, 5, 4, 7, 0));
  EXPECT_THAT(encode("bx"), ElementsAre(3, 5, 1, 0));
}

TEST(Marian, KnowsTheLanguageThatATextBeginsWith) { EXPECT_THAT(encode(">>fr<< a"), ElementsAre(9, 2, 0)); }

TEST(Marian, RefusesWhatIsDamaged) {
  auto fault = [](const std::string &pieces, const std::string &vocabulary) {
    auto json = makeMarianTokenizer(pieces, vocabulary, "source.spm");
    return json.ok() ? "" : std::string(json.status().message());
  };
  EXPECT_THAT(fault(kPieces.substr(0, kPieces.size() - 3), kVocabulary),
              HasSubstr("source.spm: expected a SentencePiece model"));
  EXPECT_THAT(fault("", kVocabulary), HasSubstr("expected a SentencePiece model, but it is damaged"));
  EXPECT_THAT(fault(piece("a", std::numeric_limits<float>::quiet_NaN()), kVocabulary), HasSubstr("a piece is damaged"));
  EXPECT_THAT(fault(piece("\xff", 0), kVocabulary), HasSubstr("a piece is damaged"));
  EXPECT_EQ(fault(kPieces + message(2, std::string{3 << 3, 2}), kVocabulary),
            "source.spm: unsupported SentencePiece model of type 2; supported: unigrams");
  EXPECT_EQ(fault(kPieces, "[]"), "source.spm: vocab.json: expected an object");
  EXPECT_EQ(fault(kPieces, R"({"</s>": 0, "<unk>": 2})"),
            "source.spm: vocab.json: expected each of 2 pieces to have an id of its own from 0 on");
  EXPECT_EQ(fault(kPieces, R"({"</s>": 0, "a": 0})"),
            "source.spm: vocab.json: expected each of 2 pieces to have an id of its own from 0 on");
  EXPECT_EQ(fault(kPieces, R"({"</s>": 0})"), "source.spm: vocab.json: expected the pieces </s> and <unk>");
}

} // namespace
} // namespace hone::text
