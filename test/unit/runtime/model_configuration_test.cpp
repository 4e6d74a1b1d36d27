// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files beside a model say: how texts begin and end, and how a sentence encoder pools.

#include "hone/io/generation.h"
#include "hone/io/sentence_encoder.h"
#include "support.h"

namespace hone::test {
namespace {

TEST(GenerationConfigs, SayHowTextsBeginAndEnd) {
  TemporaryFolder temporary;
  std::string path = temporary.file("generation_config.json");
  auto read = [&](const std::string &json) {
    EXPECT_EQ(messageOf(io::writeFile(path, json)), "OK");
    return io::readGenerationConfig(path);
  };
  using Choices = std::vector<std::vector<int64_t>>;
  auto llama = read(R"({"bos_token_id": 1, "eos_token_id": [2, 9], "temperature": 0.6})");
  ASSERT_TRUE(llama.ok()) << messageOf(llama);
  EXPECT_THAT(llama->info.endTokens, testing::ElementsAre(2, 9));
  EXPECT_EQ(llama->info.beginToken, 1);
  EXPECT_TRUE(llama->info.startTokens.empty());
  EXPECT_TRUE(llama->ignored.empty());
  // A language of its own for each prompt, as multilingual models of Whisper have it; the older form, and the newer one.
  auto older = read(R"({"decoder_start_token_id": 3, "eos_token_id": 2, "forced_decoder_ids": [[1, null], [2, 8]],
                        "lang_to_id": {"<|de|>": 4, "<|en|>": 5}, "no_timestamps_token_id": 9, "suppress_tokens": [6, 7],
                        "begin_suppress_tokens": [2]})");
  ASSERT_TRUE(older.ok()) << messageOf(older);
  EXPECT_EQ(older->info.startTokens, (Choices{{3}, {4, 5}, {8}, {9}}));
  EXPECT_THAT(older->info.rules.never, testing::ElementsAre(6, 7));
  EXPECT_THAT(older->info.rules.notFirst, testing::ElementsAre(2));
  auto newer =
      read(R"({"decoder_start_token_id": 3, "lang_to_id": {"<|de|>": 4, "<|en|>": 5}, "no_timestamps_token_id": 9})");
  ASSERT_TRUE(newer.ok()) << messageOf(newer);
  EXPECT_EQ(newer->info.startTokens, (Choices{{3}, {4, 5}, {9}}));
  auto marian = read(R"({"decoder_start_token_id": 63, "bad_words_ids": [[63], [1, 2]], "forced_eos_token_id": 0,
                         "num_beams": 4, "forced_bos_token_id": null})");
  ASSERT_TRUE(marian.ok()) << messageOf(marian);
  EXPECT_EQ(marian->info.startTokens, (Choices{{63}}));
  EXPECT_THAT(marian->info.rules.never, testing::ElementsAre(63));
  EXPECT_EQ(marian->info.rules.last, 0);
  EXPECT_THAT(marian->ignored, testing::ElementsAre("bad_words_ids", "num_beams=4"));
  auto wrong = [&](const std::string &json) { return messageOf(read(json)).substr(path.size()); };
  EXPECT_EQ(wrong("[]"), ": expected an object");
  EXPECT_EQ(wrong("{"), ": not valid JSON");
  EXPECT_EQ(wrong(R"({"eos_token_id": "2"})"), ": expected 'eos_token_id' to be token ids");
  EXPECT_EQ(wrong(R"({"eos_token_id": [1, -2]})"), ": expected 'eos_token_id' to be token ids");
  EXPECT_EQ(wrong(R"({"bad_words_ids": 7})"), ": expected 'bad_words_ids' to be a list");
  EXPECT_EQ(wrong(R"({"decoder_start_token_id": 1, "forced_decoder_ids": [[2, 3]]})"),
            ": expected 'forced_decoder_ids' to be pairs of a place, from 1 on, and a token");
  EXPECT_EQ(wrong(R"({"decoder_start_token_id": 1, "forced_decoder_ids": [[1, null]]})"),
            ": expected 'forced_decoder_ids' to be pairs of a place, from 1 on, and a token");
}

TEST(SentenceEncoders, ListTheirModules) {
  TemporaryFolder temporary;
  std::string folder = temporary.file("model");
  std::filesystem::create_directories(folder + "/1_Pooling");
  auto write = [&](const std::string &file, const std::string &json) {
    EXPECT_EQ(messageOf(io::writeFile(folder + "/" + file, json)), "OK");
  };
  auto read = [&] { return io::readSentenceEncoder(folder); };
  EXPECT_FALSE(read()->has_value());
  write("modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
                            {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
                            {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"}])");
  EXPECT_THAT(messageOf(read()), testing::HasSubstr("1_Pooling/config.json"));
  write("1_Pooling/config.json", R"({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true})");
  auto encoder = read();
  ASSERT_TRUE(encoder.ok()) << messageOf(encoder);
  EXPECT_EQ((*encoder)->pooling, "mean");
  EXPECT_TRUE((*encoder)->normalizes);
  EXPECT_EQ((*encoder)->mostTokens, std::nullopt);
  write("sentence_bert_config.json", R"({"max_seq_length": 256})");
  EXPECT_EQ((*read())->mostTokens, 256);
  write("sentence_bert_config.json", R"({"max_seq_length": 0})");
  EXPECT_THAT(messageOf(read()), testing::HasSubstr("expected 'max_seq_length' to be a number of tokens"));
  write("1_Pooling/config.json", R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})");
  EXPECT_THAT(messageOf(read()), testing::HasSubstr("unsupported pooling by cls and mean at once"));
  write("1_Pooling/config.json", "{}");
  EXPECT_THAT(messageOf(read()), testing::HasSubstr("expected a kind of pooling, but none is set"));
  write("modules.json", R"([{"type": "sentence_transformers.models.Dense", "path": "1"}])");
  EXPECT_THAT(messageOf(read()), testing::HasSubstr("unsupported module 'sentence_transformers.models.Dense'"));
  write("modules.json", R"([{"type": "x.Pooling", "path": "../other"}])");
  EXPECT_THAT(messageOf(read()), testing::HasSubstr("expected the path of a module in the folder, but got '../other'"));
  write("modules.json", R"([{"type": "x.Transformer"}])");
  EXPECT_THAT(messageOf(read()), testing::HasSubstr("expected a module Pooling, but there is none"));
}

} // namespace
} // namespace hone::test
