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
#include "hone/kernels/descriptions.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Shape = std::vector<int64_t>;
template <typename Value> using Named = std::vector<std::pair<std::string_view, Value>>;

/// Operands are f32; those that are not named are absent, and numbers that are not are 0. `flops` counts multiplications and
/// additions of one call.
struct Row {
  const char *kernel, *label;
  Named<Shape> operands;
  Named<int64_t> ints;
  Named<double> floats;
  double flops;
};

const Row kRows[] = {
    {"hone.linear.f32",
     "decode",
     {{"x", {1, 896}}, {"weight", {4864, 896}}, {"y", {1, 4864}}},
     {{"transposed", 1}},
     {},
     2.0 * 896 * 4864},
    {"hone.linear.f32",
     "prefill-128",
     {{"x", {128, 896}}, {"weight", {4864, 896}}, {"y", {128, 4864}}},
     {{"transposed", 1}},
     {},
     2.0 * 128 * 896 * 4864},
    {"hone.matmul.f32",
     "square-512",
     {{"a", {512, 512}}, {"b", {512, 512}}, {"c", {512, 512}}},
     {},
     {},
     2.0 * 512 * 512 * 512},
    {"hone.attention.f32",
     "decode-1024",
     {{"query", {1, 14, 1, 64}}, {"key", {1, 2, 1024, 64}}, {"value", {1, 2, 1024, 64}}, {"out", {1, 14, 1, 64}}},
     {{"causal", 1}, {"window", -1}},
     {{"scale", 0.125}},
     4.0 * 14 * 1024 * 64},
    {"hone.attention.f32",
     "prefill-128",
     {{"query", {1, 14, 128, 64}}, {"key", {1, 2, 128, 64}}, {"value", {1, 2, 128, 64}}, {"out", {1, 14, 128, 64}}},
     {{"causal", 1}, {"window", -1}},
     {{"scale", 0.125}},
     2.0 * 14 * 128 * 128 * 64},
    {"hone.attention_gradient.f32",
     "window-512",
     {{"query", {8, 8, 512, 32}},
      {"key", {8, 4, 512, 32}},
      {"value", {8, 4, 512, 32}},
      {"lse", {8, 8, 512}},
      {"subtracted", {8, 8, 512}},
      {"gradient", {8, 8, 512, 32}},
      {"queryGradient", {8, 8, 512, 32}},
      {"keyGradient", {8, 4, 512, 32}},
      {"valueGradient", {8, 4, 512, 32}}},
     {{"causal", 1}, {"window", -1}},
     {{"scale", 0.18}},
     5.0 * 8 * 8 * 512 * 512 * 32},
    {"hone.rms_norm.f32",
     "128",
     {{"x", {128, 896}}, {"weight", {896}}, {"y", {128, 896}}},
     {},
     {{"epsilon", 1e-6}},
     4.0 * 128 * 896},
    {"hone.layer_norm.f32",
     "128",
     {{"x", {128, 896}}, {"weight", {896}}, {"bias", {896}}, {"y", {128, 896}}},
     {},
     {{"epsilon", 1e-6}},
     8.0 * 128 * 896},
    {"hone.rope.f32",
     "128",
     {{"x", {1, 14, 128, 64}}, {"cos", {1, 128, 32}}, {"sin", {1, 128, 32}}, {"y", {1, 14, 128, 64}}},
     {},
     {},
     3.0 * 14 * 128 * 64},
};

/// The values in the order of `names`, 0 where there is none. Ends the program where a row has a name that its kernel has not.
template <typename Value>
std::vector<Value> valuesOf(const Row &row, const Named<Value> &values, const std::vector<std::string_view> &names) {
  std::vector<Value> ordered(names.size());
  for (const auto &[name, value] : values) {
    auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      std::fprintf(stderr, "%s has no '%s'\n", row.kernel, std::string(name).c_str());
      std::exit(1);
    }
    ordered[static_cast<size_t>(found - names.begin())] = value;
  }
  return ordered;
}

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
  const hone::kernels::KernelInfo &info = *hone::kernels::findKernelInfo(row.kernel);
  std::vector<std::string_view> names;
  for (const hone::kernels::Operand &operand : hone::kernels::operandsOf(info))
    names.push_back(operand.name);
  std::vector<hone::io::Array> arrays;
  std::vector<hone_tensor> operands;
  int64_t bytes = 0;
  for (const Shape &shape : valuesOf(row, row.operands, names)) {
    arrays.push_back(filled(shape.empty() ? Shape{0} : shape));
    operands.push_back(arrays.back().view());
    bytes += arrays.back().bytes();
  }
  std::vector<int64_t> ints = valuesOf(row, row.ints, hone::kernels::integersOf(info));
  std::vector<double> floats = valuesOf(row, row.floats, hone::kernels::floatsOf(info));
  hone_call call = {};
  for (auto _ : state)
    kernel(&call, operands.data(), ints.data(), floats.data());
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
