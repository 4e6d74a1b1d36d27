// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over lists of blocks of a model of 0.5 B parameters beside attention over all keys: what selection costs, and what the lists
// gain.

#include "limits.h"
#include "measure.h"

#include "hone/kernels/arguments.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <random>

namespace hone::bench {
namespace {

constexpr int64_t kHeads = 14, kKeyHeads = 2, kSize = 64, kBlock = 64, kStride = 16;

/// Seconds of a call.
template <typename Operands>
double timeOf(hone_kernel_fn kernel, int threads, const Operands &operands, std::span<const int64_t> ints,
              std::span<const double> floats) {
  double start = seconds(threads);
  kernel(nullptr, &operands.query, ints.data(), floats.data());
  return seconds(threads) - start;
}

/// Queries, and keys and values of f32 in blocks, which begin in the pool.
class Problem {
public:
  Problem(int64_t queries, int64_t keys, std::span<uint8_t> pool)
      : query(kHeads * queries * kSize, 1), out(kHeads * queries * kSize, 0) {
    attention.query = viewOf(query.data(), HONE_F32, {1, kHeads, queries, kSize});
    attention.key = viewOf(pool.data(), HONE_F32, {1, kKeyHeads, keys, kSize});
    attention.value = attention.key;
    attention.value.data = pool.data() + static_cast<size_t>(kKeyHeads * keys * kSize) * sizeof(float);
    attention.out = viewOf(out.data(), HONE_F32, {1, kHeads, queries, kSize});
    auto *floats = reinterpret_cast<float *>(pool.data());
    std::mt19937 random(1);
    std::uniform_real_distribution<float> between(-1, 1);
    std::generate_n(floats, 2 * kKeyHeads * keys * kSize, [&] { return between(random); });
  }

  /// Over all keys, or over the blocks that `lists` has for every `shared` queries.
  double attend(const Options &options, cpu::Isa isa, const hone_tensor *lists, int64_t shared) const {
    Attention listed = attention;
    if (lists)
      listed.blocks = *lists;
    const int64_t ints[] = {1, -1, lists ? kBlock : 0, lists ? shared : 0};
    constexpr double floats[] = {0.125, 0, 0};
    return timeOf(findKernel("hone.attention.blocks.f32", isa), options.threads, listed, ints, floats);
  }

  using Attention = kernels::Attention::Operands<kernels::NoWeight>;
  Attention attention = {};

private:
  Floats query, out;
};

struct Ratios {
  std::vector<double> times, gained, withSelection, selecting, byMeans;

  /// Seconds of dense attention, of selection and of attention over lists; and of selection by means, where there is one.
  void add(double dense, double selection, double sparse, std::optional<double> means = std::nullopt) {
    times.push_back(sparse);
    gained.push_back(dense / sparse);
    withSelection.push_back(dense / (selection + sparse));
    selecting.push_back(selection / dense);
    if (means)
      byMeans.push_back(*means / dense);
  }

  void print(const std::string &name, int64_t keys, double share) const {
    std::printf("%-34s %5lld keys, %4.1f %% of them read: %.3f ms, %.2f times as fast as dense, %.2f with selection, "
                "which takes %.1f %% of dense",
                name.c_str(), static_cast<long long>(keys), 100 * share, 1e3 * median(times), median(gained),
                median(withSelection), 100 * median(selecting));
    if (!byMeans.empty())
      std::printf(", by means %.1f %%", 100 * median(byMeans));
    std::printf("\n");
    std::fflush(stdout);
  }
};

/// Selection of SpargeAttention: 128 queries share a list, and all blocks are similar, so that none is left out of it.
class MeanSelection {
public:
  MeanSelection(const Problem::Attention &attention, int64_t tokens, double share)
      : thresholds{0, static_cast<float>(share), -1}, begin(static_cast<size_t>(tokens / kQueries), 0),
        end(begin.size()), selected(static_cast<size_t>(kKeyHeads * tokens / kQueries * tokens / kBlock)) {
    for (size_t i = 0; i < end.size(); ++i)
      end[i] = static_cast<int64_t>(i) * kQueries / kBlock;
    int64_t lists = tokens / kQueries;
    operands.query = attention.query;
    operands.keys = attention.key;
    operands.thresholds = viewOf(thresholds, HONE_F32, {1, 3});
    operands.begin = viewOf(begin.data(), HONE_I64, {1, lists});
    operands.end = viewOf(end.data(), HONE_I64, {1, lists});
    operands.blocks = viewOf(selected.data(), HONE_I64, {1, kKeyHeads, lists, tokens / kBlock});
  }

  double select(const Options &options, cpu::Isa isa) const {
    constexpr int64_t ints[] = {kBlock, kQueries};
    constexpr double floats[] = {0.125};
    return timeOf(findKernel("hone.select_means.blocks.f32", isa), options.threads, operands, ints, floats);
  }

private:
  static constexpr int64_t kQueries = 128;
  float thresholds[3];
  std::vector<int64_t> begin, end, selected;
  kernels::SelectMeans::Operands<kernels::NoWeight> operands = {};
};

/// A prompt whose blocks of queries read their own block of keys and others before it, `share` of them in all. Selection is that of
/// XAttention, and that of SpargeAttention beside it; their lists, which follow from what keys hold, are not those that are read.
void prefill(const Options &options, Pool &pool, cpu::Isa isa, int64_t tokens, double share, const std::string &name) {
  Problem problem(tokens, tokens, pool.all());
  int64_t blocks = tokens / kBlock, most = static_cast<int64_t>(std::ceil(static_cast<double>(blocks) * share));
  std::vector<int64_t> lists(static_cast<size_t>(kKeyHeads * blocks * most), -1), begin(static_cast<size_t>(blocks), 0),
      end(begin.size()), selected(static_cast<size_t>(kKeyHeads * blocks * blocks));
  std::iota(end.begin(), end.end(), 0);
  std::mt19937 random(2);
  int64_t read = 0;
  for (int64_t row = 0; row < kKeyHeads * blocks; ++row) {
    int64_t own = row % blocks;
    std::vector<int64_t> all(static_cast<size_t>(own));
    std::iota(all.begin(), all.end(), 0);
    std::ranges::shuffle(all, random);
    all.insert(all.begin(), own);
    int64_t count = static_cast<int64_t>(std::ceil(static_cast<double>(own + 1) * share));
    std::copy_n(all.begin(), count, lists.begin() + row * most);
    read += count;
  }
  hone_tensor listed = viewOf(lists.data(), HONE_I64, {1, kKeyHeads, blocks, most});
  kernels::SelectAntidiagonals::Operands<kernels::NoWeight> selection = {};
  selection.query = problem.attention.query;
  selection.keys = problem.attention.key;
  selection.begin = viewOf(begin.data(), HONE_I64, {1, blocks});
  selection.end = viewOf(end.data(), HONE_I64, {1, blocks});
  selection.blocks = viewOf(selected.data(), HONE_I64, {1, kKeyHeads, blocks, blocks});
  constexpr int64_t ints[] = {kBlock, kBlock, kStride};
  const double floats[] = {0.125, share};
  hone_kernel_fn select = findKernel("hone.select_antidiagonals.blocks.f32", isa);
  MeanSelection means(problem.attention, tokens, share);
  Ratios ratios;
  takeTurns(options, [&](bool counts) {
    double dense = problem.attend(options, isa, nullptr, 0), sparse = problem.attend(options, isa, &listed, kBlock);
    double selecting = timeOf(select, options.threads, selection, ints, floats), byMeans = means.select(options, isa);
    if (counts)
      ratios.add(dense, selecting, sparse, byMeans);
  });
  ratios.print(name, tokens, 2.0 * static_cast<double>(read) / static_cast<double>(kKeyHeads * blocks * (blocks + 1)));
}

/// A token after `keys` others, which reads the blocks that it selects by their mean keys, `share` of all.
void decode(const Options &options, Pool &pool, cpu::Isa isa, int64_t keys, double share, const std::string &name) {
  Problem problem(1, keys, pool.all());
  int64_t blocks = keys / kBlock, count = static_cast<int64_t>(static_cast<double>(blocks) * share);
  Floats pooled(kKeyHeads * keys, 1);
  int64_t begin = 0, end = blocks - 1;
  std::vector<int64_t> lists(static_cast<size_t>(kKeyHeads * count));
  kernels::SelectBlocks::Operands<kernels::NoWeight> selection = {};
  selection.query = problem.attention.query;
  selection.pooled = viewOf(pooled.data(), HONE_F32, {1, kKeyHeads, keys, 1});
  selection.begin = viewOf(&begin, HONE_I64, {1, 1});
  selection.end = viewOf(&end, HONE_I64, {1, 1});
  selection.blocks = viewOf(lists.data(), HONE_I64, {1, kKeyHeads, 1, count});
  constexpr int64_t ints[] = {kBlock};
  constexpr double floats[] = {0.125};
  hone_kernel_fn select = findKernel("hone.select_blocks.f32", isa);
  Ratios ratios;
  takeTurns(options, [&](bool counts) {
    double dense = problem.attend(options, isa, nullptr, 0);
    double selecting = timeOf(select, options.threads, selection, ints, floats);
    double sparse = problem.attend(options, isa, &selection.blocks, 1);
    if (counts)
      ratios.add(dense, selecting, sparse);
  });
  ratios.print(name, keys, static_cast<double>(count) / static_cast<double>(blocks));
}

} // namespace

void reportSelection(const Options &options, Pool &pool, cpu::Isa isa) {
  std::string name = "attention/lists/" + std::string(isaName(isa));
  for (int64_t keys : {4096, 16384})
    for (double share : {0.05, 0.25})
      if (isWanted(options, name + "/prefill"))
        prefill(options, pool, isa, keys, share, name + "/prefill");
  for (int64_t keys : {16384, 65536})
    for (double share : {0.1, 0.25})
      if (isWanted(options, name + "/decode"))
        decode(options, pool, isa, keys, share, name + "/decode");
}

} // namespace hone::bench
