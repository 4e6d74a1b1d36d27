//===- ratios.cpp - kernels against the limits of the machine -----------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Limit and kernel take turns, and the median of the ratios is printed, because other jobs and neighbours change both.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "limits.h"
#include "measure.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <omp.h>
#include <string_view>

namespace hone::bench {
namespace {

constexpr const char *kUsage =
    "usage: hone-kernel-ratios [OPTIONS]\n"
    "  Prints what kernels reach of what the machine can read and multiply: the median of the ratios of turns.\n"
    "  --threads=N    threads (default: 1)\n"
    "  --repeats=N    turns of each kernel (default: 7)\n"
    "  --filter=TEXT  only kernels whose names have TEXT in them\n"
    "  --small-pages  no huge pages for weights\n"
    "  --all-isas   on every ISA of the CPU, not at the best alone\n"
    "  --limits       print what the machine can do as JSON, and nothing else\n"
    "  --costs        print the times of weights' formats as a table of C++, and nothing else\n";

/// What is wrong with the arguments; nothing where nothing is.
std::string parse(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    auto value = [&](const char *name) -> const char * {
      size_t size = std::strlen(name);
      return argument.compare(0, size, name) == 0 ? argument.c_str() + size : nullptr;
    };
    if (const char *text = value("--threads="))
      options.threads = std::max(1, std::atoi(text));
    else if (const char *text = value("--repeats="))
      options.repeats = std::max(1, std::atoi(text));
    else if (const char *text = value("--filter="))
      options.filter = text;
    else if (argument == "--limits")
      options.limitsOnly = true;
    else if (argument == "--costs")
      options.costsOnly = true;
    else if (argument == "--small-pages")
      options.hugePages = false;
    else if (argument == "--all-isas")
      options.allLevels = true;
    else
      return "unknown option '" + argument + "'; --help lists the options";
  }
  return "";
}

/// What the machine can do at most, as a JSON object: the best of the repeats, by wall time, and the peaks of one thread.
void printLimits(const Options &options, const Pool &pool) {
  double read = 0, update = 0;
  for (int i = 0; i < options.repeats; ++i) {
    read = std::max(read, cpu::readBandwidth(pool.all(), options.threads, cpu::wallSeconds));
    update = std::max(update, updateBandwidth(pool.all(), options.threads));
  }
  std::printf("{\"read_bytes_per_second\": %.0f, \"update_bytes_per_second\": %.0f, \"f32_per_second\": %.0f, "
              "\"bf16_per_second\": %.0f, \"int8_per_second\": %.0f}\n",
              read, update, peak(Arithmetic::F32, 1),
              std::max(peak(Arithmetic::Bf16Vectors, 1), peak(Arithmetic::Bf16Tiles, 1)), peak(Arithmetic::Vnni, 1));
}

} // namespace
} // namespace hone::bench

int main(int argc, char **argv) {
  using namespace hone;
  bench::Options options;
  if (std::find(argv + 1, argv + argc, std::string_view("--help")) != argv + argc) {
    std::fputs(bench::kUsage, stdout);
    return 0;
  }
  if (std::string error = bench::parse(argc, argv, options); !error.empty()) {
    std::fprintf(stderr, "hone-kernel-ratios: error: %s\n", error.c_str());
    return 1;
  }
  if (cpu::supportedIsas().empty()) {
    std::fputs("hone-kernel-ratios: error: kernels need a CPU with AVX2\n", stderr);
    return 1;
  }
  omp_set_num_threads(options.threads);
  bench::Pool pool(cpu::kBeyondCaches, options.hugePages);
  if (pool.all().empty()) {
    std::fputs("hone-kernel-ratios: error: no memory for weights\n", stderr);
    return 1;
  }
  if (options.limitsOnly) {
    bench::printLimits(options, pool);
    return 0;
  }
  std::span<const cpu::Isa> isas = cpu::supportedIsas();
  if (!options.allLevels)
    isas = isas.last(1);
  if (options.costsOnly) {
    bench::printCosts(options, pool, isas);
    return 0;
  }
  auto peak = [&](bench::Arithmetic arithmetic) { return bench::peak(arithmetic, options.threads) * 1e-9; };
  std::printf("peaks of %d threads: f32 %.0f, bf16 of vectors %.0f, of tiles %.0f (%.0f loaded), VNNI %.0f GFLOP/s\n",
              options.threads, peak(bench::Arithmetic::F32), peak(bench::Arithmetic::Bf16Vectors),
              peak(bench::Arithmetic::Bf16Tiles), bench::loadedTiles(options.threads) * 1e-9,
              peak(bench::Arithmetic::Vnni));
  for (cpu::Isa isa : isas) {
    reportLinear(options, pool, isa);
    reportAttention(options, pool, isa);
    reportSelection(options, pool, isa);
    reportLinearAttention(options, pool, isa);
  }
  return 0;
}
