// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of statistics: what is read of one, and each way in which one may not be what it should.

#include "hone/Compress/Statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace hone::compress {
namespace {

using testing::HasSubstr;
using Strings = std::map<std::string, std::string>;

class StatisticsFile : public testing::Test {
protected:
  ~StatisticsFile() override { std::filesystem::remove(path); }

  /// A file with one input of two channels, whose Hessian is of `shape`.
  void write(const Strings &metadata, std::vector<int64_t> shape = {2, 2}, int64_t rows = 5,
             hone_dtype dtype = HONE_F32, const std::vector<float> &cost = {}, std::vector<int64_t> costShape = {}) {
    std::vector<io::StoredTensor> tensors = {
        {"3.second_moment", dtype, shape}, {"3.absmax", HONE_F32, {2}}, {"3.rows", HONE_I64, {}}};
    if (!cost.empty())
      tensors.push_back({"cost of q", HONE_F32, std::move(costShape)});
    auto writer = io::SafetensorsWriter::create(path, tensors, metadata);
    ASSERT_TRUE(writer.ok()) << writer.status();
    std::vector<float> hessian(*io::elementCount(shape)), most = {8, 9};
    for (size_t i = 0; i < hessian.size(); ++i)
      hessian[i] = static_cast<float>(i + 1);
    auto append = [&](const void *data, size_t bytes) {
      EXPECT_TRUE(writer->append({static_cast<const char *>(data), bytes}).ok());
    };
    append(hessian.data(), hessian.size() * sizeof(float));
    append(most.data(), most.size() * sizeof(float));
    append(&rows, sizeof(rows));
    append(cost.data(), cost.size() * sizeof(float));
    ASSERT_TRUE(writer->commit().ok());
  }

  std::string messageOfOpen() { return std::string(Statistics::open(path).status().message()); }
  std::string messageOfHessian(int64_t input, int64_t size) {
    auto statistics = Statistics::open(path);
    return std::string(
        (statistics.ok() ? statistics->readHessian(input, size).status() : statistics.status()).message());
  }

  std::string messageOfCost(const std::vector<float> &cost, std::vector<int64_t> shape = {}) {
    write(good, {2, 2}, 5, HONE_F32, cost, std::move(shape));
    auto statistics = Statistics::open(path);
    return std::string((statistics.ok() ? statistics->readCost("q").status() : statistics.status()).message());
  }

  std::string path = testing::TempDir() + "statistics-" + std::to_string(getpid()) + ".safetensors";
  const Strings good = {{"format", "hone-statistics"}, {"version", "1"}, {"model", "abc"}, {"input of q", "3"}};
};

TEST_F(StatisticsFile, IsRead) {
  write(good);
  auto statistics = Statistics::open(path);
  ASSERT_TRUE(statistics.ok()) << statistics.status();
  EXPECT_EQ(statistics->model(), "abc");
  EXPECT_EQ(statistics->findInput("q"), 3);
  EXPECT_EQ(statistics->findInput("k"), std::nullopt);
  EXPECT_GT(statistics->countRows(3), 0);
  auto hessian = statistics->readHessian(3, 2);
  ASSERT_TRUE(hessian.ok()) << hessian.status();
  EXPECT_EQ(*hessian, (std::vector<float>{1, 2, 3, 4}));
}

/// Bytes of mapped files that the process holds in memory.
uint64_t countMappedBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssFile:"))
      return std::stoull(line.substr(line.find_first_of("0123456789"))) * 1024;
  return 0;
}

/// All Hessians together may be more than memory holds.
TEST_F(StatisticsFile, DoesNotStayInMemory) {
  constexpr int64_t size = 2048;
  write(good, {size, size});
  auto statistics = Statistics::open(path);
  ASSERT_TRUE(statistics.ok()) << statistics.status();
  uint64_t before = countMappedBytes();
  ASSERT_TRUE(statistics->readHessian(3, size).ok());
  EXPECT_LT(countMappedBytes(), before + size * size * sizeof(float) / 2);
}

TEST_F(StatisticsFile, MayHaveInputsWithoutRows) {
  write(good, {2, 2}, 0);
  auto statistics = Statistics::open(path);
  ASSERT_TRUE(statistics.ok()) << statistics.status();
  EXPECT_EQ(statistics->countRows(3), 0);
}

TEST_F(StatisticsFile, SaysWhatErrorsCost) {
  write(good);
  auto without = Statistics::open(path);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_FALSE(without->hasCosts());
  EXPECT_THAT(std::string(without->readCost("q").status().message()),
              HasSubstr(": expected a tensor 'cost of q', but there is none"));
  write(good, {2, 2}, 5, HONE_F32, {0.25f});
  auto statistics = Statistics::open(path);
  ASSERT_TRUE(statistics.ok()) << statistics.status();
  EXPECT_TRUE(statistics->hasCosts());
  EXPECT_EQ(*statistics->readCost("q"), 0.25);
  EXPECT_THAT(messageOfCost({1, 2}, {2}), HasSubstr(": expected 'cost of q' to be f32 of [], but got f32 of [2]"));
  EXPECT_THAT(messageOfCost({-1}), HasSubstr(": expected 'cost of q' to be finite and 0 or more, but got -1"));
  EXPECT_THAT(messageOfCost({NAN}), HasSubstr("to be finite and 0 or more, but got nan"));
}

TEST_F(StatisticsFile, OfAnotherKindIsRefused) {
  EXPECT_THAT(messageOfOpen(), HasSubstr("No such file"));
  write({});
  EXPECT_THAT(messageOfOpen(),
              HasSubstr(": expected the format to be 'hone-statistics', as 'hone calibrate' writes it, "
                        "but got ''"));
  write({{"format", "pt"}});
  EXPECT_THAT(messageOfOpen(), HasSubstr("but got 'pt'"));
  write({{"format", "hone-statistics"}, {"version", "2"}});
  EXPECT_THAT(messageOfOpen(), HasSubstr(": unsupported version '2' of statistics; supported: 1"));
}

TEST_F(StatisticsFile, WithInputsThatAreNoNumbersIsRefused) {
  for (const char *text : {"", "x", "-1", "3x", " 3", "99999999999999999999"}) {
    Strings metadata = good;
    metadata["input of q"] = text;
    write(metadata);
    EXPECT_THAT(messageOfOpen(), HasSubstr(std::string(": expected 'input of q' to be a number, but got '") + text))
        << text;
  }
}

TEST_F(StatisticsFile, WithoutWhatItPromisesIsRefused) {
  write(good);
  EXPECT_THAT(messageOfHessian(4, 2), HasSubstr(": expected a tensor '4.rows', but there is none"));
  EXPECT_THAT(messageOfHessian(3, 4),
              HasSubstr(": expected '3.second_moment' to be f32 of [4, 4], but got f32 of [2, 2]"));
  write(good, {4});
  EXPECT_THAT(messageOfHessian(3, 2), HasSubstr("to be f32 of [2, 2], but got f32 of [4]"));
  write(good, {2, 2}, 5, HONE_I32);
  EXPECT_THAT(messageOfHessian(3, 2), HasSubstr("to be f32 of [2, 2], but got i32 of [2, 2]"));
  write(good, {2, 2}, 0);
  EXPECT_THAT(messageOfHessian(3, 2), HasSubstr(": expected '3.rows' to be 1 or more, but got 0"));
}

} // namespace
} // namespace hone::compress
