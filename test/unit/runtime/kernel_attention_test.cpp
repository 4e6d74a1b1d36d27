// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.attention.f32 against its formula, written out query by query.

#include "kernel_tensor.h"

#include <optional>

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
    std::vector<int64_t> shape = {test.batch, test.heads, test.queries, test.valueSize};
    Tensor out(shape, test.layout), expected(shape);
    run("hone.attention.f32",
        {q.view(), k.view(), v.view(), bias.view(), alibi.view(), sinks.view(), listOf(test.keyBegin),
         listOf(test.keyEnd), listOf(test.prefix), out.view()},
        {test.causal, test.window}, {0.3, test.softcap});
    for (int64_t b = 0; b < test.batch; ++b)
      for (int64_t h = 0; h < test.heads; ++h)
        for (int64_t i = 0; i < test.queries; ++i)
          reference(test, q, k, v, bias, alibi, sinks, {b, h, i}, expected);
    expectClose(out, expected, kTolerance, "attention");
  }

  /// Some keys are hidden by a bias of minus infinity.
  static void maskSome(Tensor &bias) {
    int64_t number = 0;
    bias.forEach([&](const std::vector<int64_t> &index) {
      if (++number % 5 == 0)
        bias(index) = -std::numeric_limits<float>::infinity();
    });
  }

  static bool isVisible(const Case &test, int64_t b, int64_t p, int64_t j) {
    auto sequence = static_cast<size_t>(b);
    bool inPrefix = !test.prefix.empty() && j < test.prefix[sequence];
    return (!test.causal || j <= p || inPrefix) && (test.window < 0 || j > p - test.window) &&
           (test.keyBegin.empty() || j >= test.keyBegin[sequence]) &&
           (test.keyEnd.empty() || j < test.keyEnd[sequence]);
  }

  static void reference(const Case &test, const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &bias,
                        const Tensor &alibi, const Tensor &sinks, std::array<int64_t, 3> at, Tensor &out) {
    auto [b, h, i] = at;
    int64_t g = h / (test.heads / test.keyHeads), p = test.keys - test.queries + i;
    std::vector<double> weights(static_cast<size_t>(test.keys), 0);
    double total = test.hasSinks ? std::exp(static_cast<double>(sinks.at({h}))) : 0;
    for (int64_t j = 0; j < test.keys; ++j) {
      if (!isVisible(test, b, p, j))
        continue;
      double logit = 0;
      for (int64_t d = 0; d < test.size; ++d)
        logit += 0.3 * q.at({b, h, i, d}) * k.at({b, g, j, d});
      if (test.softcap > 0)
        logit = test.softcap * std::tanh(logit / test.softcap);
      if (test.hasAlibi)
        logit += alibi.at({h}) * static_cast<double>(j - p);
      if (!test.biasShape.empty())
        logit += bias.broadcastAt({b, h, i, j});
      total += weights[static_cast<size_t>(j)] = std::exp(logit);
    }
    for (int64_t d = 0; d < test.valueSize; ++d) {
      double sum = 0;
      for (int64_t j = 0; j < test.keys; ++j)
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
  Tensor q({1, 1, 1, 1}), k({1, 1, 3, 1}), v({1, 1, 3, 1}), out({1, 1, 1, 1}), none = Tensor::absent();
  q({0, 0, 0, 0}) = 1;
  for (int64_t j = 0; j < 3; ++j) {
    k({0, 0, j, 0}) = static_cast<float>(j == 1 ? 30000 : -30000);
    v({0, 0, j, 0}) = static_cast<float>(j);
  }
  run("hone.attention.f32",
      {q.view(), k.view(), v.view(), none.view(), none.view(), none.view(), none.view(), none.view(), none.view(),
       out.view()},
      {0, -1}, {1.0, 0.0});
  EXPECT_EQ(out.at({0, 0, 0, 0}), 1);
}

TEST_P(AttentionKernel, TheLeastBiasForAllKeysGivesTheirMean) {
  for (int64_t keys : {3, 70, 200}) {
    Tensor q = Tensor({1, 1, 40, 16}).randomize(random), k = Tensor({1, 1, keys, 16}).randomize(random);
    Tensor v = Tensor({1, 1, keys, 16}).randomize(random), bias({1, 1, 1, keys}), none = Tensor::absent();
    Tensor out({1, 1, 40, 16});
    bias.forEach([&](const std::vector<int64_t> &index) { bias(index) = std::numeric_limits<float>::lowest(); });
    run("hone.attention.f32",
        {q.view(), k.view(), v.view(), bias.view(), none.view(), none.view(), none.view(), none.view(), none.view(),
         out.view()},
        {0, -1}, {0.3, 0.0});
    double mean = 0;
    for (int64_t j = 0; j < keys; ++j)
      mean += v.at({0, 0, j, 5}) / static_cast<double>(keys);
    EXPECT_NEAR(out.at({0, 0, 39, 5}), mean, 1e-5);
  }
}

HONE_INSTANTIATE_LEVELS(AttentionKernel);

} // namespace
} // namespace hone::test
