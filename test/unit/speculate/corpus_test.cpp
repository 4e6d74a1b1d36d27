// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Corpora beside a search of all of their texts, and corpora whose bytes somebody has changed.

#include "speculate/corpus.h"
#include "speculate/corpus_builder.h"
#include "speculate/suffix_array.h"
#include "texts.h"

#include <cmath>
#include <filesystem>
#include <gmock/gmock.h>
#include <numeric>

namespace hone::test {
namespace {

using speculate::Corpus;
using speculate::CorpusBuilder;
using speculate::CorpusDrafter;
using speculate::CorpusHeader;
using speculate::CorpusMatch;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Text = std::vector<int32_t>;
using Texts = std::vector<Text>;

constexpr uint64_t kTokenizer = 0x1234'0000'5678;

class CorpusFile : public testing::Test {
protected:
  void SetUp() override { std::filesystem::create_directory(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::shared_ptr<const Corpus> build(const Texts &texts) {
    CorpusBuilder builder;
    for (const Text &text : texts)
      EXPECT_TRUE(builder.add(text).ok());
    EXPECT_EQ(std::move(builder).write(path, kTokenizer), absl::OkStatus());
    return *Corpus::open(path);
  }

  /// The message of a corpus of these bytes, or "OK".
  std::string open(const std::string &bytes) {
    EXPECT_TRUE(io::writeFile(path, bytes).ok());
    auto corpus = Corpus::open(path);
    return corpus.ok() ? "OK" : std::string(corpus.status().message());
  }

  /// A header with another value in it, and the checksum that belongs to it.
  template <typename Value> std::string changed(std::string bytes, Value CorpusHeader::*field, Value value) {
    CorpusHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.*field = value;
    header.headerCrc = crcOfHeader(header);
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }

  std::string folder = testing::TempDir() + "corpus-" + std::to_string(getpid());
  std::string path = folder + "/texts.corpus";
};

/// How much of the end of the first `size` tokens of a text stands before each place of the others, at most.
int64_t searchLongest(const Texts &texts, const std::vector<int64_t> &text, size_t size) {
  int64_t longest = 0;
  for (const Text &other : texts)
    for (size_t end = 1; end <= other.size(); ++end) {
      size_t length = 0;
      while (length < end && length < size && other[end - 1 - length] == text[size - 1 - length])
        ++length;
      longest = std::max(longest, static_cast<int64_t>(length));
    }
  return longest;
}

/// The tokens before a position of the texts with one before each, at least as many as asked for, from the end.
bool endsWith(const Texts &texts, uint64_t position, const std::vector<int64_t> &text, size_t size, int64_t length) {
  std::vector<int64_t> all;
  for (const Text &other : texts) {
    all.push_back(-1);
    all.insert(all.end(), other.begin(), other.end());
  }
  return position <= all.size() &&
         std::equal(text.begin() + static_cast<ptrdiff_t>(size) - length, text.begin() + static_cast<ptrdiff_t>(size),
                    all.begin() + static_cast<ptrdiff_t>(position) - length);
}

void expectMatches(const Corpus &corpus, const Texts &texts, const std::vector<int64_t> &text) {
  CorpusMatch match(corpus);
  for (size_t size = 1; size <= text.size(); ++size) {
    match.append(text[size - 1]);
    ASSERT_EQ(match.length(), searchLongest(texts, text, size)) << "after " << size << " tokens";
    if (match.length() > 0)
      ASSERT_TRUE(endsWith(texts, match.end(), text, size, match.length())) << "after " << size << " tokens";
  }
}

std::vector<int64_t> wide(const Text &text) { return {text.begin(), text.end()}; }

TEST(SuffixArray, OrdersSuffixesAsASortDoes) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 3000; ++trial) {
    auto text = randomText<int32_t>(random, random() % 50, 1 + trial % 5);
    std::vector<int32_t> expected(text.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::ranges::sort(expected, [&](int32_t a, int32_t b) {
      return std::lexicographical_compare(text.begin() + a, text.end(), text.begin() + b, text.end());
    });
    ASSERT_EQ(speculate::sortSuffixes(text, 5), expected) << testing::PrintToString(text);
  }
}

TEST_F(CorpusFile, FindsWhatASearchFindsInRandomTexts) {
  std::mt19937 random(1);
  for (int64_t alphabet : {1, 2, 3, 50000})
    for (int trial = 0; trial < 25; ++trial) {
      Texts texts(1 + random() % 4);
      for (Text &text : texts)
        text = randomText<int32_t>(random, 1 + random() % 60, alphabet);
      auto corpus = build(texts);
      expectMatches(*corpus, texts, randomText<int64_t>(random, 80, std::min<int64_t>(alphabet + 1, 60000)));
      // What has parts of the texts in it.
      std::vector<int64_t> mixed;
      for (int part = 0; part < 6; ++part) {
        const Text &from = texts[random() % texts.size()];
        size_t begin = random() % from.size(), count = 1 + random() % (from.size() - begin);
        mixed.insert(mixed.end(), from.begin() + static_cast<ptrdiff_t>(begin),
                     from.begin() + static_cast<ptrdiff_t>(begin + count));
      }
      expectMatches(*corpus, texts, mixed);
    }
}

TEST_F(CorpusFile, FindsItInTextsThatRepeatThemselves) {
  // Longer than the lengths that have a byte each.
  Texts texts = {fibonacciWord<int32_t>(700), Text(600, 0), periodicText<int32_t>(500, 7), Text(400, 0), {3}};
  auto corpus = build(texts);
  expectMatches(*corpus, texts, wide(fibonacciWord<int32_t>(800)));
  expectMatches(*corpus, texts, std::vector<int64_t>(700, 0));
  expectMatches(*corpus, texts, wide(periodicText<int32_t>(600, 7)));
}

TEST_F(CorpusFile, TakesTokensBeyondSixteenBits) {
  Texts texts = {{70000, 5, 70000, 6}, {5, 70001}};
  auto corpus = build(texts);
  EXPECT_EQ(corpus->vocabulary(), 70002);
  expectMatches(*corpus, texts, {5, 70000, 6, 70001, 70000, 5, 70001, 80000, 5});
}

TEST_F(CorpusFile, StepsGrowWithTheLogarithm) {
  std::mt19937 random(5);
  for (size_t size : {10'000, 100'000, 1'000'000})
    for (const Text &text : {randomText<int32_t>(random, size, 2), Text(size, 0), fibonacciWord<int32_t>(size)}) {
      auto corpus = build({text});
      CorpusMatch match(*corpus);
      for (int32_t token : text)
        match.append(token);
      EXPECT_EQ(match.length(), static_cast<int64_t>(size));
      EXPECT_LE(static_cast<double>(match.countSteps()) / static_cast<double>(size), std::log2(size) + 1);
    }
}

std::vector<int64_t> draftAfter(const std::shared_ptr<const Corpus> &corpus, const std::vector<int64_t> &text,
                                int64_t most) {
  CorpusDrafter drafter(corpus);
  drafter.append(text);
  return drafter.draft(most).tokens;
}

TEST_F(CorpusFile, DraftsEndWhereTheTextDoes) {
  auto corpus = build({{1, 2, 3, 4}, {5, 6, 7}});
  EXPECT_THAT(draftAfter(corpus, {9, 2, 3}, 8), ElementsAre(4));
  EXPECT_THAT(draftAfter(corpus, {5}, 1), ElementsAre(6));
  EXPECT_THAT(draftAfter(corpus, {3, 4, 5}, 8), ElementsAre(6, 7))
      << "the match is 5, and no text goes on from another";
  EXPECT_THAT(draftAfter(corpus, {4}, 8), IsEmpty());
  EXPECT_THAT(draftAfter(corpus, {}, 8), IsEmpty());
  EXPECT_THAT(draftAfter(corpus, {2, -1}, 8), IsEmpty());
  CorpusDrafter drafter(corpus);
  drafter.append(std::vector<int64_t>{1});
  drafter.beginText();
  EXPECT_THAT(drafter.draft(8).tokens, IsEmpty());
}

TEST_F(CorpusFile, DraftsWhatMostOccurrencesGoOnWith) {
  auto corpus = build({{1, 2, 5, 6}, {1, 2, 7, 8}, {3, 2, 7, 8}, {4, 2, 7, 9}});
  EXPECT_THAT(draftAfter(corpus, {2}, 8), ElementsAre(7, 8));
  EXPECT_THAT(draftAfter(corpus, {4, 2}, 8), ElementsAre(7, 9)) << "the longest match alone counts";
  // More than are asked, and the last of a text, which nothing follows.
  Texts texts(100, Text{0, 1, 2});
  texts.resize(150, Text{0});
  corpus = build(texts);
  EXPECT_THAT(draftAfter(corpus, {1}, 8), ElementsAre(2));
}

TEST_F(CorpusFile, TheSameTextsGiveTheSameBytes) {
  Texts texts = {{1, 2, 3, 1, 2}, {}, {2, 2}};
  auto corpus = build(texts);
  EXPECT_EQ(corpus->countTexts(), 2u);
  EXPECT_EQ(corpus->countTokens(), 7u);
  EXPECT_EQ(corpus->tokenizer(), kTokenizer);
  std::string bytes = *io::readFile(path);
  EXPECT_EQ(bytes.size(), corpus->countBytes());
  EXPECT_TRUE(build(texts)->verify().ok());
  EXPECT_EQ(*io::readFile(path), bytes);
}

TEST_F(CorpusFile, WhatCannotBeACorpusIsRefused) {
  CorpusBuilder builder;
  EXPECT_EQ(builder.add(Text{1, -2}).message(), "expected tokens from 0 to 2147483645, but got -2");
  EXPECT_EQ(builder.add(Text{INT32_MAX}).message(), "expected tokens from 0 to 2147483645, but got 2147483647");
  EXPECT_THAT(std::move(builder).write(path, 0).message(), HasSubstr("expected at least one text with tokens"));
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(io::writeFile(path, "thesis").ok());
  CorpusBuilder other;
  ASSERT_TRUE(other.add(Text{1}).ok());
  EXPECT_THAT(std::move(other).write(path, 0).message(), HasSubstr("it exists and is not a corpus"));
  EXPECT_EQ(*io::readFile(path), "thesis");
}

TEST_F(CorpusFile, ADamagedHeaderIsNamed) {
  build({{1, 2, 3}, {2, 3}});
  std::string bytes = *io::readFile(path);
  EXPECT_EQ(open(bytes), "OK");
  EXPECT_THAT(open(""), HasSubstr("not a corpus of Hone"));
  EXPECT_THAT(open("HONECORP"), HasSubstr("not a corpus of Hone"));
  EXPECT_THAT(open(changed(bytes, &CorpusHeader::version, 2u)),
              HasSubstr("expected a corpus of version 1, but it is of version 2"));
  EXPECT_THAT(open(changed(bytes, &CorpusHeader::tokenBytes, 4u)),
              HasSubstr("expected tokens of 2 bytes for a vocabulary of 4, but got 4"));
  EXPECT_THAT(open(changed(bytes, &CorpusHeader::size, UINT64_MAX)), HasSubstr("expected the number of tokens to be"));
  EXPECT_THAT(open(changed(bytes, &CorpusHeader::vocabulary, uint64_t{5})), HasSubstr("expected"));
  EXPECT_THAT(open(changed(bytes, &CorpusHeader::texts, uint64_t{100})), HasSubstr("expected the number of texts"));
  EXPECT_THAT(open(changed(bytes, &CorpusHeader::longLengths, uint64_t{7})),
              HasSubstr("bytes, but the file has " + std::to_string(bytes.size())));
  EXPECT_THAT(open(bytes.substr(0, bytes.size() - 1)),
              HasSubstr("expected a corpus of " + std::to_string(bytes.size()) + " bytes"));
  std::string flipped = bytes;
  flipped[offsetof(CorpusHeader, texts)] ^= 1;
  EXPECT_THAT(open(flipped), HasSubstr("expected the header's CRC-32 to be"));
  std::string bucket = bytes;
  bucket[speculate::CorpusLayout(*reinterpret_cast<const CorpusHeader *>(bytes.data())).buckets + 5] ^= 1;
  EXPECT_THAT(open(bucket), HasSubstr("expected bucket 1 to begin from 0 to 7, but got"));
}

TEST_F(CorpusFile, DamagedBytesGiveOtherDraftsOfTheSameVocabulary) {
  Texts texts = {fibonacciWord<int32_t>(300), Text(400, 2)};
  build(texts);
  const std::string bytes = *io::readFile(path);
  std::mt19937 random(9);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string damaged = bytes;
    for (size_t i = sizeof(CorpusHeader) + random() % 64; i < damaged.size(); i += 1 + random() % 300)
      damaged[i] = static_cast<char>(trial % 3 ? random() : 255);
    if (open(damaged) != "OK")
      continue;
    auto corpus = *Corpus::open(path);
    EXPECT_FALSE(corpus->verify().ok());
    CorpusDrafter drafter(corpus);
    for (int64_t token : randomText<int64_t>(random, 60, 4)) {
      drafter.append({&token, 1});
      for (int64_t drafted : drafter.draft(50).tokens)
        ASSERT_LT(drafted, corpus->vocabulary());
    }
  }
}

TEST_F(CorpusFile, ATreeHasAllThatFollows) {
  CorpusDrafter drafter(build({{1, 2, 3, 4}, {1, 2, 5, 6}, {1, 2, 3, 7}, {1, 2}}));
  drafter.append(std::vector<int64_t>{1, 2});
  speculate::Draft draft = drafter.draftTree(8);
  EXPECT_EQ(draft.matched, 2);
  EXPECT_EQ(draft.tokens.front(), 3) << "of four times two";
  EXPECT_EQ(draft.shares.front(), 0.5) << "the end of a text counts as another";
  EXPECT_THAT(draft.childrenOf(0), testing::SizeIs(2));
  EXPECT_THAT(draft.childrenOf(1), testing::SizeIs(2));
  EXPECT_EQ(draft.size(), 5);
  EXPECT_EQ(drafter.draftTree(2).size(), 2);
  drafter.append(std::vector<int64_t>{9});
  EXPECT_THAT(drafter.draftTree(8).tokens, IsEmpty());
}

} // namespace
} // namespace hone::test
