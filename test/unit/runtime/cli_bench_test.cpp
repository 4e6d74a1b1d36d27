// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `bench` counts and prints, and what --profile writes, on the toy artefact.

#include "cli_support.h"

#include "cli/profile.h"
#include "core/language_model.h"
#include "device_support.h"
#include "io/json.h"

namespace hone::test {
namespace {

using Json = io::ParsedJson;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

class CliBench : public testing::Test {
protected:
  void SetUp() override { writeArtefact(model, HONE_TEST_PROGRAM_WITH_KERNEL, toyManifest()); }

  /// Two repeats of 3 new tokens after a prompt of 4.
  Outcome bench(const std::vector<std::string> &more) {
    std::vector<std::string> arguments = {"bench",          model,        "--prompt-length=4",
                                          "--new-tokens=3", "--repeat=2", "--threads=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  Json benchObject() {
    Outcome outcome = bench({"--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return **io::parseJson(outcome.out, "output");
  }

  /// The complete events of a trace file.
  static std::vector<Json> eventsOf(const std::string &path) {
    Json document = **io::parseJson(*io::readFile(path), path);
    return document["traceEvents"].get<std::vector<Json>>();
  }

  TemporaryFolder temporary;
  std::string model = temporary.file("toy.hone");
};

TEST_F(CliBench, ObjectHasEveryFigure) {
  Json object = benchObject();
  for (const char *name : {"decode_tokens_per_second", "prefill_tokens_per_second"}) {
    double median = object[name], least = object[io::cat(name, "_min")], most = object[io::cat(name, "_max")];
    EXPECT_GT(least, 0);
    EXPECT_LE(least, median);
    EXPECT_LE(median, most);
  }
  EXPECT_GT(object["first_token_seconds"], object["load_seconds"]);
  EXPECT_GT(object["peak_rss_bytes"], 0);
  EXPECT_GT(object["read_bandwidth_bytes_per_second"], 0);
  // Weights of 12 bytes, and state of 2 floats at each of 4 + 1 positions.
  EXPECT_EQ(object["bytes_read_per_token"], 52);
  double achieved = 52 * object["decode_tokens_per_second"].get<double>();
  EXPECT_NEAR(object["achieved_bytes_per_second"], achieved, 1e-3 * achieved);
  EXPECT_EQ(object["prompt_length"], 4);
  EXPECT_EQ(object["new_tokens"], 3);
  EXPECT_EQ(object["threads"], 1);
  EXPECT_EQ(object["repeats"], 2);
}

TEST_F(CliBench, CountsARowOfWhatIsGathered) {
  io::Manifest manifest = toyManifest();
  manifest.gatheredWeights = {"offset"};
  writeArtefact(model, HONE_TEST_PROGRAM, manifest);
  // A third of the weight's 12 bytes.
  EXPECT_EQ(benchObject()["bytes_read_per_token"], 44);
}

TEST_F(CliBench, TextHasALineAFigure) {
  Outcome outcome = bench({});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, MatchesRegex("prompt of 4 tokens, 3 new tokens, threads: 1\n"
                                        "decode +[0-9.]+ tokens/s +\\([0-9.]+ to [0-9.]+ in 2 repeats\\)\n"
                                        "prefill +[0-9.]+ tokens/s .*\n"
                                        "first token +[0-9.]+ s .*\n"
                                        "reading +[0-9.]+ GB/s .*\n"
                                        "peak memory +[0-9.]+ MB .*\n"));
}

class CliCallBench : public CliBench {
protected:
  /// Arrays for the inputs of the toy's entry main.
  std::string inputs() {
    std::string path = temporary.file("in.npz");
    auto writer = io::NpzWriter::create(path);
    EXPECT_EQ(messageOf(writer->add("x", makeArray<float>(HONE_F32, {1, 3}, {1, 2, 3}))), "OK");
    EXPECT_EQ(messageOf(writer->add("y", makeArray<float>(HONE_F32, {1, 3}, {0, 0, 0}))), "OK");
    EXPECT_EQ(messageOf(writer->commit()), "OK");
    return path;
  }

  Outcome benchCalls(const std::vector<std::string> &more) {
    std::vector<std::string> arguments = {"bench", model, "--repeat=7", "--seconds=0", "--threads=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
};

TEST_F(CliCallBench, ObjectHasEveryFigure) {
  Outcome outcome = benchCalls({"--inputs", inputs(), "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  Json object = **io::parseJson(outcome.out, "output");
  double last = 0;
  for (const char *name : {"latency_seconds_min", "latency_seconds", "latency_seconds_p90", "latency_seconds_p99",
                           "latency_seconds_max"}) {
    EXPECT_GE(object[name], last) << name;
    last = object[name];
  }
  EXPECT_GT(object["latency_seconds_min"], 0);
  EXPECT_EQ(object["latency_seconds_p90"], object["latency_seconds_max"]) << "seven calls: the last is above 9 of 10";
  EXPECT_NEAR(object["calls_per_second"].get<double>() * object["latency_seconds_mean"].get<double>(), 1, 1e-2);
  EXPECT_GT(object["first_call_seconds"], 0);
  EXPECT_GT(object["load_seconds"], 0);
  EXPECT_GT(object["peak_rss_bytes"], 0);
  EXPECT_EQ(object["input_bytes"], 24);
  EXPECT_EQ(object["output_bytes"], 12 + 8);
  EXPECT_EQ(object["calls"], 7);
  EXPECT_EQ(object["threads"], 1);
}

TEST_F(CliCallBench, CallsUntilTheTimeIsOver) {
  Outcome outcome = benchCalls({"--inputs", inputs(), "--json", "--repeat=1", "--seconds=0.05"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GT((**io::parseJson(outcome.out, "output"))["calls"], 1);
}

TEST_F(CliCallBench, TextHasALineAFigure) {
  EXPECT_THAT(benchCalls({"--inputs", inputs()}).out,
              MatchesRegex("entry main, 7 calls, threads: 1\n"
                           "latency +[0-9.]+ ms +\\([0-9.]+ to [0-9.]+; mean [0-9.]+, 90 % within [0-9.]+, 99 % within "
                           "[0-9.]+\\)\n"
                           "throughput +[0-9.]+ calls/s +\\(one after the other; 0.0 kB in, 0.0 kB out\\)\n"
                           "first call +[0-9.]+ ms +\\(not counted; loading [0-9.]+ s\\)\n"
                           "peak memory +[0-9.]+ MB .*\n"));
}

TEST_F(CliCallBench, NamesWhatIsWrong) {
  auto complaint = [&](const std::vector<std::string> &more) {
    Outcome outcome = benchCalls(more);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(complaint({"--inputs", inputs(), "--entry=side"}), HasSubstr("has no entry 'side'"));
  EXPECT_THAT(complaint({"--entry=main"}), HasSubstr("missing input 'x'"));
  EXPECT_THAT(complaint({"--inputs", temporary.file("none.npz")}), HasSubstr("cannot open"));
  EXPECT_THAT(complaint({"--inputs", inputs(), "--entry=forward"}), HasSubstr("input 'x'"));
  EXPECT_THAT(complaint({"--inputs", inputs(), "--speculate=automaton"}),
              HasSubstr("expected calls with tensors or speculative decoding, but got options of both"));
}

TEST_F(CliBench, ProfileTracesEveryCall) {
  std::string path = temporary.file("trace.json");
  ASSERT_EQ(bench({"--profile", path}).code, 0);
  std::vector<Json> events = eventsOf(path), entries, kernels;
  for (const Json &event : events) {
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["dur"], 0);
    if (event["cat"] == "entry")
      entries.push_back(event);
    if (event["cat"] == "kernel")
      kernels.push_back(event);
  }
  // The repeat that is not counted is in it too.
  ASSERT_EQ(entries.size(), 3u * (1 + 3));
  ASSERT_EQ(kernels.size(), entries.size());
  EXPECT_EQ(entries[0]["name"], "forward");
  EXPECT_EQ(entries[0]["args"]["inputs"], "[1, 4]");
  EXPECT_EQ(kernels[0]["name"], "hone.rms_norm.f32");
  EXPECT_THAT(kernels[0]["args"]["operands"].get<std::vector<std::string>>(),
              ElementsAre("f32 [1, 8]", "f32 []", "f32 [1, 8]"));
  EXPECT_EQ(entries[1]["args"]["inputs"], "[1, 1]");
  for (size_t i = 0; i < entries.size(); ++i) {
    double begin = entries[i]["ts"], end = begin + entries[i]["dur"].get<double>();
    EXPECT_GE(kernels[i]["ts"], begin);
    EXPECT_LE(kernels[i]["ts"].get<double>() + kernels[i]["dur"].get<double>(), end + 1e-3);
  }
}

TEST_F(CliBench, ProfilePrintsSums) {
  std::string tokens = temporary.file("tokens.npy");
  ASSERT_EQ(messageOf(io::writeNpy(tokens, makeArray<int64_t>(HONE_I64, {2}, {1, 1}))), "OK");
  Outcome outcome = run({"run", model, "--tokens", tokens, "--max-new-tokens=3", "--profile", "-"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("forward [1, 1]: 2 calls, "), HasSubstr("forward [1, 2]: 1 calls, "),
                    HasSubstr("  hone.rms_norm.f32\n"), HasSubstr("  (generated code before hone.rms_norm.f32)\n"),
                    HasSubstr("  (generated code at the end)\n")));
}

TEST_F(CliBench, LeavesTheHostsMemoryOutOnADevice) {
  writeToy(model, "cuda");
  Json object = benchObject();
  EXPECT_FALSE(object.contains("read_bandwidth_fraction"));
  EXPECT_FALSE(object.contains("read_bandwidth_bytes_per_second"));
  EXPECT_GT(object["achieved_bytes_per_second"], 0);
  EXPECT_THAT(bench({}).out, HasSubstr("a token, in the GPU's memory)\n"));
}

TEST_F(CliBench, ProfileTimesTheKernelsOfADevice) {
  writeToy(model, "cuda");
  std::string path = temporary.file("trace.json");
  Outcome outcome = bench({"--profile", path, "--profile", "-"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("  toy_rows\n"), HasSubstr("  toy_logits\n")));
  int64_t logits = 0;
  for (const Json &event : eventsOf(path))
    logits += event["name"] == "toy_logits";
  EXPECT_EQ(logits, 3 * (1 + 3)) << "one a call, the repeat that is not counted included";
}

TEST_F(CliBench, ProfileIsRefusedBeforeTheWork) {
  Outcome outcome = bench({"--profile", temporary.file("none/trace.json")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("none/trace.json"));
}

TEST(Profile, PiecesFillTheCall) {
  rt::ProfiledCall call = {};
  call.begin = 100;
  call.end = 200;
  rt::ProfiledKernel first = {{110, 130}, "a", 0, {}}, worker = {{115, 118}, "b", 1, {}},
                     last = {{130, 190}, "c", 0, {}};
  call.kernels = {worker, first, last};
  std::vector<std::tuple<int64_t, int64_t, std::string>> pieces;
  for (const cli::ProfilePiece &piece : cli::piecesOf(call))
    pieces.emplace_back(piece.begin, piece.end,
                        piece.kernel ? piece.kernel->name
                        : piece.next ? io::cat("before ", piece.next)
                                     : "end");
  using Piece = std::tuple<int64_t, int64_t, std::string>;
  EXPECT_THAT(pieces, ElementsAre(Piece(100, 110, "before a"), Piece(110, 130, "a"), Piece(115, 118, "b"),
                                  Piece(130, 190, "c"), Piece(190, 200, "end")));
}

TEST(Profile, KnowsWeightsAndThreads) {
  std::vector<uint8_t> weights(64);
  rt::Profile profile;
  profile.setWeights(weights);
  io::EntryInfo entry;
  entry.name = "forward";
  float elsewhere = 0;
  hone_tensor operands[] = {io::denseView(weights.data() + 16, HONE_F32, std::vector<int64_t>{3}),
                            io::denseView(&elsewhere, HONE_F32, {})};
  profile.beginCall(entry, {});
  auto now = rt::Profile::Clock::now();
  std::thread([&] { profile.addKernel("k", operands, now, now); }).join();
  profile.endCall();
  const rt::ProfiledKernel &kernel = profile.calls()[0].kernels[0];
  EXPECT_NE(kernel.thread, profile.calls()[0].thread);
  EXPECT_EQ(kernel.operands[0].weightOffset, 16u);
  EXPECT_EQ(kernel.operands[1].weightOffset, std::nullopt);
}

} // namespace
} // namespace hone::test
