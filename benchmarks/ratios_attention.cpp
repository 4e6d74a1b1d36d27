// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention of a model of 0.5 B parameters: one token over a long cache is bound by reading keys and values, a long prompt by
// arithmetic. What it gains to leave out keys below the running maximum.

#include "limits.h"
#include "measure.h"

#include "hone/cpu/packing/cache_blocks.h"
#include "hone/cpu/packing/quantized_blocks.h"
#include "hone/kernels/arguments.h"

#include <algorithm>
#include <cstdio>

namespace hone::bench {
namespace {

constexpr int64_t kHeads = 14, kKeyHeads = 2, kSize = 64;

struct Case {
  const char *name, *kernel;
  hone_dtype dtype;
  int64_t positionBytes; // of keys or values of a head
};

constexpr int64_t quantizedBytes(int64_t bits) { return cpu::QuantizedKeyLayout(bits, kSize).positionBytes(); }

const Case kCases[] = {
    {"f32", "hone.attention.f32", HONE_F32, 4 * kSize},
    {"pairs/f32", "hone.attention.pairs.f32", HONE_F32, 4 * kSize},
    {"bf16", "hone.attention.bf16", HONE_BF16, 2 * kSize},
    {"f16", "hone.attention.f16", HONE_F16, 2 * kSize},
    {"blocks/f32", "hone.attention.blocks.f32", HONE_F32, 4 * kSize},
    {"blocks/bf16", "hone.attention.blocks.bf16", HONE_BF16, 2 * kSize},
    {"blocks/f16", "hone.attention.blocks.f16", HONE_F16, 2 * kSize},
    {"blocks/i8", "hone.attention.blocks.i8", HONE_I8, quantizedBytes(8)},
    {"blocks/u4", "hone.attention.blocks.u4", HONE_I8, quantizedBytes(4)},
};

/// One layer after another from the pool, each with keys and values of its own.
class Layers {
public:
  Layers(const Case &test, int64_t queries, int64_t keys, int64_t most, std::span<uint8_t> pool)
      : query(kHeads * queries * kSize, 0.01f), out(kHeads * queries * kSize, 0) {
    int64_t cacheBytes = kKeyHeads * keys * test.positionBytes;
    int64_t count = std::min(most, static_cast<int64_t>(pool.size()) / (2 * cacheBytes));
    bytes = static_cast<double>(count * 2 * cacheBytes);
    for (int64_t i = 0; i < count; ++i) {
      uint8_t *at = pool.data() + i * 2 * cacheBytes;
      Operands operands = {};
      operands.query = viewOf(query.data(), HONE_F32, {1, kHeads, queries, kSize});
      operands.key = viewOfCache(test, at, keys);
      operands.value = viewOfCache(test, at + cacheBytes, keys);
      operands.out = viewOf(out.data(), HONE_F32, {1, kHeads, queries, kSize});
      calls.push_back(operands);
    }
  }

  /// Seconds that all layers take.
  double run(hone_kernel_fn kernel, int threads, double skip = 0) const {
    constexpr int64_t ints[] = {1, -1, 0, 0};
    const double floats[] = {0.125, 0, skip};
    double start = seconds(threads);
    for (const Operands &operands : calls)
      kernel(nullptr, &operands.query, ints, floats);
    return seconds(threads) - start;
  }

  double bytes = 0;

private:
  using Operands = kernels::Attention::Operands<kernels::NoWeight>;

  /// Of quantized KV, strides count bytes.
  static hone_tensor viewOfCache(const Case &test, void *at, int64_t keys) {
    int64_t width = test.dtype == HONE_I8 ? test.positionBytes : kSize;
    hone_tensor tensor = viewOf(at, test.dtype, {1, kKeyHeads, keys, width});
    tensor.sizes[3] = kSize;
    return tensor;
  }

  Floats query, out;
  std::vector<Operands> calls;
};

void decode(const Options &options, Pool &pool, const Case &test, hone_kernel_fn kernel, int64_t keys,
            const std::string &name) {
  Layers layers(test, 1, keys, 1 << 20, pool.all()), eight(test, 8, keys, 1 << 20, pool.all());
  Measurement reading, verifying;
  takeTurns(options, [&](bool counts) {
    double limit = readBandwidth(pool.all(), options.threads), time = layers.run(kernel, options.threads);
    double timeOfEight = eight.run(kernel, options.threads);
    if (!counts)
      return;
    reading.add(layers.bytes / time, limit);
    verifying.add(timeOfEight, time);
  });
  std::printf("%-34s %5lld keys %6.1f GB/s, %4.0f %% of reading; 8 queries cost %.2f times one\n", name.c_str(),
              static_cast<long long>(keys), median(reading.rates) * 1e-9, median(reading.ratios) * 100,
              median(verifying.ratios));
  std::fflush(stdout);
}

/// Makes keys of f32 in blocks such that with queries of 0.01 the logits of 64 neighbours lie 16 below those of the others, for this share of
/// them, which are spread evenly.
void lowerKeys(std::span<uint8_t> pool, int64_t keys, double share) {
  float *data = reinterpret_cast<float *>(pool.data());
  std::fill_n(data, pool.size() / sizeof(float), 0.0f);
  constexpr float low = -16 / (0.125f * 0.01f * kSize);
  int64_t heads = static_cast<int64_t>(pool.size() / sizeof(float)) / (keys * kSize);
  for (int64_t block = 0; block < heads * keys / 64; ++block) {
    int64_t own = block % (keys / 64);
    bool isLow = own > 0 && static_cast<int64_t>(static_cast<double>(own + 1) * share) >
                                static_cast<int64_t>(static_cast<double>(own) * share);
    std::fill_n(data + block * 64 * kSize, isLow ? 64 * kSize : 0, low);
  }
}

/// Dense attention of a prompt, or a token after it, over the one that leaves out a share of the keys, in turns.
void skipKeys(const Options &options, Pool &pool, cpu::Isa isa, int64_t queries, int64_t keys, double share) {
  const Case &test = *std::ranges::find(kCases, std::string_view("blocks/f32"), &Case::name);
  lowerKeys(pool.all(), keys, share);
  int64_t layers = std::clamp<int64_t>(queries == 1 ? 1 << 20 : 4096 / queries, 1, 1 << 20);
  Layers prompt(test, queries, keys, layers, pool.all());
  hone_kernel_fn kernel = findKernel(test.kernel, isa);
  Measurement gained;
  takeTurns(options, [&](bool counts) {
    double dense = prompt.run(kernel, options.threads), skipping = prompt.run(kernel, options.threads, 1.0);
    if (counts)
      gained.add(1 / skipping, 1 / dense);
  });
  std::printf(
      "%-34s %5lld keys, %2.0f %% of them left out: %.2f times as fast\n",
      ("attention/skip/" + std::string(queries == 1 ? "decode/" : "prefill/") + std::string(isaName(isa))).c_str(),
      static_cast<long long>(keys), share * 100, median(gained.ratios));
  std::fflush(stdout);
}

/// A prompt of `tokens` through several layers, whose keys and values do not stay in the nearest caches.
void prefill(const Options &options, Pool &pool, const Case &test, cpu::Isa isa, int64_t tokens,
             const std::string &name) {
  int64_t layers = std::clamp<int64_t>(8192 / tokens, 1, 24);
  hone_kernel_fn kernel = findKernel(test.kernel, isa);
  Arithmetic arithmetic = isa < cpu::Isa::Avx512 ? Arithmetic::F32Avx2 : Arithmetic::F32;
  Layers prompt(test, tokens, tokens, layers, pool.all());
  double operations = 4.0 * kSize * kHeads * static_cast<double>(layers * tokens * (tokens + 1) / 2);
  Measurement measurement;
  takeTurns(options, [&](bool counts) {
    double limit = peak(arithmetic, options.threads), time = prompt.run(kernel, options.threads);
    if (counts)
      measurement.add(operations / time, limit);
  });
  std::printf("%-34s %4lld tokens %5.0f GFLOP/s, %4.0f %% of the f32 peak\n", name.c_str(),
              static_cast<long long>(tokens), median(measurement.rates) * 1e-9, median(measurement.ratios) * 100);
  std::fflush(stdout);
}

} // namespace

void reportAttention(const Options &options, Pool &pool, cpu::Isa isa) {
  for (const Case &test : kCases) {
    std::string name = std::string("attention/") + test.name + "/" + std::string(isaName(isa));
    if (!isWanted(options, name))
      continue;
    for (int64_t keys : {512, 2048, 8192, 32768})
      decode(options, pool, test, findKernel(test.kernel, isa), keys, name);
    for (int64_t tokens : {128, 512, 1024, 8192})
      prefill(options, pool, test, isa, tokens, name);
  }
  if (isWanted(options, "attention/skip/" + std::string(isaName(isa))))
    for (int64_t keys : {1024, 4096, 16384})
      for (double share : {0.0, 0.5, 0.72, 0.9})
        for (int64_t queries : {keys, int64_t{1}})
          skipKeys(options, pool, isa, queries, keys, share);
}

} // namespace hone::bench
