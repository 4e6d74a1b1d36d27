// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which positions stay, and that what a slot holds after an eviction is, byte for byte, what it would hold had it been given those alone.

#include "core/retention.h"
#include "support.h"

#include <numeric>
#include <random>

namespace hone::test {
namespace {

using testing::HasSubstr;

//===- The choice -------------------------------------------------------------------------------------------------===//

/// By sorting all of them.
std::vector<int64_t> sortAll(const std::vector<double> &mass, int64_t count, int64_t sinks, int64_t recent) {
  std::vector<int64_t> order(mass.size());
  std::iota(order.begin(), order.end(), 0);
  auto rank = [&](int64_t i) {
    bool isForced = i < sinks || i >= std::ssize(mass) - recent;
    return isForced ? HUGE_VAL : mass[static_cast<size_t>(i)];
  };
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return rank(a) > rank(b); });
  order.resize(static_cast<size_t>(count));
  std::ranges::sort(order);
  return order;
}

TEST(Retention, KeepsSinksRecentAndTheMostMass) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    int64_t sinks = random() % 5, recent = 1 + random() % 6, others = random() % 30;
    std::vector<double> mass(static_cast<size_t>(sinks + recent + others));
    for (double &each : mass)
      each = random() % 7; // some are equal
    int64_t count = sinks + recent + (others > 0 ? random() % (others + 1) : 0);
    EXPECT_EQ(rt::chooseKept(mass, count, sinks, recent), sortAll(mass, count, sinks, recent)) << round;
  }
}

TEST(Retention, TakesTheMeanOfNeighbours) {
  std::vector<double> values = {8, 0, 4, 0, 12, 1};
  EXPECT_EQ(rt::meanOfNeighbours(values, 1), values);
  EXPECT_EQ(rt::meanOfNeighbours(values, 3), (std::vector<double>{4, 4, 4.0 / 3, 16.0 / 3, 13.0 / 3, 6.5}));
  EXPECT_EQ(rt::meanOfNeighbours({}, 5), std::vector<double>());
}

//===- Slots ------------------------------------------------------------------------------------------------------===//

constexpr int64_t kHeads = 2, kSize = 19;

struct Layout {
  hone_dtype dtype;
  io::StateLayout layout;
  int64_t bits;
};

class Eviction : public testing::TestWithParam<Layout> {
protected:
  Eviction() {
    info.name = "cache";
    info.dtype = GetParam().dtype;
    info.layout = GetParam().layout;
    info.bits = GetParam().bits;
    info.shape = {io::Dim::symbolic("batch"), io::Dim::fixed(kHeads), io::Dim::fixed(0), io::Dim::fixed(kSize)};
    info.appendAxis = 2;
  }

  std::unique_ptr<rt::State> begin() { return std::make_unique<rt::State>(std::span<const io::TensorInfo>(&info, 1)); }

  /// Appends positions, of each head those of these names, without ending the call.
  hone_tensor append(rt::State &state, const std::vector<std::vector<int64_t>> &names) {
    hone_dtype dtype = info.layout == io::StateLayout::Rows ? info.dtype : HONE_F32;
    auto fresh = io::Array::zeros(dtype, {1, kHeads, std::ssize(names.front()), kSize});
    EXPECT_TRUE(fresh.ok());
    size_t i = 0;
    for (int64_t head = 0; head < kHeads; ++head)
      for (int64_t name : names[static_cast<size_t>(head)]) {
        std::minstd_rand random(static_cast<unsigned>(name * kHeads + head + 1));
        for (int64_t d = 0; d < kSize; ++d, ++i)
          if (dtype == HONE_F32)
            fresh->as<float>()[i] = static_cast<float>(random() % 4096) / 512 - 3;
          else
            fresh->as<uint16_t>()[i] = static_cast<uint16_t>(random());
      }
    auto all = state.slots()[0].append(fresh->view(), state.lengths());
    EXPECT_TRUE(all.ok()) << messageOf(all);
    return all.ok() ? *all : hone_tensor();
  }

  void feed(rt::State &state, const std::vector<std::vector<int64_t>> &names) {
    append(state, names);
    ASSERT_EQ(messageOf(state.commit({{"batch", {1, "the tokens"}}})), "OK");
  }

  std::string bytesOf(const hone_tensor &all) {
    int64_t bytes = info.bits != 0 ? 1 : io::dtypeBytes(info.dtype), positions = all.sizes[2];
    if (info.layout != io::StateLayout::Rows)
      positions = rt::wholeBlocks(positions);
    std::string text;
    for (int64_t head = 0; head < kHeads; ++head)
      text.append(static_cast<const char *>(all.data) + head * all.strides[1] * bytes,
                  static_cast<size_t>(positions * all.strides[2] * bytes));
    return text;
  }

  static std::vector<int64_t> range(int64_t first, int64_t end) {
    std::vector<int64_t> names(static_cast<size_t>(end - first));
    std::iota(names.begin(), names.end(), first);
    return names;
  }

  io::TensorInfo info;
};

TEST_P(Eviction, LeavesWhatStays) {
  auto state = begin();
  feed(*state, {range(0, 150), range(0, 150)});
  std::vector<std::vector<int64_t>> kept = {range(0, 3), range(1, 4)}; // of each head its own
  for (int64_t head = 0; head < kHeads; ++head)
    for (int64_t i = 20 + head; i < 150; i += 3)
      kept[static_cast<size_t>(head)].push_back(i);
  kept[0].resize(kept[1].size());
  ASSERT_EQ(messageOf(state->evict(0, kept)), "OK");
  EXPECT_EQ(state->length(), 150);
  EXPECT_EQ(state->heldBy(0), std::ssize(kept[0]));
  feed(*state, {range(150, 153), range(150, 153)});
  auto plain = begin();
  feed(*plain, kept);
  feed(*plain, {range(150, 153), range(150, 153)});
  auto copy = begin();
  ASSERT_EQ(messageOf(copy->forkFrom(*state)), "OK");
  std::string expected = bytesOf(append(*plain, {{999}, {999}}));
  EXPECT_EQ(bytesOf(append(*state, {{999}, {999}})), expected);
  EXPECT_EQ(bytesOf(append(*copy, {{999}, {999}})), expected);
  EXPECT_EQ(copy->length(), 153);
}

TEST_P(Eviction, KeepsWhatTheLastCallKeptAfterwards) {
  auto state = begin();
  feed(*state, {range(0, 90), range(0, 90)});
  std::vector<int64_t> kept = range(30, 90);
  ASSERT_EQ(messageOf(state->evict(0, {&kept, 1})), "OK");
  feed(*state, {range(90, 96), range(90, 96)});
  const int64_t accepted[] = {0, 2, 5};
  ASSERT_EQ(messageOf(state->keep(accepted)), "OK");
  auto plain = begin();
  std::vector<int64_t> names = range(30, 91);
  names.insert(names.end(), {92, 95});
  feed(*plain, {names, names});
  EXPECT_EQ(bytesOf(append(*state, {{999}, {999}})), bytesOf(append(*plain, {{999}, {999}})));
  EXPECT_EQ(state->length(), 93);
}

TEST_P(Eviction, CannotBeUndone) {
  auto state = begin();
  feed(*state, {range(0, 40), range(0, 40)});
  auto point = state->checkpoint();
  std::vector<int64_t> kept = range(10, 40);
  ASSERT_EQ(messageOf(state->evict(0, {&kept, 1})), "OK");
  feed(*state, {range(40, 45), range(40, 45)});
  EXPECT_THAT(messageOf(state->restore(*point)), HasSubstr("some of them were dropped"));
  EXPECT_THAT(messageOf(state->truncate(39)),
              HasSubstr("cannot truncate to 39 positions: of the first 40 some were evicted"));
  const rt::State *both[] = {state.get(), state.get()};
  EXPECT_THAT(messageOf(begin()->copyFrom(both)),
              HasSubstr("cannot join a session of whose first 40 positions some were evicted"));
  EXPECT_EQ(messageOf(state->truncate(42)), "OK");
  EXPECT_EQ(state->heldBy(0), 32);
  state->reset();
  EXPECT_EQ(state->evictedAt(), 0);
  feed(*state, {range(0, 5), range(0, 5)});
  EXPECT_EQ(state->heldBy(0), 5);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Eviction,
    testing::Values(Layout{HONE_F32, io::StateLayout::Rows, 0}, Layout{HONE_BF16, io::StateLayout::Rows, 0},
                    Layout{HONE_F32, io::StateLayout::KeyBlocks, 0}, Layout{HONE_F32, io::StateLayout::ValueBlocks, 0},
                    Layout{HONE_BF16, io::StateLayout::KeyBlocks, 0},
                    Layout{HONE_BF16, io::StateLayout::ValueBlocks, 0}, Layout{HONE_F32, io::StateLayout::KeyBlocks, 8},
                    Layout{HONE_F32, io::StateLayout::ValueBlocks, 4}));

//===- A session's state ------------------------------------------------------------------------------------------===//

io::TensorInfo slotOf(const std::string &name, int64_t heads) {
  io::TensorInfo info;
  info.name = name;
  info.shape = {io::Dim::fixed(1), io::Dim::fixed(heads), io::Dim::fixed(0), io::Dim::fixed(4)};
  info.appendAxis = 2;
  return info;
}

/// However long the text gets and however large its calls are, slots hold no more than budgets and a call, and have no room for more than
/// twice that.
TEST(Retention, BoundsWhatSlotsHold) {
  const io::TensorInfo slots[] = {slotOf("key", 2), slotOf("value", 2), slotOf("queries", 4)};
  for (bool accumulates : {false, true}) {
    rt::State state(slots);
    io::RetentionInfo info = {4, 5, accumulates, false, {{0, 1, 2, 64, 4, 8}}};
    rt::Retention retention(info);
    std::mt19937 random(2);
    auto measure = [&]() -> absl::StatusOr<std::vector<io::Array>> {
      std::vector<float> mass(static_cast<size_t>(2 * (state.heldBy(0) - 1)));
      for (float &each : mass)
        each = static_cast<float>(random() % 100);
      std::vector<io::Array> result;
      result.push_back(makeArray(HONE_F32, {1, 2, state.heldBy(0) - 1}, mass));
      return result;
    };
    for (int call = 0; call < 400; ++call) {
      int64_t fresh = call % 50 == 49 ? 100 : 1 + call % 3;
      ASSERT_EQ(messageOf(retention.makeRoom(state, fresh, measure)), "OK");
      for (rt::Slot &slot : state.slots()) {
        auto rows = io::Array::zeros(HONE_F32, {1, slot.description().shape[1].size, fresh, 4});
        ASSERT_EQ(messageOf(slot.append(rows->view(), state.lengths())), "OK");
      }
      ASSERT_EQ(messageOf(state.commit({})), "OK");
      for (size_t slot : {0, 1}) {
        EXPECT_LE(state.heldBy(slot), std::max<int64_t>(64, 60 + fresh));
        EXPECT_LE(state.slots()[slot].held()->buffer.view.sizes[2], 2 * (60 + 100));
      }
      EXPECT_LE(state.heldBy(2), 128 + 100);
    }
    EXPECT_GT(state.length(), 1000);
  }
}

/// The manifest with a state of three slots and this retention.
std::string textOf(const io::RetentionInfo &retention) {
  io::Manifest manifest = toyManifest();
  manifest.states.push_back({"bounded", {slotOf("key", 2), slotOf("value", 2), slotOf("queries", 4)}, retention});
  return io::manifestText(manifest);
}

TEST(Retention, IsReadAsItIsWritten) {
  const io::RetentionInfo right = {4, 5, true, true, {{0, 1, 2, 64, 4, 8}, {1, 0, std::nullopt, 20, 0, 16}}};
  std::string text = textOf(right);
  auto read = io::parseManifest(text, "m");
  ASSERT_EQ(messageOf(read), "OK");
  EXPECT_EQ(io::manifestText(*read), text);
  auto complaint = [&](auto change) {
    io::RetentionInfo wrong = right;
    change(wrong);
    return messageOf(io::parseManifest(textOf(wrong), "m"));
  };
  EXPECT_EQ(complaint([](auto &wrong) { wrong.layers[0].keys = -5; }),
            "m: expected bounded.retention.keys to be a whole number from 0 to 2");
  EXPECT_EQ(complaint([](auto &wrong) { wrong.layers[1].values = 3; }),
            "m: expected bounded.retention.values to be a whole number from 0 to 2");
  EXPECT_EQ(complaint([](auto &wrong) { wrong.layers[0].budget = 15; }),
            "m: expected bounded.retention.budget to be at least the sum of sinks, recent and block");
  EXPECT_THAT(complaint([](auto &wrong) { wrong.block = 0; }),
              HasSubstr("m: expected bounded.retention.block to be a whole number from 1"));
}

TEST(Retention, RefusesMassOfOtherKeys) {
  const io::TensorInfo slots[] = {slotOf("key", 1), slotOf("value", 1), slotOf("queries", 1)};
  rt::State state(slots);
  io::RetentionInfo info = {1, 1, false, false, {{0, 1, 2, 16, 1, 2}}};
  rt::Retention retention(info);
  for (rt::Slot &slot : state.slots()) {
    auto rows = io::Array::zeros(HONE_F32, {1, 1, 16, 4});
    ASSERT_EQ(messageOf(slot.append(rows->view(), state.lengths())), "OK");
  }
  ASSERT_EQ(messageOf(state.commit({})), "OK");
  auto wrong = [&]() -> absl::StatusOr<std::vector<io::Array>> {
    std::vector<io::Array> result;
    result.push_back(makeArray(HONE_F32, {1, 1, 3}, std::vector<float>(3)));
    return result;
  };
  EXPECT_THAT(messageOf(retention.makeRoom(state, 1, wrong)), HasSubstr("gave no mass of the 16 keys of layer 0"));
}

} // namespace
} // namespace hone::test
