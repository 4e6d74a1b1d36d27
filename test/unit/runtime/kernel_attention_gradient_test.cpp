// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.attention_gradient.f32 against its formula, written out query by query, with the lse that the logits have.

#include "attention_masks.h"

#include <omp.h>

namespace hone::test {
namespace {

constexpr float kTolerance = 4e-5f; // the exponential errs by 2 units in the last place; twice the products of attention
constexpr double kRoundedTolerance = 0.06; // factors have 8 bits, and some sums hardly more than their terms err
constexpr double kScale = 0.3;

void expectEqual(const Tensor &actual, const Tensor &expected, const char *what) {
  expectClose(actual, expected, kTolerance, what);
}

/// All elements together differ by no more than a part of them.
void expectNear(const Tensor &actual, const Tensor &expected, const char *what) {
  double square = 0, difference = 0;
  expected.forEach([&](const std::vector<int64_t> &index) {
    square += std::pow(expected.at(index), 2);
    difference += std::pow(actual.at(index) - expected.at(index), 2);
  });
  EXPECT_LE(difference, kRoundedTolerance * kRoundedTolerance * square) << what;
}

struct Case {
  int64_t batch = 1, heads = 1, keyHeads = 1, queries = 1, keys = 1, size = 8, valueSize = 8;
  bool causal = false;
  int64_t window = -1;
  float softcap = 0;
  std::vector<int64_t> biasShape = {};
  bool hasAlibi = false;
  std::vector<int64_t> keyBegin = {}, keyEnd = {};
  Layout layout = Layout::Dense;
  MaskCase mask = {};
};

using GradientOperands = kernels::AttentionGradient::Operands<kernels::NoWeight>;

class AttentionGradientKernel : public KernelTest {
protected:
  /// All tensors of a case, and the gradients by plain loops.
  struct Problem {
    Problem(const Case &of, std::mt19937 &random)
        : test(of), q(Tensor({of.batch, of.heads, of.queries, of.size}, of.layout).randomize(random)),
          k(Tensor({of.batch, of.keyHeads, of.keys, of.size}, of.layout).randomize(random)),
          v(Tensor({of.batch, of.keyHeads, of.keys, of.valueSize}, of.layout).randomize(random)),
          g(Tensor({of.batch, of.heads, of.queries, of.valueSize}, of.layout).randomize(random)),
          lse({of.batch, of.heads, of.queries}, of.layout),
          subtracted(Tensor({of.batch, of.heads, of.queries}, of.layout).randomize(random)),
          bias(of.biasShape.empty() ? Tensor::absent() : Tensor(of.biasShape, of.layout).randomize(random)),
          alibi(of.hasAlibi ? Tensor({of.heads}).randomize(random, 0.1f) : Tensor::absent()),
          masks(of.mask, of.batch, of.heads, of.queries, of.keys, random), ofQuery(q.sizes), ofKey(k.sizes),
          ofValue(v.sizes) {
      for (Tensor *each : {&k, &v}) // what is after a sequence's keys may be anything
        each->forEach([&](const std::vector<int64_t> &index) {
          if (index[2] >= masks.keyCount(index[0]))
            (*each)(index) = std::numeric_limits<float>::quiet_NaN();
        });
      for (Tensor *each : {&ofQuery, &ofKey, &ofValue})
        each->forEach([&](const std::vector<int64_t> &index) { (*each)(index) = 0; });
      for (int64_t b = 0; b < of.batch; ++b)
        for (int64_t h = 0; h < of.heads; ++h)
          for (int64_t i = 0; i < of.queries; ++i)
            addRow(b, h, i);
    }

    bool isVisible(int64_t b, int64_t h, int64_t i, int64_t j) {
      auto sequence = static_cast<size_t>(b);
      int64_t p = masks.queryPosition(b, i), at = masks.keyPosition(b, j);
      return (!test.causal || at <= p) && (test.window < 0 || at > p - test.window) &&
             (test.keyBegin.empty() || j >= test.keyBegin[sequence]) &&
             (test.keyEnd.empty() || j < test.keyEnd[sequence]) && masks.sees(b, h, i, j);
    }

    /// The logit, and the factor that a cap gives its slope.
    std::pair<double, double> logitOf(int64_t b, int64_t h, int64_t i, int64_t j) {
      double logit = 0, factor = 1;
      for (int64_t d = 0; d < test.size; ++d)
        logit += kScale * q.at({b, h, i, d}) * k.at({b, groupOf(h), j, d});
      if (test.softcap > 0) {
        double part = std::tanh(logit / test.softcap);
        logit = test.softcap * part;
        factor = 1 - part * part;
      }
      if (test.hasAlibi)
        logit += alibi.at({h}) * static_cast<double>(masks.keyPosition(b, j) - masks.queryPosition(b, i));
      if (!test.biasShape.empty())
        logit += bias.broadcastAt({b, h, i, j});
      return {logit, factor};
    }

    void addRow(int64_t b, int64_t h, int64_t i) {
      double total = 0;
      std::vector<std::pair<double, double>> seen(static_cast<size_t>(test.keys)); // exponentials, 0 of what is hidden, and factors
      for (int64_t j = 0; j < test.keys; ++j) {
        if (!isVisible(b, h, i, j))
          continue;
        auto [logit, factor] = logitOf(b, h, i, j);
        seen[static_cast<size_t>(j)] = {std::exp(logit), factor};
        total += std::exp(logit);
      }
      lse({b, h, i}) = static_cast<float>(std::log(total));
      for (int64_t j = 0; j < test.keys; ++j)
        if (auto [exponential, factor] = seen[static_cast<size_t>(j)]; exponential > 0)
          addKey(b, h, i, j, exponential / total, factor);
    }

    void addKey(int64_t b, int64_t h, int64_t i, int64_t j, double probability, double factor) {
      double product = 0;
      int64_t group = groupOf(h);
      for (int64_t d = 0; d < test.valueSize; ++d) {
        product += static_cast<double>(g.at({b, h, i, d})) * v.at({b, group, j, d});
        ofValue({b, group, j, d}) += static_cast<float>(probability * g.at({b, h, i, d}));
      }
      double slope = kScale * factor * probability * (product - subtracted.at({b, h, i}));
      for (int64_t d = 0; d < test.size; ++d) {
        ofQuery({b, h, i, d}) += static_cast<float>(slope * k.at({b, group, j, d}));
        ofKey({b, group, j, d}) += static_cast<float>(slope * q.at({b, h, i, d}));
      }
    }

    int64_t groupOf(int64_t h) const { return h / (test.heads / test.keyHeads); }

    const Case &test;
    Tensor q, k, v, g, lse, subtracted, bias, alibi;
    Masks masks;
    Tensor ofQuery, ofKey, ofValue; // as expected
  };

  void check(const Case &test) {
    Problem problem(test, random);
    Tensor query(problem.q.sizes, test.layout), key(problem.k.sizes, test.layout), value(problem.v.sizes, test.layout);
    GradientOperands operands = {};
    operands.query = problem.q.view(), operands.key = problem.k.view(), operands.value = problem.v.view();
    operands.lse = problem.lse.view(), operands.subtracted = problem.subtracted.view();
    operands.gradient = problem.g.view(), operands.bias = problem.bias.view(), operands.alibi = problem.alibi.view();
    operands.keyBegin = listOf(test.keyBegin), operands.keyEnd = listOf(test.keyEnd);
    problem.masks.setOperands(operands);
    operands.queryGradient = query.view(), operands.keyGradient = key.view(), operands.valueGradient = value.view();
    struct Kernel {
      const char *name;
      void (*compare)(const Tensor &actual, const Tensor &expected, const char *what);
    };
    for (auto [kernel, compare] : {Kernel{"hone.attention_gradient.bf16", expectNear},
                                   Kernel{"hone.attention_gradient.f32", expectEqual}}) {
      run(kernel, {&operands.query, &operands.valueGradient + 1},
          {test.causal, test.window, test.mask.blockKeys, test.mask.blockQueries}, {kScale, test.softcap});
      compare(query, problem.ofQuery, "the gradient of queries");
      compare(key, problem.ofKey, "the gradient of keys");
      compare(value, problem.ofValue, "the gradient of values");
    }
  }
};

TEST_P(AttentionGradientKernel, ShapesAndLayouts) {
  for (Layout layout : kLayouts)
    for (int64_t queries : {1, 7, 33, 70})
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

TEST_P(AttentionGradientKernel, GroupsOfHeads) {
  for (int64_t keyHeads : {1, 2, 3, 6})
    check({.batch = 3, .heads = 6, .keyHeads = keyHeads, .queries = 40, .keys = 40, .size = 16, .valueSize = 32, .causal = true});
}

/// Fewer key heads than threads, so that rows are divided, and more.
TEST_P(AttentionGradientKernel, Threads) {
  int before = omp_get_max_threads();
  for (int threads : {1, 2, 3, 5}) {
    omp_set_num_threads(threads);
    for (int64_t keyHeads : {1, 4})
      check({.heads = 4, .keyHeads = keyHeads, .queries = 70, .keys = 90, .size = 16, .valueSize = 16, .causal = true});
  }
  omp_set_num_threads(before);
}

TEST_P(AttentionGradientKernel, WhatLogitsHave) {
  for (std::vector<int64_t> shape : {std::vector<int64_t>{1, 1, 1, 70}, {2, 4, 35, 70}})
    for (float softcap : {0.0f, 2.0f})
      check({.batch = 2,
             .heads = 4,
             .keyHeads = 2,
             .queries = 35,
             .keys = 70,
             .softcap = softcap,
             .biasShape = shape,
             .hasAlibi = true});
}

/// Some rows see no key; with lags, keys at the end of a sequence are none of it.
TEST_P(AttentionGradientKernel, KeysThatRowsSee) {
  check({.batch = 2, .queries = 20, .keys = 70, .causal = true, .keyBegin = {3, 66}, .keyEnd = {60, 69}});
  check({.queries = 70, .keys = 140, .causal = true, .window = 5});
  check({.batch = 3, .heads = 2, .queries = 9, .keys = 70, .causal = true, .mask = {.hasLags = true}});
  check({.batch = 2, .queries = 9, .keys = 70, .causal = true, .hasAlibi = true, .mask = {.hasPositions = true}});
  check({.batch = 2, .heads = 4, .keyHeads = 2, .queries = 40, .keys = 200, .mask = {.blockKeys = 16, .listHeads = 2}});
  check({.heads = 2, .queries = 70, .keys = 80, .mask = {.isTree = true}});
}

HONE_INSTANTIATE_LEVELS(AttentionGradientKernel);

} // namespace
} // namespace hone::test
