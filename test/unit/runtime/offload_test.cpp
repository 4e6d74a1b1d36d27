// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States whose slots are kept in files.

#include "core/state.h"
#include "hone/io/file.h"
#include "hone/io/pages.h"
#include "support.h"

#include <numeric>
#include <sys/resource.h>

namespace hone::test {
namespace {

using testing::HasSubstr;

constexpr int64_t kHeads = 3, kSize = 8;

class Offload : public testing::Test {
protected:
  Offload() {
    info.name = "key";
    info.dtype = HONE_F32;
    info.shape = {io::Dim::fixed(1), io::Dim::fixed(kHeads), io::Dim::fixed(0), io::Dim::fixed(kSize)};
    info.appendAxis = 2;
  }

  /// Appends rows that follow from their positions; the message, or "OK".
  std::string append(rt::State &state, int64_t count) {
    std::vector<float> numbers(static_cast<size_t>(kHeads * count * kSize));
    std::iota(numbers.begin(), numbers.end(), static_cast<float>(state.length()));
    Array rows = makeArray(HONE_F32, {1, kHeads, count, kSize}, numbers);
    absl::StatusOr<hone_tensor> all = state.slots()[0].append(rows.view(), state.lengths());
    if (!all.ok()) {
      state.rollback();
      return messageOf(all);
    }
    return messageOf(state.commit({}));
  }

  static std::vector<float> contentOf(rt::State &state) {
    absl::StatusOr<hone_tensor> view = state.slots()[0].view(state.length(), {});
    EXPECT_EQ(messageOf(view), "OK");
    absl::StatusOr<Array> dense = Array::copyOf(*view);
    return elementsOf<float>(*dense);
  }

  TemporaryFolder temporary;
  io::TensorInfo info;
};

TEST_F(Offload, HoldsWhatMemoryHolds) {
  auto memory = rt::offloadedStateMemory(temporary.path.string());
  ASSERT_EQ(messageOf(memory), "OK");
  rt::State inMemory({&info, 1}), inFiles({&info, 1}, **memory);
  for (int64_t count : {1, 5, 60, 300, 1, 700, 2}) {
    ASSERT_EQ(append(inMemory, count), "OK");
    ASSERT_EQ(append(inFiles, count), "OK");
    ASSERT_EQ(contentOf(inFiles), contentOf(inMemory));
  }
  for (rt::State *state : {&inMemory, &inFiles}) {
    ASSERT_TRUE(state->truncate(100).ok());
    ASSERT_EQ(append(*state, 3), "OK");
  }
  EXPECT_EQ(contentOf(inFiles), contentOf(inMemory));
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path)) << "files have no names";
}

/// Either goes on without changing the other.
TEST_F(Offload, ForksAreCopies) {
  auto memory = rt::offloadedStateMemory(temporary.path.string());
  ASSERT_EQ(messageOf(memory), "OK");
  rt::State state({&info, 1}, **memory), fork({&info, 1}, **memory);
  ASSERT_EQ(append(state, 3000), "OK");
  std::vector<float> before = contentOf(state);
  ASSERT_EQ(messageOf(fork.forkFrom(state)), "OK");
  EXPECT_EQ(contentOf(fork), before);
  ASSERT_EQ(append(fork, 7), "OK");
  EXPECT_EQ(contentOf(state), before);
  std::vector<float> longer = contentOf(fork);
  ASSERT_TRUE(state.truncate(2990).ok());
  ASSERT_EQ(append(state, 30), "OK");
  EXPECT_EQ(contentOf(fork), longer);
}

/// A failed call leaves the state as it was, and a full disk or a limit is no signal.
TEST_F(Offload, RoomThatIsNotThereIsAnError) {
  EXPECT_THAT(messageOf(rt::offloadedStateMemory(temporary.file("missing"))), HasSubstr("No such file or directory"));
  auto memory = rt::offloadedStateMemory(temporary.path.string());
  ASSERT_EQ(messageOf(memory), "OK");
  rt::State state({&info, 1}, **memory);
  ASSERT_EQ(append(state, 10), "OK");
  std::vector<float> before = contentOf(state);
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlimit little = {4096, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  std::string message = append(state, 1000);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THAT(message, HasSubstr("File too large"));
  EXPECT_EQ(contentOf(state), before);
  EXPECT_EQ(append(state, 1000), "OK");
}

/// Ranges are advised where pages are absent, and once while calls use them.
TEST_F(Offload, AbsentPagesAreReadAhead) {
  constexpr int64_t kRanges = 64, kRows = 16, kElements = 128; // 8 KiB a range
  auto file = io::ScratchFile::create(temporary.file("cache"), kRanges * kRows * kElements * sizeof(float));
  ASSERT_EQ(messageOf(file), "OK");
  if (io::isResident(file->data()))
    GTEST_SKIP() << "this file system is in memory";
  const int64_t sizes[] = {1, 2, kRanges / 2 * kRows, kElements};
  hone_tensor cache = io::denseView(file->data(), HONE_F32, sizes);
  rt::PagePrefetcher prefetcher;
  auto call = [&] {
    prefetcher.beginCall();
    for (int64_t range = 0; range < kRanges; ++range) {
      int64_t first = range / 2 * kRows;
      prefetcher.prefetch(cache, 0, range % 2, first, first + kRows);
    }
    return prefetcher.advised();
  };
  EXPECT_EQ(call(), kRanges);
  EXPECT_EQ(call(), kRanges) << "known from the call before";
  for (uint64_t at = 0; at < file->size(); at += kElements)
    file->data()[at] = 1;
  prefetcher.beginCall();
  EXPECT_EQ(call(), kRanges) << "all pages are resident";
}

} // namespace
} // namespace hone::test
