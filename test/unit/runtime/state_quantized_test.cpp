// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots of the state with quantized KV: what is kept of a position depends on nothing but its numbers.

#include "core/state.h"
#include "hone/cpu/packing/quantized_blocks.h"
#include "support.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace hone::test {
namespace {

constexpr int64_t kBatch = 2, kHeads = 3, kSize = 19, kMost = 300;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Case {
  int64_t bits;
  io::StateLayout layout;
};

class StateQuantized : public testing::TestWithParam<Case> {
protected:
  StateQuantized() : numbers(static_cast<size_t>(kBatch * kHeads * kMost * kSize)) {
    info.name = "cache";
    info.layout = GetParam().layout;
    info.bits = GetParam().bits;
    info.shape = {io::Dim::symbolic("batch"), io::Dim::fixed(kHeads), io::Dim::fixed(0), io::Dim::fixed(kSize)};
    info.appendAxis = 2;
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (float &number : numbers)
      number = normal(random) * std::exp2(8 * normal(random));
  }

  /// The number of an element, for heads counted through all sequences.
  float &at(int64_t head, int64_t p, int64_t d) { return numbers[static_cast<size_t>((head * kMost + p) * kSize + d)]; }

  /// Appends positions first ≤ p < first + count of the numbers.
  hone_tensor append(rt::State &state, int64_t count) {
    int64_t first = state.length() + state.slots()[0].appended();
    hone_tensor fresh = {.data = &at(0, first, 0), .dtype = HONE_F32, .rank = 4, .sizes = {}, .strides = {}};
    std::ranges::copy(std::vector{kBatch, kHeads, count, kSize}, fresh.sizes);
    std::ranges::copy(std::vector{kHeads * kMost * kSize, kMost * kSize, kSize, int64_t{1}}, fresh.strides);
    auto all = state.slots()[0].append(fresh, state.length());
    EXPECT_TRUE(all.ok()) << messageOf(all);
    return all.ok() ? *all : hone_tensor();
  }

  template <typename Visit> void withLayout(Visit visit) const {
    if (info.layout == io::StateLayout::KeyBlocks)
      visit(cpu::QuantizedKeyLayout(info.bits, kSize));
    else
      visit(cpu::QuantizedValueLayout(info.bits, kSize));
  }

  /// What is kept of a position of a head.
  struct Kept {
    float scale, base = 0;
    std::vector<int32_t> codes;
  };

  Kept read(const hone_tensor &all, int64_t head, int64_t p) const {
    Kept kept;
    withLayout([&](auto layout) {
      const uint8_t *from =
          static_cast<const uint8_t *>(all.data) + head / kHeads * all.strides[0] + head % kHeads * all.strides[1];
      auto number = [&](int64_t place) {
        return std::bit_cast<float>(static_cast<uint32_t>(from[place] | from[place + 1] << 8) << 16);
      };
      kept.scale = number(layout.ofScale(p));
      kept.base = info.bits == 4 ? number(layout.ofBase(p)) : 0;
      for (int64_t d = 0; d < kSize; ++d) {
        uint8_t byte = from[layout.ofPosition(p) + layout.ofElement(d)];
        kept.codes.push_back(info.bits == 4 ? byte >> layout.shiftOf(d) & 15 : static_cast<int8_t>(byte));
      }
    });
    return kept;
  }

  static float below(float bf16) { return std::bit_cast<float>(std::bit_cast<uint32_t>(bf16) - 0x10000); }

  void expectQuantized(const hone_tensor &all, int64_t head, int64_t p) {
    Kept kept = read(all, head, p);
    auto [least, most] = std::minmax_element(&at(head, p, 0), &at(head, p, 0) + kSize);
    float span = info.bits == 8 ? std::max(-*least, *most) / 127 : (*most - kept.base) / 15;
    ASSERT_GE(kept.scale * (1 + 1e-6f), span);
    ASSERT_LT(below(kept.scale), span);
    ASSERT_LE(kept.base, info.bits == 8 ? 0 : *least);
    for (int64_t d = 0; d < kSize; ++d) {
      float number = kept.base + kept.scale * static_cast<float>(kept.codes[static_cast<size_t>(d)]);
      ASSERT_NEAR(number, at(head, p, d), kept.scale * 0.5001f) << "position " << p << ", element " << d;
    }
  }

  void expectZeros(const hone_tensor &all, int64_t head, int64_t p) const {
    Kept kept = read(all, head, p);
    ASSERT_EQ(kept.scale, 0) << "position " << p;
    ASSERT_EQ(kept.base, 0);
    ASSERT_EQ(kept.codes, std::vector<int32_t>(kSize, 0));
  }

  void expect(const hone_tensor &all, int64_t positions) {
    ASSERT_EQ(std::vector(all.sizes, all.sizes + 4), (std::vector{kBatch, kHeads, positions, kSize}));
    for (int64_t head = 0; head < kBatch * kHeads; ++head) {
      for (int64_t p = 0; p < positions; ++p)
        expectQuantized(all, head, p);
      for (int64_t p = positions; p % cpu::kCacheBlockPositions != 0; ++p)
        expectZeros(all, head, p);
    }
  }

  static void commit(rt::State &state) { ASSERT_TRUE(state.commit({}).ok()); }

  io::TensorInfo info;
  std::vector<float> numbers;
};

TEST_P(StateQuantized, PiecesAreAsTheWhole) {
  rt::State whole({&info, 1}), pieces({&info, 1});
  hone_tensor once = append(whole, 130);
  hone_tensor last = {};
  for (int64_t count : {5, 1, 1, 57, 0, 65, 1}) {
    last = append(pieces, count);
    commit(pieces);
  }
  expect(once, 130);
  expect(last, 130);
  for (int64_t head = 0; head < kBatch * kHeads; ++head)
    for (int64_t p = 0; p < 130; ++p) {
      Kept a = read(once, head, p), b = read(last, head, p);
      ASSERT_EQ(a.scale, b.scale);
      ASSERT_EQ(a.codes, b.codes);
    }
}

TEST_P(StateQuantized, NothingIsLeftOfWhatWasDropped) {
  rt::State state({&info, 1});
  append(state, 10);
  commit(state);
  append(state, 40);
  state.rollback();
  expect(append(state, 1), 11);
  commit(state);
  append(state, 90);
  commit(state);
  ASSERT_TRUE(state.truncate(12).ok());
  expect(append(state, 3), 15);
}

TEST_P(StateQuantized, ZerosAndEqualNumbersAreExact) {
  for (int64_t d = 0; d < kSize; ++d) {
    at(0, 0, d) = 0;
    at(0, 1, d) = -0.75f;
  }
  rt::State state({&info, 1});
  hone_tensor all = append(state, 2);
  expectZeros(all, 0, 0);
  Kept kept = read(all, 0, 1);
  EXPECT_NEAR(kept.base + kept.scale * static_cast<float>(kept.codes[3]), -0.75f, info.bits == 8 ? 4e-3f : 0);
}

TEST_P(StateQuantized, WhatIsNoNumberStaysNone) {
  at(0, 3, 5) = std::numeric_limits<float>::quiet_NaN();
  at(0, 4, 0) = -kInfinity;
  rt::State state({&info, 1});
  hone_tensor all = append(state, 6);
  EXPECT_TRUE(std::isnan(read(all, 0, 3).scale));
  EXPECT_TRUE(std::isnan(read(all, 0, 4).scale));
  expectQuantized(all, 0, 5);
}

TEST_P(StateQuantized, KeepsNothingButF32) {
  rt::State state({&info, 1});
  hone_tensor fresh = {.data = numbers.data(), .dtype = HONE_F16, .rank = 4, .sizes = {}, .strides = {}};
  std::ranges::copy(std::vector<int64_t>{kBatch, kHeads, 1, kSize}, fresh.sizes);
  std::ranges::copy(std::vector<int64_t>{kHeads * kSize, kSize, kSize, 1}, fresh.strides);
  EXPECT_THAT(messageOf(state.slots()[0].append(fresh, 0)), testing::HasSubstr("takes f32"));
}

INSTANTIATE_TEST_SUITE_P(Slots, StateQuantized,
                         testing::Values(Case{8, io::StateLayout::KeyBlocks}, Case{8, io::StateLayout::ValueBlocks},
                                         Case{4, io::StateLayout::KeyBlocks}, Case{4, io::StateLayout::ValueBlocks}));

} // namespace
} // namespace hone::test
