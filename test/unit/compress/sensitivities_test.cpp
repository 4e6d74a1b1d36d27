// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of sensitivities: what is read of one, and each way in which one may not be what it should.

#include "hone/Compress/Sensitivities.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <unistd.h>

namespace hone::compress {
namespace {

using testing::ElementsAre;

class SensitivitiesFile : public testing::Test {
protected:
  ~SensitivitiesFile() override { std::filesystem::remove(path); }

  void write(std::vector<io::StoredTensor> tensors, std::span<const float> elements,
             const std::map<std::string, std::string> &metadata = {}) {
    auto writer = io::SafetensorsWriter::create(path, std::move(tensors), metadata);
    EXPECT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE(writer->append({reinterpret_cast<const char *>(elements.data()), elements.size_bytes()}).ok());
    EXPECT_TRUE(writer->commit().ok());
  }

  /// The message that reading `w` as [rows, columns] ends with.
  std::string read(std::vector<float> scores, int64_t rows, int64_t columns, hone_dtype dtype = HONE_F32,
                   const std::map<std::string, std::string> &metadata = {}) {
    write({{"w", dtype, {static_cast<int64_t>(scores.size() / 2), 2}}}, scores, metadata);
    auto file = Sensitivities::open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(file->has("w"));
    EXPECT_FALSE(file->has("v"));
    auto numbers = file->read("w", rows, columns);
    if (numbers.ok())
      last = *numbers;
    return std::string(numbers.status().message());
  }

  std::string path = testing::TempDir() + "sensitivities-" + std::to_string(getpid()) + ".safetensors";
  std::vector<float> last;
};

TEST_F(SensitivitiesFile, IsRead) {
  EXPECT_EQ(read({1, 0, 3, 4}, 2, 2), "");
  EXPECT_THAT(last, ElementsAre(1, 0, 3, 4));
}

TEST_F(SensitivitiesFile, RefusesOtherShapesAndTypes) {
  EXPECT_EQ(read({1, 0, 3, 4}, 1, 4), path + ": expected 'w' to be f32 of [1, 4], but got f32 of [2, 2]");
  EXPECT_EQ(read({1, 0, 3, 4}, 2, 2, HONE_I32), path + ": expected 'w' to be f32 of [2, 2], but got i32 of [2, 2]");
}

TEST_F(SensitivitiesFile, RefusesNumbersThatHaveNoRank) {
  EXPECT_EQ(read({1, 0, -3, 4}, 2, 2),
            path + ": expected the elements of 'w' to be finite and 0 or more, but number 2 is -3.000000");
  EXPECT_EQ(read({1, std::nanf("")}, 1, 2),
            path + ": expected the elements of 'w' to be finite and 0 or more, but number 1 is nan");
  EXPECT_EQ(read({HUGE_VALF, 1}, 1, 2),
            path + ": expected the elements of 'w' to be finite and 0 or more, but number 0 is inf");
}

TEST_F(SensitivitiesFile, TakesMagnitudesOfIntegrals) {
  EXPECT_EQ(read({1, 0, -3, 4}, 2, 2, HONE_F32, {{"format", "hone-pqi"}}), "");
  EXPECT_THAT(last, ElementsAre(1, 0, 3, 4));
  EXPECT_EQ(read({1, std::nanf("")}, 1, 2, HONE_F32, {{"format", "hone-pqi"}}),
            path + ": expected the elements of 'w' to be finite, but number 1 is nan");
}

/// Against sorting all magnitudes, with many that are equal, and others that differ in their last bits.
TEST_F(SensitivitiesFile, DistributesTheHighestOfAllTensors) {
  std::mt19937 random(7);
  std::vector<float> elements(3000);
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = (i % 2 ? -1.0f : 1.0f) *
                  (i % 3 ? 1 + 1e-7f * static_cast<float>(random() % 200) : static_cast<float>(random() % 4));
  write({{"a", HONE_F32, {10, 100}}, {"b", HONE_F32, {2000}}}, elements, {{"format", "hone-pqi"}});
  auto file = Sensitivities::open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<float> sorted(elements);
  std::ranges::sort(sorted, std::greater(), [](float element) { return std::abs(element); });
  for (double share : {0.0, 0.001, 0.1, 0.5, 1.0}) {
    auto shares = file->distribute(share);
    ASSERT_TRUE(shares.ok()) << shares.status();
    auto count = static_cast<size_t>(std::lround(share * 3000));
    float threshold = count == 0 ? HUGE_VALF : std::abs(sorted[count - 1]);
    auto isHigh = [&](float element) { return std::abs(element) >= threshold; };
    EXPECT_DOUBLE_EQ((*shares)["a"],
                     static_cast<double>(std::count_if(elements.begin(), elements.begin() + 1000, isHigh)) / 1000);
    EXPECT_DOUBLE_EQ((*shares)["b"],
                     static_cast<double>(std::count_if(elements.begin() + 1000, elements.end(), isHigh)) / 2000);
  }
}

TEST_F(SensitivitiesFile, DistributesFloatsAlone) {
  write({{"a", HONE_I32, {2}}}, std::vector<float>{1, 2});
  auto file = Sensitivities::open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->distribute(0.5).status().message(), path + ": expected 'a' to be f32, but got i32");
}

TEST_F(SensitivitiesFile, MustBeThere) {
  EXPECT_THAT(std::string(Sensitivities::open(path).status().message()), testing::HasSubstr(path));
}

} // namespace
} // namespace hone::compress
