// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Artefacts of language models beside each other: their calls take turns within one process, so that what else the machine does
// meets all of them alike, and ratios are those of a turn.

#include "hone/runtime/hone.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// Positions before a call that takes one token; later turns go on from there, up to the last one.
constexpr int64_t kFirstPosition = 8, kLastPosition = 256;
constexpr int kUncounted = 2; // calls of each, which make caches and threads start up

struct Options {
  int32_t threads = 0;
  int64_t tokens = 1;
  double seconds = 20;
  std::vector<const char *> folders;
};

constexpr const char *kUsage =
    "usage: hone-artefact-ratios [--threads=N] [--tokens=N] [--seconds=N] MODEL.hone...\n"
    "  Prints tokens a second of each artefact, and ratios to the first, with their quartiles.\n"
    "  --threads=N  threads of each session (default: as many as the machine has)\n"
    "  --tokens=N   tokens of a call: 1 decodes after others, more are a prompt (default: 1)\n"
    "  --seconds=N  how long to take turns (default: 20)\n";

/// What is wrong with the arguments; nothing where nothing is.
std::string parse(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    const char *value = argv[i] + std::min(argument.size(), argument.find('=') + 1);
    if (argument.starts_with("--threads="))
      options.threads = std::atoi(value);
    else if (argument.starts_with("--tokens="))
      options.tokens = std::atoll(value);
    else if (argument.starts_with("--seconds="))
      options.seconds = std::atof(value);
    else if (argument.starts_with("-"))
      return "unknown option '" + argument + "'; --help lists the options";
    else
      options.folders.push_back(argv[i]);
  }
  if (options.tokens <= 0)
    return "expected --tokens to be positive, but got " + std::to_string(options.tokens);
  return options.folders.empty() ? "expected MODEL.hone, but got none" : "";
}

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

void check(hone_status status, const char *folder) {
  if (status == HONE_OK)
    return;
  std::fprintf(stderr, "hone-artefact-ratios: error: %s: %s\n", folder, hone_last_error());
  std::exit(1);
}

/// A session of an artefact, and the seconds that its calls took.
class Runner {
public:
  Runner(const char *folder, const Options &options) : folder(folder) {
    hone_session_options session = {sizeof session, "forward", options.threads,
                                    std::max(options.tokens, kLastPosition) + 1};
    input.struct_size = sizeof input;
    check(hone_module_open(folder, &module), folder);
    check(hone_module_tensor_info(module, "forward", HONE_INPUT, 0, &input), folder);
    check(hone_session_open(module, &session, &handle), folder);
    check(hone_session_set_logits_to_keep(handle, 1), folder);
  }
  Runner(const Runner &) = delete;
  ~Runner() {
    hone_session_close(handle);
    hone_module_close(module);
  }

  /// Takes `count` tokens after the first `position` positions, of which there are so many or one less; returns the seconds of it.
  double call(int64_t position, int64_t count) {
    check(hone_session_truncate(handle, position), folder);
    std::vector<int64_t> tokens(count);
    for (int64_t i = 0; i < count; ++i)
      tokens[i] = (position + i) % 251;
    hone_named_tensor ids = {input.name, {}};
    ids.tensor.data = tokens.data();
    ids.tensor.dtype = HONE_I64;
    ids.tensor.rank = 2;
    ids.tensor.sizes[0] = 1;
    ids.tensor.sizes[1] = ids.tensor.strides[0] = count;
    ids.tensor.strides[1] = 1;
    hone_outputs *outputs;
    double begin = secondsNow();
    check(hone_session_forward(handle, &ids, 1, &outputs), folder);
    double seconds = secondsNow() - begin;
    hone_outputs_free(outputs);
    return seconds;
  }

  const char *folder;
  std::vector<double> times;

private:
  hone_module *module;
  hone_session *handle;
  hone_tensor_info input = {};
};

/// Of every other turn the order is the reverse: what comes after the slowest is not always the same.
void takeTurns(std::vector<Runner *> runners, const Options &options) {
  bool isStep = options.tokens == 1;
  for (Runner *runner : runners) {
    if (isStep)
      runner->call(0, kFirstPosition);
    for (int i = 0; i < kUncounted; ++i)
      runner->call(isStep ? kFirstPosition : 0, options.tokens);
  }
  int64_t position = kFirstPosition;
  for (double end = secondsNow() + options.seconds; secondsNow() < end;) {
    position = position == kLastPosition ? kFirstPosition : position + 1;
    for (Runner *runner : runners)
      runner->times.push_back(runner->call(isStep ? position : 0, options.tokens));
    std::ranges::reverse(runners);
  }
}

/// Rates, and ratios to those of the first; the quartiles in parentheses.
void print(const std::vector<Runner *> &runners, const Options &options) {
  std::printf("%lld tokens a call, %zu turns\n", static_cast<long long>(options.tokens), runners[0]->times.size());
  for (const Runner *runner : runners) {
    std::vector<double> ratios;
    for (size_t turn = 0; turn < runner->times.size(); ++turn)
      ratios.push_back(runners[0]->times[turn] / runner->times[turn]);
    std::printf("%9.1f tokens/s  %6.2f (%.2f-%.2f)  %s\n",
                static_cast<double>(options.tokens) / quantile(runner->times, 0.5), quantile(ratios, 0.5),
                quantile(ratios, 0.25), quantile(ratios, 0.75), runner->folder);
  }
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (std::find(argv + 1, argv + argc, std::string_view("--help")) != argv + argc) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (std::string error = parse(argc, argv, options); !error.empty()) {
    std::fprintf(stderr, "hone-artefact-ratios: error: %s\n", error.c_str());
    return 1;
  }
  std::vector<std::unique_ptr<Runner>> owned;
  std::vector<Runner *> runners;
  for (const char *folder : options.folders)
    runners.push_back(owned.emplace_back(std::make_unique<Runner>(folder, options)).get());
  takeTurns(runners, options);
  print(runners, options);
  return 0;
}
