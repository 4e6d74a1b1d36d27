// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `bench`: speed of prefill and decoding, and how near decoding comes to the bandwidth of memory.

#include "cli/commands.h"
#include "cli/progress.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <omp.h>
#include <sys/resource.h>

namespace hone::cli {
namespace {

using io::invalid;
using Clock = std::chrono::steady_clock;

constexpr const char *kHelp = R"(usage: {program} bench MODEL.hone [OPTIONS]

Measures a language model on a prompt of evenly spread token ids. Every repeat begins with an empty session; the median of
the repeats is printed, after one that is not counted.

options
  --prompt-length N   tokens of the prompt (default 128)
  --new-tokens N      tokens decoded one by one after it (default 64)
  --threads N         threads (default: one for each processor)
  --repeat N          repeats (default 5)
  --json              print one JSON object instead of lines

printed
  prefill_tokens_per_second   prompt tokens by the time of the one call that takes them
  first_token_seconds         that time, and the choice of a token
  decode_tokens_per_second    new tokens by the time of their calls
  bytes_read_per_token        weights, and state at the middle of decoding: what one step must read
  read_bandwidth_fraction     bytes_read_per_token by decode_tokens_per_second, as a part of what this machine reads in a
                              second with the same threads, measured just before
  peak_rss_bytes              most memory the process had
)";

struct BenchOptions {
  int64_t promptLength = 128, newTokens = 64, threads = 0, repeat = 5;
  bool json = false;
};

OptionParser parserFor(BenchOptions &options) {
  OptionParser parser;
  parser.integer("prompt-length", options.promptLength, 1);
  parser.integer("new-tokens", options.newTokens, 1);
  parser.integer("threads", options.threads, 1, kMostThreads);
  parser.integer("repeat", options.repeat, 1);
  parser.flag("json", options.json);
  return parser;
}

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double medianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Bytes that all threads together read a second, from an array far larger than caches; the best of a few passes.
double readBandwidth(int threads) {
  constexpr size_t words = size_t{1} << 25; // 256 MiB
  constexpr int passes = 4;
  std::vector<uint64_t> memory(words, 1);
  uint64_t total = 0;
  double best = 0;
  for (int pass = 0; pass < passes; ++pass) {
    auto start = Clock::now();
#pragma omp parallel for reduction(+ : total) num_threads(threads) schedule(static)
    for (size_t i = 0; i < words; ++i)
      total += memory[i];
    best = std::max(best, static_cast<double>(words * sizeof(uint64_t)) / secondsSince(start));
  }
  // The sum is used, so that the reads are not removed.
  return total == 0 ? 0 : best;
}

struct Measurement {
  std::vector<double> prefillSeconds, firstTokenSeconds, decodeSeconds;
};

absl::Status measure(rt::LanguageModel &model, std::span<const int64_t> prompt, int64_t newTokens, Measurement &into) {
  model.session().state().reset();
  auto start = Clock::now();
  HONE_ASSIGN_OR_RETURN(io::Array logits, model.feed(prompt));
  into.prefillSeconds.push_back(secondsSince(start));
  int64_t token = rt::likeliestToken(logits.as<float>().last(static_cast<size_t>(logits.shape().back())));
  into.firstTokenSeconds.push_back(secondsSince(start));
  start = Clock::now();
  for (int64_t i = 0; i < newTokens; ++i) {
    HONE_ASSIGN_OR_RETURN(logits, model.feed({&token, 1}));
    token = rt::likeliestToken(logits.as<float>());
  }
  into.decodeSeconds.push_back(secondsSince(start));
  return absl::OkStatus();
}

/// Bytes of the state at `positions`; symbolic sizes other than the batch are 1 as well.
int64_t stateBytes(const io::EntryInfo &entry, int64_t positions) {
  int64_t total = 0;
  for (const io::TensorInfo &slot : entry.state) {
    int64_t bytes = io::dtypeBytes(slot.dtype);
    for (size_t axis = 0; axis < slot.shape.size(); ++axis)
      bytes *= slot.appendAxis == static_cast<int64_t>(axis) ? positions : std::max<int64_t>(slot.shape[axis].size, 1);
    total += bytes;
  }
  return total;
}

int64_t weightBytes(const rt::Module &module) {
  const auto &tensors = module.weights().tensors();
  return std::accumulate(tensors.begin(), tensors.end(), int64_t{0}, [](int64_t sum, const io::StoredTensor &tensor) {
    return sum + static_cast<int64_t>(tensor.bytes);
  });
}

void print(const rt::Module &module, const io::EntryInfo &entry, const BenchOptions &options,
           const Measurement &measured, double bandwidth, int threads) {
  double decode = static_cast<double>(options.newTokens) / medianOf(measured.decodeSeconds);
  double prefill = static_cast<double>(options.promptLength) / medianOf(measured.prefillSeconds);
  int64_t bytes = weightBytes(module) + stateBytes(entry, options.promptLength + options.newTokens / 2);
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  constexpr long long kibibyte = 1024; // ru_maxrss counts these on Linux
  const char *format =
      options.json
          ? "{\"decode_tokens_per_second\": %.3f, \"prefill_tokens_per_second\": %.3f, "
            "\"first_token_seconds\": %.6f, \"bytes_read_per_token\": %lld, \"read_bandwidth_fraction\": %.4f, "
            "\"peak_rss_bytes\": %lld, \"prompt_length\": %lld, \"new_tokens\": %lld, \"threads\": %d}\n"
          : "decode_tokens_per_second   %.3f\nprefill_tokens_per_second  %.3f\nfirst_token_seconds        %.6f\n"
            "bytes_read_per_token       %lld\nread_bandwidth_fraction    %.4f\npeak_rss_bytes             %lld\n"
            "prompt_length              %lld\nnew_tokens                 %lld\nthreads                    %d\n";
  std::printf(format, decode, prefill, medianOf(measured.firstTokenSeconds), static_cast<long long>(bytes),
              static_cast<double>(bytes) * decode / bandwidth, usage.ru_maxrss * kibibyte,
              static_cast<long long>(options.promptLength), static_cast<long long>(options.newTokens), threads);
}

std::vector<int64_t> spreadPrompt(int64_t length, int64_t vocabulary) {
  constexpr int64_t step = 7919; // a prime, so that ids do not repeat soon
  std::vector<int64_t> prompt;
  for (int64_t i = 0; i < length; ++i)
    prompt.push_back(i * step % vocabulary);
  return prompt;
}

absl::Status runBench(std::span<const std::string> arguments) {
  BenchOptions options;
  std::vector<std::string> positionals;
  HONE_RETURN_IF_ERROR(parserFor(options).parse(arguments, positionals));
  HONE_ASSIGN_OR_RETURN(std::string path, onlyModel(positionals));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, rt::Module::load(path));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Session> session,
                        rt::openLanguageSession(module, static_cast<int>(options.threads)));
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::over(*session));
  std::vector<int64_t> prompt = spreadPrompt(options.promptLength, model.vocabulary().value_or(1));
  Progress progress("measuring", options.repeat + 1);
  Measurement warmUp, measured;
  HONE_RETURN_IF_ERROR(measure(model, prompt, options.newTokens, warmUp));
  for (int64_t i = 0; i < options.repeat; ++i) {
    progress.update(i + 1);
    HONE_RETURN_IF_ERROR(measure(model, prompt, options.newTokens, measured));
  }
  int threads = options.threads > 0 ? static_cast<int>(options.threads) : omp_get_max_threads();
  print(*module, session->entry(), options, measured, readBandwidth(threads), threads);
  return absl::OkStatus();
}

} // namespace

const Command kBenchCommand = {"bench", kHelp, runBench, [] {
                                 BenchOptions options;
                                 return parserFor(options).names();
                               }};

} // namespace hone::cli
