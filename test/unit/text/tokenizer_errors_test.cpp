// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files that are no tokenizers: each fault is named, none is fatal.

#include "support.h"

namespace hone::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

Json regexSplit(const std::string &pattern, const std::string &behavior = "Isolated") {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", behavior}, {"invert", false}};
}

/// A file that uses something of everything.
Json everything() {
  Json document = bpe({"a", "b", "ab", "<unk>", "<0x41>", "Ġ"}, {"a b"});
  document["model"].update({{"unk_token", "<unk>"}, {"fuse_unk", true}, {"byte_fallback", true}, {"dropout", nullptr}});
  document["added_tokens"] = {addedToken("<s>", {{"special", true}}), addedToken("<n>", {{"normalized", true}})};
  document["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers",
       {{{"type", "NFC"}},
        {{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}},
        {{"type", "Prepend"}, {"prepend", "x"}},
        {{"type", "BertNormalizer"}, {"clean_text", true}, {"handle_chinese_chars", true}, {"lowercase", true}},
        {{"type", "Replace"}, {"pattern", {{"Regex", " +"}}}, {"content", " "}}}}};
  document["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {regexSplit("\\p{N}{1,3}"),
        {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}, {"split", true}},
        {{"type", "Digits"}, {"individual_digits", true}},
        {{"type", "FixedLength"}, {"length", 3}},
        {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", true}}}}};
  Json specials = {{"<s>", {{"id", "<s>"}, {"ids", {6}}, {"tokens", {"<s>"}}}}};
  Json single = {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}};
  document["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", specials}}, {{"type", "ByteLevel"}}}}};
  Json replace = {{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}};
  Json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 1}};
  document["decoder"] = {{"type", "Sequence"},
                         {"decoders",
                          {replace,
                           {{"type", "ByteFallback"}},
                           {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}},
                           {{"type", "BPEDecoder"}, {"suffix", "</w>"}},
                           {{"type", "ByteLevel"}},
                           {{"type", "Fuse"}},
                           strip}}};
  return document;
}

/// Loads a document and, where that succeeds, uses it.
void use(const std::string &document) {
  auto tokenizer = text::Tokenizer::fromJson(document);
  if (!tokenizer.ok()) {
    EXPECT_THAT(std::string(tokenizer.status().message()), Not(HasSubstr("\n")));
    return;
  }
  for (const char *input : {"", "ab 12 <s>é <n>漢", "   a  "})
    if (auto ids = tokenizer->encode(input); ids.ok())
      (void)tokenizer->decode(*ids);
}

TEST(TokenizerErrors, TheDocument) {
  EXPECT_EQ(refusalOfText(""), "not valid JSON: the text ends within a value, after 0 bytes");
  EXPECT_EQ(refusalOfText("{\"a\": tru"), "not valid JSON: the text ends within a value, after 9 bytes");
  EXPECT_EQ(refusalOfText("{\"a\": ,}"), "not valid JSON from byte 7 of 8");
  EXPECT_EQ(refusalOfText("{\"a\": \"\\ud800\"}"), "not valid JSON from byte 14 of 15");
  EXPECT_EQ(refusalOfText("[]"), "expected the document to be an object, but got an array");
  EXPECT_EQ(refusalOfText("{}"), "expected model to be an object, but got nothing");
  EXPECT_EQ(refusalOfText("{\"version\": \"2.0\"}"), "unsupported version 2.0; supported: 1.0");
}

TEST(TokenizerErrors, TheModel) {
  Json document = bpe({"a", "b", "ab"}, {"a b"});
  auto changed = [&](const char *key, const Json &value) {
    Json copy = document;
    copy["model"][key] = value;
    return refusal(copy);
  };
  EXPECT_EQ(changed("type", "Magic"),
            "unsupported tokenizer model Magic; supported: BPE, Unigram, WordLevel, WordPiece");
  EXPECT_EQ(changed("type", "Unigram"), "expected model.vocab to be an array, but got an object");
  EXPECT_EQ(changed("vocab", 3), "expected model.vocab to be an object, but got a number");
  EXPECT_EQ(changed("vocab", {{"a", -1}}),
            "expected the id of 'a' in model.vocab to be a whole number from 0 to 2147483647, but got -1");
  EXPECT_EQ(changed("vocab", {{"a", 4294967296}}),
            "expected the id of 'a' in model.vocab to be a whole number from 0 to 2147483647, but got 4294967296");
  EXPECT_EQ(changed("merges", {"a b", "a x"}), "model.merges[1]: merges 'a' and 'x', but 'x' is not in the vocabulary");
  EXPECT_EQ(changed("merges", {"b a"}), "model.merges[0]: merges 'b' and 'a', but 'ba' is not in the vocabulary");
  EXPECT_EQ(changed("merges", {"ab"}), "expected model.merges[0] to be two tokens with a space between, but got 'ab'");
  EXPECT_EQ(changed("merges", {{"a", "b", "c"}}),
            "expected model.merges[0] to be two tokens, but got [\"a\",\"b\",\"c\"]");
  EXPECT_EQ(changed("merges", nullptr), "expected model.merges to be an array, but got nothing");
  EXPECT_EQ(changed("dropout", 0.1), "unsupported model.dropout 0.1; supported: 0 (tokenization is deterministic)");
  EXPECT_EQ(changed("dropout", 0.0), "");
  EXPECT_EQ(changed("fuse_unk", "yes"), "expected model.fuse_unk to be a boolean, but got a string");
}

TEST(TokenizerErrors, Unigram) {
  auto with = [](const Json &model) { return refusal(Json{{"model", model}}); };
  Json entries = Json::array({Json::array({"a", -1.5})});
  EXPECT_EQ(with({{"type", "Unigram"}, {"vocab", entries}, {"unk_id", 1}}),
            "expected model.unk_id to be from 0 to 0, but got 1");
  entries.push_back("b");
  EXPECT_EQ(with({{"type", "Unigram"}, {"vocab", entries}}),
            "expected model.vocab[1] to be a token and its score, but got \"b\"");
}

TEST(TokenizerErrors, CompiledCharacterTables) {
  Json document = bpe({"a", "b"}, {});
  auto with = [&](const std::string &table) {
    document["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", table}};
    return refusal(document);
  };
  EXPECT_EQ(with("a?"), "expected normalizer.precompiled_charsmap to be base64");
  EXPECT_EQ(with(""),
            "expected normalizer.precompiled_charsmap to begin with the size of its table, but got 0 in 0 bytes");
  EXPECT_EQ(with("CAAAAAAAAAA="),
            "expected normalizer.precompiled_charsmap to begin with the size of its table, but got 8 "
            "in 8 bytes");
  EXPECT_EQ(with("BAAAAAAAAAD/"), "expected the replacements of normalizer.precompiled_charsmap to be UTF-8");
  EXPECT_EQ(with("BAAAAAAAAABh"), "");
  EXPECT_THAT(tokens(tokenizer(document), "ab"), testing::ElementsAre("a", "b")) << "a table without entries";
}

TEST(TokenizerErrors, ThePreTokenizer) {
  Json document = bpe({"a"}, {});
  auto with = [&](const Json &value) {
    document["pre_tokenizer"] = value;
    return refusal(document);
  };
  EXPECT_THAT(with({{"type", "Magic"}}),
              HasSubstr("unsupported pre_tokenizer Magic; supported: BertPreTokenizer, ByteLevel"));
  EXPECT_THAT(with(regexSplit("(")),
              HasSubstr("pre_tokenizer.pattern: cannot read regular expression '(': unclosed group"));
  EXPECT_EQ(with(regexSplit("a", "Sideways")),
            "unsupported pre_tokenizer.behavior Sideways; supported: Removed, Isolated, MergedWithPrevious, "
            "MergedWithNext, Contiguous");
  EXPECT_EQ(with({{"type", "Metaspace"}, {"replacement", "__"}}),
            "expected pre_tokenizer.replacement to be one character, but got '__'");
  EXPECT_EQ(with({{"type", "FixedLength"}, {"length", 0}}),
            "expected pre_tokenizer.length to be from 1 to 2147483647, but got 0");
  Json nested = {{"type", "ByteLevel"}};
  for (int i = 0; i < 100; ++i)
    nested = {{"type", "Sequence"}, {"pretokenizers", {nested}}};
  EXPECT_THAT(with(nested), EndsWith("it is nested more than 32 deep"));
}

TEST(TokenizerErrors, ThePostProcessor) {
  Json document = everything();
  Json &part = document["post_processor"]["processors"][0];
  Json original = part;
  part["special_tokens"].clear();
  EXPECT_EQ(refusal(document),
            "expected post_processor.processors[0].special_tokens.<s> to be an object, but got nothing");
  part = original;
  part["single"][1]["Sequence"]["id"] = "B";
  EXPECT_EQ(refusal(document), "unsupported post_processor.processors[0].single[1].Sequence.id B; supported: A (a "
                               "template for one text has no second)");
  part = original;
  part["single"].push_back(part["single"][1]);
  EXPECT_EQ(refusal(document),
            "expected post_processor.processors[0].single to hold the text once, but it holds it 2 times");
  part = original;
  document["post_processor"]["processors"].push_back(original);
  EXPECT_EQ(refusal(document),
            "unsupported post_processor Sequence with several processors that add tokens; supported: one");
}

TEST(TokenizerErrors, TextThatGrowsWithoutEnd) {
  Json document = bpe({"a"}, {});
  Json grow = {{"type", "Replace"}, {"pattern", {{"Regex", ""}}}, {"content", std::string(999, 'a')}};
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json::array({grow, grow, grow, grow})}};
  EXPECT_THAT(tokens(tokenizer(document), "a"),
              testing::ElementsAre("cannot tokenize: the text grows to more than 1073741824 bytes"));
}

TEST(TokenizerErrors, FilesAreNamed) {
  auto missing = text::Tokenizer::fromFile("/nowhere/tokenizer.json");
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("/nowhere/tokenizer.json"));
}

TEST(TokenizerErrors, TruncatedAnywhere) {
  std::string whole = everything().dump();
  ASSERT_EQ(refusalOfText(whole), "");
  for (size_t size = 0; size < whole.size(); ++size)
    ASSERT_THAT(refusalOfText(whole.substr(0, size)), HasSubstr("not valid JSON")) << size;
}

/// Calls `visit` for each value of a document, which may change it for the time of the call.
void forEachValue(Json &value, const std::function<void(Json &)> &visit) {
  visit(value);
  if (value.is_structured())
    for (Json &child : value)
      forEachValue(child, visit);
}

TEST(TokenizerErrors, AnyValueReplacedByAnyOther) {
  const std::vector<Json> others = {
      nullptr, true, -1,         0,   3,         1e300,         4294967296,     "",
      "a",     "▁é", "Sequence", "[", "Removed", Json::array(), Json::object(), Json::array({"a", "a"})};
  Json document = everything();
  int tried = 0;
  forEachValue(document, [&](Json &value) {
    Json original = value;
    for (const Json &other : others) {
      value = other;
      use(document.dump());
      ++tried;
    }
    value = original;
  });
  EXPECT_GT(tried, 1000);
}

TEST(TokenizerErrors, AnyMemberMissing) {
  Json document = everything();
  forEachValue(document, [&](Json &value) {
    if (!value.is_object())
      return;
    Json original = value;
    for (const auto &entry : original.items()) {
      value.erase(entry.key());
      use(document.dump());
      value = original;
    }
  });
}

TEST(TokenizerErrors, AnyByteFlipped) {
  std::string whole = everything().dump();
  for (size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; bit += 3) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << bit);
      use(flipped);
    }
}

} // namespace
} // namespace hone::test
