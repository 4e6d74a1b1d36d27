// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of sensitivities: what is read of one, and each way in which one may not be what it should.

#include "hone/Compress/Sensitivities.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <unistd.h>

namespace hone::compress {
namespace {

using testing::ElementsAre;

class SensitivitiesFile : public testing::Test {
protected:
  ~SensitivitiesFile() override { std::filesystem::remove(path); }

  /// The message that reading `w` as [rows, columns] ends with.
  std::string read(std::vector<float> scores, int64_t rows, int64_t columns, hone_dtype dtype = HONE_F32) {
    auto writer = io::SafetensorsWriter::create(path, {{"w", dtype, {static_cast<int64_t>(scores.size() / 2), 2}}});
    EXPECT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE(writer->append({reinterpret_cast<const char *>(scores.data()), scores.size() * sizeof(float)}).ok());
    EXPECT_TRUE(writer->commit().ok());
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

TEST_F(SensitivitiesFile, MustBeThere) {
  EXPECT_THAT(std::string(Sensitivities::open(path).status().message()), testing::HasSubstr(path));
}

} // namespace
} // namespace hone::compress
