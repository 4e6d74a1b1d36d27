// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Latencies of one entry on the same inputs.

#include "cli/call_bench.h"

#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/process_figures.h"
#include "cpu/read_limit.h"
#include "hone/cli/progress.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone::cli {
namespace {

using cpu::wallSeconds;
using io::invalid;

/// Seconds of calls, ascending.
class Latencies {
public:
  explicit Latencies(std::vector<double> seconds) : seconds(std::move(seconds)) { std::ranges::sort(this->seconds); }

  size_t count() const { return seconds.size(); }
  double sum() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }
  /// The least that so many of the calls do not exceed (nearest rank).
  double percentile(double share) const {
    auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(seconds.size())));
    return seconds[std::max<size_t>(rank, 1) - 1];
  }

private:
  std::vector<double> seconds;
};

struct CallReport {
  Latencies latencies;
  double firstSeconds;
  int64_t inputBytes, outputBytes, peakBytes, artefactBytes;
};

int64_t bytesOf(const NamedArrays &arrays) {
  int64_t total = 0;
  for (const auto &[name, array] : arrays)
    total += array.bytes();
  return total;
}

int64_t bytesOf(const std::vector<io::Array> &arrays) {
  return std::accumulate(arrays.begin(), arrays.end(), int64_t{0},
                         [](int64_t sum, const io::Array &array) { return sum + array.bytes(); });
}

absl::StatusOr<CallReport> measure(const rt::Module &module, const NamedArrays &inputs,
                                   const CallBenchOptions &options) {
  std::vector<rt::NamedTensor> views = viewsOf(inputs);
  auto call = [&](int64_t &outputBytes) -> absl::StatusOr<double> {
    double start = wallSeconds();
    HONE_ASSIGN_OR_RETURN(std::vector<io::Array> outputs, module.call(options.entry, views, options.threads));
    double seconds = wallSeconds() - start;
    outputBytes = bytesOf(outputs);
    return seconds;
  };
  int64_t outputBytes = 0;
  HONE_ASSIGN_OR_RETURN(double first, call(outputBytes));
  std::vector<double> seconds;
  Progress progress("measuring", std::max<int64_t>(1, std::llround(options.seconds)));
  for (double start = wallSeconds(), taken = 0;
       static_cast<int64_t>(seconds.size()) < options.leastCalls || taken < options.seconds;
       taken = wallSeconds() - start) {
    progress.update(static_cast<int64_t>(taken));
    HONE_ASSIGN_OR_RETURN(double one, call(outputBytes));
    seconds.push_back(one);
  }
  return CallReport{Latencies(std::move(seconds)), first, bytesOf(inputs), outputBytes, peakMemory(),
                    artefactBytes(module)};
}

double callsPerSecond(const CallReport &report) {
  return static_cast<double>(report.latencies.count()) / report.latencies.sum();
}

double meanOf(const CallReport &report) {
  return report.latencies.sum() / static_cast<double>(report.latencies.count());
}

void printJson(const CallReport &report, const CallBenchOptions &options, int threads) {
  const Latencies &latencies = report.latencies;
  std::printf("{\"latency_seconds\": %.9f, \"latency_seconds_min\": %.9f, \"latency_seconds_mean\": %.9f, "
              "\"latency_seconds_p90\": %.9f, \"latency_seconds_p99\": %.9f, \"latency_seconds_max\": %.9f, "
              "\"calls_per_second\": %.3f, \"first_call_seconds\": %.9f, ",
              latencies.percentile(0.5), latencies.percentile(0), meanOf(report), latencies.percentile(0.9),
              latencies.percentile(0.99), latencies.percentile(1), callsPerSecond(report), report.firstSeconds);
  std::printf("\"input_bytes\": %lld, \"output_bytes\": %lld, \"load_seconds\": %.6f, \"peak_rss_bytes\": %lld, "
              "\"artefact_bytes\": %lld, \"calls\": %zu, \"threads\": %d}\n",
              static_cast<long long>(report.inputBytes), static_cast<long long>(report.outputBytes),
              options.loadSeconds, static_cast<long long>(report.peakBytes),
              static_cast<long long>(report.artefactBytes), latencies.count(), threads);
}

void printText(const CallReport &report, const CallBenchOptions &options, int threads) {
  constexpr double milli = 1e3, mega = 1e6;
  const Latencies &latencies = report.latencies;
  printLine("entry ", options.entry, ", ", latencies.count(), " calls, threads: ", threads);
  std::printf("%-12s %10.3f ms         (%.3f to %.3f; mean %.3f, 90 %% within %.3f, 99 %% within %.3f)\n", "latency",
              milli * latencies.percentile(0.5), milli * latencies.percentile(0), milli * latencies.percentile(1),
              milli * meanOf(report), milli * latencies.percentile(0.9), milli * latencies.percentile(0.99));
  std::printf("%-12s %10.2f calls/s    (one after the other; %.1f kB in, %.1f kB out)\n", "throughput",
              callsPerSecond(report), static_cast<double>(report.inputBytes) / milli,
              static_cast<double>(report.outputBytes) / milli);
  std::printf("%-12s %10.3f ms         (not counted; loading %.3f s)\n", "first call", milli * report.firstSeconds,
              options.loadSeconds);
  std::printf("%-12s %10.1f MB         (%.2f times the artefact)\n", "peak memory",
              static_cast<double>(report.peakBytes) / mega,
              static_cast<double>(report.peakBytes) / static_cast<double>(report.artefactBytes));
}

} // namespace

absl::Status benchCalls(const rt::Module &module, const CallBenchOptions &options) {
  const io::EntryInfo *entry = module.manifest().entry(options.entry);
  if (!entry)
    return invalid(module.folder(), ": has no entry '", options.entry, "'");
  NamedArrays inputs;
  if (options.inputs) {
    HONE_ASSIGN_OR_RETURN(io::NpzReader file, io::NpzReader::open(*options.inputs));
    HONE_ASSIGN_OR_RETURN(inputs, readInputs(file, "", *entry));
  }
  HONE_ASSIGN_OR_RETURN(CallReport report, measure(module, inputs, options));
  int threads = threadCount(options.threads);
  options.json ? printJson(report, options, threads) : printText(report, options, threads);
  return absl::OkStatus();
}

} // namespace hone::cli
