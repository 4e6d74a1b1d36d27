// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear attention against its recurrence in double: both forms of the kernel, and that they are one function of the tokens.

#include "kernel_tensor.h"

namespace hone::test {
namespace {

/// Calls with more tokens run in chunks of 16.
constexpr int64_t kMostRecurrent = 16;

enum class Decay { None, Head, Element };
enum class Beta { None, All, Head };

struct Shape {
  int64_t batch, tokens, queryHeads, heads, keySize, valueSize;
};

struct Rule {
  Decay decay;
  Beta beta;
};

constexpr Rule kRules[] = {{Decay::None, Beta::None},   {Decay::Head, Beta::None}, {Decay::Element, Beta::None},
                           {Decay::None, Beta::Head},   {Decay::None, Beta::All},  {Decay::Head, Beta::Head},
                           {Decay::Element, Beta::Head}};

/// The operands of a call.
struct Operands {
  Tensor query, key, value, decay, beta, state, out, next;

  Operands(const Shape &s, Rule rule, bool hasState, Layout layout, std::mt19937 &random)
      : query(Tensor({s.batch, s.tokens, s.queryHeads, s.keySize}, layout).randomize(random)),
        key(Tensor({s.batch, s.tokens, s.heads, s.keySize}, layout)
                .randomize(random, 1 / std::sqrt(static_cast<float>(s.keySize)))), // else the delta rule grows
        value(Tensor({s.batch, s.tokens, s.heads, s.valueSize}, layout).randomize(random)),
        decay(rule.decay == Decay::None
                  ? Tensor::absent()
                  : Tensor({s.batch, s.tokens, s.heads, rule.decay == Decay::Element ? s.keySize : 1}, layout)),
        beta(rule.beta == Beta::None ? Tensor::absent()
                                     : Tensor({s.batch, s.tokens, rule.beta == Beta::Head ? s.heads : 1}, layout)),
        state(hasState ? Tensor({s.batch, s.heads, s.keySize, s.valueSize}, layout).randomize(random)
                       : Tensor::absent()),
        out({s.batch, s.tokens, s.queryHeads, s.valueSize}, layout),
        next({s.batch, s.heads, s.keySize, s.valueSize}, layout) {
    std::uniform_real_distribution<float> rate(0, 1);
    decay.forEach([&](const std::vector<int64_t> &i) { decay(i) = -rate(random) * rate(random) * 4; });
    beta.forEach([&](const std::vector<int64_t> &i) { beta(i) = rate(random); });
  }

  std::vector<hone_tensor> views() {
    return {query.view(), key.view(), value.view(), decay.view(), beta.view(), state.view(), out.view(), next.view()};
  }
};

constexpr double kScale = 0.3;

/// One head of one sequence, token after token.
void runHead(const Operands &o, int64_t b, int64_t h, Tensor &out, Tensor &next) {
  int64_t tokens = o.query.sizes[1], group = o.query.sizes[2] / next.sizes[1], keys = next.sizes[2],
          values = next.sizes[3];
  auto at = [&](int64_t d, int64_t m) { return static_cast<size_t>(d * values + m); };
  std::vector<double> state(static_cast<size_t>(keys * values), 0);
  for (int64_t d = 0; d < keys && o.state.sizes[0] > 0; ++d)
    for (int64_t m = 0; m < values; ++m)
      state[at(d, m)] = o.state.at({b, h, d, m});
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t m = 0; m < values; ++m) {
      double known = 0, update = o.value.at({b, t, h, m});
      for (int64_t d = 0; d < keys; ++d) {
        if (o.decay.sizes[0] > 0)
          state[at(d, m)] *= std::exp(static_cast<double>(o.decay.at({b, t, h, o.decay.sizes[3] == 1 ? 0 : d})));
        known += state[at(d, m)] * o.key.at({b, t, h, d});
      }
      if (o.beta.sizes[0] > 0)
        update = o.beta.at({b, t, o.beta.sizes[2] == 1 ? 0 : h}) * (update - known);
      for (int64_t d = 0; d < keys; ++d)
        state[at(d, m)] += o.key.at({b, t, h, d}) * update;
      for (int64_t q = h * group; q < (h + 1) * group; ++q) {
        double sum = 0;
        for (int64_t d = 0; d < keys; ++d)
          sum += state[at(d, m)] * o.query.at({b, t, q, d});
        out({b, t, q, m}) = static_cast<float>(kScale * sum);
      }
    }
  for (int64_t d = 0; d < keys; ++d)
    for (int64_t m = 0; m < values; ++m)
      next({b, h, d, m}) = static_cast<float>(state[at(d, m)]);
}

class LinearAttention : public KernelTest {
protected:
  void runKernel(const std::vector<hone_tensor> &operands) { run("hone.linear_attention.f32", operands, {}, {kScale}); }

  void expectRecurrence(const Shape &s, Rule rule, bool hasState, Layout layout) {
    Operands o(s, rule, hasState, layout, random);
    Tensor out(o.out.sizes), next(o.next.sizes);
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t h = 0; h < s.heads; ++h)
        runHead(o, b, h, out, next);
    runKernel(o.views());
    std::string what = std::to_string(s.tokens) + " tokens, " + std::to_string(s.queryHeads) + " query heads";
    // Sums in f32 over up to 45 tokens and 64 elements of a key: at most 1.9e-6.
    expectClose(o.out, out, 1e-5f, "outputs of " + what);
    expectClose(o.next, next, 1e-5f, "states after " + what);
  }
};

TEST_P(LinearAttention, IsItsRecurrence) {
  for (int64_t tokens : {1, 3, 16, 17, 32, 45})
    for (auto [keySize, valueSize] : {std::pair<int64_t, int64_t>(64, 64), {20, 37}, {16, 96}, {1, 1}})
      for (Rule rule : kRules)
        for (Layout layout : kLayouts)
          expectRecurrence({2, tokens, 4, 2, keySize, valueSize}, rule, true, layout);
}

TEST_P(LinearAttention, QueryHeadsShareStates) {
  for (int64_t tokens : {1, 33})
    for (int64_t group : {1, 2, 3, 4, 5, 8})
      for (Rule rule : {Rule{Decay::Head, Beta::Head}, Rule{Decay::Element, Beta::None}})
        expectRecurrence({1, tokens, 3 * group, 3, 32, 80}, rule, true, Layout::Dense);
}

TEST_P(LinearAttention, BeginsWithZerosWithoutAState) {
  for (int64_t tokens : {1, 2, 40})
    for (Layout layout : kLayouts)
      expectRecurrence({2, tokens, 2, 2, 16, 32}, {Decay::Head, Beta::Head}, false, layout);
}

/// Without elements of keys outputs are zero, without tokens the state stays.
TEST_P(LinearAttention, EmptyOperands) {
  for (Shape s : {Shape{0, 3, 2, 2, 16, 16}, Shape{2, 3, 2, 1, 0, 16}, Shape{2, 30, 2, 1, 16, 0}}) {
    Operands o(s, {Decay::Head, Beta::Head}, true, Layout::Dense, random);
    Tensor zeros(o.out.sizes);
    zeros.forEach([&](const std::vector<int64_t> &i) { zeros(i) = 0; });
    runKernel(o.views());
    expectClose(o.out, zeros, 0, "outputs of nothing");
  }
  for (Layout layout : kLayouts) {
    Operands o({2, 0, 2, 1, 16, 32}, {Decay::Head, Beta::Head}, true, layout, random);
    runKernel(o.views());
    expectClose(o.next, o.state, 0, "the state after no token");
  }
}

TEST_P(LinearAttention, NextMayBeTheState) {
  for (int64_t tokens : {0, 1, 5, 50})
    for (int64_t valueSize : {32, 20}) {
      Operands o({2, tokens, 4, 2, 24, valueSize}, {Decay::Element, Beta::Head}, true, Layout::Dense, random);
      Tensor state = o.state, out(o.out.sizes);
      runKernel(o.views());
      std::vector<hone_tensor> views = o.views();
      views[6] = out.view();
      views[5] = views[7] = state.view();
      runKernel(views);
      expectClose(out, o.out, 0, "outputs");
      expectClose(state, o.next, 0, "states");
    }
}

/// What a token adds is forgotten at once: D(i, j) is 0 without a division by it, and infinite decays hurt no other token.
TEST_P(LinearAttention, StrongDecaysForget) {
  for (int64_t tokens : {5, 40})
    for (Decay decay : {Decay::Head, Decay::Element}) {
      Operands o({1, tokens, 2, 2, 32, 32}, {decay, Beta::Head}, true, Layout::Dense, random);
      o.decay.forEach([&](const std::vector<int64_t> &i) {
        o.decay(i) = i[1] % 4 == 3 ? -std::numeric_limits<float>::infinity() : i[1] % 4 == 2 ? -90.0f : -0.1f;
      });
      Tensor out(o.out.sizes), next(o.next.sizes);
      for (int64_t h = 0; h < 2; ++h)
        runHead(o, 0, h, out, next);
      runKernel(o.views());
      expectClose(o.out, out, 2e-5f, "outputs");
      expectClose(o.next, next, 2e-5f, "states");
    }
}

/// The tokens [first, end) of a tensor.
hone_tensor slice(Tensor &tensor, int64_t first, int64_t end) {
  hone_tensor view = tensor.view();
  if (tensor.sizes.size() == 1)
    return view; // absent
  view.data = static_cast<float *>(view.data) + first * view.strides[1];
  view.sizes[1] = end - first;
  return view;
}

class LinearAttentionParts : public LinearAttention {
protected:
  /// The same call in pieces of at most `most` tokens, each from the state that the one before left.
  void runPieces(Operands &o, Tensor &out, Tensor &state, int64_t most) {
    int64_t tokens = o.query.sizes[1];
    for (int64_t first = 0; first < tokens; first += most) {
      int64_t end = std::min(first + most, tokens);
      auto part = [&](Tensor &tensor) { return slice(tensor, first, end); };
      runKernel({part(o.query), part(o.key), part(o.value), part(o.decay), part(o.beta), state.view(), part(out),
                 state.view()});
    }
  }
};

/// To the last bit: decoding computes what verification of several tokens computes.
TEST_P(LinearAttentionParts, FewTokensAreTheSameOneByOne) {
  for (Rule rule : kRules)
    for (int64_t valueSize : {64, 20}) {
      Operands o({2, kMostRecurrent, 4, 2, 32, valueSize}, rule, true, Layout::Dense, random);
      Tensor out(o.out.sizes), state = o.state;
      runKernel(o.views());
      runPieces(o, out, state, 1);
      expectClose(out, o.out, 0, "outputs");
      expectClose(state, o.next, 0, "states");
    }
}

/// Sums over the elements of a key and over earlier tokens are made in other orders: at most 5.1e-6 over 513 tokens.
TEST_P(LinearAttentionParts, ChunksAreTheRecurrence) {
  for (Rule rule : kRules)
    for (int64_t tokens : {17, 100, 513}) {
      Operands o({1, tokens, 2, 1, 64, 64}, rule, true, Layout::Dense, random);
      Tensor out(o.out.sizes), state = o.state;
      runKernel(o.views());
      for (int64_t most : {int64_t{1}, kMostRecurrent, int64_t{40}}) {
        state = o.state;
        runPieces(o, out, state, most);
        expectClose(out, o.out, 1e-5f, "outputs");
        expectClose(state, o.next, 1e-5f, "states");
      }
    }
}

/// The rule by which a state remembers: what is written under orthonormal keys is read back exactly, and a key written again has the new
/// value alone.
TEST_P(LinearAttention, RecallsWhatKeysWrote) {
  for (int64_t tokens : {8, 32}) {
    Operands o({1, tokens, 1, 1, 32, 16}, {Decay::None, Beta::Head}, false, Layout::Dense, random);
    o.key.forEach([&](const std::vector<int64_t> &i) { o.key(i) = i[3] == i[1] % 8 ? 1.0f : 0.0f; });
    o.beta.forEach([&](const std::vector<int64_t> &i) { o.beta(i) = 1; });
    runKernel(o.views());
    for (int64_t d = 0; d < 32; ++d)
      for (int64_t m = 0; m < 16; ++m)
        EXPECT_NEAR(o.next.at({0, 0, d, m}), d < 8 ? o.value.at({0, tokens - 8 + d, 0, m}) : 0.0f, 1e-6);
  }
}

HONE_INSTANTIATE_LEVELS(LinearAttention);
HONE_INSTANTIATE_LEVELS(LinearAttentionParts);

} // namespace
} // namespace hone::test
