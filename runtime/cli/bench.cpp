// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `bench`: speed of prefill and decoding, and how near decoding comes to the bandwidth of memory; or of calls with tensors.

#include "cli/call_bench.h"
#include "cli/commands.h"
#include "cli/machine_bench.h"
#include "cli/process_figures.h"
#include "cli/profile.h"
#include "cli/speculation.h"
#include "cli/speculation_bench.h"
#include "cpu/read_limit.h"
#include "generate/decoder.h"
#include "hone/cli/progress.h"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace hone::cli {
namespace {

using cpu::wallSeconds;
using io::invalid;

constexpr const char *kHelp =
    R"(usage: {program} bench MODEL.hone [OPTIONS]
       {program} bench MODEL.hone --inputs FILE.npz [--entry NAME] [OPTIONS]
       {program} bench --machine [--threads N] [--json]

Measures a language model on a prompt of evenly spread token ids. Every repeat begins with an empty session; the medians of
the repeats are printed, with the least and the most of them, after one repeat that is not counted. With --inputs or --entry,
measures calls of any entry with tensors instead; with --machine, says what this machine is and how fast it reads memory.

options
  --prompt-length N         tokens of the prompt (default 128)
  --new-tokens N            tokens decoded one by one after it (default 64)
  --threads N               threads (default: one for each processor)
  --repeat N                repeats; with --inputs the fewest calls (default 5)
  --kv-offload DIR          keep the KV cache in files of this folder, as for run
  --inputs FILE.npz         an array for every input, by its name, as for run
  --entry NAME              the entry to call (default main)
  --seconds S               how long to repeat calls with --inputs (default 3)
  --machine                 no model: the processor, the ISA of kernels, caches, and the read bandwidth
  --json                    print one JSON object instead of text
)" HONE_PROFILE_HELP R"(
speculative decoding: each answer is written without and with drafts, one after the other, in every repeat
)" HONE_SPECULATION_HELP
    R"(  --accept-length X         in place of --speculate: replay the answer without drafts as the draft, with so many tokens wrong
                            that passes of --draft-tokens give X tokens on average; 1: all, N + 1: none
  --prompts FILE.jsonl      the prompts, a JSON object a line: the string "category", and the string "prompt" or the list of
                            strings "turns", of which each comes after the answer to the one before (default: the prompt of
                            evenly spread token ids); answers end at a token that ends a text
  --ignore-end              go on after such a token; without --prompts always
  --temperature T           0 always takes the likeliest token (default 0); else logits are divided by T and a token is drawn
  --seed S                  seed of the draws and of --accept-length (default 0)

members of the object of speculative decoding, the same in "categories" for each category; those with _min and _max are of
repeats, as below
  prompts                   how many
  tokens_per_pass           tokens that a pass after the prompt gave, with drafts
  plain_tokens_per_second   without drafts: new tokens by the time from prompt to end, of each prompt, on average
  tokens_per_second         the same with drafts
  speed_up                  the ratio of those two
  decode_speed_up           the same for the passes after the prompt
  draft_share, verify_share, commit_share  the part of the time of these passes in which tokens were drafted, verified and
                            taken back
  same_texts                the part of the answers that are the same with and without drafts
  new_tokens, threads, repeats

)" HONE_CALL_BENCH_HELP "\n" HONE_MACHINE_BENCH_HELP R"(
members of the object of all else; those of the repeats have _min and _max beside the median
  decode_tokens_per_second    new tokens by the time of their calls
  prefill_tokens_per_second   prompt tokens by the time of the one call that takes them
  first_token_seconds         from the start of the process to the first new token, loading included
  load_seconds                part of it that opening the artefact took
  bytes_read_per_token        weights, and state at the middle of decoding: what one step must read. Of a table that tokens
                              are only looked up in, that is a row
  achieved_bytes_per_second   bytes_read_per_token by decode_tokens_per_second
  read_bandwidth_bytes_per_second  what this machine reads in a second with the same threads, the better of a measurement
                              before the repeats and one after
  read_bandwidth_fraction     achieved_bytes_per_second as a part of that; neither of the two for an artefact on a GPU, whose
                              memory is another
  peak_rss_bytes              most memory the process had, mapped files included, before the first repeat that counts
  artefact_bytes              size of the artefact's files
  prompt_length, new_tokens, threads, repeats
)";

struct BenchOptions {
  std::optional<std::string> inputs, entry, kvOffload;
  double seconds = CallBenchOptions().seconds;
  int64_t promptLength = 128, newTokens = 64, threads = 0, repeat = 5;
  bool json = false, ignoreEnd = false, machine = false;
  std::vector<std::string> profile;
  SpeculationFlags speculation;
  double acceptLength = 0; // 0: none
  std::optional<std::string> prompts;
  int64_t seed = 0;
  sampling::SamplingOptions sampling;

  /// Whether calls with tensors are measured.
  bool calls() const { return inputs || entry; }
  /// Whether decoding with drafts is measured.
  bool speculates() const { return acceptLength > 0 || !speculation.options.sources.empty(); }
};

OptionParser parserFor(BenchOptions &options) {
  constexpr int64_t mostTokens = 1 << 24, mostRepeats = 1'000'000; // more than any model and anybody's patience has
  OptionParser parser;
  parser.text("inputs", options.inputs);
  parser.text("entry", options.entry);
  parser.number("seconds", options.seconds, 0, 1e6);
  parser.integer("prompt-length", options.promptLength, 1, mostTokens);
  parser.integer("new-tokens", options.newTokens, 1, mostTokens);
  parser.integer("threads", options.threads, 1, kMostThreads);
  parser.text("kv-offload", options.kvOffload);
  parser.integer("repeat", options.repeat, 1, mostRepeats);
  parser.flag("machine", options.machine);
  parser.flag("json", options.json);
  parser.texts("profile", options.profile);
  options.speculation.declare(parser);
  parser.number("accept-length", options.acceptLength, 1, 1025);
  parser.text("prompts", options.prompts);
  parser.flag("ignore-end", options.ignoreEnd);
  parser.number("temperature", options.sampling.temperature, 0, 1e6);
  parser.integer("seed", options.seed, 0);
  return parser;
}

/// Median, least and most.
struct Spread {
  double median, least, most;
};

Spread spreadOf(std::vector<double> values) {
  std::ranges::sort(values);
  return {values[values.size() / 2], values.front(), values.back()};
}

struct Measurement {
  std::vector<double> prefillTokensPerSecond, decodeTokensPerSecond;
  double loadSeconds = 0, firstTokenSeconds = 0;
  std::optional<double> bandwidth; // of the memory that weights are in, in bytes a second, where that is the host's
  int64_t peakBytes = 0;
};

/// One repeat. `sawFirstToken` is called when the first new token is known.
absl::Status measureOnce(rt::LanguageModel &model, std::span<const int64_t> prompt, int64_t newTokens,
                         Measurement &into, const std::function<void()> &sawFirstToken) {
  model.session().state().reset();
  double start = wallSeconds();
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Decoder> decoder, rt::createDecoder(model, {}, {}, nullptr, prompt));
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> tokens, decoder->decode(model, prompt, /*most=*/1));
  into.prefillTokensPerSecond.push_back(static_cast<double>(prompt.size()) / (wallSeconds() - start));
  sawFirstToken();
  start = wallSeconds();
  for (int64_t i = 0; i < newTokens; ++i) {
    HONE_ASSIGN_OR_RETURN(tokens, decoder->decode(model, tokens, /*most=*/1));
  }
  into.decodeTokensPerSecond.push_back(static_cast<double>(newTokens) / (wallSeconds() - start));
  return absl::OkStatus();
}

/// Keeps the better of what was measured.
absl::Status improveBandwidth(const rt::Module &module, int threads, Measurement &measured) {
  if (module.manifest().device)
    return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(double bandwidth, measureBandwidth(threads));
  measured.bandwidth = std::max(measured.bandwidth.value_or(0), bandwidth);
  return absl::OkStatus();
}

absl::Status measure(rt::LanguageModel &model, std::span<const int64_t> prompt, const BenchOptions &options,
                     int threads, Measurement &measured) {
  const rt::Module &module = model.session().module();
  Measurement warmUp;
  HONE_RETURN_IF_ERROR(model.checkRoom(options.promptLength + options.newTokens));
  model.reserve(options.promptLength, options.newTokens);
  HONE_RETURN_IF_ERROR(
      measureOnce(model, prompt, options.newTokens, warmUp, [&] { measured.firstTokenSeconds = secondsSinceStart(); }));
  measured.peakBytes = peakMemory(); // without the memory that bandwidth is measured with
  HONE_RETURN_IF_ERROR(improveBandwidth(module, threads, measured));
  Progress progress("measuring", options.repeat);
  for (int64_t i = 0; i < options.repeat; ++i) {
    progress.update(i);
    HONE_RETURN_IF_ERROR(measureOnce(model, prompt, options.newTokens, measured, [] {}));
  }
  return improveBandwidth(module, threads, measured);
}

/// Bytes of the state at `positions`, without what is kept beside integers; symbolic sizes other than the batch are 1 as well.
int64_t stateBytes(std::span<const io::TensorInfo> slots, int64_t positions) {
  int64_t total = 0;
  for (const io::TensorInfo &slot : slots) {
    int64_t bits = slot.bits != 0 ? slot.bits : 8 * io::dtypeBytes(slot.dtype);
    for (size_t axis = 0; axis < slot.shape.size(); ++axis)
      bits *= slot.appendAxis == static_cast<int64_t>(axis) ? positions : std::max<int64_t>(slot.shape[axis].size, 1);
    total += bits / 8;
  }
  return total;
}

/// Bytes of weights that a step reads. What a draft model in the artefact has for itself is no part of it.
int64_t weightBytes(const rt::Module &module) {
  const std::vector<std::string> &gathered = module.manifest().gatheredWeights;
  bool hasDraft = module.manifest().entry("draft") != nullptr;
  int64_t total = 0;
  for (const io::StoredTensor &tensor : module.weights().tensors()) {
    if (hasDraft && tensor.name.starts_with("draft."))
      continue;
    bool whole = std::ranges::find(gathered, tensor.name) == gathered.end() || tensor.shape.empty();
    total += static_cast<int64_t>(tensor.bytes) / (whole ? 1 : std::max<int64_t>(tensor.shape[0], 1));
  }
  return total;
}

/// What is printed.
struct Report {
  Spread decode, prefill;
  double loadSeconds, firstTokenSeconds, achieved;
  std::optional<double> bandwidth;
  int64_t bytesPerToken, peakBytes, artefactBytes;
  int64_t promptLength, newTokens, threads, repeats;
};

Report reportOf(const rt::Module &module, const io::EntryInfo &entry, const BenchOptions &options, int threads,
                const Measurement &measured) {
  Report report = {};
  report.decode = spreadOf(measured.decodeTokensPerSecond);
  report.prefill = spreadOf(measured.prefillTokensPerSecond);
  report.loadSeconds = measured.loadSeconds;
  report.firstTokenSeconds = measured.firstTokenSeconds;
  report.bytesPerToken =
      weightBytes(module) + stateBytes(module.manifest().slotsOf(entry), options.promptLength + options.newTokens / 2);
  report.achieved = static_cast<double>(report.bytesPerToken) * report.decode.median;
  report.bandwidth = measured.bandwidth;
  report.peakBytes = measured.peakBytes;
  report.artefactBytes = artefactBytes(module);
  report.promptLength = options.promptLength;
  report.newTokens = options.newTokens;
  report.threads = threads;
  report.repeats = options.repeat;
  return report;
}

void printJson(const Report &report) {
  auto speed = [](const char *name, const Spread &spread) {
    std::printf("\"%s\": %.3f, \"%s_min\": %.3f, \"%s_max\": %.3f, ", name, spread.median, name, spread.least, name,
                spread.most);
  };
  auto whole = [](const char *name, int64_t value, const char *after = ", ") {
    std::printf("\"%s\": %lld%s", name, static_cast<long long>(value), after);
  };
  std::printf("{");
  speed("decode_tokens_per_second", report.decode);
  speed("prefill_tokens_per_second", report.prefill);
  std::printf("\"first_token_seconds\": %.6f, \"load_seconds\": %.6f, ", report.firstTokenSeconds, report.loadSeconds);
  whole("bytes_read_per_token", report.bytesPerToken);
  std::printf("\"achieved_bytes_per_second\": %.0f, ", report.achieved);
  if (report.bandwidth)
    std::printf("\"read_bandwidth_bytes_per_second\": %.0f, \"read_bandwidth_fraction\": %.4f, ", *report.bandwidth,
                report.achieved / *report.bandwidth);
  whole("peak_rss_bytes", report.peakBytes);
  whole("artefact_bytes", report.artefactBytes);
  whole("prompt_length", report.promptLength);
  whole("new_tokens", report.newTokens);
  whole("threads", report.threads);
  whole("repeats", report.repeats, "}\n");
}

void printText(const Report &report) {
  constexpr double mega = 1e6, giga = 1e9;
  auto speed = [&](const char *name, const Spread &spread) {
    std::printf("%-12s %10.2f tokens/s   (%.2f to %.2f in %lld repeats)\n", name, spread.median, spread.least,
                spread.most, static_cast<long long>(report.repeats));
  };
  std::printf("prompt of %lld tokens, %lld new tokens, threads: %lld\n", static_cast<long long>(report.promptLength),
              static_cast<long long>(report.newTokens), static_cast<long long>(report.threads));
  speed("decode", report.decode);
  speed("prefill", report.prefill);
  std::printf("%-12s %10.3f s          (from the start of the process; loading %.3f s)\n", "first token",
              report.firstTokenSeconds, report.loadSeconds);
  std::printf("%-12s %10.2f GB/s       (%.1f MB a token", "reading", report.achieved / giga,
              static_cast<double>(report.bytesPerToken) / mega);
  if (report.bandwidth)
    std::printf(", %.1f%% of the %.2f GB/s that this machine reads)\n", 100 * report.achieved / *report.bandwidth,
                *report.bandwidth / giga);
  else
    std::printf(", in the GPU's memory)\n");
  std::printf("%-12s %10.1f MB         (%.2f times the artefact)\n", "peak memory",
              static_cast<double>(report.peakBytes) / mega,
              static_cast<double>(report.peakBytes) / static_cast<double>(report.artefactBytes));
}

std::vector<int64_t> spreadPrompt(int64_t length, int64_t vocabulary) {
  constexpr int64_t step = 7919; // a prime, so that ids do not repeat soon
  std::vector<int64_t> prompt;
  for (int64_t i = 0; i < length; ++i)
    prompt.push_back(i * step % vocabulary);
  return prompt;
}

/// Which options go together.
absl::Status checkOptions(const BenchOptions &options) {
  if (options.calls() && options.speculates())
    return invalid("expected calls with tensors or speculative decoding, but got options of both");
  int64_t most = options.speculation.options.mostDrafted + 1;
  if (options.acceptLength > 0 && options.speculation.drafts)
    return invalid("expected --speculate or --accept-length, but got both");
  if (options.acceptLength > static_cast<double>(most))
    return invalid("expected --accept-length to be a number from 1 to ", most, " with --draft-tokens=", most - 1,
                   ", but got ", options.acceptLength);
  if (options.prompts && !options.speculates())
    return invalid("expected --speculate or --accept-length with --prompts=", *options.prompts);
  return absl::OkStatus();
}

absl::Status benchDrafts(BenchOptions &options, rt::LanguageModel &model, int threads) {
  const rt::Module &module = model.session().module();
  rt::DraftModel draft;
  HONE_RETURN_IF_ERROR(options.speculation.openDraft(draft, model.session(), options.threads));
  SpeculationBenchOptions bench;
  bench.speculation = options.speculation.options;
  if (options.acceptLength > 0) {
    bench.speculation.sources = {rt::DraftSource::Replay};
    bench.acceptLength = options.acceptLength;
  }
  bench.sampling = options.sampling;
  bench.sampling.seed = static_cast<uint64_t>(options.seed);
  if (options.prompts && !options.ignoreEnd)
    bench.endTokens = module.manifest().generation.endTokens;
  bench.newTokens = options.newTokens;
  bench.repeats = options.repeat;
  bench.threads = threads;
  bench.json = options.json;
  std::vector<Prompt> prompts = {
      {"the prompt", "spread", {spreadPrompt(options.promptLength, model.vocabulary().value_or(1))}}};
  if (options.prompts) {
    HONE_ASSIGN_OR_RETURN(prompts, readPrompts(*options.prompts, module));
  }
  return benchSpeculation(model, prompts, bench);
}

absl::Status benchPlain(const BenchOptions &options, rt::LanguageModel &model, int threads, Measurement &measured) {
  std::vector<int64_t> prompt = spreadPrompt(options.promptLength, model.vocabulary().value_or(1));
  HONE_RETURN_IF_ERROR(measure(model, prompt, options, threads, measured));
  Report report = reportOf(model.session().module(), model.session().entry(), options, threads, measured);
  options.json ? printJson(report) : printText(report);
  return absl::OkStatus();
}

absl::Status benchLanguageModel(BenchOptions &options, const std::string &path,
                                const std::shared_ptr<const rt::Module> &module, double start, Profiler &profiler) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Session> session,
                        rt::openLanguageSession(module, static_cast<int>(options.threads), options.kvOffload));
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::over(*session));
  Measurement measured;
  measured.loadSeconds = wallSeconds() - start;
  HONE_RETURN_IF_ERROR(options.speculation.loadDraft(path, module, profiler.recorder()));
  int threads = threadCount(options.threads);
  return options.speculates() ? benchDrafts(options, model, threads) : benchPlain(options, model, threads, measured);
}

absl::Status benchTensors(const BenchOptions &options, const rt::Module &module, double loadSeconds) {
  CallBenchOptions bench;
  bench.inputs = options.inputs;
  bench.entry = options.entry.value_or(bench.entry);
  bench.seconds = options.seconds;
  bench.leastCalls = options.repeat;
  bench.threads = static_cast<int>(options.threads);
  bench.json = options.json;
  bench.loadSeconds = loadSeconds;
  return benchCalls(module, bench);
}

absl::Status runBench(std::span<const std::string> arguments) {
  BenchOptions options;
  std::vector<std::string> positionals;
  HONE_RETURN_IF_ERROR(parserFor(options).parse(arguments, positionals));
  if (options.machine) {
    bool hasModel = !positionals.empty() || options.calls() || options.prompts || !options.profile.empty();
    if (hasModel || options.acceptLength > 0 || options.speculation.drafts)
      return invalid("expected --threads and --json alone with --machine, but got a model or options for one");
    return benchMachine(options.threads, options.json);
  }
  HONE_ASSIGN_OR_RETURN(std::string path, onlyModel(positionals));
  HONE_RETURN_IF_ERROR(options.speculation.read());
  HONE_RETURN_IF_ERROR(checkOptions(options));
  io::InputFiles inputs;
  inputs.add(path);
  inputs.add(options.prompts.value_or(""));
  inputs.add(options.inputs.value_or(""));
  options.speculation.addInputs(inputs);
  Profiler profiler;
  HONE_RETURN_IF_ERROR(profiler.open(options.profile, inputs));
  double start = wallSeconds();
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, loadModule(path, profiler.recorder()));
  HONE_RETURN_IF_ERROR(options.calls() ? benchTensors(options, *module, wallSeconds() - start)
                                       : benchLanguageModel(options, path, module, start, profiler));
  return profiler.write(*module);
}

} // namespace

extern const Command kBenchCommand = {"bench", "speed of a language model, or of calls with tensors", kHelp, runBench,
                                      [] {
                                        BenchOptions options;
                                        return parserFor(options).names();
                                      }};

} // namespace hone::cli
