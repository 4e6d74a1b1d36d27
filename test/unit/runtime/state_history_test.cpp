// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a state holds after calls, keep(), truncate(), checkpoints, copies and failures is, byte for byte, what it would hold had it
// only ever been given the positions that are left; so for each sequence, whatever is left of others.

#include "core/state.h"
#include "support.h"

#include <fstream>
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

  /// Appends positions, whose numbers follow from their names and those of the sequences, without ending the call.
  hone_tensor append(rt::State &state, std::span<const int64_t> names) {
    hone_dtype dtype = info.layout == io::StateLayout::Rows ? info.dtype : HONE_F32;
    auto count = static_cast<int64_t>(names.size()), batch = std::ssize(sequences);
    auto fresh = io::Array::zeros(dtype, {batch, kHeads, count, kSize});
    EXPECT_TRUE(fresh.ok());
    for (int64_t head = 0, i = 0; head < batch * kHeads; ++head)
      for (int64_t name : names) {
        int64_t sequence = sequences[static_cast<size_t>(head / kHeads)];
        std::minstd_rand random(static_cast<unsigned>((name * 16 + sequence) * kHeads + head % kHeads + 1));
        for (int64_t d = 0; d < kSize; ++d, ++i)
          if (auto number = static_cast<float>(random() % 4096) / 512 - 3; dtype == HONE_F32)
            fresh->as<float>()[static_cast<size_t>(i)] = number;
          else
            fresh->as<uint16_t>()[static_cast<size_t>(i)] = static_cast<uint16_t>(random());
      }
    auto all = state.slots()[0].append(fresh->view(), state.lengths());
    EXPECT_TRUE(all.ok()) << messageOf(all);
    return all.ok() ? *all : hone_tensor();
  }

  void feed(rt::State &state, std::span<const int64_t> names) {
    append(state, names);
    ASSERT_EQ(messageOf(state.commit({{"batch", {std::ssize(sequences), "the tokens"}}})), "OK");
  }

  /// The bytes of so many positions of a sequence, and of what fills the last block up, after an append.
  std::string bytesOf(const hone_tensor &all, int64_t sequence, int64_t positions) {
    int64_t bytes = info.bits != 0 ? 1 : io::dtypeBytes(info.dtype);
    if (info.layout != io::StateLayout::Rows)
      positions = rt::wholeBlocks(positions);
    std::string text;
    for (int64_t head = 0; head < kHeads; ++head)
      text.append(static_cast<const char *>(all.data) + (sequence * all.strides[0] + head * all.strides[1]) * bytes,
                  static_cast<size_t>(positions * all.strides[2] * bytes));
    return text;
  }

  /// Appends one more position to the state and to one that was given these names alone, and compares: of each sequence those of its own.
  void expectOnlyEach(rt::State &state, const std::vector<std::vector<int64_t>> &names) {
    const int64_t last[] = {9999};
    hone_tensor found = append(state, last);
    for (int64_t sequence = 0; sequence < std::ssize(sequences); ++sequence) {
      const std::vector<int64_t> &own = names[static_cast<size_t>(sequence)];
      ASSERT_EQ(state.lengths().of(sequence), std::ssize(own));
      auto plain = begin();
      if (!own.empty())
        feed(*plain, own);
      hone_tensor expected = append(*plain, last);
      ASSERT_EQ(bytesOf(found, sequence, std::ssize(own) + 1), bytesOf(expected, sequence, std::ssize(own) + 1))
          << own.size() << " positions of sequence " << sequence;
    }
    state.rollback();
  }

  void expectOnly(rt::State &state, const std::vector<int64_t> &names) {
    ASSERT_EQ(state.length(), std::ssize(names));
    ASSERT_TRUE(state.lengths().areEqual());
    expectOnlyEach(state, {names, names});
  }

  static absl::Status copyOf(rt::State &to, const std::vector<const rt::State *> &from) { return to.copyFrom(from); }

  std::vector<int64_t> sequences = {0, 1}; // of what is appended
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

/// A state, what it should hold of each sequence, and one of its checkpoints with the same.
struct Member {
  std::unique_ptr<rt::State> state;
  std::vector<std::vector<int64_t>> names = std::vector<std::vector<int64_t>>(kBatch);
  std::optional<std::pair<std::shared_ptr<const rt::Checkpoint>, std::vector<std::vector<int64_t>>>> point;
};

/// Drops positions from the end, of all sequences alike or of each in its own way.
static void truncateAny(Member &member, std::mt19937 &random) {
  bool alike = random() % 2 == 0;
  std::vector<int64_t> lengths;
  auto longest = static_cast<size_t>(member.state->length());
  size_t common = random() % (longest + 1);
  for (std::vector<int64_t> &own : member.names) {
    own.resize(alike ? std::min(own.size(), common) : random() % (own.size() + 1));
    lengths.push_back(std::ssize(own));
  }
  absl::Status status =
      alike ? member.state->truncate(static_cast<int64_t>(common)) : member.state->truncateEach(std::move(lengths));
  ASSERT_EQ(messageOf(status), "OK");
}

/// Keeps some of the positions of the last call, `fresh`.
static void keepAny(Member &member, std::span<const int64_t> fresh, std::mt19937 &random) {
  bool alike = random() % 2 == 0;
  std::vector<std::vector<int64_t>> kept(kBatch);
  for (size_t i = 0; i < kept.size(); ++i) {
    if (i > 0 && alike) {
      kept[i] = kept[0];
    } else {
      for (int64_t number = 0; number < std::ssize(fresh); ++number)
        if (random() % 3 != 0)
          kept[i].push_back(number);
    }
    for (int64_t number : kept[i])
      member.names[i].push_back(fresh[static_cast<size_t>(number)]);
  }
  ASSERT_EQ(messageOf(alike ? member.state->keep(kept[0]) : member.state->keepEach(kept)), "OK");
}

/// Of several states that begin as forks of one another, each is what was done to it alone. Some begin with enough positions to share pages.
TEST_P(StateHistory, ForksGoTheirOwnWays) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    std::mt19937 random(seed);
    std::vector<Member> family(1);
    family[0].state = begin();
    bool isLong = seed % 8 == 0;
    for (int64_t step = 0, next = 0; step < (isLong ? 12 : 40); ++step) {
      Member &member = family[random() % family.size()];
      std::vector<int64_t> fresh(isLong && step == 0 ? 2200 : 1 + random() % (random() % 4 == 0 ? 90 : 8));
      std::iota(fresh.begin(), fresh.end(), next);
      next += std::ssize(fresh);
      switch (member.state->length() == 0 ? 6 : random() % 8) {
      case 0: // a call that fails
        append(*member.state, fresh);
        member.state->rollback();
        break;
      case 1:
        ASSERT_NO_FATAL_FAILURE(truncateAny(member, random));
        break;
      case 2:
        member.point = {member.state->checkpoint(), member.names};
        break;
      case 3:
        if (member.point && member.state->restore(*member.point->first).ok())
          member.names = member.point->second;
        break;
      case 4:
      case 5: {
        Member fork = {begin(), member.names, std::nullopt};
        ASSERT_EQ(messageOf(fork.state->forkFrom(*member.state)), "OK");
        if (family.size() < 4)
          family.push_back(std::move(fork));
        else
          family[random() % family.size()] = std::move(fork);
        break;
      }
      default:
        feed(*member.state, fresh);
        ASSERT_NO_FATAL_FAILURE(keepAny(member, fresh, random));
      }
      for (const Member &each : family)
        ASSERT_NO_FATAL_FAILURE(expectOnlyEach(*each.state, each.names)) << "step " << step << " of seed " << seed;
    }
  }
}

/// Bytes of this process's memory that belong to no file: allocations, and what was copied as it was written to.
static int64_t anonymousBytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  while (file >> word && word != "Anonymous:")
    continue;
  int64_t kibibytes = 0;
  file >> kibibytes;
  return kibibytes * 1024;
}

TEST_P(StateHistory, ForksShareTheirPages) {
  auto state = begin();
  std::vector<int64_t> names(20000);
  std::iota(names.begin(), names.end(), 0);
  for (int64_t part = 0; part < 4; ++part)
    feed(*state, std::span(names).subspan(static_cast<size_t>(5000 * part), 5000));
  hone_tensor held = append(*state, std::vector<int64_t>{0});
  state->rollback();
  int64_t bytes = kBatch * held.strides[0] * (info.bits != 0 ? 1 : io::dtypeBytes(info.dtype)) * 20000 / held.sizes[2];
  int64_t before = anonymousBytes();
  std::vector<std::unique_ptr<rt::State>> forks;
  for (int64_t i = 0; i < 8; ++i) {
    forks.push_back(begin());
    ASSERT_EQ(messageOf(forks.back()->forkFrom(*state)), "OK");
    feed(*forks.back(), std::vector<int64_t>{i});
  }
  EXPECT_LT(anonymousBytes() - before, 2 * bytes) << "of 8 copies";
}

TEST_P(StateHistory, JoinsSequencesOfSeveral) {
  auto first = begin(), second = begin(), joined = begin();
  feed(*first, std::vector<int64_t>{1, 2, 3});
  sequences = {2};
  std::vector<int64_t> many(70);
  std::iota(many.begin(), many.end(), 100);
  feed(*second, many);
  sequences = {0, 1, 2};
  ASSERT_EQ(messageOf(copyOf(*joined, {first.get(), second.get()})), "OK");
  expectOnlyEach(*joined, {{1, 2, 3}, {1, 2, 3}, many});
  feed(*joined, std::vector<int64_t>{4, 5});
  const std::vector<int64_t> kept[] = {{0}, {1}, {}};
  ASSERT_EQ(messageOf(joined->keepEach(kept)), "OK");
  expectOnlyEach(*joined, {{1, 2, 3, 4}, {1, 2, 3, 5}, many});
  sequences = {0, 1};
  expectOnly(*first, {1, 2, 3});
}

TEST_P(StateHistory, RefusesOtherSequencesThanTheBatchHas) {
  auto state = begin(), empty = begin(), joined = begin();
  feed(*state, std::vector<int64_t>{1, 2, 3});
  const std::vector<int64_t> kept[] = {{0}, {1}, {2}};
  EXPECT_THAT(messageOf(state->keepEach(kept)), HasSubstr("expected positions to keep of 2 sequences, but got 3"));
  const std::vector<int64_t> wrong[] = {{0, 1}, {0, 3}};
  EXPECT_THAT(messageOf(state->keepEach(wrong)), HasSubstr("to ascend from 0 to 2, but got 3 after 0"));
  EXPECT_THAT(messageOf(state->truncateEach({1})), HasSubstr("expected lengths of 2 sequences, but got 1"));
  EXPECT_THAT(messageOf(state->truncateEach({1, 4})),
              HasSubstr("cannot truncate sequence 1 to 4 positions: it holds 3"));
  EXPECT_THAT(messageOf(copyOf(*joined, {state.get(), empty.get()})), HasSubstr("holds no positions"));
  expectOnly(*state, {1, 2, 3});
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
