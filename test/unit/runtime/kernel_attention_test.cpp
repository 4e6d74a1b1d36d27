// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.attention.f32 against its formula, written out query by query.

#include "attention_masks.h"
#include "cpu/cache_prefetch.h"

#include <optional>
#include <set>
#include <tuple>

namespace hone::test {
namespace {

constexpr float kTolerance = 2e-5f; // the exponential errs by 2 units in the last place, sums are short

struct Case {
  int64_t batch = 1, heads = 1, keyHeads = 1, queries = 1, keys = 1, size = 8, valueSize = 8;
  bool causal = false;
  int64_t window = -1;
  float softcap = 0;
  std::vector<int64_t> biasShape = {};
  bool hasAlibi = false, hasSinks = false;
  std::vector<int64_t> keyBegin = {}, keyEnd = {}, prefix = {};
  Layout layout = Layout::Dense;
  MaskCase mask = {};
};

class AttentionKernel : public KernelTest {
protected:
  void check(const Case &test) {
    Tensor q = Tensor({test.batch, test.heads, test.queries, test.size}, test.layout).randomize(random);
    Tensor k = Tensor({test.batch, test.keyHeads, test.keys, test.size}, test.layout).randomize(random);
    Tensor v = Tensor({test.batch, test.keyHeads, test.keys, test.valueSize}, test.layout).randomize(random);
    Tensor bias = test.biasShape.empty() ? Tensor::absent() : Tensor(test.biasShape, test.layout).randomize(random);
    Tensor alibi = test.hasAlibi ? Tensor({test.heads}).randomize(random, 0.1f) : Tensor::absent();
    Tensor sinks = test.hasSinks ? Tensor({test.heads}).randomize(random) : Tensor::absent();
    if (!test.biasShape.empty())
      maskSome(bias);
    Masks masks(test.mask, test.batch, test.heads, test.queries, test.keys, random);
    for (Tensor *each : {&k, &v}) // what is after a sequence's keys may be anything
      each->forEach([&](const std::vector<int64_t> &index) {
        if (index[2] >= masks.keyCount(index[0]))
          (*each)(index) = std::numeric_limits<float>::quiet_NaN();
      });
    std::vector<int64_t> shape = {test.batch, test.heads, test.queries, test.valueSize};
    Tensor out(shape, test.layout), expected(shape), withLse(shape, test.layout);
    Tensor lse({test.batch, test.heads, test.queries}, test.layout), expectedLse(lse.sizes);
    AttentionOperands operands = attentionOf(q.view(), k.view(), v.view(), out.view());
    operands.bias = bias.view(), operands.alibi = alibi.view(), operands.sinks = sinks.view();
    operands.keyBegin = listOf(test.keyBegin), operands.keyEnd = listOf(test.keyEnd);
    operands.prefix = listOf(test.prefix);
    masks.setOperands(operands);
    std::vector<int64_t> ints = {test.causal, test.window, test.mask.blockKeys, test.mask.blockQueries};
    run("hone.attention.f32", listOperands(operands), ints, {0.3, test.softcap, 0});
    operands.out = withLse.view(), operands.lse = lse.view();
    run("hone.attention.f32", listOperands(operands), ints, {0.3, test.softcap, 0});
    for (int64_t b = 0; b < test.batch; ++b)
      for (int64_t h = 0; h < test.heads; ++h)
        for (int64_t i = 0; i < test.queries; ++i)
          reference(test, masks, q, k, v, bias, alibi, sinks, {b, h, i}, expected, expectedLse);
    expectClose(out, expected, kTolerance, "attention");
    expectClose(withLse, expected, kTolerance, "attention with lse");
    expectClose(lse, expectedLse, kTolerance, "lse");
  }

  /// Some keys are hidden by a bias of minus infinity.
  static void maskSome(Tensor &bias) {
    int64_t number = 0;
    bias.forEach([&](const std::vector<int64_t> &index) {
      if (++number % 5 == 0)
        bias(index) = -std::numeric_limits<float>::infinity();
    });
  }

  static bool isVisible(const Case &test, Masks &masks, int64_t b, int64_t h, int64_t i, int64_t j) {
    auto sequence = static_cast<size_t>(b);
    int64_t p = masks.queryPosition(b, i), k = masks.keyPosition(b, j);
    bool inPrefix = !test.prefix.empty() && k < test.prefix[sequence];
    return (!test.causal || k <= p || inPrefix) && (test.window < 0 || k > p - test.window) &&
           (test.keyBegin.empty() || j >= test.keyBegin[sequence]) &&
           (test.keyEnd.empty() || j < test.keyEnd[sequence]) && masks.sees(b, h, i, j);
  }

  static void reference(const Case &test, Masks &masks, const Tensor &q, const Tensor &k, const Tensor &v,
                        const Tensor &bias, const Tensor &alibi, const Tensor &sinks, std::array<int64_t, 3> at,
                        Tensor &out, Tensor &lse) {
    auto [b, h, i] = at;
    int64_t g = h / (test.heads / test.keyHeads);
    std::vector<double> weights(static_cast<size_t>(test.keys), 0);
    double total = 0;
    for (int64_t j = 0; j < test.keys; ++j) {
      if (!isVisible(test, masks, b, h, i, j))
        continue;
      double logit = 0;
      for (int64_t d = 0; d < test.size; ++d)
        logit += 0.3 * q.at({b, h, i, d}) * k.at({b, g, j, d});
      if (test.softcap > 0)
        logit = test.softcap * std::tanh(logit / test.softcap);
      if (test.hasAlibi)
        logit += alibi.at({h}) * static_cast<double>(masks.keyPosition(b, j) - masks.queryPosition(b, i));
      if (!test.biasShape.empty())
        logit += bias.broadcastAt({b, h, i, j});
      total += weights[static_cast<size_t>(j)] = std::exp(logit);
    }
    lse({b, h, i}) = static_cast<float>(std::log(total));
    total += test.hasSinks ? std::exp(static_cast<double>(sinks.at({h}))) : 0;
    for (int64_t d = 0; d < test.valueSize; ++d) {
      double sum = 0;
      for (int64_t j = 0; j < masks.keyCount(b); ++j)
        sum += weights[static_cast<size_t>(j)] * v.at({b, g, j, d});
      out({b, h, i, d}) = total > 0 ? static_cast<float>(sum / total) : 0;
    }
  }
};

TEST_P(AttentionKernel, ShapesAndLayouts) {
  for (Layout layout : kLayouts)
    for (int64_t queries : {1, 2, 7, 33, 70})
      for (int64_t keys : {1, 9, 64, 130})
        for (bool causal : {false, true})
          check({.batch = 2,
                 .heads = 4,
                 .keyHeads = 2,
                 .queries = queries,
                 .keys = keys,
                 .size = 19,
                 .valueSize = 21,
                 .causal = causal,
                 .layout = layout});
}

TEST_P(AttentionKernel, GroupsOfHeads) {
  for (int64_t keyHeads : {1, 2, 3, 6})
    for (int64_t queries : {1, 5})
      check({.batch = 3,
             .heads = 6,
             .keyHeads = keyHeads,
             .queries = queries,
             .keys = 40,
             .size = 16,
             .valueSize = 32,
             .causal = true});
}

TEST_P(AttentionKernel, Windows) {
  for (int64_t window : {1, 5, 64, 1000})
    for (bool causal : {false, true})
      check({.heads = 2, .keyHeads = 2, .queries = 50, .keys = 90, .causal = causal, .window = window});
}

TEST_P(AttentionKernel, BiasIsRepeated) {
  for (std::vector<int64_t> shape : {std::vector<int64_t>{2, 4, 20, 70}, {1, 1, 1, 70}, {2, 1, 20, 70}, {1, 4, 20, 1}})
    check({.batch = 2, .heads = 4, .keyHeads = 2, .queries = 20, .keys = 70, .biasShape = shape});
}

TEST_P(AttentionKernel, SoftcapAlibiAndSinks) {
  for (int64_t queries : {1, 20}) {
    check({.heads = 2, .keyHeads = 1, .queries = queries, .keys = 70, .causal = true, .softcap = 0.5f});
    check({.heads = 2, .keyHeads = 1, .queries = queries, .keys = 70, .causal = true, .hasAlibi = true});
    check({.heads = 2, .keyHeads = 1, .queries = queries, .keys = 70, .causal = true, .hasSinks = true});
    check({.heads = 2,
           .keyHeads = 1,
           .queries = queries,
           .keys = 70,
           .causal = true,
           .softcap = 2,
           .hasAlibi = true,
           .hasSinks = true});
  }
}

TEST_P(AttentionKernel, RangesOfKeysPerSequence) {
  check({.batch = 3, .queries = 30, .keys = 80, .causal = true, .keyBegin = {0, 7, 79}});
  check({.batch = 3, .queries = 30, .keys = 80, .keyEnd = {80, 3, 0}});
  check({.batch = 2, .queries = 30, .keys = 80, .causal = true, .keyBegin = {60, 0}, .keyEnd = {50, 70}});
  check({.batch = 3, .queries = 80, .keys = 80, .causal = true, .prefix = {0, 10, 80}});
  check({.batch = 2, .queries = 80, .keys = 80, .causal = true, .window = 8, .prefix = {30, 50}});
}

TEST_P(AttentionKernel, SequencesHaveTheirOwnLengths) {
  for (int64_t queries : {1, 9, 33, 70})
    for (int64_t keys : {70, 300, 4200}) {
      check({.batch = 3, .heads = 4, .queries = queries, .keys = keys, .causal = true, .mask = {.hasLags = true}});
      check({.batch = 3, .queries = queries, .keys = keys, .keyBegin = {3, 0, 1}, .mask = {.hasLags = true}});
    }
  check({.batch = 2,
         .queries = 9,
         .keys = 200,
         .causal = true,
         .window = 20,
         .hasAlibi = true,
         .mask = {.hasLags = true}});
  check({.batch = 3, .queries = 20, .keys = 200, .mask = {.isTree = true, .hasLags = true}});
  check({.batch = 3,
         .queries = 20,
         .keys = 200,
         .causal = true,
         .mask = {.blockKeys = 16, .listed = 12, .hasPositions = true, .hasLags = true}});
}

TEST_P(AttentionKernel, LongCachesAreReadInParts) {
  for (int64_t queries : {1, 3, 9})
    for (int64_t keys : {4096, 4100, 9000}) {
      check({.batch = 2, .heads = 4, .keyHeads = 2, .queries = queries, .keys = keys, .causal = true});
      check({.heads = 4,
             .keyHeads = 1,
             .queries = queries,
             .keys = keys,
             .causal = true,
             .window = 3000,
             .hasSinks = true});
      check({.batch = 2, .queries = queries, .keys = keys, .softcap = 3, .keyBegin = {4090, 0}, .keyEnd = {keys, 10}});
    }
}

TEST_P(AttentionKernel, AQueryThatSeesNothingGivesZero) {
  check({.queries = 9, .keys = 4, .causal = true}); // the first queries come before the first key
  check({.batch = 2, .queries = 3, .keys = 0});
  check({.batch = 1, .heads = 2, .keyHeads = 2, .queries = 3, .keys = 5, .keyEnd = {0}});
}

TEST_P(AttentionKernel, EmptyBatchesAndQueries) {
  check({.batch = 0, .queries = 3, .keys = 5});
  check({.queries = 0, .keys = 5});
}

TEST_P(AttentionKernel, LargeLogitsDoNotOverflow) {
  Tensor q({1, 1, 1, 1}), k({1, 1, 3, 1}), v({1, 1, 3, 1}), out({1, 1, 1, 1});
  q({0, 0, 0, 0}) = 1;
  for (int64_t j = 0; j < 3; ++j) {
    k({0, 0, j, 0}) = static_cast<float>(j == 1 ? 30000 : -30000);
    v({0, 0, j, 0}) = static_cast<float>(j);
  }
  AttentionOperands operands = attentionOf(q.view(), k.view(), v.view(), out.view());
  run("hone.attention.f32", listOperands(operands), {0, -1, 0, 0}, {1.0, 0.0, 0.0});
  EXPECT_EQ(out.at({0, 0, 0, 0}), 1);
}

TEST_P(AttentionKernel, TheLeastBiasForAllKeysGivesTheirMean) {
  for (int64_t keys : {3, 70, 200}) {
    Tensor q = Tensor({1, 1, 40, 16}).randomize(random), k = Tensor({1, 1, keys, 16}).randomize(random);
    Tensor v = Tensor({1, 1, keys, 16}).randomize(random), bias({1, 1, 1, keys});
    Tensor out({1, 1, 40, 16});
    bias.forEach([&](const std::vector<int64_t> &index) { bias(index) = std::numeric_limits<float>::lowest(); });
    AttentionOperands operands = attentionOf(q.view(), k.view(), v.view(), out.view());
    operands.bias = bias.view();
    run("hone.attention.f32", listOperands(operands), {0, -1, 0, 0}, {0.3, 0.0, 0.0});
    double mean = 0;
    for (int64_t j = 0; j < keys; ++j)
      mean += v.at({0, 0, j, 5}) / static_cast<double>(keys);
    EXPECT_NEAR(out.at({0, 0, 39, 5}), mean, 1e-5);
  }
}

/// Lists for all heads, KV heads or query heads, for each query or for several, of blocks that are a step, more or less.
TEST_P(AttentionKernel, ListsOfBlocks) {
  for (int64_t queries : {1, 7, 70})
    for (int64_t blockKeys : {1, 16, 64, 100, 128})
      for (int64_t listHeads : {1, 2, 4})
        for (bool causal : {false, true})
          check({.batch = 2,
                 .heads = 4,
                 .keyHeads = 2,
                 .queries = queries,
                 .keys = 330,
                 .causal = causal,
                 .mask = {.blockKeys = blockKeys, .blockQueries = queries == 1 ? 1 : 16, .listHeads = listHeads}});
  check({.heads = 2, .queries = 5, .keys = 9000, .hasSinks = true, .mask = {.blockKeys = 64, .listed = 40}});
  check(
      {.heads = 2, .queries = 40, .keys = 500, .causal = true, .window = 90, .mask = {.blockKeys = 16, .listed = 20}});
  check({.heads = 2, .queries = 3, .keys = 500, .mask = {.blockKeys = 64, .listed = 0}}); // nobody sees anything
}

TEST_P(AttentionKernel, TreesOfDraftTokens) {
  for (int64_t queries : {1, 5, 33, 100})
    for (int64_t earlier : {0, 3, 64, 4200})
      check({.batch = 2,
             .heads = 2,
             .queries = queries,
             .keys = queries + earlier,
             .hasAlibi = earlier == 3,
             .hasSinks = earlier == 64,
             .mask = {.isTree = true}});
  check({.heads = 2, .queries = 9, .keys = 5, .mask = {.isTree = true}}); // the first draft tokens have no keys
}

TEST_P(AttentionKernel, PositionsOfKeys) {
  for (int64_t queries : {1, 6, 50})
    for (bool causal : {false, true}) {
      check(
          {.batch = 2, .heads = 2, .queries = queries, .keys = 200, .causal = causal, .mask = {.hasPositions = true}});
      check({.batch = 2,
             .heads = 2,
             .queries = queries,
             .keys = 200,
             .causal = causal,
             .window = 77,
             .hasAlibi = true,
             .prefix = {40, 3},
             .mask = {.hasPositions = true}});
    }
  check({.queries = 9, .keys = 5, .causal = true, .mask = {.hasPositions = true}});
}

TEST_P(AttentionKernel, ListsTreesAndPositions) {
  for (int64_t queries : {1, 20})
    check({.batch = 2,
           .heads = 4,
           .keyHeads = 2,
           .queries = queries,
           .keys = 300,
           .causal = true,
           .window = 400,
           .biasShape = {1, 4, 1, 300},
           .hasAlibi = true,
           .hasSinks = true,
           .keyBegin = {0, 40},
           .mask = {.blockKeys = 16, .listHeads = 2, .listed = 12, .isTree = true, .hasPositions = true}});
}

class RecordingPrefetcher final : public cpu::CachePrefetcher {
public:
  void prefetch(const hone_tensor &cache, int64_t, int64_t head, int64_t first, int64_t end) override {
    ranges.insert({cache.data, head, first, end});
  }

  std::set<std::tuple<const void *, int64_t, int64_t, int64_t>> ranges;
};

/// Listed blocks are read ahead, of keys and of values, up to the last key.
TEST_P(AttentionKernel, ListedBlocksArePrefetched) {
  Tensor q = Tensor({1, 4, 2, 16}).randomize(random), k = Tensor({1, 2, 300, 16}).randomize(random);
  Tensor v = Tensor({1, 2, 300, 16}).randomize(random), out(q.sizes);
  IntegerTensor lists({1, 2, 2, 2});
  lists.values = {0, -1, 4, 9, 2, -1, 2, -1}; // of a KV head and query; there is no block 9
  AttentionOperands operands = attentionOf(q.view(), k.view(), v.view(), out.view());
  operands.blocks = lists.view();
  RecordingPrefetcher prefetcher;
  {
    cpu::CachePrefetchScope scope(&prefetcher);
    run("hone.attention.f32", listOperands(operands), {0, -1, 64, 1}, {0.3, 0.0, 0.0});
  }
  std::set<std::tuple<const void *, int64_t, int64_t, int64_t>> expected;
  for (const void *cache : {k.view().data, v.view().data})
    expected.insert({{cache, 0, 0, 64}, {cache, 0, 256, 300}, {cache, 1, 128, 192}});
  EXPECT_EQ(prefetcher.ranges, expected);
}

/// What is in no list is not read.
TEST_P(AttentionKernel, BlocksThatAreNotListedAreSkipped) {
  constexpr int64_t kKeys = 9000, kBlock = 64;
  for (int64_t queries : {1, 40}) {
    Tensor q = Tensor({1, 2, queries, 16}).randomize(random), k({1, 2, kKeys, 16}), v({1, 2, kKeys, 16});
    Tensor out({1, 2, queries, 16});
    IntegerTensor lists({1, 1, 1, 3});
    lists.values = {100, -1, 7};
    std::normal_distribution<float> normal;
    k.forEach([&](const std::vector<int64_t> &index) { // the others hold NaN
      if (index[2] / kBlock == 100 || index[2] / kBlock == 7)
        k(index) = normal(random), v(index) = normal(random);
    });
    AttentionOperands operands = attentionOf(q.view(), k.view(), v.view(), out.view());
    operands.blocks = lists.view();
    run("hone.attention.f32", listOperands(operands), {0, -1, kBlock, queries}, {0.3, 0.0, 0.0});
    out.forEach([&](const std::vector<int64_t> &index) { EXPECT_TRUE(std::isfinite(out(index))); });
  }
}

/// Attention over two halves of the keys, merged by lse, is that over all.
TEST_P(AttentionKernel, HalvesMergeByLse) {
  for (int64_t queries : {1, 20}) {
    Tensor q = Tensor({2, 4, queries, 16}).randomize(random), k = Tensor({2, 2, 300, 16}).randomize(random);
    Tensor v = Tensor({2, 2, 300, 16}).randomize(random);
    auto attend = [&](int64_t begin, int64_t end, Tensor &out, Tensor &lse) {
      std::vector<int64_t> begins(2, begin), ends(2, end);
      AttentionOperands operands = attentionOf(q.view(), k.view(), v.view(), out.view());
      operands.keyBegin = listOf(begins), operands.keyEnd = listOf(ends);
      operands.lse = lse.view();
      run("hone.attention.f32", listOperands(operands), {1, -1, 0, 0}, {0.3, 0.0, 0.0});
    };
    Tensor whole(q.sizes), first(q.sizes), second(q.sizes), merged(q.sizes), mergedLse({2, 4, queries});
    Tensor wholeLse({2, 4, queries}), firstLse({2, 4, queries}), secondLse({2, 4, queries});
    attend(0, 300, whole, wholeLse);
    attend(0, 290, first, firstLse);
    attend(290, 300, second, secondLse); // which the first of many queries do not see
    merged.forEach([&](const std::vector<int64_t> &at) {
      std::vector<int64_t> row(at.begin(), at.end() - 1);
      double lse =
          std::log(std::exp(static_cast<double>(firstLse(row))) + std::exp(static_cast<double>(secondLse(row))));
      mergedLse(row) = static_cast<float>(lse);
      merged(at) =
          static_cast<float>(std::exp(firstLse(row) - lse) * first(at) + std::exp(secondLse(row) - lse) * second(at));
    });
    expectClose(merged, whole, kTolerance, "merged result");
    expectClose(mergedLse, wholeLse, kTolerance, "merged lse");
  }
}

/// A sink that is far greater than all logits leaves lse as it is.
TEST_P(AttentionKernel, LseIsWithoutTheSink) {
  Tensor q = Tensor({1, 1, 1, 8}).randomize(random), k = Tensor({1, 1, 20, 8}).randomize(random);
  Tensor v = Tensor({1, 1, 20, 8}).randomize(random), sinks({1}), out(q.sizes), lse({1, 1, 1}), plain({1, 1, 1});
  sinks({0}) = 300;
  AttentionOperands operands = attentionOf(q.view(), k.view(), v.view(), out.view());
  operands.lse = plain.view();
  run("hone.attention.f32", listOperands(operands), {0, -1, 0, 0}, {0.3, 0.0, 0.0});
  operands.sinks = sinks.view(), operands.lse = lse.view();
  run("hone.attention.f32", listOperands(operands), {0, -1, 0, 0}, {0.3, 0.0, 0.0});
  EXPECT_EQ(lse({0, 0, 0}), plain({0, 0, 0}));
  EXPECT_EQ(out({0, 0, 0, 0}), 0);
}

HONE_INSTANTIATE_LEVELS(AttentionKernel);

} // namespace
} // namespace hone::test
