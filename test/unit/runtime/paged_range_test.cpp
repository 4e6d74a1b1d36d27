// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layout and growth of tensors in pages of an emulated GPU.

#include "cuda/paged_range.h"
#include "device_support.h"

namespace hone::test {
namespace {

using rt::GrowingTensor;
using rt::cuda::Context;
using rt::cuda::CUdeviceptr;
using rt::cuda::PagedRange;
using testing::HasSubstr;

constexpr int64_t kPage = int64_t{2} << 20;

/// 24 bytes a position, which are 32 in a KV row, and 16.
const GrowingTensor kKeys = {3, HONE_F32, {2, 1, 3}, 1}, kValues = {5, HONE_F16, {1, 8}, 0};
constexpr int64_t kRecord = 48;

class PagedRanges : public testing::Test {
protected:
  void SetUp() override {
    useEmulatedDriver();
    auto opened = Context::get(0);
    if (!opened.ok())
      GTEST_SKIP() << messageOf(opened);
    context = *opened;
    scope.emplace(*context);
    const GrowingTensor tensors[] = {kKeys, kValues};
    auto made = PagedRange::create(context, tensors);
    ASSERT_TRUE(made.ok()) << messageOf(made);
    range = *made;
  }

  std::shared_ptr<Context> context;
  std::optional<Context::Scope> scope;
  std::shared_ptr<PagedRange> range;
};

TEST_F(PagedRanges, KnowTheirTensors) {
  EXPECT_TRUE(range->holds(kKeys));
  GrowingTensor longer = kKeys, wider = kKeys, other = kKeys;
  longer.sizes[1] = 1000, wider.sizes[2] = 4, other.slot = 4;
  EXPECT_TRUE(range->holds(longer)) << "it grows along that axis";
  EXPECT_FALSE(range->holds(wider));
  EXPECT_FALSE(range->holds(other));
}

TEST_F(PagedRanges, HaveRecordsOfPositions) {
  EXPECT_EQ(range->view(kKeys).sizes[1], 0);
  ASSERT_EQ(messageOf(range->extend(1)), "OK");
  hone_tensor keys = range->view(kKeys), values = range->view(kValues);
  EXPECT_EQ(static_cast<char *>(values.data) - static_cast<char *>(keys.data), 32) << "after the keys, aligned";
  EXPECT_THAT(std::vector<int64_t>(keys.sizes, keys.sizes + 3), testing::ElementsAre(2, kPage / kRecord, 3));
  EXPECT_THAT(std::vector<int64_t>(keys.strides, keys.strides + 3), testing::ElementsAre(3, kRecord / 4, 1));
  EXPECT_THAT(std::vector<int64_t>(values.sizes, values.sizes + 2), testing::ElementsAre(kPage / kRecord, 8));
  EXPECT_THAT(std::vector<int64_t>(values.strides, values.strides + 2), testing::ElementsAre(kRecord / 2, 1));
}

TEST_F(PagedRanges, GrowWhereTheyAre) {
  ASSERT_EQ(messageOf(range->extend(1)), "OK");
  void *data = range->view(kKeys).data;
  ASSERT_EQ(messageOf(range->extend(kPage / kRecord + 1)), "OK");
  EXPECT_EQ(range->view(kKeys).data, data);
  EXPECT_EQ(range->view(kKeys).sizes[1], 2 * kPage / kRecord);
  ASSERT_EQ(messageOf(range->extend(5)), "OK");
  EXPECT_EQ(range->view(kKeys).sizes[1], 2 * kPage / kRecord) << "it does not shrink";
}

TEST_F(PagedRanges, ShareWholePagesWithForks) {
  constexpr int64_t kPositions = 2 * kPage / kRecord + 1;
  ASSERT_EQ(messageOf(range->extend(kPositions)), "OK");
  EXPECT_EQ(range->wholePages(kPositions), 2u);
  EXPECT_EQ(range->pagesOf(kPositions), 3u);
  std::vector<CUdeviceptr> copied;
  auto copy = [&](CUdeviceptr, CUdeviceptr from, uint64_t bytes) {
    copied.push_back(from);
    EXPECT_EQ(bytes, static_cast<uint64_t>(kPage));
    return absl::OkStatus();
  };
  auto fork = range->fork(3, [](size_t page) { return page < 2; }, copy);
  ASSERT_TRUE(fork.ok()) << messageOf(fork);
  auto base = reinterpret_cast<CUdeviceptr>(range->view(kKeys).data);
  EXPECT_THAT(copied, testing::ElementsAre(base + 2 * kPage));
  EXPECT_NE((*fork)->view(kKeys).data, range->view(kKeys).data);
  EXPECT_EQ((*fork)->view(kKeys).sizes[1], range->view(kKeys).sizes[1]);
  EXPECT_TRUE((*fork)->holds(kValues));
  for (size_t page = 0; page < 3; ++page)
    EXPECT_EQ(range->sharesPage(page), page < 2) << page;
  ASSERT_EQ(messageOf((*fork)->extend(kPositions + kPage / kRecord + 1)), "OK");
  EXPECT_EQ((*fork)->pageCount(), 4u);
  EXPECT_EQ(range->pageCount(), 3u);
  *fork = nullptr;
  EXPECT_FALSE(range->sharesPage(0));
}

TEST_F(PagedRanges, StayAsTheyWereBeyondTheGpusMemory) {
  ASSERT_EQ(messageOf(range->extend(1)), "OK");
  auto all = static_cast<int64_t>(context->properties().memoryBytes);
  for (int64_t positions : {all / kRecord + 1, int64_t{1} << 62})
    EXPECT_THAT(messageOf(range->extend(positions)),
                HasSubstr(io::cat("a session's state of ", positions, " positions")));
  EXPECT_EQ(range->view(kKeys).sizes[1], kPage / kRecord);
  EXPECT_EQ(messageOf(range->extend(kPage / kRecord)), "OK");
}

} // namespace
} // namespace hone::test
