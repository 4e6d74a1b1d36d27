// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cli/machine_bench.h"

#include "cli/process_figures.h"
#include "cpu/kernel_table.h"
#include "cpu/read_limit.h"
#include "hone/io/status.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <omp.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace hone::cli {
namespace {

struct Reading {
  int threads;
  double bandwidth; // bytes a second
};

struct Machine {
  std::string processor;
  std::vector<std::string> isas; // lowest first, one or more
  int processors = 1;
  long l1 = 0, l2 = 0, l3 = 0; // bytes
  std::vector<Reading> readings;
};

/// The value of the first line `model name : value`.
std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (size_t colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  return "unknown";
}

absl::StatusOr<Machine> measureMachine(int threads) {
  if (cpu::supportedIsas().empty())
    return absl::FailedPreconditionError("kernels need a CPU with AVX2");
  Machine machine;
  machine.processor = processorName();
  for (cpu::Isa isa : cpu::supportedIsas())
    machine.isas.emplace_back(cpu::isaName(isa));
  machine.processors = omp_get_num_procs();
  machine.l1 = std::max(sysconf(_SC_LEVEL1_DCACHE_SIZE), 0L);
  machine.l2 = std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), 0L);
  machine.l3 = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), 0L);
  std::vector<int> counts = {1};
  if (threads > 1)
    counts.push_back(threads);
  for (int count : counts) {
    HONE_ASSIGN_OR_RETURN(double bandwidth, measureBandwidth(count));
    machine.readings.push_back({count, bandwidth});
  }
  return machine;
}

void printJson(const Machine &machine) {
  nlohmann::ordered_json object;
  object["processor"] = machine.processor;
  object["isa"] = machine.isas.back();
  object["supported_isas"] = machine.isas;
  object["processors"] = machine.processors;
  object["l1_data_bytes"] = machine.l1;
  object["l2_bytes"] = machine.l2;
  object["l3_bytes"] = machine.l3;
  for (const Reading &reading : machine.readings)
    object["read_bandwidth_bytes_per_second"].push_back(
        {{"threads", reading.threads}, {"bytes_per_second", static_cast<int64_t>(reading.bandwidth)}});
  using Errors = nlohmann::ordered_json::error_handler_t;
  std::printf("%s\n", object.dump(-1, ' ', /*ensure_ascii=*/true, Errors::replace).c_str());
}

void printText(const Machine &machine) {
  constexpr long kibi = 1024;
  constexpr double giga = 1e9;
  std::printf("%-12s %s\n", "processor", machine.processor.c_str());
  std::printf("%-12s %s\n", "kernels", machine.isas.back().c_str());
  std::printf("%-12s %d\n", "processors", machine.processors);
  std::printf("%-12s L1 %ld KiB, L2 %ld KiB, L3 %ld KiB\n", "caches", machine.l1 / kibi, machine.l2 / kibi,
              machine.l3 / kibi);
  for (const Reading &reading : machine.readings)
    std::printf("%-12s %.2f GB/s, threads: %d\n", "reading", reading.bandwidth / giga, reading.threads);
}

} // namespace

absl::StatusOr<double> measureBandwidth(int threads) {
  cpu::MeasuredMemory memory(cpu::kBeyondCaches, /*hugePages=*/true);
  if (memory.all().empty())
    return absl::ResourceExhaustedError(io::cat("cannot allocate ", cpu::kBeyondCaches, " bytes: out of memory"));
  constexpr int passes = 3;
  double best = 0;
  for (int pass = 0; pass < passes; ++pass)
    best = std::max(best, cpu::readBandwidth(memory.all(), threads, cpu::wallSeconds));
  return best;
}

absl::Status benchMachine(int64_t threads, bool json) {
  HONE_ASSIGN_OR_RETURN(Machine machine, measureMachine(threadCount(threads)));
  json ? printJson(machine) : printText(machine);
  return absl::OkStatus();
}

} // namespace hone::cli
