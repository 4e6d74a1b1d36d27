// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots that are replaced as a whole: what they begin with, and what they hold after calls, failures and resets.

#include "core/state.h"
#include "support.h"

namespace hone::test {
namespace {

/// A parameter that begins with a weight, and a number that begins as 0.
class StateBeginning : public testing::Test {
protected:
  StateBeginning() {
    infos[0].name = "gain";
    infos[0].shape = {io::Dim::fixed(2)};
    infos[1].name = "count";
    std::vector<rt::StateBuffer> beginnings(2);
    beginnings[0] = {weight.view(), std::shared_ptr<void>(weight.data(), [](void *) {})};
    state = std::make_unique<rt::State>(infos, rt::hostStateMemory(), std::move(beginnings));
  }

  std::vector<float> read(size_t slot) {
    auto view = state->slots()[slot].view(0, {});
    EXPECT_TRUE(view.ok()) << messageOf(view);
    const auto *first = static_cast<const float *>(view->data);
    return {first, first + io::elementCount(*view)};
  }

  void replace(size_t slot, std::vector<int64_t> shape, std::vector<float> values) {
    io::Array array = makeArray<float>(HONE_F32, std::move(shape), std::move(values));
    auto replaced = state->slots()[slot].append(array.view(), state->lengths());
    ASSERT_TRUE(replaced.ok()) << messageOf(replaced);
  }

  void step(float value) {
    read(0);
    read(1);
    replace(0, {2}, {value, value + 1});
    replace(1, {}, {value});
  }

  /// Writes a slot in place; gives where it is.
  const void *update(size_t slot, std::vector<float> values) {
    auto room = state->slots()[slot].update({});
    EXPECT_TRUE(room.ok()) << messageOf(room);
    std::ranges::copy(values, static_cast<float *>(room->data));
    auto updated = state->slots()[slot].append(*room, state->lengths());
    EXPECT_TRUE(updated.ok()) << messageOf(updated);
    EXPECT_EQ(updated->data, room->data);
    return room->data;
  }

  void expect(std::vector<float> gain, float count) {
    EXPECT_EQ(read(0), gain);
    EXPECT_EQ(read(1), std::vector{count});
  }

  io::Array weight = makeArray<float>(HONE_F32, {2}, {5, 7});
  std::vector<io::TensorInfo> infos{2};
  std::unique_ptr<rt::State> state;
};

TEST_F(StateBeginning, IsReadWhereItLies) {
  auto view = state->slots()[0].view(0, {});
  ASSERT_TRUE(view.ok()) << messageOf(view);
  EXPECT_EQ(view->data, weight.data());
  expect({5, 7}, 0);
}

TEST_F(StateBeginning, ReplacesWithTheCall) {
  step(1);
  ASSERT_TRUE(state->commit({}).ok());
  expect({1, 2}, 1);
  step(3);
  ASSERT_TRUE(state->commit({}).ok());
  expect({3, 4}, 3);
  EXPECT_EQ(weight.as<float>()[0], 5);
}

TEST_F(StateBeginning, FailedCallsChangeNothing) {
  step(1);
  state->rollback();
  expect({5, 7}, 0);
  step(1);
  ASSERT_TRUE(state->commit({}).ok());
  step(3);
  state->rollback();
  expect({1, 2}, 1);
}

TEST_F(StateBeginning, ResetsAndCheckpoints) {
  step(1);
  ASSERT_TRUE(state->commit({}).ok());
  auto point = state->checkpoint();
  step(3);
  ASSERT_TRUE(state->commit({}).ok());
  ASSERT_TRUE(state->restore(*point).ok());
  expect({1, 2}, 1);
  state->reset();
  expect({5, 7}, 0);
}

TEST_F(StateBeginning, UpdatesInPlace) {
  const void *first = update(0, {1, 2});
  ASSERT_TRUE(state->commit({}).ok());
  expect({1, 2}, 0);
  EXPECT_EQ(update(0, {3, 4}), first);
  ASSERT_TRUE(state->commit({}).ok());
  expect({3, 4}, 0);
  EXPECT_EQ(weight.as<float>()[0], 5); // the beginning is nobody's to write
  state->reset();
  expect({5, 7}, 0);
}

TEST_F(StateBeginning, UpdatesLeaveCheckpointsAsTheyAre) {
  const void *first = update(0, {1, 2});
  ASSERT_TRUE(state->commit({}).ok());
  auto point = state->checkpoint();
  EXPECT_NE(update(0, {3, 4}), first);
  ASSERT_TRUE(state->commit({}).ok());
  expect({3, 4}, 0);
  ASSERT_TRUE(state->restore(*point).ok());
  expect({1, 2}, 0);
}

TEST_F(StateBeginning, FailedUpdatesAreLost) {
  ASSERT_TRUE(state->commit({}).ok());
  auto before = state->checkpoint();
  update(0, {1, 2});
  state->rollback();
  EXPECT_THAT(messageOf(state->slots()[0].view(0, {})),
              testing::HasSubstr("state 'gain' is lost: the call that updated it failed"));
  EXPECT_FALSE(state->slots()[0].contentOnHost().ok());
  EXPECT_FALSE(state->slots()[0].update({}).ok());
  EXPECT_FALSE(state->restore(*state->checkpoint()).ok());
  ASSERT_TRUE(state->restore(*before).ok());
  expect({5, 7}, 0);
  update(0, {1, 2});
  state->rollback();
  state->reset();
  expect({5, 7}, 0);
}

TEST_F(StateBeginning, UpdatesReplaceNothingElse) {
  step(1);
  EXPECT_THAT(messageOf(state->slots()[0].update({})),
              testing::HasSubstr("cannot update state 'gain' in place: it was replaced in this call"));
  state->rollback();
}

TEST_F(StateBeginning, CopiesHoldTheSame) {
  step(1);
  ASSERT_TRUE(state->commit({}).ok());
  auto copy = std::make_unique<rt::State>(infos);
  const rt::State *others[] = {state.get()};
  ASSERT_TRUE(copy->copyFrom(others).ok());
  state = std::move(copy);
  expect({1, 2}, 1);
}

TEST_F(StateBeginning, TakesContents) {
  io::Array gain = makeArray<float>(HONE_F32, {2}, {8, 9}), count = makeArray<float>(HONE_F32, {}, {4});
  hone_tensor contents[] = {gain.view(), count.view()}, swapped[] = {count.view(), gain.view()};
  ASSERT_TRUE(state->setContents(contents).ok());
  gain.as<float>()[0] = 0; // it is a copy
  step(1);
  state->rollback();
  expect({8, 9}, 4);
  EXPECT_THAT(std::string(state->setContents(swapped).message()),
              testing::HasSubstr("cannot set state 'gain' of f32 [2] to f32 []"));
  EXPECT_THAT(std::string(state->setContents({contents, 1}).message()), testing::HasSubstr("expected 2 tensors"));
  expect({8, 9}, 4);
}

/// Slots that together are more than a huge page: a parameter, and a moment that begins as zeros.
class StatePlaces : public testing::Test {
protected:
  StatePlaces() {
    infos[0].name = "w";
    infos[0].beginning = "w";
    infos[1].name = "w.moment";
    for (io::TensorInfo &info : infos)
      info.shape = {io::Dim::fixed(kSize)};
    std::vector<rt::StateBuffer> beginnings(2);
    beginnings[0] = {weight.view(), std::shared_ptr<void>(weight.data(), [](void *) {})};
    state = std::make_unique<rt::State>(infos, rt::hostStateMemory(), std::move(beginnings));
  }

  float *update(size_t slot) {
    auto room = state->slots()[slot].update({});
    EXPECT_TRUE(room.ok()) << messageOf(room);
    EXPECT_TRUE(state->slots()[slot].append(*room, state->lengths()).ok());
    return static_cast<float *>(room->data);
  }

  static constexpr int64_t kSize = 300001; // not a multiple of a line
  static constexpr int64_t kPlace = (kSize * 4 + 63) / 64 * 16;
  io::Array weight = makeArray<float>(HONE_F32, {kSize}, std::vector<float>(kSize, 3));
  std::vector<io::TensorInfo> infos{2};
  std::unique_ptr<rt::State> state;
};

TEST_F(StatePlaces, LieSideBySide) {
  float *parameter = update(0), *moment = update(1);
  EXPECT_EQ(moment - parameter, kPlace);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(parameter) % (2 << 20), 0);
  EXPECT_EQ(parameter[kSize - 1], 3);
  EXPECT_EQ(moment[kSize - 1], 0);
}

TEST_F(StatePlaces, ServeAgainAfterResets) {
  float *parameter = update(0), *moment = update(1);
  std::fill_n(moment, kSize, 1.0f);
  std::fill_n(parameter, kSize, 1.0f);
  ASSERT_TRUE(state->commit({}).ok());
  state->reset();
  EXPECT_EQ(update(0), parameter);
  EXPECT_EQ(update(1), moment);
  EXPECT_EQ(parameter[kSize - 1], 3);
  EXPECT_EQ(moment[kSize - 1], 0);
}

TEST_F(StatePlaces, AreLeftToCheckpoints) {
  float *parameter = update(0);
  parameter[0] = 1;
  ASSERT_TRUE(state->commit({}).ok());
  {
    auto point = state->checkpoint();
    float *other = update(0);
    EXPECT_NE(other, parameter);
    other[0] = 2;
    ASSERT_TRUE(state->commit({}).ok());
    EXPECT_EQ(parameter[0], 1);
  }
  auto point = state->checkpoint();
  EXPECT_EQ(update(0), parameter); // which nothing refers to any more
  EXPECT_EQ(parameter[0], 2);
}

TEST_F(StatePlaces, TakeContents) {
  io::Array moment = makeArray<float>(HONE_F32, {kSize}, std::vector<float>(kSize, 9));
  ASSERT_TRUE(state->setContents(std::vector{weight.view(), moment.view()}).ok());
  float *first = update(0), *second = update(1);
  EXPECT_EQ(second - first, kPlace);
  EXPECT_EQ(second[0], 9);
}

TEST(StateMemory, MakesNoPlacesBeyondAnyMemory) {
  std::vector<uint64_t> wraps(4, uint64_t{1} << 62);
  wraps.push_back(4 << 20);
  EXPECT_TRUE(rt::hostStateMemory().makePlaces(wraps).empty());
  EXPECT_TRUE(rt::hostStateMemory().makePlaces(std::vector<uint64_t>{~uint64_t{0}, 4 << 20}).empty());
  EXPECT_TRUE(rt::hostStateMemory().makePlaces(std::vector<uint64_t>{64, 64}).empty()); // less than a huge page
  EXPECT_EQ(rt::hostStateMemory().makePlaces(std::vector<uint64_t>{1 << 20, 1 << 20}).size(), 2);
}

} // namespace
} // namespace hone::test
