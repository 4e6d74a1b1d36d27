// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels that ranks run together, for dense operands and others, beside a rank 0 that is made up.

#include "core/call.h"
#include "core/communicator.h"
#include "hone/io/array.h"

#include <atomic>
#include <cstring>
#include <gmock/gmock.h>
#include <numeric>
#include <thread>

namespace hone::test {
namespace {

using ::testing::ElementsAre;

/// Rank 0 has 100 wherever this rank, number 1 of 2, has a number.
const char *addHundreds(const float *from, float *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = from[i] + 100;
  return nullptr;
}

std::atomic<int> gathering = 0, mostGathering = 0; // threads that are in a call

const char *gatherHundreds(const void *from, void *to, int64_t bytes) {
  mostGathering = std::max<int>(mostGathering, ++gathering);
  std::this_thread::sleep_for(std::chrono::milliseconds(1)); // long enough for others to come in
  --gathering;
  std::fill_n(static_cast<float *>(to), bytes / 4, 100.0f);
  std::memcpy(static_cast<char *>(to) + bytes, from, static_cast<size_t>(bytes));
  return nullptr;
}

const hone_collectives kToy = {HONE_COLLECTIVES_VERSION, 1, 2, 1, 2, 0, addHundreds, gatherHundreds, [](int) {}};

/// Numbers 1, 2, … in memory of `memory` sizes, of which a tensor has the first columns of each row.
struct Rows {
  Rows(int64_t rows, int64_t columns, int64_t memory) : numbers(static_cast<size_t>(rows * memory)) {
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    int64_t sizes[] = {rows, columns};
    tensor = io::denseView(numbers.data(), HONE_F32, sizes);
    tensor.strides[0] = memory;
  }
  std::vector<float> numbers;
  hone_tensor tensor;
};

class Collectives : public ::testing::Test {
protected:
  static void SetUpTestSuite() { ASSERT_TRUE(rt::Communicator::adopt(&kToy).ok()); }

  static void run(const char *name, const Rows &from, const Rows &to, int64_t axis = 0) {
    rt::Memory memory;
    rt::BoundInputs inputs;
    io::EntryInfo entry;
    rt::CallContext context(entry, inputs, nullptr, memory, nullptr, {});
    hone_call call = {};
    call.runtime = &context;
    hone_tensor operands[] = {from.tensor, to.tensor};
    rt::findCollective(std::string("hone.") + name)(&call, operands, &axis, nullptr);
  }
};

TEST_F(Collectives, AddUpWhatIsDenseAndWhatIsNot) {
  Rows from(2, 2, 2), dense(2, 2, 2), padded(2, 2, 3), paddedFrom(2, 2, 3);
  run(HONE_ALL_REDUCE, from, dense);
  EXPECT_THAT(dense.numbers, ElementsAre(101, 102, 103, 104));
  run(HONE_ALL_REDUCE, paddedFrom, padded);
  EXPECT_THAT(padded.numbers, ElementsAre(101, 102, 3, 104, 105, 6)) << "what lies between rows is not touched";
}

TEST_F(Collectives, GatherAlongEachAxis) {
  Rows from(2, 1, 1), beside(2, 2, 2), below(4, 1, 1), padded(2, 2, 3);
  run(HONE_ALL_GATHER, from, beside, 1);
  EXPECT_THAT(beside.numbers, ElementsAre(100, 1, 100, 2));
  run(HONE_ALL_GATHER, from, below, 0);
  EXPECT_THAT(below.numbers, ElementsAre(100, 100, 1, 2));
  run(HONE_ALL_GATHER, from, padded, 1);
  EXPECT_THAT(padded.numbers, ElementsAre(100, 1, 3, 100, 2, 6));
}

/// Rank 0 never fails.
TEST_F(Collectives, AgreeOnWhetherAllHaveSucceeded) {
  rt::Communicator &ranks = *rt::Communicator::current();
  EXPECT_TRUE(ranks.agree(absl::OkStatus()).ok());
  EXPECT_EQ(ranks.agree(absl::UnavailableError("no room")).message(), "no room");
  EXPECT_TRUE(ranks.speaks()) << "the first that failed says why";
}

TEST_F(Collectives, SliceThePartOfTheRank) {
  Rows from(2, 2, 3), right(2, 1, 1), lower(1, 2, 2);
  run(HONE_ALL_SLICE, from, right, 1);
  EXPECT_THAT(right.numbers, ElementsAre(2, 5));
  run(HONE_ALL_SLICE, from, lower, 0);
  EXPECT_THAT(lower.numbers, ElementsAre(4, 5));
}

TEST_F(Collectives, AreKnownByTheirNames) {
  EXPECT_EQ(rt::findCollective("hone.linear.f32"), nullptr);
  EXPECT_FALSE(rt::isFirstRank());
  EXPECT_EQ(*rt::Communicator::current()->takeFirst(7), 0x42c8000042c80000) << "100 and 100 as one number of 64 bits";
}

TEST_F(Collectives, ThreadsThatLoadArtefactsJoinOneAfterTheOther) {
  mostGathering = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([] { (void)rt::Communicator::join(2, "artefact"); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(mostGathering, 1) << "other ranks have their calls in one order";
}

TEST_F(Collectives, RefuseAnotherNumberOfRanks) {
  auto joined = rt::Communicator::join(3, "artefact");
  EXPECT_EQ(joined.status().message(), "expected 3 processes, but got 2; 'mpirun -n 3' starts as many");
  EXPECT_FALSE(rt::Communicator::current()->speaks()) << "rank 0 says it";
}

} // namespace
} // namespace hone::test
