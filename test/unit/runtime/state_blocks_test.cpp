// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots of the state in blocks: every position is where the layout says, whatever came before, and what follows is zero.

#include "core/state.h"
#include "hone/cpu/packing/cache_blocks.h"
#include "support.h"

#include <bit>
#include <cmath>
#include <limits>

namespace hone::test {
namespace {

constexpr int64_t kBatch = 2, kHeads = 3, kSize = 19;

/// What a slot keeps of x.
uint32_t bitsOf(hone_dtype dtype, float x) {
  if (dtype == HONE_F32)
    return std::bit_cast<uint32_t>(x);
  return dtype == HONE_F16 ? std::bit_cast<uint16_t>(static_cast<_Float16>(x)) : std::bit_cast<uint32_t>(x) >> 16;
}

class StateBlocks : public testing::TestWithParam<std::pair<hone_dtype, io::StateLayout>> {
protected:
  StateBlocks() {
    info.name = "cache";
    info.dtype = GetParam().first;
    info.layout = GetParam().second;
    info.shape = {io::Dim::symbolic("batch"), io::Dim::fixed(kHeads), io::Dim::fixed(0), io::Dim::fixed(kSize)};
    info.appendAxis = 2;
    state.emplace(std::span<const io::TensorInfo>(&info, 1));
  }

  rt::Slot &slot() { return state->slots()[0]; }

  /// The number of an element, which no other has, and which the slot holds exactly.
  float numberOf(int64_t b, int64_t h, int64_t p, int64_t d) const {
    auto number = static_cast<int>(1 + d + kSize * (p % 50 + 50 * (h + kHeads * b)));
    int fractions = info.dtype == HONE_BF16 ? 128 : 1024;
    return std::ldexp(1 + static_cast<float>(number % fractions) / static_cast<float>(fractions), number / fractions);
  }

  /// Positions first ≤ p < first + count, as a view whose heads and positions are swapped.
  absl::StatusOr<hone_tensor> append(int64_t count, float factor = 1) {
    int64_t first = state->length() + slot().appended();
    fresh = makeArray<float>(HONE_F32, {kBatch, count, kHeads, kSize},
                             std::vector<float>(static_cast<size_t>(kBatch * count * kHeads * kSize)));
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t p = 0; p < count; ++p)
        for (int64_t h = 0; h < kHeads; ++h)
          for (int64_t d = 0; d < kSize; ++d)
            fresh.as<float>()[static_cast<size_t>(((b * count + p) * kHeads + h) * kSize + d)] =
                numberOf(b, h, first + p, d) * factor;
    hone_tensor view = fresh.view();
    std::swap(view.sizes[1], view.sizes[2]);
    std::swap(view.strides[1], view.strides[2]);
    return slot().append(view, state->length());
  }

  uint32_t read(const hone_tensor &all, int64_t b, int64_t h, int64_t offset) const {
    offset += b * all.strides[0] + h * all.strides[1];
    return info.dtype == HONE_F32 ? static_cast<const uint32_t *>(all.data)[offset]
                                  : static_cast<const uint16_t *>(all.data)[offset];
  }

  template <typename Layout> void expectIn(const hone_tensor &all, int64_t positions) {
    Layout layout(cpu::cacheWordElements(info.dtype), kSize);
    int64_t room = (positions + cpu::kCacheBlockPositions - 1) / cpu::kCacheBlockPositions * cpu::kCacheBlockPositions;
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t h = 0; h < kHeads; ++h)
        for (int64_t p = 0; p < room; ++p)
          for (int64_t d = 0; d < kSize; ++d) {
            uint32_t wanted = p < positions ? bitsOf(info.dtype, numberOf(b, h, p, d)) : 0;
            ASSERT_EQ(read(all, b, h, layout.ofPosition(p) + layout.ofElement(d)), wanted)
                << "position " << p << " of " << positions << ", element " << d;
          }
  }

  void expect(const absl::StatusOr<hone_tensor> &all, int64_t positions) {
    ASSERT_TRUE(all.ok()) << messageOf(all);
    EXPECT_EQ(std::vector(all->sizes, all->sizes + 4), (std::vector{kBatch, kHeads, positions, kSize}));
    if (info.layout == io::StateLayout::KeyBlocks)
      expectIn<cpu::BlockedKeyLayout>(*all, positions);
    else
      expectIn<cpu::BlockedValueLayout>(*all, positions);
  }

  void commit() { ASSERT_TRUE(state->commit({}).ok()); }

  io::TensorInfo info;
  std::optional<rt::State> state;
  io::Array fresh;
};

TEST_P(StateBlocks, StepsAndPrompts) {
  int64_t length = 0;
  for (int64_t count : {5, 1, 1, 9, 47, 1, 1, 64, 0, 100, 1}) {
    expect(append(count), length += count);
    commit();
  }
}

TEST_P(StateBlocks, SeveralAppendsInACall) {
  expect(append(3), 3);
  expect(append(70), 73);
  commit();
  expect(append(1), 74);
}

TEST_P(StateBlocks, NothingIsLeftOfWhatWasDropped) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  expect(append(10), 10);
  commit();
  ASSERT_TRUE(append(40, nan).ok());
  state->rollback();
  expect(append(1), 11);
  commit();
  ASSERT_TRUE(append(90, nan).ok());
  commit();
  ASSERT_TRUE(state->truncate(11).ok());
  expect(append(3), 14);
  expect(append(60), 74);
}

TEST_P(StateBlocks, BlocksAreClearedFromAPositionOn) {
  ASSERT_TRUE(append(cpu::kCacheBlockPositions).ok());
  commit();
  hone_tensor held = slot().held()->buffer.view;
  int64_t headBytes = held.strides[1] * io::dtypeBytes(info.dtype);
  for (int64_t head = 0; head < kBatch * kHeads; ++head)
    slot().clearBlock(static_cast<char *>(held.data) + head * headBytes, 7);
  ASSERT_TRUE(state->truncate(7).ok());
  expect(slot().view(7, {}), 7);
}

TEST_P(StateBlocks, MemoryServesTheNextSequence) {
  ASSERT_TRUE(append(100, std::numeric_limits<float>::quiet_NaN()).ok());
  commit();
  const void *memory = append(1)->data;
  state->reset();
  auto all = append(3);
  expect(all, 3);
  EXPECT_EQ(all->data, memory);
  commit();
  expect(append(90), 93);
}

TEST_P(StateBlocks, OtherSizesGetOtherMemory) {
  ASSERT_TRUE(append(100).ok());
  commit();
  state->reset();
  auto all = slot().view(0, {{"batch", {kBatch + 1, "tokens"}}});
  ASSERT_TRUE(all.ok()) << messageOf(all);
  EXPECT_EQ(all->sizes[0], kBatch + 1);
  EXPECT_EQ(all->sizes[2], 0);
}

TEST_P(StateBlocks, NumbersBetweenAreRounded) {
  constexpr float third = 1.0f / 3, nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t count : {1, 32}) { // alone, and as a block
    for (auto [given, kept] : {std::pair(third, info.dtype == HONE_BF16 ? 0x1.56p-2f : third), std::pair(nan, nan)}) {
      fresh = makeArray<float>(HONE_F32, {1, kHeads, count, kSize},
                               std::vector<float>(static_cast<size_t>(kHeads * count * kSize), given));
      auto all = slot().append(fresh.view(), 0);
      ASSERT_TRUE(all.ok()) << messageOf(all);
      uint32_t bits = read(*all, 0, 1, 0), magnitude = info.dtype == HONE_F32 ? 0x7fffffff : 0x7fff;
      if (kept == kept)
        EXPECT_EQ(bits, bitsOf(info.dtype, kept));
      else
        EXPECT_GT(bits & magnitude, bitsOf(info.dtype, INFINITY));
      state->reset();
    }
  }
}

TEST_P(StateBlocks, RoomIsOfWholeBlocks) {
  state->reserve(130);
  expect(append(129), 129);
  commit();
  expect(append(100), 229);
}

TEST_P(StateBlocks, BeginsEmpty) {
  auto all = slot().view(0, {{"batch", {kBatch, "tokens"}}});
  ASSERT_TRUE(all.ok()) << messageOf(all);
  EXPECT_EQ(all->sizes[2], 0);
  expect(append(2), 2);
}

INSTANTIATE_TEST_SUITE_P(Slots, StateBlocks,
                         testing::Values(std::pair(HONE_F32, io::StateLayout::KeyBlocks),
                                         std::pair(HONE_F32, io::StateLayout::ValueBlocks),
                                         std::pair(HONE_F16, io::StateLayout::KeyBlocks),
                                         std::pair(HONE_F16, io::StateLayout::ValueBlocks),
                                         std::pair(HONE_BF16, io::StateLayout::KeyBlocks),
                                         std::pair(HONE_BF16, io::StateLayout::ValueBlocks)));

} // namespace
} // namespace hone::test
