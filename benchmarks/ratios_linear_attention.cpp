// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear attention of a model of sixteen heads of 128: one token is bound by reading the state and writing it back, a prompt by
// arithmetic.

#include "limits.h"
#include "measure.h"

#include "hone/kernels/arguments.h"

#include <algorithm>
#include <cstdio>

namespace hone::bench {
namespace {

constexpr int64_t kHeads = 16, kSize = 128, kStateFloats = kHeads * kSize * kSize;

struct Rule {
  const char *name;
  int64_t decays; // of a head
  bool isDelta;
};

constexpr Rule kRules[] = {{"linear", 0, false}, {"gated", 1, false},      {"gated-by-element", kSize, false},
                           {"delta", 0, true},   {"gated-delta", 1, true}, {"gated-delta-by-element", kSize, true}};

/// One layer after another, each with a state of its own from the pool, which it updates in place.
class Layers {
public:
  Layers(const Rule &rule, int64_t tokens, int64_t most, std::span<uint8_t> pool)
      : vectors(kHeads * tokens * kSize, 0.08f), decays(std::max<int64_t>(kHeads * tokens * rule.decays, 1), 0),
        betas(kHeads * tokens, 0.5f), outs(kHeads * tokens * kSize, 0) {
    int64_t stateBytes = kStateFloats * static_cast<int64_t>(sizeof(float));
    int64_t count = std::min(most, static_cast<int64_t>(pool.size()) / stateBytes);
    bytes = 2 * static_cast<double>(count * stateBytes);
    for (int64_t i = 0; i < kHeads * tokens * rule.decays; ++i)
      decays.data()[i] = -0.05f;
    for (int64_t i = 0; i < count; ++i) {
      Operands o = {};
      o.query = o.key = o.value = viewOf(vectors.data(), HONE_F32, {1, tokens, kHeads, kSize});
      o.decay = rule.decays ? viewOf(decays.data(), HONE_F32, {1, tokens, kHeads, rule.decays}) : absentOperand();
      o.beta = rule.isDelta ? viewOf(betas.data(), HONE_F32, {1, tokens, kHeads}) : absentOperand();
      o.state = o.next = viewOf(pool.data() + i * stateBytes, HONE_F32, {1, kHeads, kSize, kSize});
      o.out = viewOf(outs.data(), HONE_F32, {1, tokens, kHeads, kSize});
      calls.push_back(o);
    }
  }

  /// Seconds that all layers take.
  double run(hone_kernel_fn kernel, int threads) const {
    constexpr double floats[] = {0.08838834764};
    double start = seconds(threads);
    for (const Operands &o : calls)
      kernel(nullptr, &o.query, nullptr, floats);
    return seconds(threads) - start;
  }

  double bytes = 0; // of states, read and written

private:
  using Operands = kernels::LinearAttention::Operands<kernels::NoWeight>;

  Floats vectors, decays, betas, outs;
  std::vector<Operands> calls;
};

void decode(const Options &options, Pool &pool, const Rule &rule, hone_kernel_fn kernel, const std::string &name) {
  Layers one(rule, 1, 1 << 20, pool.all()), eight(rule, 8, 1 << 20, pool.all());
  Measurement moving, verifying;
  takeTurns(options, [&](bool counts) {
    double limit = readBandwidth(pool.all(), options.threads), time = one.run(kernel, options.threads);
    double timeOfEight = eight.run(kernel, options.threads);
    if (!counts)
      return;
    moving.add(one.bytes / time, limit);
    verifying.add(timeOfEight, time);
  });
  std::printf("%-52s %6.1f GB/s read and written, %4.0f %% of reading; 8 tokens cost %.2f times one\n", name.c_str(),
              median(moving.rates) * 1e-9, median(moving.ratios) * 100, median(verifying.ratios));
  std::fflush(stdout);
}

/// Operations are those of the recurrence: the state times key and query, and its update.
void prefill(const Options &options, Pool &pool, const Rule &rule, cpu::Isa isa, hone_kernel_fn kernel, int64_t tokens,
             const std::string &name) {
  int64_t layers = std::clamp<int64_t>(1024 / tokens, 1, 24);
  Arithmetic arithmetic = isa < cpu::Isa::Avx512 ? Arithmetic::F32Avx2 : Arithmetic::F32;
  Layers prompt(rule, tokens, layers, pool.all());
  double products = rule.isDelta ? 3 : 2;
  double operations = 2 * products * kStateFloats * static_cast<double>(layers * tokens);
  Measurement measurement;
  takeTurns(options, [&](bool counts) {
    double limit = peak(arithmetic, options.threads), time = prompt.run(kernel, options.threads);
    if (counts)
      measurement.add(operations / time, limit);
  });
  double rate = median(measurement.rates);
  std::printf("%-52s %4lld tokens %7.3f ms a layer, %5.0f GFLOP/s, %4.0f %% of the f32 peak\n", name.c_str(),
              static_cast<long long>(tokens), operations / rate / static_cast<double>(layers) * 1e3, rate * 1e-9,
              median(measurement.ratios) * 100);
  std::fflush(stdout);
}

} // namespace

void reportLinearAttention(const Options &options, Pool &pool, cpu::Isa isa) {
  hone_kernel_fn kernel = findKernel("hone.linear_attention.f32", isa);
  for (const Rule &rule : kRules) {
    std::string name = std::string("linear_attention/") + rule.name + "/" + std::string(isaName(isa));
    if (!isWanted(options, name))
      continue;
    decode(options, pool, rule, kernel, name);
    for (int64_t tokens : {8, 16, 32, 128, 512, 4096})
      prefill(options, pool, rule, isa, kernel, tokens, name);
  }
}

} // namespace hone::bench
