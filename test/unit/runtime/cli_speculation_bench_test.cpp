// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `bench` says of decoding with drafts, on the toy artefact, and the prompts that it reads.

#include "cli_support.h"

#include "io/json.h"

namespace hone::test {
namespace {

using Json = io::ParsedJson;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

class CliSpeculationBench : public testing::Test {
protected:
  void SetUp() override {
    // Letters a to h are the tokens 0 to 7.
    io::Manifest manifest = toyManifest();
    manifest.tokenizer = "tokenizer.json";
    writeArtefact(model, HONE_TEST_PROGRAM, manifest);
    ASSERT_EQ(
        messageOf(io::writeFile(model + "/tokenizer.json", R"({"model":{"type":"BPE","merges":[],"vocab":)"
                                                           R"({"a":0,"b":1,"c":2,"d":3,"e":4,"f":5,"g":6,"h":7}}})")),
        "OK");
    signArtefact(model);
  }

  Outcome bench(const std::vector<std::string> &more) {
    std::vector<std::string> arguments = {"bench", model, "--new-tokens=40", "--repeat=3", "--threads=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  Json benchObject(std::vector<std::string> more) {
    more.push_back("--json");
    Outcome outcome = bench(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return **io::parseJson(outcome.out, "output");
  }

  std::string writePrompts(const std::string &text) {
    std::string path = temporary.file("prompts.jsonl");
    EXPECT_EQ(messageOf(io::writeFile(path, text)), "OK");
    return path;
  }

  std::string complaint(const std::vector<std::string> &more) {
    Outcome outcome = bench(more);
    EXPECT_EQ(outcome.code, 1) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }

  TemporaryFolder temporary;
  std::string model = temporary.file("toy.hone");
};

TEST_F(CliSpeculationBench, AnOracleIsAcceptedAndWrongDraftsAreNot) {
  Json wrong = benchObject({"--accept-length=1", "--draft-tokens=4"});
  EXPECT_EQ(wrong["tokens_per_pass"], 1);
  EXPECT_EQ(wrong["same_texts"], 1);
  Json oracle = benchObject({"--accept-length=5", "--draft-tokens=4"});
  // One pass without drafts; how many the others have follows from times.
  EXPECT_GE(oracle["tokens_per_pass"], 1);
  EXPECT_LE(oracle["tokens_per_pass"], 5);
  EXPECT_EQ(oracle["same_texts"], 1);
}

TEST_F(CliSpeculationBench, ObjectHasEveryFigureOfEachCategory) {
  std::string prompts = writePrompts("{\"category\": \"code\", \"prompt\": \"abc\", \"question_id\": 7}\n\n"
                                     "{\"category\": \"talk\", \"turns\": [\"b\", \"cc\"]}\n"
                                     "{\"category\": \"code\", \"prompt\": \"h\"}");
  Json object = benchObject({"--speculate=automaton,lookup", "--prompts", prompts});
  EXPECT_EQ(object["prompts"], 3);
  EXPECT_EQ(object["categories"]["code"]["prompts"], 2);
  EXPECT_EQ(object["categories"]["talk"]["prompts"], 1);
  EXPECT_EQ(object["repeats"], 3);
  EXPECT_EQ(object["new_tokens"], 40);
  EXPECT_EQ(object["threads"], 1);
  for (const Json &sums : {object, object["categories"]["code"], object["categories"]["talk"]}) {
    EXPECT_EQ(sums["same_texts"], 1);
    EXPECT_GE(sums["tokens_per_pass"], 1);
    for (const char *name : {"plain_tokens_per_second", "tokens_per_second", "speed_up", "decode_speed_up"}) {
      EXPECT_GT(sums[io::cat(name, "_min")], 0);
      EXPECT_LE(sums[io::cat(name, "_min")], sums[name]);
      EXPECT_LE(sums[name], sums[io::cat(name, "_max")]);
    }
    double shares = 0;
    for (const char *name : {"draft_share", "verify_share", "commit_share"})
      shares += sums[name].get<double>();
    EXPECT_GT(shares, 0);
    EXPECT_LE(shares, 1);
  }
}

TEST_F(CliSpeculationBench, ADraftModelAndSampling) {
  Json object = benchObject({"--speculate=model", "--draft", model, "--temperature=0.7", "--seed=3"});
  EXPECT_EQ(object["same_texts"], 1);
  EXPECT_EQ(object["categories"].size(), 1u);
  EXPECT_EQ(object["categories"]["spread"]["prompts"], 1);
}

TEST_F(CliSpeculationBench, AnswersEndWhereATextEnds) {
  io::Manifest manifest = toyManifest();
  manifest.tokenizer = "tokenizer.json";
  manifest.generation.endTokens = {1};
  std::string json = *io::readFile(model + "/tokenizer.json");
  writeArtefact(model, HONE_TEST_PROGRAM, manifest);
  ASSERT_EQ(messageOf(io::writeFile(model + "/tokenizer.json", json)), "OK");
  signArtefact(model);
  std::string prompts = writePrompts(R"({"category": "c", "prompt": "b"})");
  std::vector<std::string> oracle = {"--accept-length=3", "--draft-tokens=2", "--prompts", prompts};
  EXPECT_EQ(benchObject(oracle)["verify_share"], 0) << "the first token is the end, and no pass comes after it";
  oracle.push_back("--ignore-end");
  EXPECT_GT(benchObject(oracle)["verify_share"], 0);
}

TEST_F(CliSpeculationBench, TextHasARowACategory) {
  Outcome outcome = bench({"--speculate=lookup"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, MatchesRegex("answers of at most 40 tokens, threads: 1, repeats: 3\n"
                                        "category +prompts +tokens/pass +plain/s +drafted/s +speed-up +decode +draft "
                                        "+verify +take-back +same\n"
                                        "spread +1 [^\n]* 100.0%\n"
                                        "overall +1 [^\n]* 100.0%\n"));
}

TEST_F(CliSpeculationBench, BadPromptsAreNamed) {
  auto refusal = [&](const std::string &text) {
    return complaint({"--speculate=lookup", "--prompts", writePrompts(text)});
  };
  const std::string good = "{\"category\": \"c\", \"prompt\": \"a\"}\n";
  EXPECT_THAT(refusal(""), HasSubstr("prompts.jsonl: expected a prompt in a line at least, but got none"));
  EXPECT_THAT(refusal(good + "{"), HasSubstr("prompts.jsonl line 2: not valid JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("line 1: expected an object with the string 'category'"));
  EXPECT_THAT(refusal(R"({"category": 3, "prompt": "a"})"), HasSubstr("the string 'category'"));
  EXPECT_THAT(refusal(R"({"category": "c"})"), HasSubstr("expected either 'prompt' or 'turns', but got neither"));
  EXPECT_THAT(refusal(R"({"category": "c", "prompt": "a", "turns": ["a"]})"), HasSubstr("but got both"));
  EXPECT_THAT(refusal(R"({"category": "c", "prompt": 1})"), HasSubstr("'prompt' to be a string, but got number"));
  EXPECT_THAT(refusal(R"({"category": "c", "turns": "a"})"), HasSubstr("to be a list of strings, but got string"));
  EXPECT_THAT(refusal(R"({"category": "c", "turns": ["a", null]})"), HasSubstr("but got null in it"));
  EXPECT_THAT(refusal(R"({"category": "c", "prompt": ""})"), HasSubstr("a prompt of at least one token, but got ''"));
  EXPECT_THAT(complaint({"--speculate=lookup", "--prompts", "absent.jsonl"}), HasSubstr("absent.jsonl"));
}

TEST_F(CliSpeculationBench, OptionsGoTogether) {
  EXPECT_THAT(complaint({"--prompts", "x"}), HasSubstr("expected --speculate or --accept-length with --prompts=x"));
  EXPECT_THAT(complaint({"--accept-length=2", "--speculate=lookup"}), HasSubstr("but got both"));
  EXPECT_THAT(complaint({"--accept-length=4", "--draft-tokens=2"}),
              HasSubstr("expected --accept-length to be a number from 1 to 3 with --draft-tokens=2, but got 4"));
  EXPECT_THAT(complaint({"--accept-length=0.5"}), HasSubstr("--accept-length to be a number from 1 to"));
  EXPECT_THAT(complaint({"--speculate=guess"}), HasSubstr("unknown drafts 'guess'"));
  EXPECT_THAT(complaint({"--speculate=corpus"}), HasSubstr("expected --draft-corpus FILE"));
  writeArtefact(model, HONE_TEST_PROGRAM, toyManifest());
  EXPECT_THAT(complaint({"--speculate=lookup", "--prompts", writePrompts("{}")}),
              HasSubstr("has no tokenizer, which --prompts needs"));
}

} // namespace
} // namespace hone::test
