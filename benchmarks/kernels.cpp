//===- kernels.cpp - how fast each kernel is on each ISA of this machine ----------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One row a kernel and shape, with the shapes of a model of 0.5 B parameters. Bytes count every operand once: beside the
// `read` row, which only sums memory, they say how near a kernel is to the bandwidth of the machine.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "cpu/kernel_table.h"

#include "hone/io/array.h"

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace {

using Shape = std::vector<int64_t>;

/// `operands` are shapes of f32 tensors, {0} an absent one; `flops` counts multiplications and additions of one call.
struct Row {
  const char *kernel, *label;
  std::vector<Shape> operands;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  double flops;
};

const Row kRows[] = {
    {"hone.linear.f32", "decode", {{1, 896}, {4864, 896}, {0}, {1, 4864}}, {1}, {}, 2.0 * 896 * 4864},
    {"hone.linear.f32", "prefill-128", {{128, 896}, {4864, 896}, {0}, {128, 4864}}, {1}, {}, 2.0 * 128 * 896 * 4864},
    {"hone.matmul.f32", "square-512", {{512, 512}, {512, 512}, {512, 512}}, {}, {}, 2.0 * 512 * 512 * 512},
    {"hone.attention.f32",
     "decode-1024",
     {{1, 14, 1, 64},
      {1, 2, 1024, 64},
      {1, 2, 1024, 64},
      {0},
      {0},
      {0},
      {0},
      {0},
      {0},
      {0},
      {0},
      {0},
      {0},
      {1, 14, 1, 64}},
     {1, -1, 0, 0},
     {0.125, 0},
     4.0 * 14 * 1024 * 64},
    {"hone.attention.f32",
     "prefill-128",
     {{1, 14, 128, 64},
      {1, 2, 128, 64},
      {1, 2, 128, 64},
      {0},
      {0},
      {0},
      {0},
      {0},
      {0},
      {0},
      {0},
      {0},
      {0},
      {1, 14, 128, 64}},
     {1, -1, 0, 0},
     {0.125, 0},
     2.0 * 14 * 128 * 128 * 64},
    {"hone.rms_norm.f32", "128", {{128, 896}, {896}, {128, 896}}, {0}, {1e-6}, 4.0 * 128 * 896},
    {"hone.layer_norm.f32", "128", {{128, 896}, {896}, {896}, {128, 896}}, {}, {1e-6}, 8.0 * 128 * 896},
    {"hone.rope.f32",
     "128",
     {{1, 14, 128, 64}, {1, 128, 32}, {1, 128, 32}, {1, 14, 128, 64}},
     {0},
     {},
     3.0 * 14 * 128 * 64},
};

hone::io::Array filled(const Shape &shape) {
  hone::io::Array array = *hone::io::Array::create(HONE_F32, shape);
  // Small values of both signs that repeat with a period no vector length divides.
  constexpr int64_t kPeriod = 17;
  std::span<float> elements = array.as<float>();
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = static_cast<float>(static_cast<int64_t>(i) % kPeriod - kPeriod / 2) / kPeriod;
  return array;
}

void runKernel(benchmark::State &state, const Row &row, hone_kernel_fn kernel) {
  std::vector<hone::io::Array> arrays;
  std::vector<hone_tensor> operands;
  int64_t bytes = 0;
  for (const Shape &shape : row.operands) {
    arrays.push_back(filled(shape));
    operands.push_back(arrays.back().view());
    bytes += arrays.back().bytes();
  }
  hone_call call = {};
  for (auto _ : state)
    kernel(&call, operands.data(), row.ints.data(), row.floats.data());
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["flops"] = benchmark::Counter(row.flops, benchmark::Counter::kIsIterationInvariantRate);
}

/// The peer of everything that is bound by memory: the sum of as many bytes as the weight of `decode` has.
void readMemory(benchmark::State &state) {
  hone::io::Array array = filled({4864, 896});
  std::span<const uint32_t> elements = std::as_const(array).as<uint32_t>();
  for (auto _ : state) {
    uint32_t sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (size_t i = 0; i < elements.size(); ++i)
      sum += elements[i];
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(state.iterations() * array.bytes());
}

} // namespace

int main(int argc, char **argv) {
  benchmark::RegisterBenchmark("read", readMemory)->UseRealTime();
  for (const Row &row : kRows) {
    for (hone::cpu::Isa isa : hone::cpu::supportedIsas()) {
      std::string name = std::string(row.kernel) + "/" + row.label + "/" + std::string(hone::cpu::isaName(isa));
      hone_kernel_fn kernel = hone::cpu::findKernel(row.kernel, isa);
      benchmark::RegisterBenchmark(name.c_str(), [&row, kernel](benchmark::State &state) {
        runKernel(state, row, kernel);
      })->UseRealTime();
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
