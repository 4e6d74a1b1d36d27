//===- ratios.cpp - packed linear kernels against the limits of the machine ---------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few rows are bound by reading weights: their rate is given as a share of the read bandwidth over the same memory. Many
// rows are bound by arithmetic: their rate is a share of the peak of the instructions. Limit and kernel take turns, and the
// median of the ratios is printed, because other jobs and neighbours change both.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "limits.h"

#include "cpu/kernel_table.h"
#include "cpu/packing/pack_linear.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <omp.h>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace hone::bench {
namespace {

using cpu::PackedFormat;

struct Options {
  int threads = 1, repeats = 7;
  bool hugePages = true, allLevels = false;
  std::string filter;
  int64_t poolBytes = int64_t{512} << 20;
};

struct Case {
  const char *name, *kernel;
  PackedFormat format;
  int64_t group, bits; // bits of activations, 0 where they stay floats
  double (*peak)();
};

const Case kCases[] = {
    {"f32", "hone.packed_linear.f32", PackedFormat::F32, 0, 0, peakF32},
    {"f16", "hone.packed_linear.f16", PackedFormat::F16, 0, 0, peakF32},
    {"bf16", "hone.packed_linear.bf16", PackedFormat::Bf16, 0, 0, peakBf16},
    {"u8", "hone.packed_linear.u8", PackedFormat::U8, 0, 8, peakVnni},
    {"u8-x16", "hone.packed_linear.u8", PackedFormat::U8, 0, 16, peakVnni},
    {"u8-g128", "hone.packed_linear.u8", PackedFormat::U8, 128, 8, peakVnni},
    {"u4-g128", "hone.packed_linear.u4", PackedFormat::U4, 128, 8, peakVnni},
    {"u4-g64", "hone.packed_linear.u4", PackedFormat::U4, 64, 8, peakVnni},
    {"u4-g64-x16", "hone.packed_linear.u4", PackedFormat::U4, 64, 16, peakVnni},
    {"u4-g32", "hone.packed_linear.u4", PackedFormat::U4, 32, 8, peakVnni},
    {"u4-g32-x16", "hone.packed_linear.u4", PackedFormat::U4, 32, 16, peakVnni},
};

struct LayerSize {
  int64_t outputs, inputs;
};
const LayerSize kLayers[] = {{4864, 896}, {896, 4864}};

/// Memory that weights and the read limit share.
class Pool {
public:
  explicit Pool(const Options &options) : bytes(static_cast<size_t>(options.poolBytes)) {
    memory = static_cast<uint8_t *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) {
      std::perror("cannot map memory for weights");
      std::exit(1);
    }
    madvise(memory, bytes, options.hugePages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    // No byte pattern of it is a number that arithmetic is slow with.
    for (size_t i = 0; i < bytes; ++i)
      memory[i] = static_cast<uint8_t>(0x30 + i % 11);
  }
  ~Pool() { munmap(memory, bytes); }
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  std::span<uint8_t> all() { return {memory, bytes}; }

private:
  size_t bytes;
  uint8_t *memory;
};

hone_tensor viewOf(void *data, hone_dtype dtype, std::vector<int64_t> sizes) {
  hone_tensor tensor = {};
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.rank = static_cast<int32_t>(sizes.size());
  int64_t stride = 1;
  for (size_t axis = sizes.size(); axis-- > 0; stride *= sizes[axis]) {
    tensor.sizes[axis] = sizes[axis];
    tensor.strides[axis] = stride;
  }
  return tensor;
}

bool isQuantized(PackedFormat format) { return format == PackedFormat::U8 || format == PackedFormat::U4; }

/// One layer after another from the pool, as a decoder reads them.
class Layers {
public:
  Layers(const Case &test, const LayerSize &size, int64_t rows, int64_t most, std::span<uint8_t> pool)
      : test(test), x(static_cast<size_t>(rows * size.inputs), 0.25f), y(static_cast<size_t>(rows * size.outputs)) {
    cpu::LinearShape shape = {size.outputs, size.inputs, test.group};
    auto weightSizes = packedLinearShape(test.format, shape);
    auto scaleSizes = packedScaleShape(test.format, shape);
    int64_t weightBytes = packedLinearBytes(test.format, shape);
    int64_t scaleBytes = isQuantized(test.format) ? scaleSizes[0] * scaleSizes[1] * scaleSizes[2] * 2 : 0;
    layerBytes = weightBytes + scaleBytes;
    count = std::min(most, static_cast<int64_t>(pool.size()) / layerBytes);
    for (int64_t i = 0; i < count; ++i) {
      uint8_t *at = pool.data() + i * layerBytes;
      std::vector<hone_tensor> operands = {viewOf(x.data(), HONE_F32, {rows, size.inputs}),
                                           viewOf(at, HONE_U8, {weightSizes.begin(), weightSizes.end()})};
      if (isQuantized(test.format)) {
        operands.push_back(viewOf(at + weightBytes, HONE_F16, {scaleSizes.begin(), scaleSizes.end()}));
        operands.push_back(viewOf(nullptr, HONE_U8, {0}));
      }
      for (int absent = 0; absent < 3; ++absent)
        operands.push_back(viewOf(nullptr, HONE_F32, {0}));
      operands.push_back(viewOf(y.data(), HONE_F32, {rows, size.outputs}));
      calls.push_back(std::move(operands));
    }
  }

  double bytes() const { return static_cast<double>(count * layerBytes); }

  /// Seconds that all layers take.
  double run(hone_kernel_fn kernel, int threads) const {
    int64_t ints[] = {0, test.group, test.bits};
    double start = seconds(threads);
    for (const std::vector<hone_tensor> &operands : calls)
      kernel(nullptr, operands.data(), ints, nullptr);
    return seconds(threads) - start;
  }

private:
  const Case &test;
  std::vector<float> x, y;
  std::vector<std::vector<hone_tensor>> calls;
  int64_t layerBytes = 0, count = 0;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Rates and their ratios to a limit, by turns.
struct Measurement {
  std::vector<double> rates, ratios;

  void add(double rate, double limit) {
    rates.push_back(rate);
    ratios.push_back(rate / limit);
  }
};

class Report {
public:
  explicit Report(const Options &options) : options(options), pool(options) {}

  void run(const Case &test, cpu::Level level) {
    hone_kernel_fn kernel = findKernel(test.kernel, level);
    for (const LayerSize &size : kLayers) {
      std::string name = std::string(test.name) + "/" + std::to_string(size.outputs) + "x" +
                         std::to_string(size.inputs) + "/" + std::string(levelName(level));
      if (name.find(options.filter) == std::string::npos)
        continue;
      fewRows(test, size, kernel, name);
      manyRows(test, size, kernel, name);
    }
  }

private:
  void fewRows(const Case &test, const LayerSize &size, hone_kernel_fn kernel, const std::string &name) {
    Layers one(test, size, 1, 1 << 20, pool.all()), eight(test, size, 8, 1 << 20, pool.all());
    Layers sixteen(test, size, 16, 1 << 20, pool.all());
    Measurement first, second, third;
    for (int turn = 0; turn <= options.repeats; ++turn) {
      double limit = readBandwidth(pool.all(), options.threads);
      double seconds1 = one.run(kernel, options.threads), seconds8 = eight.run(kernel, options.threads);
      double seconds16 = sixteen.run(kernel, options.threads);
      if (turn == 0)
        continue; // caches and threads start up
      first.add(one.bytes() / seconds1, limit);
      second.add(seconds8, seconds1);
      third.add(seconds16, seconds1);
    }
    std::printf("%-34s decode   %6.1f GB/s, %4.0f %% of reading; 8 rows cost %.2f, 16 rows %.2f times one\n",
                name.c_str(), median(first.rates) * 1e-9, median(first.ratios) * 100, median(second.ratios),
                median(third.ratios));
    std::fflush(stdout);
  }

  void manyRows(const Case &test, const LayerSize &size, hone_kernel_fn kernel, const std::string &name) {
    constexpr int64_t rows = 512, layers = 4;
    Layers many(test, size, rows, layers, pool.all());
    double operations = 2.0 * static_cast<double>(layers * rows * size.outputs * size.inputs);
    Measurement measurement;
    for (int turn = 0; turn <= options.repeats; ++turn) {
      double limit = test.peak() * options.threads, time = many.run(kernel, options.threads);
      if (turn > 0)
        measurement.add(operations / time, limit);
    }
    std::printf("%-34s 512 rows %6.0f GFLOP/s, %4.0f %% of the peak\n", name.c_str(), median(measurement.rates) * 1e-9,
                median(measurement.ratios) * 100);
    std::fflush(stdout);
  }

  const Options &options;
  Pool pool;
};

bool parse(int argc, char **argv, Options &options) {
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
    else if (argument == "--small-pages")
      options.hugePages = false;
    else if (argument == "--all-levels")
      options.allLevels = true;
    else
      return false;
  }
  return true;
}

} // namespace
} // namespace hone::bench

int main(int argc, char **argv) {
  using namespace hone;
  bench::Options options;
  if (!bench::parse(argc, argv, options)) {
    std::fputs("usage: hone-kernel-ratios [--threads=N] [--repeats=N] [--filter=TEXT] [--small-pages] [--all-levels]\n",
               stderr);
    return 1;
  }
  if (cpu::supportedLevels().empty()) {
    std::fputs("hone-kernel-ratios: error: kernels need a CPU with AVX2\n", stderr);
    return 1;
  }
  omp_set_num_threads(options.threads);
  std::printf("peaks of a thread: f32 %.0f, bf16 %.0f, VNNI %.0f GFLOP/s\n", bench::peakF32() * 1e-9,
              bench::peakBf16() * 1e-9, bench::peakVnni() * 1e-9);
  bench::Report report(options);
  for (const bench::Case &test : bench::kCases)
    for (cpu::Level level : cpu::supportedLevels())
      if (options.allLevels || level == cpu::supportedLevels().back())
        report.run(test, level);
  return 0;
}
