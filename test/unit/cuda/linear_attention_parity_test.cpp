// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear attention on the device against its recurrence in double precision, and that a call on some tokens and one on
// the others are one call on all.

#include "parity.h"

namespace hone::test {
namespace {

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
constexpr Layout kLayouts[] = {Layout::Dense, Layout::Swapped, Layout::Gaps, Layout::Aligned, Layout::HeadsInside};
constexpr double kScale = 0.3;

/// The operands of a call. State and next are f32.
struct Operands {
  Tensor query, key, value, decay, beta, state, out, next;

  Operands(const Shape &s, Rule rule, bool hasState, int32_t type, Layout layout, std::mt19937 &random)
      : query({s.batch, s.tokens, s.queryHeads, s.keySize}, type, layout),
        key({s.batch, s.tokens, s.heads, s.keySize}, type, layout),
        value({s.batch, s.tokens, s.heads, s.valueSize}, type, layout),
        decay(rule.decay == Decay::None
                  ? Tensor::absent()
                  : Tensor({s.batch, s.tokens, s.heads, rule.decay == Decay::Element ? s.keySize : 1}, type, layout)),
        beta(rule.beta == Beta::None
                 ? Tensor::absent()
                 : Tensor({s.batch, s.tokens, rule.beta == Beta::Head ? s.heads : 1}, type, layout)),
        state(hasState ? Tensor({s.batch, s.heads, s.keySize, s.valueSize}, HONE_F32, layout) : Tensor::absent()),
        out({s.batch, s.tokens, s.queryHeads, s.valueSize}, type, layout),
        next({s.batch, s.heads, s.keySize, s.valueSize}, HONE_F32, layout) {
    query.randomize(random), value.randomize(random), state.randomize(random);
    key.randomize(random, 1 / std::sqrt(static_cast<double>(s.keySize))); // else the delta rule grows
    std::uniform_real_distribution<double> rate(0, 1);
    decay.forEach([&](const std::vector<int64_t> &i) { decay.set(i, -rate(random) * rate(random) * 4); });
    beta.forEach([&](const std::vector<int64_t> &i) { beta.set(i, rate(random)); });
  }

  std::vector<Tensor *> all() { return {&query, &key, &value, &decay, &beta, &state, &out, &next}; }
};

/// Outputs and states in double.
struct Expected {
  std::map<std::vector<int64_t>, double> out, next;

  explicit Expected(const Operands &o) {
    for (int64_t b = 0; b < o.next.sizes[0]; ++b)
      for (int64_t h = 0; h < o.next.sizes[1]; ++h)
        for (int64_t m = 0; m < o.next.sizes[3]; ++m)
          runColumn(o, b, h, m);
  }

private:
  void runColumn(const Operands &o, int64_t b, int64_t h, int64_t m) {
    int64_t keys = o.next.sizes[2], group = o.query.sizes[2] / o.next.sizes[1];
    std::vector<double> column(static_cast<size_t>(keys), 0);
    auto of = [&](int64_t d) -> double & { return column[static_cast<size_t>(d)]; };
    for (int64_t d = 0; d < keys; ++d)
      of(d) = o.state.sizes.size() == 4 ? o.state.at({b, h, d, m}) : 0;
    for (int64_t t = 0; t < o.query.sizes[1]; ++t) {
      double known = 0, update = o.value.at({b, t, h, m});
      for (int64_t d = 0; d < keys; ++d) {
        if (o.decay.sizes.size() == 4)
          of(d) *= std::exp(o.decay.at({b, t, h, o.decay.sizes[3] == 1 ? 0 : d}));
        known += of(d) * o.key.at({b, t, h, d});
      }
      if (o.beta.sizes.size() == 3)
        update = o.beta.at({b, t, o.beta.sizes[2] == 1 ? 0 : h}) * (update - known);
      for (int64_t d = 0; d < keys; ++d)
        of(d) += o.key.at({b, t, h, d}) * update;
      for (int64_t q = h * group; q < (h + 1) * group; ++q) {
        double sum = 0;
        for (int64_t d = 0; d < keys; ++d)
          sum += of(d) * o.query.at({b, t, q, d});
        out[{b, t, q, m}] = kScale * sum;
      }
    }
    for (int64_t d = 0; d < keys; ++d)
      next[{b, h, d, m}] = of(d);
  }
};

class LinearAttentionParity : public ParityTest {
protected:
  void runKernel(Operands &o) { run(o.all(), 2, {}, {kScale}); }

  void expectNear(const Tensor &got, const std::map<std::vector<int64_t>, double> &expected, double tolerance,
                  const std::string &what) {
    bool failed = false;
    got.forEach([&](const std::vector<int64_t> &i) {
      double want = expected.at(i);
      if (failed || std::abs(got.at(i) - want) <= tolerance * (1 + std::abs(want)))
        return;
      failed = true;
      ADD_FAILURE() << kernel() << " " << what << ": expected " << want << ", but got " << got.at(i);
    });
  }

  /// Sums in f32 over tokens and elements of keys err by less than 1e-5; 16-bit outputs are rounded.
  void expectRecurrence(const Shape &s, Rule rule, bool hasState = true, int32_t type = HONE_F32,
                        Layout layout = Layout::Dense) {
    Operands o(s, rule, hasState, type, layout, random);
    runKernel(o);
    Expected expected(o);
    std::string what = std::to_string(s.tokens) + " tokens, keys of " + std::to_string(s.keySize) + ", values of " +
                       std::to_string(s.valueSize) + ", decay " + std::to_string(static_cast<int>(rule.decay)) +
                       ", beta " + std::to_string(static_cast<int>(rule.beta)) + ", layout " +
                       std::to_string(static_cast<int>(layout));
    expectNear(o.out, expected.out, 1e-5 + roundingOf(type), "outputs of " + what);
    expectNear(o.next, expected.next, 1e-5, "states after " + what);
  }

  /// The tokens [first, end) of `from`, or what is absent.
  static Tensor slice(const Tensor &from, int64_t first, int64_t end) {
    if (from.sizes.size() == 1)
      return from;
    std::vector<int64_t> sizes = from.sizes;
    sizes[1] = end - first;
    Tensor part(sizes, from.dtype);
    part.forEach([&](std::vector<int64_t> i) {
      std::vector<int64_t> at = i;
      at[1] += first;
      part.set(i, from.at(at));
    });
    return part;
  }
};

TEST_P(LinearAttentionParity, IsItsRecurrence) {
  for (Rule rule : kRules)
    for (auto [keySize, valueSize] : {std::pair<int64_t, int64_t>(64, 32), {20, 37}, {1, 1}, {130, 9}})
      for (int64_t tokens : {1, 3})
        expectRecurrence({2, tokens, 4, 2, keySize, valueSize}, rule);
  for (Rule rule : {Rule{Decay::Head, Beta::Head}, Rule{Decay::Element, Beta::None}})
    for (int64_t keySize : {128, 256})
      expectRecurrence({1, 75, 2, 2, keySize, 16}, rule);
}

TEST_P(LinearAttentionParity, TakesTypesAndLayouts) {
  for (int32_t type : {HONE_F32, HONE_F16, HONE_BF16})
    for (Layout layout : kLayouts)
      for (Rule rule : {Rule{Decay::Element, Beta::All}, Rule{Decay::Head, Beta::Head}})
        expectRecurrence({2, 3, 6, 3, 40, 12}, rule, true, type, layout);
}

TEST_P(LinearAttentionParity, QueryHeadsShareStates) {
  for (int64_t group : {1, 2, 3, 8})
    for (Rule rule : {Rule{Decay::Head, Beta::Head}, Rule{Decay::Element, Beta::None}})
      expectRecurrence({1, 5, 3 * group, 3, 32, 20}, rule);
}

TEST_P(LinearAttentionParity, BeginsWithZerosWithoutAState) {
  for (int64_t tokens : {1, 20})
    for (Layout layout : kLayouts)
      expectRecurrence({2, tokens, 2, 2, 16, 32}, {Decay::Head, Beta::Head}, false, HONE_F32, layout);
}

/// Every number of warps of a block.
TEST_P(LinearAttentionParity, DividesValues) {
  for (int32_t multiprocessors : {1, 10, 1000}) {
    int32_t before = device->pretendMultiprocessors(multiprocessors);
    for (int64_t valueSize : {8, 33, 72})
      expectRecurrence({1, 2, 2, 2, 24, valueSize}, {Decay::Head, Beta::Head});
    device->pretendMultiprocessors(before);
  }
}

/// Without elements of keys outputs are zero, without tokens the state stays.
TEST_P(LinearAttentionParity, EmptyOperands) {
  for (Shape s :
       {Shape{0, 3, 2, 2, 16, 16}, Shape{2, 3, 2, 1, 0, 16}, Shape{2, 30, 2, 1, 16, 0}, Shape{2, 0, 2, 1, 16, 24}})
    expectRecurrence(s, {Decay::Head, Beta::Head});
}

/// Infinite decays forget a state and hurt no other token.
TEST_P(LinearAttentionParity, StrongDecaysForget) {
  for (Decay decay : {Decay::Head, Decay::Element}) {
    Operands o({1, 20, 2, 2, 32, 16}, {decay, Beta::Head}, true, HONE_F32, Layout::Dense, random);
    o.decay.forEach([&](const std::vector<int64_t> &i) {
      o.decay.set(i, i[1] % 4 == 3 ? -std::numeric_limits<double>::infinity() : i[1] % 4 == 2 ? -90 : -0.1);
    });
    runKernel(o);
    Expected expected(o);
    expectNear(o.out, expected.out, 2e-5, "outputs");
    expectNear(o.next, expected.next, 2e-5, "states");
  }
}

/// To the last bit, so that decoding computes what verification of several tokens computes.
TEST_P(LinearAttentionParity, TokensAreTheSameOneByOne) {
  for (Rule rule : kRules) {
    Operands o({2, 7, 4, 2, 36, 20}, rule, true, HONE_F32, Layout::Dense, random);
    runKernel(o);
    Tensor state = o.state;
    for (int64_t t = 0; t < 7; ++t) {
      Operands one({2, 1, 4, 2, 36, 20}, rule, true, HONE_F32, Layout::Dense, random);
      one.query = slice(o.query, t, t + 1), one.key = slice(o.key, t, t + 1), one.value = slice(o.value, t, t + 1);
      one.decay = slice(o.decay, t, t + 1), one.beta = slice(o.beta, t, t + 1), one.state = state;
      runKernel(one);
      EXPECT_EQ(one.out.memory, slice(o.out, t, t + 1).memory) << "token " << t;
      state = one.next;
    }
    EXPECT_EQ(state.memory, o.next.memory);
  }
}

/// next and state are the same memory.
TEST_P(LinearAttentionParity, NextMayBeTheState) {
  for (int64_t tokens : {0, 1, 5})
    for (int64_t valueSize : {32, 20}) {
      Operands o({2, tokens, 4, 2, 24, valueSize}, {Decay::Element, Beta::Head}, true, HONE_F32, Layout::Dense, random);
      std::vector<hone_tensor> views;
      for (Tensor *operand : o.all())
        views.push_back(operand->view(device->upload(operand->memory)));
      void *own = views.back().data;
      views.back().data = views[5].data;
      device->call(kernel(), views, {}, {kScale});
      device->wait();
      Tensor out = o.out, next = o.next;
      device->download(views[6].data, out.memory);
      device->download(views[5].data, next.memory);
      views.back().data = own;
      for (const hone_tensor &view : views)
        device->release(view.data);
      runKernel(o);
      EXPECT_EQ(out.memory, o.out.memory);
      EXPECT_EQ(next.memory, o.next.memory);
    }
}

INSTANTIATE_TEST_SUITE_P(LinearAttention, LinearAttentionParity, testing::Values("cuda.linear_attention.f32"));

} // namespace
} // namespace hone::test
