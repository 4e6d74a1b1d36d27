// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a state holds after calls, keep(), truncate(), checkpoints, copies and failures is, byte for byte, what it would hold had it
// only ever been given the positions that are left.

#include "core/state.h"
#include "support.h"

#include <cstring>
#include <random>

namespace hone::test {
namespace {

using testing::HasSubstr;

constexpr int64_t kBatch = 2, kHeads = 3, kSize = 19;

struct Layout {
  hone_dtype dtype;
  io::StateLayout layout;
  int64_t bits;
};

class StateHistory : public testing::TestWithParam<Layout> {
protected:
  StateHistory() {
    info.name = "cache";
    info.dtype = GetParam().dtype;
    info.layout = GetParam().layout;
    info.bits = GetParam().bits;
    info.shape = {io::Dim::symbolic("batch"), io::Dim::fixed(kHeads), io::Dim::fixed(0), io::Dim::fixed(kSize)};
    info.appendAxis = 2;
  }

  std::unique_ptr<rt::State> begin() { return std::make_unique<rt::State>(std::span<const io::TensorInfo>(&info, 1)); }

  /// Appends positions, whose numbers follow from their names, without ending the call.
  hone_tensor append(rt::State &state, std::span<const int64_t> names) {
    hone_dtype dtype = info.layout == io::StateLayout::Rows ? info.dtype : HONE_F32;
    auto count = static_cast<int64_t>(names.size());
    auto fresh = io::Array::zeros(dtype, {kBatch, kHeads, count, kSize});
    EXPECT_TRUE(fresh.ok());
    for (int64_t head = 0, i = 0; head < kBatch * kHeads; ++head)
      for (int64_t name : names) {
        std::mt19937 random(static_cast<unsigned>(name * kBatch * kHeads + head));
        for (int64_t d = 0; d < kSize; ++d, ++i)
          if (auto number = static_cast<float>(random() % 4096) / 512 - 3; dtype == HONE_F32)
            fresh->as<float>()[static_cast<size_t>(i)] = number;
          else
            fresh->as<uint16_t>()[static_cast<size_t>(i)] = static_cast<uint16_t>(random());
      }
    auto all = state.slots()[0].append(fresh->view(), state.length());
    EXPECT_TRUE(all.ok()) << messageOf(all);
    return all.ok() ? *all : hone_tensor();
  }

  void feed(rt::State &state, std::span<const int64_t> names) {
    append(state, names);
    ASSERT_EQ(messageOf(state.commit({{"batch", {kBatch, "the tokens"}}})), "OK");
  }

  /// The bytes of all positions, and of what fills the last block up, after an append.
  std::string bytesOf(const hone_tensor &all) {
    bool isRows = info.layout == io::StateLayout::Rows;
    int64_t bytes = info.bits != 0 ? 1 : io::dtypeBytes(info.dtype);
    int64_t positions = isRows ? all.sizes[2] : rt::wholeBlocks(all.sizes[2]);
    std::string text;
    for (int64_t head = 0; head < kBatch * kHeads; ++head)
      text.append(static_cast<const char *>(all.data) +
                      (head / kHeads * all.strides[0] + head % kHeads * all.strides[1]) * bytes,
                  static_cast<size_t>(positions * all.strides[2] * bytes));
    return text;
  }

  /// Appends one more position to both and compares.
  void expectOnly(rt::State &state, std::vector<int64_t> names) {
    ASSERT_EQ(state.length(), static_cast<int64_t>(names.size()));
    auto plain = begin();
    if (!names.empty())
      feed(*plain, names);
    const int64_t last[] = {9999};
    std::string found = bytesOf(append(state, last)), expected = bytesOf(append(*plain, last));
    state.rollback();
    ASSERT_EQ(found.size(), expected.size());
    ASSERT_EQ(std::memcmp(found.data(), expected.data(), expected.size()), 0) << names.size() << " positions";
  }

  io::TensorInfo info;
};

TEST_P(StateHistory, KeepsWhatVerificationAccepts) {
  auto state = begin();
  feed(*state, std::vector<int64_t>{1, 2, 3});
  feed(*state, std::vector<int64_t>{10, 11, 12, 13, 14, 15});
  ASSERT_EQ(messageOf(state->keep(std::vector<int64_t>{0, 2, 5})), "OK");
  expectOnly(*state, {1, 2, 3, 10, 12, 15});
  ASSERT_EQ(messageOf(state->keep({})), "OK");
  expectOnly(*state, {1, 2, 3});
}

TEST_P(StateHistory, RefusesToKeepWhatTheLastCallHasNot) {
  auto state = begin();
  feed(*state, std::vector<int64_t>{1, 2, 3});
  feed(*state, std::vector<int64_t>{4, 5});
  EXPECT_THAT(messageOf(state->keep(std::vector<int64_t>{0, 2})),
              HasSubstr("to ascend from 0 to 1, but got 2 after 0"));
  EXPECT_THAT(messageOf(state->keep(std::vector<int64_t>{1, 1})), HasSubstr("but got 1 after 1"));
  EXPECT_THAT(messageOf(state->keep(std::vector<int64_t>{-1})), HasSubstr("but got -1 after -1"));
  expectOnly(*state, {1, 2, 3, 4, 5});
}

TEST_P(StateHistory, ReturnsToCheckpointsUntilTheirPositionsGo) {
  auto state = begin();
  auto first = state->checkpoint();
  feed(*state, std::vector<int64_t>{1, 2, 3});
  auto third = state->checkpoint();
  feed(*state, std::vector<int64_t>{4, 5});
  auto fifth = state->checkpoint();
  ASSERT_EQ(messageOf(state->restore(*third)), "OK");
  expectOnly(*state, {1, 2, 3});
  EXPECT_THAT(messageOf(state->restore(*fifth)), HasSubstr("cannot return to 5 positions"));
  feed(*state, std::vector<int64_t>{6});
  ASSERT_EQ(messageOf(state->restore(*third)), "OK") << "a second time";
  ASSERT_EQ(messageOf(state->truncate(2)), "OK");
  EXPECT_THAT(messageOf(state->restore(*third)), HasSubstr("cannot return to 3 positions"));
  ASSERT_EQ(messageOf(state->restore(*first)), "OK");
  expectOnly(*state, {});
  auto other = begin();
  EXPECT_THAT(messageOf(other->restore(*first)), HasSubstr("of another session"));
}

TEST_P(StateHistory, AnythingAtAll) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    auto state = begin();
    std::vector<int64_t> names;
    std::optional<std::pair<std::shared_ptr<const rt::Checkpoint>, std::vector<int64_t>>> point;
    int64_t next = 0;
    for (int step = 0; step < 40; ++step) {
      std::vector<int64_t> fresh(1 + random() % (random() % 4 == 0 ? 90 : 8));
      std::iota(fresh.begin(), fresh.end(), next);
      next += static_cast<int64_t>(fresh.size());
      switch (random() % 6) {
      case 0: // a call that fails
        append(*state, fresh);
        state->rollback();
        break;
      case 1:
        names.resize(random() % (names.size() + 1));
        ASSERT_EQ(messageOf(state->truncate(static_cast<int64_t>(names.size()))), "OK");
        break;
      case 2:
        point = {state->checkpoint(), names};
        break;
      case 3:
        if (point && state->restore(*point->first).ok())
          names = point->second;
        break;
      case 4: {
        auto copy = begin();
        ASSERT_EQ(messageOf(copy->copyFrom(*state)), "OK");
        expectOnly(*state, names);
        state = std::move(copy);
        break;
      }
      default: {
        feed(*state, fresh);
        std::vector<int64_t> kept;
        for (size_t i = 0; i < fresh.size(); ++i)
          if (random() % 3 != 0)
            kept.push_back(static_cast<int64_t>(i));
        ASSERT_EQ(messageOf(state->keep(kept)), "OK");
        for (int64_t number : kept)
          names.push_back(fresh[static_cast<size_t>(number)]);
      }
      }
      ASSERT_NO_FATAL_FAILURE(expectOnly(*state, names)) << "step " << step << " of seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Slots, StateHistory,
    testing::Values(Layout{HONE_F32, io::StateLayout::Rows, 0}, Layout{HONE_BF16, io::StateLayout::Rows, 0},
                    Layout{HONE_F32, io::StateLayout::KeyBlocks, 0}, Layout{HONE_F32, io::StateLayout::ValueBlocks, 0},
                    Layout{HONE_F16, io::StateLayout::KeyBlocks, 0}, Layout{HONE_F16, io::StateLayout::ValueBlocks, 0},
                    Layout{HONE_BF16, io::StateLayout::KeyBlocks, 0},
                    Layout{HONE_BF16, io::StateLayout::ValueBlocks, 0}, Layout{HONE_F32, io::StateLayout::KeyBlocks, 8},
                    Layout{HONE_F32, io::StateLayout::ValueBlocks, 8}, Layout{HONE_F32, io::StateLayout::KeyBlocks, 4},
                    Layout{HONE_F32, io::StateLayout::ValueBlocks, 4}));

} // namespace
} // namespace hone::test
