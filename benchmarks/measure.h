// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ratios of all kernels share: options, memory, tensors, medians.

#ifndef HONE_BENCHMARKS_MEASURE_H
#define HONE_BENCHMARKS_MEASURE_H

#include "cpu/kernel_table.h"
#include "cpu/read_limit.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hone::bench {

struct Options {
  int threads = 1, repeats = 7;
  bool hugePages = true, allLevels = false, limitsOnly = false, costsOnly = false;
  std::string filter;
};

/// Memory that operands and the read limit share.
using Pool = cpu::MeasuredMemory;

/// Floats that begin where a line of the cache does, as those of programs do.
class Floats {
public:
  /// Floats between -most and most, as if by chance.
  Floats(int64_t count, float most);

  float *data() { return memory.get(); }

private:
  struct Free {
    void operator()(float *floats) const;
  };
  std::unique_ptr<float[], Free> memory;
};

/// A dense tensor.
hone_tensor viewOf(void *data, hone_dtype dtype, std::vector<int64_t> sizes);
inline hone_tensor absentOperand() { return viewOf(nullptr, HONE_F32, {0}); }

double median(std::vector<double> values);

/// Rates and their ratios to a limit, by turns.
struct Measurement {
  std::vector<double> rates, ratios;

  void add(double rate, double limit) {
    rates.push_back(rate);
    ratios.push_back(rate / limit);
  }
};

/// Takes turns `options.repeats` times, after one turn for caches and threads to start up.
void takeTurns(const Options &options, const std::function<void(bool counts)> &turn);

/// True where the options ask for a row of this name.
bool isWanted(const Options &options, const std::string &name);

void reportLinear(const Options &options, Pool &pool, cpu::Isa isa);
void reportAttention(const Options &options, Pool &pool, cpu::Isa isa);
void reportSelection(const Options &options, Pool &pool, cpu::Isa isa);
void reportLinearAttention(const Options &options, Pool &pool, cpu::Isa isa);

/// Prints lib/Transforms/Weights/SparseCosts.def.
void printCosts(const Options &options, Pool &pool, std::span<const cpu::Isa> isas);

} // namespace hone::bench

#endif // HONE_BENCHMARKS_MEASURE_H
