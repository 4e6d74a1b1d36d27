// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention on the device against plain loops in double precision.

#include "parity.h"

#include "gmock/gmock.h"

namespace hone::test {
namespace {

struct Case {
  int64_t sequences, queryHeads, kvHeads, queries, keys, size, valueSize;
  bool causal = true;
  int64_t window = -1;
  double softcap = 0;
  bool hasBias = false, hasAlibi = false, hasSinks = false, hasRanges = false, hasPrefix = false;
  int32_t type = HONE_F32, cacheType = HONE_F32;
  Layout layout = Layout::Dense;
  bool isTree = false; // queries are a tree of tokens: a bias of the last keys lets each see its ancestors
  bool hasLse = false, hasAncestors = false, hasPositions = false; // ancestors: the same tree by bits
  int64_t blockKeys = 0, blockQueries = 1, listHeads = 1;
  bool hasLags = false; // the last keys of some sequences are none of theirs, and no numbers
};

constexpr int64_t kListed = 4;

/// The operands of a case.
struct Problem {
  Problem(const Case &test, std::mt19937 &random)
      : query({test.sequences, test.queryHeads, test.queries, test.size}, test.type, test.layout),
        key({test.sequences, test.kvHeads, test.keys, test.size}, test.cacheType, test.layout),
        value({test.sequences, test.kvHeads, test.keys, test.valueSize}, test.cacheType, test.layout),
        out({test.sequences, test.queryHeads, test.queries, test.valueSize}, test.type, test.layout) {
    query.randomize(random), key.randomize(random), value.randomize(random);
    if (test.hasBias)
      bias = Tensor({1, test.queryHeads, 1, test.keys}, test.type).randomize(random);
    if (test.isTree)
      bias = treeOf(test, random);
    if (test.hasAlibi)
      alibi = Tensor({test.queryHeads}, HONE_F32, test.layout).randomize(random, 0.1);
    if (test.hasSinks)
      sinks = Tensor({test.queryHeads}, HONE_F32, test.layout).randomize(random);
    if (test.hasRanges) {
      begin = end = Tensor({test.sequences}, HONE_I64, test.layout);
      for (int64_t b = 0; b < test.sequences; ++b) {
        begin.set({b}, static_cast<double>(b * 2 % std::max<int64_t>(test.keys, 1)));
        end.set({b}, static_cast<double>(test.keys - b % 3));
      }
    }
    if (test.hasLags) {
      lags = Tensor({test.sequences}, HONE_I64, test.layout);
      for (int64_t b = 0; b < test.sequences; ++b)
        lags.set({b}, static_cast<double>(b * (test.keys - test.queries) / test.sequences));
      for (Tensor *each : {&key, &value})
        each->forEach([&](const std::vector<int64_t> &at) {
          if (at[2] >= keyCount(test, at[0]))
            each->set(at, NAN);
        });
    }
    if (test.hasLse)
      lse = Tensor({test.sequences, test.queryHeads, test.queries}, HONE_F32, test.layout);
    if (test.hasPositions) {
      positions = Tensor({test.sequences, test.keys}, HONE_I64, test.layout);
      positions.forEach([&](const std::vector<int64_t> &at) {
        positions.set(at, random() % 5 == 0 ? -1 : static_cast<double>(2 * at[1]));
      });
    }
    if (test.hasAncestors) {
      Tensor tree = treeOf(test, random);
      ancestors = Tensor({1, test.queries, 1}, HONE_I64, test.layout);
      for (int64_t i = 0; i < test.queries; ++i) {
        double word = 0;
        for (int64_t j = 0; j < test.queries; ++j)
          word += tree.at({0, 0, i, j}) == 0 ? std::ldexp(1.0, static_cast<int>(j)) : 0;
        ancestors.set({0, i, 0}, word);
      }
    }
    if (test.blockKeys > 0) {
      int64_t count = (test.keys + test.blockKeys - 1) / test.blockKeys;
      blocks =
          Tensor({test.sequences, test.listHeads, (test.queries + test.blockQueries - 1) / test.blockQueries, kListed},
                 HONE_I64, test.layout);
      blocks.forEach([&](const std::vector<int64_t> &at) { // every kListed-th block from one, at most, is another
        int64_t block = (at[3] * 7 + at[2] + at[1]) % std::max<int64_t>(count, 1);
        bool isNew = at[3] < count && random() % 4 != 0;
        for (int64_t t = 0; isNew && t < at[3]; ++t)
          isNew = blocks.at({at[0], at[1], at[2], t}) != static_cast<double>(block);
        blocks.set(at, isNew ? static_cast<double>(block) : -1);
      });
    }
    if (test.hasPrefix) {
      prefix = Tensor({test.sequences}, HONE_I64, test.layout);
      for (int64_t b = 0; b < test.sequences; ++b)
        prefix.set({b}, static_cast<double>(b + 2));
    }
  }

  /// 0 from each query to itself and its ancestors, -inf to others.
  static Tensor treeOf(const Case &test, std::mt19937 &random) {
    Tensor tree({1, 1, test.queries, test.queries}, HONE_F32, test.layout);
    tree.forEach([&](const std::vector<int64_t> &index) { tree.set(index, -INFINITY); });
    std::vector<int64_t> parents;
    for (int64_t i = 0; i < test.queries; ++i) {
      parents.push_back(i == 0 ? -1 : static_cast<int64_t>(random() % static_cast<uint64_t>(i)));
      for (int64_t j = i; j >= 0; j = parents[static_cast<size_t>(j)])
        tree.set({0, 0, i, j}, 0);
    }
    return tree;
  }

  Tensor query, key, value, out;
  Tensor bias = Tensor::absent(), alibi = bias, sinks = bias, begin = bias, end = bias, prefix = bias;
  Tensor lags = bias, positions = bias, blocks = bias, ancestors = bias, lse = bias;

  int64_t keyCount(const Case &test, int64_t b) const {
    return test.keys - (test.hasLags ? static_cast<int64_t>(lags.at({b})) : 0);
  }

  int64_t keyPosition(int64_t b, int64_t j) const {
    return positions.sizes[0] != 0 && j >= 0 ? static_cast<int64_t>(positions.at({b, j})) : j;
  }

  /// Whether lists, ancestors and positions show the key.
  bool shows(const Case &test, int64_t b, int64_t h, int64_t i, int64_t j) const {
    bool isListed = test.blockKeys == 0;
    for (int64_t t = 0; !isListed && t < kListed; ++t)
      isListed = blocks.at({b, h / (test.queryHeads / test.listHeads), i / test.blockQueries, t}) ==
                 static_cast<double>(j / test.blockKeys);
    int64_t draft = j - keyCount(test, b) + test.queries;
    bool isAncestor =
        !test.hasAncestors || draft < 0 || (static_cast<int64_t>(ancestors.at({0, i, 0})) >> draft & 1) != 0;
    return j < keyCount(test, b) && isListed && isAncestor && keyPosition(b, j) >= 0;
  }
};

class AttentionParity : public ParityTest {
protected:
  void check(const Case &test) {
    Problem problem(test, random);
    double scale = 1 / std::sqrt(static_cast<double>(test.size));
    run({&problem.query, &problem.key, &problem.value, &problem.bias, &problem.alibi, &problem.sinks, &problem.begin,
         &problem.end, &problem.lags, &problem.prefix, &problem.positions, &problem.blocks, &problem.ancestors,
         &problem.lse, &problem.out},
        2, {test.causal, test.window, test.blockKeys, test.blockQueries, test.isTree}, {scale, test.softcap});
    for (int64_t b = 0; b < test.sequences; ++b)
      for (int64_t h = 0; h < test.queryHeads; ++h)
        for (int64_t i = 0; i < test.queries; ++i)
          if (!compareRow(test, problem, b, h, i, scale))
            return;
  }

  bool compareRow(const Case &test, const Problem &problem, int64_t b, int64_t h, int64_t i, double scale) {
    std::vector<double> logits = logitsOf(test, problem, b, h, i, scale);
    double largest = test.hasSinks ? problem.sinks.at({h}) : -INFINITY, sum = 0;
    for (double logit : logits)
      largest = std::max(largest, logit);
    if (test.hasSinks)
      sum = std::exp(problem.sinks.at({h}) - largest);
    for (double &logit : logits) {
      logit = largest == -INFINITY ? 0 : std::exp(logit - largest);
      sum += logit;
    }
    double keys = test.hasSinks ? sum - std::exp(problem.sinks.at({h}) - largest) : sum;
    if (test.hasLse && !isLse(problem.lse.at({b, h, i}), largest + std::log(keys), tolerance(test))) {
      ADD_FAILURE() << kernel() << " lse of sequence " << b << " head " << h << " query " << i << " of " << test.queries
                    << " queries, " << test.keys << " keys: expected " << largest + std::log(keys) << ", but got "
                    << problem.lse.at({b, h, i});
      return false;
    }
    for (int64_t d = 0; d < test.valueSize; ++d) {
      double expected = 0, magnitude = 0;
      for (int64_t j = 0; j < test.keys; ++j) {
        double value = problem.value.at({b, h / (test.queryHeads / test.kvHeads), j, d});
        double weight = sum == 0 ? 0 : logits[static_cast<size_t>(j)] / sum;
        if (weight == 0) // what is not seen may be anything
          continue;
        expected += weight * value;
        magnitude += weight * std::abs(value);
      }
      double actual = problem.out.at({b, h, i, d});
      double error = tolerance(test) * magnitude + roundingOf(test.type) * std::abs(expected) + 1e-6;
      if (std::abs(actual - expected) <= error)
        continue;
      ADD_FAILURE() << kernel() << " sequence " << b << " head " << h << " query " << i << " element " << d << " of "
                    << test.queries << " queries, " << test.keys << " keys, size " << test.size << ", type "
                    << test.type << ", cache " << test.cacheType << ": expected " << expected << " ± " << error
                    << ", but got " << actual;
      return false;
    }
    return true;
  }

  /// Without keys it is minus infinity; else sums of probabilities err as probabilities do.
  static bool isLse(double actual, double expected, double tolerance) {
    return actual == expected || (std::isnan(expected) && actual == -INFINITY) ||
           std::abs(actual - expected) <= tolerance * (1 + std::abs(expected));
  }

  /// -inf where a key is not visible.
  static std::vector<double> logitsOf(const Case &test, const Problem &problem, int64_t b, int64_t h, int64_t i,
                                      double scale) {
    std::vector<double> logits(static_cast<size_t>(test.keys), -INFINITY);
    int64_t position = problem.keyPosition(b, problem.keyCount(test, b) - test.queries + i);
    for (int64_t j = 0; j < test.keys; ++j) {
      int64_t place = problem.keyPosition(b, j);
      bool isVisible = !test.causal || place <= position || (test.hasPrefix && place < problem.prefix.at({b}));
      isVisible &= test.window < 0 || place > position - test.window;
      isVisible &= problem.shows(test, b, h, i, j);
      if (test.hasRanges)
        isVisible &= j >= problem.begin.at({b}) && j < problem.end.at({b});
      if (!isVisible)
        continue;
      double logit = 0;
      for (int64_t d = 0; d < test.size; ++d)
        logit += problem.query.at({b, h, i, d}) * problem.key.at({b, h / (test.queryHeads / test.kvHeads), j, d});
      logit *= scale;
      if (test.softcap > 0)
        logit = test.softcap * std::tanh(logit / test.softcap);
      if (test.hasAlibi)
        logit += problem.alibi.at({h}) * static_cast<double>(place - position);
      if (test.isTree && j >= test.keys - test.queries)
        logit += problem.bias.at({0, 0, i, j - test.keys + test.queries});
      if (test.hasBias)
        logit += problem.bias.at({0, h, 0, j});
      logits[static_cast<size_t>(j)] = logit;
    }
    return logits;
  }

  /// The relative error of probabilities. In f32 logits are sums of up to a few hundred products; products of hi and
  /// lo terms of bf16 err by up to 3 · 2^-16, which mostly cancels in a logit. 16-bit types round probabilities.
  static double tolerance(const Case &test) {
    if (test.type == test.cacheType && test.type != HONE_F32)
      return roundingOf(test.type) + 1e-4;
    return std::max(test.size, test.valueSize) > 128 ? 2e-5 : 1e-4;
  }
};

TEST_P(AttentionParity, DecodeOneToken) {
  for (int64_t keys : {1, 31, 64, 65, 300, 1000})
    check({2, 4, 2, 1, keys, 64, 64});
}

/// By a cluster of blocks on sm_90: one tile of keys and several, less than there are warps and more.
TEST_P(AttentionParity, DecodeByClusters) {
  if (device->limits().chip != 90)
    GTEST_SKIP() << "these kernels are for sm_90";
  for (auto [type, cacheType] : {std::pair(HONE_F32, HONE_BF16), std::pair(HONE_BF16, HONE_BF16),
                                 std::pair(HONE_F16, HONE_F16), std::pair(HONE_F16, HONE_BF16)})
    for (int64_t keys : {1, 150, 1100}) {
      Case test = {2, 14, 2, 1, keys, 64, 64};
      test.type = type, test.cacheType = cacheType;
      device->takeLaunched();
      check(test);
      EXPECT_THAT(device->takeLaunched(), testing::ElementsAre(testing::StartsWith("hopper_decode_")));
      test.sequences = 3, test.size = test.valueSize = 128, test.queryHeads = 4, test.window = 70;
      test.hasSinks = test.hasRanges = true;
      check(test);
      test.hasLags = true, test.hasRanges = false, test.window = -1, test.layout = Layout::Aligned;
      test.size = 96, test.valueSize = 80;
      check(test);
    }
}

TEST_P(AttentionParity, Prefill) {
  for (int64_t queries : {2, 17, 70})
    for (bool causal : {true, false})
      check({1, 3, 1, queries, queries, 40, 24, causal});
}

TEST_P(AttentionParity, NewTokensAfterOthers) { check({2, 4, 4, 9, 130, 128, 128}); }

TEST_P(AttentionParity, WindowAndSoftcap) {
  for (int64_t window : {0, 1, 7, 1000})
    check({1, 2, 1, 20, 50, 32, 32, true, window, 5});
}

TEST_P(AttentionParity, EverythingElse) {
  Case all = {3, 6, 2, 5, 40, 16, 16, true, 20, 3, true, true, true, true, true};
  check(all);
  all.layout = Layout::Gaps;
  check(all);
  all.causal = false, all.queries = 1, all.keys = 600, all.window = -1;
  check(all);
}

TEST_P(AttentionParity, TypesAndLayouts) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
    for (int32_t cacheType : {HONE_F32, HONE_F16, HONE_BF16})
      for (Layout layout : {Layout::Dense, Layout::Swapped, Layout::Gaps})
        check({2, 2, 1, 3, 37, 24, 40, true, -1, 0, false, false, false, false, false, type, cacheType, layout});
}

TEST_P(AttentionParity, TypesOfDecoding) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
    for (int32_t cacheType : {HONE_F32, HONE_F16, HONE_BF16})
      for (int64_t size : {64, 96, 128})
        check({1, 8, 2, 2, 150, size, size, true, -1, 0, false, false, false, false, false, type, cacheType});
}

TEST_P(AttentionParity, TypesOfPrefill) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
    for (int32_t cacheType : {HONE_F32, HONE_BF16})
      check({1, 4, 2, 45, 90, 64, 72, true, -1, 0, false, false, false, false, false, type, cacheType});
}

TEST_P(AttentionParity, TreesOfTokens) {
  for (int64_t queries : {1, 3, 16, 45})
    for (int32_t type : {HONE_F32, HONE_BF16}) {
      Case tree = {1, 4, 2, queries, queries + 300, 64, 64};
      tree.type = tree.cacheType = type, tree.isTree = true;
      check(tree);
      tree.keys = queries, tree.layout = Layout::Gaps;
      check(tree);
    }
  Case wide = {2, 2, 1, 7, 80, 256, 256};
  wide.isTree = true, wide.hasSinks = true;
  check(wide);
}

/// By one kernel and by split-KV, with a sink, and for queries that see nothing.
TEST_P(AttentionParity, Lse) {
  for (int64_t queries : {1, 20})
    for (int32_t type : {HONE_F32, HONE_BF16})
      for (int64_t size : {64, 256}) {
        Case test = {2, 4, 2, queries, 900, size, size};
        test.type = test.cacheType = type, test.hasLse = true;
        check(test);
        test.hasSinks = true;
        check(test);
      }
  Case none = {2, 2, 1, 4, 4, 16, 16, true, -1, 0, false, false, false, true};
  none.hasLse = true;
  check(none);
}

TEST_P(AttentionParity, ListsOfBlocks) {
  for (int64_t queries : {1, 9})
    for (int64_t blockKeys : {1, 16, 64})
      for (int64_t listHeads : {1, 2, 4})
        for (int32_t type : {HONE_F32, HONE_BF16}) {
          Case test = {2, 4, 2, queries, 500, 64, 40};
          test.type = test.cacheType = type, test.hasLse = true;
          test.blockKeys = blockKeys, test.blockQueries = 4, test.listHeads = listHeads;
          check(test);
        }
}

TEST_P(AttentionParity, AncestorsAndPositions) {
  for (int64_t queries : {1, 16, 45})
    for (int64_t earlier : {0, 300}) {
      Case tree = {2, 4, 2, queries, queries + earlier, 64, 64, false};
      tree.hasLse = tree.hasAncestors = true;
      check(tree);
      tree.hasPositions = tree.hasAlibi = true, tree.causal = true, tree.window = 100;
      check(tree);
    }
}

TEST_P(AttentionParity, SequencesHaveTheirOwnLengths) {
  for (int64_t queries : {1, 16, 70})
    for (int32_t type : {HONE_F32, HONE_BF16}) {
      Case lagging = {3, 4, 2, queries, queries + 300, 64, 64};
      lagging.type = lagging.cacheType = type, lagging.hasLags = lagging.hasLse = true;
      check(lagging);
      lagging.hasAlibi = true, lagging.window = 100, lagging.size = lagging.valueSize = 40;
      check(lagging);
      lagging.hasAncestors = queries <= 45, lagging.causal = false, lagging.window = -1, lagging.hasAlibi = false;
      check(lagging);
    }
}

TEST_P(AttentionParity, WideHeads) { check({1, 2, 1, 3, 70, 256, 512}); }

TEST_P(AttentionParity, NothingToSee) {
  check({2, 2, 1, 3, 0, 16, 16, false});
  check({0, 2, 1, 3, 5, 16, 16});
  Case none = {2,    2,  1, 4,     4,     16,    16,
               true, -1, 0, false, false, false, true}; // padding hides all keys of the first queries
  check(none);
}

/// Prefill with queries, keys and values of one 16-bit type. With one SM no split-KV is needed.
class PrefillParity : public AttentionParity {
protected:
  void SetUp() override {
    AttentionParity::SetUp();
    if (device)
      multiprocessors = device->pretendMultiprocessors(1);
  }
  void TearDown() override {
    if (device)
      device->pretendMultiprocessors(multiprocessors);
  }

  void checkTypes(Case test) {
    for (int32_t type : {HONE_F16, HONE_BF16}) {
      test.type = test.cacheType = type;
      device->takeLaunched();
      check(test);
      if (device->limits().chip != 90)
        continue;
      std::string name =
          std::string("hopper_flash_") + (type == HONE_F16 ? "f16_" : "bf16_") + std::to_string(test.size);
      EXPECT_EQ(device->takeLaunched(), std::set<std::string>{name});
    }
  }

private:
  int32_t multiprocessors = 0;
};

TEST_P(PrefillParity, Prefill) {
  for (int64_t size : {64, 128})
    for (int64_t queries : {64, 128, 200})
      checkTypes({1, 2, 1, queries, queries, size, size});
}

TEST_P(PrefillParity, ManyKeyTiles) {
  for (int64_t size : {64, 128})
    for (bool causal : {true, false})
      checkTypes({1, 1, 1, 70, 700, size, size, causal});
}

TEST_P(PrefillParity, HeadsAndSequences) {
  Case test = {2, 4, 2, 130, 140, 64, 64};
  checkTypes(test);
  test.layout = Layout::HeadsInside;
  checkTypes(test);
}

TEST_P(PrefillParity, Windows) {
  for (int64_t window : {0, 1, 40, 128, 300})
    checkTypes({1, 1, 1, 150, 420, 64, 64, true, window});
  checkTypes({1, 1, 1, 150, 420, 128, 128, false, 100});
}

TEST_P(PrefillParity, SoftcapSinksRangesAndPrefix) {
  for (int64_t size : {64, 128}) {
    Case test = {2, 2, 1, 80, 200, size, size, true, -1, 3, false, false, true, true, true};
    checkTypes(test);
    test.window = 50, test.softcap = 0;
    checkTypes(test);
  }
}

TEST_P(PrefillParity, NothingToSee) {
  Case none = {2, 1, 1, 70, 70, 64, 64, true, -1, 0, false, false, false, true};
  checkTypes(none);
  none.window = 0;
  checkTypes(none);
}

/// Unsupported problems run by the other kernels.
TEST_P(PrefillParity, OthersRunElsewhere) {
  auto launchedBy = [&](Case test) {
    test.type = test.cacheType = HONE_BF16;
    device->takeLaunched();
    check(test);
    std::set<std::string> names = device->takeLaunched();
    return names.empty() ? "" : *names.begin();
  };
  EXPECT_EQ(launchedBy({1, 1, 1, 63, 70, 64, 64}), "flash_bf16_64_4");
  EXPECT_EQ(launchedBy({1, 1, 1, 64, 70, 96, 96}), "flash_bf16_128_4");
  EXPECT_EQ(launchedBy({1, 1, 1, 64, 70, 64, 64, true, -1, 0, true}), "flash_bf16_64_4");
  EXPECT_EQ(launchedBy({1, 1, 1, 64, 70, 64, 64, true, -1, 0, false, true}), "flash_bf16_64_4");
  EXPECT_EQ(launchedBy({1, 1, 1, 64, 70, 64, 64, true, -1, 0, false, false, false, false, false, HONE_BF16, HONE_BF16,
                        Layout::Gaps}),
            "flash_double_64_4");
}

INSTANTIATE_TEST_SUITE_P(Attention, PrefillParity, testing::Values("cuda.attention.f32"));
INSTANTIATE_TEST_SUITE_P(Attention, AttentionParity, testing::Values("cuda.attention.f32"));

} // namespace
} // namespace hone::test
