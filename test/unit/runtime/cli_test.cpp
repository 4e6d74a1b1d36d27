// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The commands of hone-run on the toy artefact: what they print, write and refuse.

#include "cli_support.h"

#include "cli/arrays.h"
#include "cli/commands.h"

#include <set>

namespace hone::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class Cli : public testing::Test {
protected:
  void SetUp() override { writeArtefact(model, HONE_TEST_PROGRAM, toyManifest()); }

  /// Runs a command that must fail with code 1 and one line.
  static std::string complaint(const std::vector<std::string> &arguments) {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("hone-run: "));
    return outcome.err;
  }

  /// Letters a to h are the tokens 0 to 7.
  void addTokenizer() {
    io::Manifest manifest = toyManifest();
    manifest.tokenizer = "tokenizer.json";
    writeArtefact(model, HONE_TEST_PROGRAM, manifest);
    std::string json =
        R"({"version":"1.0","added_tokens":[],"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","merges":[],"vocab":)"
        R"({"a":0,"b":1,"c":2,"d":3,"e":4,"f":5,"g":6,"h":7}}})";
    ASSERT_EQ(messageOf(io::writeFile(model + "/tokenizer.json", json)), "OK");
    signArtefact(model);
  }

  std::string writeNpz(const std::string &name, std::vector<std::pair<std::string, Array>> arrays) {
    std::string path = temporary.file(name);
    auto writer = io::NpzWriter::create(path);
    for (const auto &[key, array] : arrays)
      EXPECT_EQ(messageOf(writer->add(key, array)), "OK");
    EXPECT_EQ(messageOf(writer->commit()), "OK");
    return path;
  }

  template <typename Element>
  std::string writeTokens(hone_dtype dtype, std::vector<int64_t> shape, const std::vector<Element> &tokens) {
    std::string path = temporary.file("tokens.npy");
    EXPECT_EQ(messageOf(io::writeNpy(path, makeArray<Element>(dtype, shape, tokens))), "OK");
    return path;
  }

  static Array floats(std::vector<float> values) {
    std::vector<int64_t> shape = {static_cast<int64_t>(values.size()) / 3, 3};
    return makeArray<float>(HONE_F32, shape, values);
  }

  std::string inputs() {
    std::vector<std::pair<std::string, Array>> arrays;
    arrays.emplace_back("x", floats({1, 2, 3}));
    arrays.emplace_back("y", floats({0, 0, 0}));
    return writeNpz("in.npz", std::move(arrays));
  }

  std::string expectation(std::vector<float> sum) {
    std::vector<std::pair<std::string, Array>> arrays;
    arrays.emplace_back("sum", floats(std::move(sum)));
    return writeNpz("expected.npz", std::move(arrays));
  }

  TemporaryFolder temporary;
  std::string model = temporary.file("toy.hone");
};

TEST_F(Cli, HelpNamesEveryOption) {
  for (const cli::Command *command : cli::listCommands()) {
    Outcome outcome = run({command->name, "--help"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, StartsWith(io::cat("usage: hone-run ", command->name, " ")));
    for (const std::string &option : command->optionNames())
      EXPECT_THAT(outcome.out, HasSubstr("--" + option));
  }
  std::string overview = run({"--help"}).out;
  EXPECT_THAT(overview, HasSubstr("hone-run COMMAND --help"));
  for (const cli::Command *command : cli::listCommands())
    EXPECT_THAT(overview, HasSubstr(io::cat("\n  ", command->name, " ")));
  EXPECT_EQ(run({}).code, 1);
  EXPECT_THAT(run({"walk"}).err, HasSubstr("unknown command 'walk'"));
}

TEST_F(Cli, WrongOptionsAreNamed) {
  EXPECT_THAT(complaint({"run", model, "--speed", "1"}), HasSubstr("unknown option '--speed'"));
  EXPECT_THAT(complaint({"run", model, "-x"}), HasSubstr("unknown option '-x'"));
  EXPECT_THAT(complaint({"run", model, "--tokens"}), HasSubstr("--tokens needs a value"));
  EXPECT_THAT(complaint({"run", model, "--stats=1"}), HasSubstr("--stats takes no value"));
  EXPECT_THAT(complaint({"run", model, "--threads=0"}), HasSubstr("--threads to be a whole number from 1 to 4096"));
  EXPECT_THAT(complaint({"run", model, "--threads=2x"}), HasSubstr("but got '2x'"));
  EXPECT_THAT(complaint({"run", model, "--rtol=nan"}), HasSubstr("--rtol to be a number"));
  EXPECT_THAT(complaint({"run"}), HasSubstr("expected one MODEL.hone, but got 0"));
  EXPECT_THAT(complaint({"run", model}), HasSubstr("--inputs and --cases, but got none"));
  EXPECT_THAT(complaint({"run", model, "--tokens=a", "--cases=b"}), HasSubstr("but got several"));
  EXPECT_THAT(complaint({"eval", model}), HasSubstr("expected --tokens"));
  EXPECT_THAT(complaint({"bench", temporary.file("none")}), HasSubstr("not a folder"));
}

TEST_F(Cli, CallWritesOutputs) {
  std::string out = temporary.file("out.npz");
  Outcome outcome = run({"run", model, "--inputs", inputs(), "--outputs", out});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  auto reader = io::NpzReader::open(out);
  ASSERT_TRUE(reader.ok()) << messageOf(reader);
  EXPECT_THAT(reader->names(), ElementsAre("sum", "rows"));
  EXPECT_THAT(elementsOf<float>(*reader->read("sum")), ElementsAre(101, 202, 303));
  EXPECT_THAT(run({"run", model, "--inputs", inputs()}).out, HasSubstr("sum: f32 [1, 3]\nrows: i64 []"));
}

TEST_F(Cli, CallComparesOutputs) {
  Outcome good = run({"run", model, "--inputs", inputs(), "--expect", expectation({101, 202, 303.02f})});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("sum: ok, worst |difference| 0.02"));
  std::string bad = complaint({"run", model, "--inputs", inputs(), "--expect", expectation({101, 202, 304})});
  EXPECT_THAT(bad, HasSubstr("output 'sum' differs: too far, worst |difference| 1 at [0, 2]: got 303, expected 304"));
  EXPECT_EQ(run({"run", model, "--inputs", inputs(), "--expect", expectation({101, 202, 304}), "--atol=1"}).code, 0);
  EXPECT_THAT(complaint({"run", model, "--inputs", inputs(), "--expect", expectation({1, 2, 3, 4, 5, 6})}),
              HasSubstr("expected output 'sum' to be f32 [2, 3], but got f32 [1, 3]"));
  EXPECT_THAT(complaint({"run", model, "--inputs", inputs(), "--expect", inputs()}), HasSubstr("no output 'x'"));
}

TEST_F(Cli, CallNamesWhatIsWrong) {
  std::string cut = inputs();
  shorten(cut, 40);
  EXPECT_THAT(complaint({"run", model, "--inputs", cut}), HasSubstr("not a .npz file, or cut short"));
  EXPECT_THAT(complaint({"run", model, "--inputs", temporary.file("none.npz")}), HasSubstr("cannot open"));
  EXPECT_THAT(complaint({"run", model, "--inputs", inputs(), "--entry", "side"}), HasSubstr("has no entry 'side'"));
  EXPECT_THAT(complaint({"run", model, "--expect", inputs()}), HasSubstr("missing input 'x'"));
  EXPECT_THAT(complaint({"run", model, "--inputs", inputs(), "--outputs", temporary.file("no/out.npz")}),
              HasSubstr("cannot write"));
}

TEST_F(Cli, CasesAreCalledInTurn) {
  std::vector<std::pair<std::string, Array>> arrays;
  for (std::string name : {"case0", "case1", "case2"}) {
    arrays.emplace_back(name + "/in/x", floats({1, 2, 3}));
    arrays.emplace_back(name + "/in/y", floats({0, 0, 0}));
    if (name != "case2")
      arrays.emplace_back(name + "/out/sum", floats({101, 202, name == "case1" ? 300.0f : 303.0f}));
  }
  std::string cases = writeNpz("cases.npz", std::move(arrays));
  Outcome outcome = run({"run", model, "--cases", cases});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("case0: sum: ok"), HasSubstr("case1: failed: case1: output 'sum' differs"),
                                 HasSubstr("case2: skipped")));
  EXPECT_THAT(outcome.err, HasSubstr("1 of 2 cases failed, the first is case1"));
  EXPECT_THAT(run({"run", model, "--cases", cases, "--atol=5"}).out, HasSubstr("all 2 cases are as expected"));
  EXPECT_THAT(complaint({"run", model, "--cases", inputs()}), HasSubstr("found no case"));
}

TEST_F(Cli, TokensGoOnGreedily) {
  // Sums modulo 8: 1 → 1 → 2 → 4 → 0 → 0; 7 ends the text.
  std::string one = writeTokens<uint16_t>(HONE_U16, {1}, {1});
  EXPECT_EQ(run({"run", model, "--tokens", one, "--max-new-tokens", "5"}).out, "1 2 4 0 0\n");
  std::string ends = writeTokens<int32_t>(HONE_I32, {2}, {3, 4});
  EXPECT_EQ(run({"run", model, "--tokens", ends, "--max-new-tokens", "5"}).out, "7\n");
  EXPECT_EQ(run({"run", model, "--tokens", ends, "--max-new-tokens", "3", "--ignore-end"}).out, "7 6 4\n");
  std::string rows = writeTokens<int64_t>(HONE_I64, {2, 2}, {3, 4, 0, 1}), out = temporary.file("out.npy");
  EXPECT_EQ(run({"run", model, "--tokens", rows, "--max-new-tokens=3", "--output-tokens", out}).code, 0);
  EXPECT_THAT(elementsOf<int64_t>(*io::readNpy(out)), ElementsAre(7, 7, 7, 1, 2, 4));
}

TEST_F(Cli, PrefillInPiecesGivesTheSame) {
  std::string tokens = writeTokens<int64_t>(HONE_I64, {7}, {1, 0, 0, 2, 0, 1, 1});
  std::string whole = run({"run", model, "--tokens", tokens, "--max-new-tokens=4"}).out;
  for (std::string chunk : {"1", "2", "3", "100"})
    EXPECT_EQ(run({"run", model, "--tokens", tokens, "--max-new-tokens=4", "--prefill-chunk", chunk}).out, whole);
  EXPECT_THAT(run({"run", model, "--tokens", tokens, "--stats"}).err, HasSubstr("prompt: 7 tokens"));
}

TEST_F(Cli, ContextIsGivenToTheSession) {
  writeArtefact(model, HONE_TEST_PROGRAM, toyManifestWithContext());
  std::string tokens = temporary.file("tokens.npy");
  ASSERT_EQ(messageOf(io::writeNpy(tokens, makeArray<int64_t>(HONE_I64, {1}, {3}))), "OK");
  std::vector<std::string> command = {"run", model, "--tokens", tokens, "--max-new-tokens", "2"};
  EXPECT_THAT(complaint(command), HasSubstr("missing context 'encoded'"));
  auto contextOf = [&](const std::string &name) {
    std::vector<std::pair<std::string, Array>> arrays;
    arrays.emplace_back(name, makeArray<float>(HONE_F32, {1, 2}, {1, 2}));
    return writeNpz(name + ".npz", std::move(arrays));
  };
  command.insert(command.end(), {"--context", contextOf("mask")});
  EXPECT_THAT(complaint(command), HasSubstr("unknown context 'mask'; the context of 'forward' is: encoded"));
  command.back() = contextOf("encoded");
  EXPECT_EQ(run(command).out, "3 6\n");
  EXPECT_THAT(run({"inspect", model}).out, HasSubstr("  context encoded: f32 [batch, 2]"));
}

TEST_F(Cli, TextGoesOn) {
  addTokenizer();
  // "b" is token 1; sums modulo 8 are 1 2 4 0 0; letters name tokens.
  EXPECT_EQ(run({"run", model, "--prompt", "b", "--max-new-tokens=5"}).out, "bceaa\n");
  EXPECT_EQ(run({"run", model, "--prompt", "b", "--max-new-tokens=5", "--stop", "ea"}).out, "bc\n");
  EXPECT_EQ(run({"run", model, "--prompt", "b", "--max-new-tokens=3", "--stop", "eaf"}).out, "bce\n");
  ASSERT_EQ(messageOf(io::writeFile(temporary.file("prompt.txt"), "ab")), "OK");
  EXPECT_EQ(run({"run", model, "--prompt-file", temporary.file("prompt.txt"), "--max-new-tokens=2"}).out, "bc\n");
}

TEST_F(Cli, DrawsDependOnTheSeedAlone) {
  addTokenizer();
  auto draw = [&](std::string seed) {
    return run({"run", model, "--prompt", "b", "--temperature=2", "--seed", seed, "--ignore-end"}).out;
  };
  EXPECT_EQ(draw("1"), draw("1"));
  EXPECT_NE(draw("1"), draw("2"));
  EXPECT_EQ(run({"run", model, "--prompt", "b", "--temperature=2", "--top-k=1", "--max-new-tokens=4"}).out, "bcea\n");
}

TEST_F(Cli, PromptsNeedATokenizer) {
  EXPECT_THAT(complaint({"run", model, "--prompt", "b"}), HasSubstr("has no tokenizer"));
  std::string one = writeTokens<int64_t>(HONE_I64, {1}, {1});
  EXPECT_THAT(complaint({"run", model, "--tokens", one, "--stop", "x"}), HasSubstr("stop strings need a tokenizer"));
  addTokenizer();
  shorten(model + "/tokenizer.json", 30);
  EXPECT_THAT(complaint({"run", model, "--prompt", "b"}), HasSubstr("tokenizer.json"));
}

TEST_F(Cli, WrongTokensAreNamed) {
  EXPECT_THAT(complaint({"run", model, "--tokens", writeTokens<int64_t>(HONE_I64, {2}, {1, 8})}),
              HasSubstr("token 8 at position 1 is outside the vocabulary of 8"));
  EXPECT_THAT(complaint({"run", model, "--tokens", writeTokens<int64_t>(HONE_I64, {0}, {})}),
              HasSubstr("expected at least one token"));
  EXPECT_THAT(complaint({"run", model, "--tokens", writeTokens<float>(HONE_F32, {1}, {1})}),
              HasSubstr("unsupported type of tokens f32"));
  io::Manifest manifest = toyManifest();
  manifest.entries.erase(manifest.entries.begin() + 1);
  writeArtefact(model, HONE_TEST_PROGRAM, manifest);
  EXPECT_THAT(complaint({"run", model, "--tokens", writeTokens<int64_t>(HONE_I64, {1}, {1})}),
              HasSubstr("not a language model"));
}

TEST_F(Cli, EvalMeasuresPerplexity) {
  // The next token is the sum so far: logit 1 against seven logits 0, where it is right.
  std::string tokens = writeTokens<int64_t>(HONE_I64, {6}, {1, 1, 2, 4, 4, 0});
  Outcome outcome = run({"eval", model, "--tokens", tokens, "--window=2", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // Windows (1 1)→(1 2) right, right; (2 4)→(4 4) wrong (2), wrong (6). The sixth token is left over.
  double right = std::log(std::exp(1) + 7) - 1, wrong = right + 1, loss = (2 * right + 2 * wrong) / 4;
  char expected[128];
  std::snprintf(expected, sizeof expected, "{\"perplexity\": %.6f, \"loss\": %.6f, \"tokens\": 4}\n", std::exp(loss),
                loss);
  EXPECT_EQ(outcome.out, expected);
  EXPECT_THAT(complaint({"eval", model, "--tokens", tokens}), HasSubstr("expected at least 512 tokens"));
}

TEST_F(Cli, LogitsOfTheLastTokenGenerate) {
  std::string tokens = writeTokens<int64_t>(HONE_I64, {3}, {1, 1, 2});
  std::vector<std::string> generate = {"run", model, "--tokens", tokens, "--max-new-tokens=3", "--ignore-end"};
  std::string expected = run(generate).out;
  writeArtefact(model, HONE_TEST_PROGRAM_LAST_LOGITS, toyManifest());
  EXPECT_EQ(run(generate).out, expected);
  EXPECT_THAT(complaint({"eval", model, "--tokens", tokens, "--window=2"}),
              HasSubstr("expected logits for each of 2 tokens, but got 1"));
}

TEST_F(Cli, InspectPrintsTheManifest) {
  Outcome outcome = run({"inspect", model, "--weights"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("source: toy.onnx"), HasSubstr("input   x: f32 [batch, 3]"),
                    HasSubstr("state   history: f32 [batch, 1, 0, 2], grows along axis 2"),
                    HasSubstr("weight  offset: f32 [3], 12 bytes"), HasSubstr("weights f32: 1 tensors, 12 bytes")));
  shorten(model + "/weights.safetensors", 9);
  EXPECT_THAT(complaint({"inspect", model}), HasSubstr("cut short"));
}

TEST(MemberNames, StayInTheFolderThatAnArchiveIsExtractedTo) {
  std::set<std::string> taken;
  EXPECT_EQ(cli::memberName("present.0.key", taken), "present.0.key");
  EXPECT_EQ(cli::memberName("/etc/passwd", taken), "_etc_passwd");
  EXPECT_EQ(cli::memberName("../../x", taken), "______x");
  EXPECT_EQ(cli::memberName("..", taken), "__");
  EXPECT_EQ(cli::memberName(".hidden", taken), "_hidden");
  EXPECT_EQ(cli::memberName("a\\..\\b", taken), "a_.._b");
  EXPECT_EQ(cli::memberName("_etc/passwd", taken), "_etc_passwd_2") << "another output has the name";
  EXPECT_EQ(cli::memberName("_etc_passwd", taken), "_etc_passwd_3");
}

TEST_F(Cli, RowsOfNoTokensAreRefused) {
  std::string path = temporary.file("rows.npy");
  ASSERT_EQ(messageOf(io::writeFile(path, io::npyHeader(HONE_I64, std::vector<int64_t>{int64_t{1} << 40, 0}))), "OK");
  for (const char *command : {"run", "eval"}) {
    Outcome outcome = run({command, model, "--tokens", path});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("expected rows of at least one token, but got [1099511627776, 0]"));
  }
}

TEST_F(Cli, ArraysThatNobodyAskedForAreNotRead) {
  auto writer = io::NpzWriter::create(temporary.file("other.npz"));
  ASSERT_TRUE(writer.ok());
  ASSERT_EQ(messageOf(writer->add("z", makeArray<float>(HONE_F32, {2}, {1, 2}))), "OK");
  ASSERT_EQ(messageOf(writer->commit()), "OK");
  std::string archive = *io::readFile(temporary.file("other.npz"));
  archive[archive.find("NUMPY")] = 'n'; // what is read fails by its sum
  ASSERT_EQ(messageOf(io::writeFile(temporary.file("other.npz"), archive)), "OK");
  EXPECT_THAT(run({"run", model, "--inputs", temporary.file("other.npz")}).err, HasSubstr("unknown input 'z'"));
}

TEST(AdoptTypes, TakesStandInsByTheEntrysType) {
  auto adopted = [](hone_dtype dtype, hone_dtype file, std::vector<uint8_t> bytes) {
    cli::NamedArrays arrays;
    arrays.emplace("x", makeArray<uint8_t>(file, {static_cast<int64_t>(bytes.size())}, bytes));
    cli::adoptTypes(arrays, {{"x", dtype, {}, {}}});
    return std::pair(arrays.at("x").dtype(), elementsOf<int8_t>(arrays.at("x")));
  };
  EXPECT_EQ(adopted(HONE_F8E5M2, HONE_U8, {0x3c}).first, HONE_F8E5M2);
  EXPECT_THAT(adopted(HONE_I4, HONE_U8, {0x0f, 0x08, 0x07}), testing::Pair(HONE_I4, ElementsAre(-1, -8, 7)));
  EXPECT_THAT(adopted(HONE_I2, HONE_U8, {3, 2, 1}), testing::Pair(HONE_I2, ElementsAre(-1, -2, 1)));
  EXPECT_THAT(adopted(HONE_I4, HONE_I8, {0xff}), testing::Pair(HONE_I4, ElementsAre(-1)));
  EXPECT_EQ(adopted(HONE_I4, HONE_U8, {0x10}).first, HONE_U8);
  EXPECT_EQ(adopted(HONE_I8, HONE_U8, {1}).first, HONE_U8);
}

TEST(Compare, TreatsSpecialValues) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  auto equal = [](std::vector<float> a, std::vector<float> b) {
    int64_t size = static_cast<int64_t>(a.size());
    return cli::compare("o", makeArray<float>(HONE_F32, {size}, a), makeArray<float>(HONE_F32, {size}, b), {})->equal;
  };
  EXPECT_TRUE(equal({nan, inf, -inf}, {nan, inf, -inf}));
  EXPECT_FALSE(equal({nan}, {1}));
  EXPECT_FALSE(equal({1}, {nan}));
  EXPECT_FALSE(equal({inf}, {1e30f}));
  EXPECT_FALSE(equal({inf}, {-inf}));
  EXPECT_TRUE(equal({}, {}));
}

TEST(Compare, ReadsEveryFormat) {
  auto value = [](hone_dtype dtype, auto element) {
    Array array = makeArray<decltype(element)>(dtype, {1}, {element});
    return cli::compare("o", array, array, {})->actual;
  };
  EXPECT_EQ(value(HONE_F16, uint16_t{0xc500}), -5);
  EXPECT_EQ(value(HONE_F16, uint16_t{0x0001}), std::ldexp(1, -24));
  EXPECT_EQ(value(HONE_BF16, uint16_t{0x3fc0}), 1.5);
  EXPECT_EQ(value(HONE_I64, int64_t{-3}), -3);
  EXPECT_EQ(value(HONE_U8, uint8_t{200}), 200);
}

} // namespace
} // namespace hone::test
