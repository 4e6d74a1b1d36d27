// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory of calls: slots of the arena, and loops over ranges.

#include "core/arena.h"
#include "core/block_pool.h"
#include "core/call.h"

#include <atomic>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <vector>

namespace hone::test {
namespace {

using rt::Arena;

constexpr uint64_t kImpossible = uint64_t{1} << 62;

/// Places slots and fills each with its number; they are aligned, and none overwrites another.
void checkSlots(Arena &arena, const std::vector<uint64_t> &bytes) {
  std::vector<void *> slots(bytes.size());
  ASSERT_TRUE(arena.place(bytes, slots));
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0)
      continue;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(slots[i]) % 64, 0u);
    std::memset(slots[i], static_cast<int>(i + 1), bytes[i]);
  }
  for (size_t i = 0; i < bytes.size(); ++i)
    for (uint64_t at = 0; at < bytes[i]; ++at)
      ASSERT_EQ(static_cast<uint8_t *>(slots[i])[at], i + 1);
}

TEST(Arena, SlotsAreApart) {
  Arena arena;
  checkSlots(arena, {1, 64, 65, 0, 1000, 3});
  checkSlots(arena, {0});
  checkSlots(arena, {});
  checkSlots(arena, {5000, 1});
}

TEST(Arena, GrowsByMoreThanIsAskedFor) {
  Arena arena;
  for (uint64_t bytes = 100000; bytes < 140000; bytes += 64)
    checkSlots(arena, {bytes, 64});
  EXPECT_EQ(arena.growths(), 1);
  checkSlots(arena, {10});
  checkSlots(arena, {140000});
  EXPECT_EQ(arena.growths(), 1);
  checkSlots(arena, {400000});
  EXPECT_EQ(arena.growths(), 2);
}

/// Blocks of sizes around those of classes, filled with their numbers, twice: those of the second call are those of the first.
TEST(BlockPool, BlocksAreApartAndServeTheNextCall) {
  rt::BlockPool pool;
  std::vector<uint64_t> sizes = {0, 1};
  for (uint64_t bytes = 64; bytes < (uint64_t{1} << 20); bytes += bytes / 4)
    sizes.insert(sizes.end(), {bytes - 1, bytes, bytes + 1});
  for (int call = 0; call < 2; ++call) {
    std::vector<uint8_t *> blocks;
    for (size_t i = 0; i < sizes.size(); ++i) {
      auto *block = static_cast<uint8_t *>(pool.allocate(sizes[i]));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
      std::memset(block, static_cast<int>(i), sizes[i]);
      blocks.push_back(block);
    }
    for (size_t i = 0; i < sizes.size(); ++i)
      for (uint64_t at = 0; at < sizes[i]; ++at)
        ASSERT_EQ(blocks[i][at], static_cast<uint8_t>(i));
    for (size_t i = 0; i < blocks.size(); i += 2) // the others come back with the call
      rt::BlockPool::release(blocks[i]);
    pool.endCall();
  }
}

TEST(BlockPool, RefusesWhatNoMemoryHolds) {
  rt::BlockPool pool;
  EXPECT_EQ(pool.allocate(kImpossible), nullptr);
  EXPECT_EQ(pool.allocate(kImpossible * 2), nullptr);
  EXPECT_NE(pool.allocate(8), nullptr);
}

TEST(Arena, RefusesWhatNoMemoryHolds) {
  Arena arena;
  void *slots[3];
  for (std::vector<uint64_t> bytes :
       {std::vector<uint64_t>{kImpossible, kImpossible, kImpossible}, {~uint64_t{0}, 1, 1}, {kImpossible / 2, 64, 64}})
    EXPECT_FALSE(arena.place(bytes, slots));
  checkSlots(arena, {100});
}

struct Marks {
  std::vector<std::atomic<int>> counts;
  std::atomic<int> ranges;
  explicit Marks(size_t count) : counts(count), ranges(0) {}

  static void body(void *captures, int64_t begin, int64_t end) {
    auto *marks = static_cast<Marks *>(captures);
    EXPECT_LT(begin, end);
    ++marks->ranges;
    for (int64_t i = begin; i < end; ++i)
      ++marks->counts[static_cast<size_t>(i)];
  }
};

using ParallelFn = void (*)(hone_body_fn, void *, int64_t, int64_t);
const auto parallel = reinterpret_cast<ParallelFn>(rt::findService("hone_rt_parallel"));

TEST(Parallel, EveryPositionOnce) {
  for (int64_t count : {0, 1, 2, 3, 63, 64, 65, 4095, 9001, 100000})
    for (int64_t cost : {int64_t{1}, int64_t{1000000}, int64_t{1} << 62}) {
      Marks marks(static_cast<size_t>(count));
      parallel(Marks::body, &marks, count, cost);
      for (const std::atomic<int> &mark : marks.counts)
        ASSERT_EQ(mark, 1) << count << " positions of cost " << cost;
      EXPECT_LE(marks.ranges, std::max(1, omp_get_max_threads()));
    }
}

TEST(Parallel, SmallRangesStayOnTheirThread) {
  Marks marks(1000);
  parallel(Marks::body, &marks, 1000, 1);
  EXPECT_EQ(marks.ranges, 1);
}

TEST(Parallel, DoesNotNest) {
  Marks marks(1000);
#pragma omp parallel num_threads(2)
  {
#pragma omp single
    parallel(Marks::body, &marks, 1000, 1000000);
  }
  EXPECT_EQ(marks.ranges, 1);
}

} // namespace
} // namespace hone::test
