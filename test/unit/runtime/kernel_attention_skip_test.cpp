// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of keys below the running maximum that attention leaves out: which those are, what that costs, and that their values are not
// read. All elements of a key are one number, so that with queries of one element that number is the logit.

#include "attention_masks.h"
#include "growing_cache.h"

#include <functional>
#include <omp.h>

namespace hone::test {
namespace {

constexpr int64_t kHeads = 6, kKeyHeads = 2, kSize = 64, kPartKeys = 4096, kIndependentQueries = 64;
constexpr double kMostShare = 0.125;

/// Keys that are left out together.
int64_t stepOf(const Kind &kind) {
  return kind.form == Form::Quantized ? 256 : kind.form == Form::Blocks && kind.dtype == HONE_BF16 ? 128 : 64;
}

/// A causal call whose last query sees `keys` keys.
struct Problem {
  int64_t queries, keys;
  double skip;
  std::function<float(int64_t)> level, value; // of a position; bf16
};

struct Result {
  Tensor out, lse;
};

class AttentionSkip : public KernelTest {
protected:
  /// With products of bf16, tiles and pairs round queries and weights by up to a 512th each; steps of integers weights to a 64000th of the
  /// largest.
  float toleranceOf(const Kind &kind) const {
    bool hasPairs = GetParam() == cpu::Isa::Avx512Bf16 || GetParam() == cpu::Isa::Amx;
    return kind.form == Form::Quantized ? 2e-3f : hasPairs && kind.dtype == HONE_BF16 ? 1e-2f : 2e-5f;
  }

  /// Tiles of floats leave nothing out.
  bool skips(const Kind &kind) const {
    bool isOfTiles = kind.form != Form::Quantized && (kind.dtype != HONE_F32 || kind.kernel == kKinds[3].kernel);
    return GetParam() != cpu::Isa::Amx || !isOfTiles;
  }

  /// Query heads have logits of their own: `factor` times the level.
  static float factorOf(int64_t head) { return head % 3 == 0 ? 1.0f : head % 3 == 1 ? 0.5f : 1.5f; }

  Result attend(const Kind &kind, const Problem &problem, double skip) {
    GrowingCache keys(kind, true, 1, kKeyHeads, problem.keys, kSize),
        values(kind, false, 1, kKeyHeads, problem.keys, kSize);
    for (int64_t position = 0; position < problem.keys; ++position) {
      keys.fill(position, problem.level(position));
      values.fill(position, problem.value(position));
    }
    Tensor query({1, kHeads, problem.queries, kSize});
    query.forEach([&](const std::vector<int64_t> &i) { query(i) = i[3] == 0 ? factorOf(i[1]) : 0; });
    return attend(kind, query, keys.view(0, 1, problem.keys), values.view(0, 1, problem.keys), skip, 1.0);
  }

  Result attend(const Kind &kind, Tensor &query, hone_tensor keys, hone_tensor values, double skip, double scale) {
    Result result{Tensor({1, kHeads, query.sizes[2], kSize}), Tensor({1, kHeads, query.sizes[2]})};
    AttentionOperands operands = attentionOf(query.view(), keys, values, result.out.view());
    operands.lse = result.lse.view();
    run(kind.kernel, listOperands(operands), {1, -1, 0, 0}, {scale, 0, skip});
    return result;
  }

  /// Which of the first `seen` keys a query of a head does not leave out.
  static std::vector<bool> keptOf(const Kind &kind, const Problem &problem, int64_t head, int64_t seen) {
    double margin = -std::log(std::min(problem.skip / static_cast<double>(seen), kMostShare)), largest = 0;
    std::vector<bool> kept(static_cast<size_t>(seen), false);
    for (int64_t first = 0, step = stepOf(kind); first < seen; first += step) {
      if (first == 0 || (problem.queries <= kIndependentQueries && first % kPartKeys == 0))
        largest = -std::numeric_limits<double>::infinity();
      double most = -std::numeric_limits<double>::infinity();
      int64_t end = std::min(first + step, seen);
      for (int64_t key = first; key < end; ++key)
        most = std::max(most, static_cast<double>(factorOf(head) * problem.level(key)));
      if (!(most > largest - margin))
        continue;
      largest = std::max(largest, most);
      std::fill(kept.begin() + first, kept.begin() + end, true);
    }
    return kept;
  }

  /// Softmax over the keys that are not left out; how many were is the result.
  static int64_t reference(const Kind &kind, const Problem &problem, Result &expected) {
    int64_t skipped = 0;
    for (int64_t head = 0; head < kHeads; ++head)
      for (int64_t i = 0; i < problem.queries; ++i) {
        int64_t seen = problem.keys - problem.queries + i + 1;
        std::vector<bool> kept = keptOf(kind, problem, head, seen);
        double total = 0, sum = 0;
        for (int64_t key = 0; key < seen; ++key) {
          double weight =
              kept[static_cast<size_t>(key)] ? std::exp(static_cast<double>(factorOf(head) * problem.level(key))) : 0;
          total += weight;
          sum += weight * static_cast<double>(problem.value(key));
        }
        skipped += std::ranges::count(kept, false);
        expected.lse({0, head, i}) = static_cast<float>(std::log(total));
        for (int64_t d = 0; d < kSize; ++d)
          expected.out({0, head, i, d}) = static_cast<float>(sum / total);
      }
    return skipped;
  }

  static float largestDifference(const Tensor &a, const Tensor &b) {
    float most = 0;
    a.forEach([&](const std::vector<int64_t> &index) { most = std::max(most, std::abs(a.at(index) - b.at(index))); });
    return most;
  }
};

constexpr int64_t kQueries[] = {1, 3, 20, 100};

TEST_P(AttentionSkip, KeysBelowTheRunningMaximumAreLeftOut) {
  for (const Kind &kind : kKinds) {
    if (!skips(kind))
      continue;
    int64_t skipped = 0, all = 0;
    for (int64_t queries : kQueries)
      for (int64_t keys : {1500, 9000}) {
        std::vector<float> levels;
        for (int64_t i = 0; i <= keys / stepOf(kind); ++i)
          levels.push_back(static_cast<float>(random() % 40) / 4 - 5);
        Problem problem = {queries, keys, 37,
                           [&](int64_t key) {
                             return levels[static_cast<size_t>(key / stepOf(kind))] - static_cast<float>(key % 7 != 0);
                           },
                           [](int64_t key) { return static_cast<float>(key % 13) / 4 - 1; }};
        Result expected{Tensor({1, kHeads, queries, kSize}), Tensor({1, kHeads, queries})};
        skipped += reference(kind, problem, expected);
        all += kHeads * queries * keys;
        Result found = attend(kind, problem, problem.skip);
        std::string what = kind.kernel + (" of " + std::to_string(queries)) + " queries";
        expectClose(found.out, expected.out, toleranceOf(kind), what);
        expectClose(found.lse, expected.lse, toleranceOf(kind), what);
      }
    EXPECT_GT(skipped, all / 8) << kind.kernel;
  }
}

/// The worst case: the first key has the largest logit, and all others are hardly low enough to be left out.
TEST_P(AttentionSkip, ErrorIsBounded) {
  for (const Kind &kind : kKinds)
    for (int64_t queries : {1, 100})
      for (double skip : {0.01, 0.25, 1.0, 8.0}) {
        constexpr int64_t keys = 3000;
        auto low = static_cast<float>(-std::log(keys / skip) * 1.01);
        auto level = std::bit_cast<float>(std::bit_cast<uint32_t>(low) & 0xffff0000);
        Problem problem = {queries, keys, skip, [&](int64_t key) { return key == 0 ? 0 : level; },
                           [](int64_t key) { return key == 0 ? 1.0f : -1.0f; }};
        Result dense = attend(kind, problem, 0), found = attend(kind, problem, skip);
        float most = largestDifference(dense.out, found.out), bound = static_cast<float>(2 * skip / (1 + skip));
        EXPECT_LE(most, bound + 2 * toleranceOf(kind)) << kind.kernel;
        EXPECT_LE(largestDifference(dense.lse, found.lse), std::log1p(skip) + 2 * toleranceOf(kind)) << kind.kernel;
        if (skips(kind) && skip >= 0.25) // the step of the first key, up to 256 keys, stays
          EXPECT_GE(most, 0.5f * bound) << kind.kernel;
      }
}

TEST_P(AttentionSkip, ErrorOfRandomKeysIsBounded) {
  for (const Kind &kind : kKinds)
    for (int64_t queries : kQueries) {
      constexpr int64_t keys = 5000;
      GrowingCache key(kind, true, 1, kKeyHeads, keys, kSize), value(kind, false, 1, kKeyHeads, keys, kSize);
      for (int64_t position = 0; position < keys; ++position)
        key.append(position, random), value.fill(position, position % 2 == 0 ? 1.0f : -1.0f);
      Tensor query = Tensor({1, kHeads, queries, kSize}).randomize(random);
      auto with = [&](double skip) {
        return attend(kind, query, key.view(0, 1, keys), value.view(0, 1, keys), skip, 0.3);
      };
      Result dense = with(0);
      for (double skip : {0.01, 1.0, 100.0}) {
        Result found = with(skip);
        auto bound = static_cast<float>(2 * skip / (1 + skip));
        EXPECT_LE(largestDifference(dense.out, found.out), bound + 2 * toleranceOf(kind)) << kind.kernel;
        EXPECT_LE(largestDifference(dense.lse, found.lse), std::log1p(skip) + 2 * toleranceOf(kind)) << kind.kernel;
      }
      Result same = with(1e-30); // logits would have to lie 77 below the largest
      EXPECT_EQ(largestDifference(dense.out, same.out), 0) << kind.kernel;
      EXPECT_EQ(largestDifference(dense.lse, same.lse), 0) << kind.kernel;
    }
}

TEST_P(AttentionSkip, ValuesOfWhatIsLeftOutAreNotMultiplied) {
  for (const Kind &kind : kKinds)
    for (int64_t queries : kQueries) {
      if (!skips(kind))
        continue;
      auto isLow = [&](int64_t key) { return key >= 512 && key < 1024; };
      Problem problem = {queries, 1500, 1, [&](int64_t key) { return isLow(key) ? -30.0f : 1.0f; },
                         [&](int64_t key) { return isLow(key) ? std::numeric_limits<float>::quiet_NaN() : 2.0f; }};
      Result found = attend(kind, problem, problem.skip);
      Tensor expected(found.out.sizes);
      expected.forEach([&](const std::vector<int64_t> &index) { expected(index) = 2; });
      expectClose(found.out, expected, toleranceOf(kind), kind.kernel);
    }
}

HONE_INSTANTIATE_LEVELS(AttentionSkip);

} // namespace
} // namespace hone::test
