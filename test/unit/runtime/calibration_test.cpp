// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statistics of rows: against plain sums, for widths around those of tiles; what is refused; the file.

#include "calibration/second_moments.h"
#include "hone/calibration/statistics.h"
#include "support.h"

#include <cmath>
#include <omp.h>
#include <random>

namespace hone::test {
namespace {

using calibration::SecondMoments;
using calibration::Statistics;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> randomRows(int64_t count, int64_t width) {
  std::mt19937 source(7);
  std::normal_distribution<float> normal;
  std::vector<float> rows(static_cast<size_t>(count * width));
  std::ranges::generate(rows, [&] { return normal(source); });
  return rows;
}

/// The whole matrix, in f32.
std::vector<float> matrixOf(const SecondMoments &moments, double divisor) {
  std::vector<float> all;
  for (int64_t number = 0; number < moments.bandCount(); ++number)
    std::ranges::copy(moments.band(number, divisor), std::back_inserter(all));
  return all;
}

class Widths : public testing::TestWithParam<int64_t> {};

TEST_P(Widths, SumsAreThoseOfPlainLoops) {
  int64_t width = GetParam(), count = 67, blocks = 2;
  std::vector<double> sums(static_cast<size_t>(SecondMoments::countSums(width)), 0.0);
  SecondMoments moments(width, sums.data());
  std::vector<float> rows = randomRows(count * blocks, width);
  for (int64_t block = 0; block < blocks; ++block)
    ASSERT_EQ(messageOf(moments.add(rows.data() + block * count * width, count)), "OK");
  std::vector<float> got = matrixOf(moments, 2);
  ASSERT_EQ(got.size(), static_cast<size_t>(width * width));
  for (int64_t i = 0; i < width; ++i)
    for (int64_t j = 0; j < width; ++j) {
      double expected = 0;
      for (int64_t row = 0; row < count * blocks; ++row)
        expected += static_cast<double>(rows[row * width + i]) * rows[row * width + j];
      // 67 products of a few ones are added up in f32.
      ASSERT_NEAR(got[i * width + j], expected / 2, 1e-4) << i << ", " << j;
      ASSERT_EQ(got[i * width + j], got[j * width + i]) << i << ", " << j;
    }
}

INSTANTIATE_TEST_SUITE_P(AroundBands, Widths, testing::Values(1, 3, 255, 256, 257, 600));

TEST(SecondMomentsSums, DoNotDependOnThreads) {
  int64_t width = 520, count = 100;
  std::vector<float> rows = randomRows(count, width);
  std::vector<std::vector<double>> results;
  int before = omp_get_max_threads();
  for (int threads : {1, 2, 5}) {
    omp_set_num_threads(threads);
    results.emplace_back(static_cast<size_t>(SecondMoments::countSums(width)), 0.0);
    ASSERT_EQ(messageOf(SecondMoments(width, results.back().data()).add(rows.data(), count)), "OK");
  }
  omp_set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

class StatisticsFile : public testing::Test {
protected:
  Statistics create(std::vector<calibration::Site> sites) {
    auto created = Statistics::create(path, std::move(sites));
    EXPECT_TRUE(created.ok()) << messageOf(created);
    return *std::move(created);
  }

  std::vector<float> read(const io::SafetensorsReader &file, const char *name) {
    const io::StoredTensor *tensor = file.find(name);
    EXPECT_NE(tensor, nullptr) << name;
    const auto *elements = reinterpret_cast<const float *>(file.bytesOf(*tensor));
    return {elements, elements + tensor->bytes / sizeof(float)};
  }

  std::vector<std::string> listFolder() {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(temporary.path))
      names.push_back(entry.path().filename());
    return names;
  }

  TemporaryFolder temporary;
  std::string path = temporary.file("stats.safetensors");
};

/// What is written is of the input as it was before passes divided its channels.
TEST_F(StatisticsFile, UndoesScales) {
  Statistics statistics = create({{2, {"w"}, {2, -0.5f}}});
  Array rows = makeArray<float>(HONE_F32, {2, 2}, {1, -2, 3, 0.5});
  ASSERT_EQ(messageOf(statistics.add(0, rows.view())), "OK");
  EXPECT_THAT(statistics.secondMoment(0), ElementsAre(5, -0.25, -0.25, 2.125));
  ASSERT_EQ(messageOf(statistics.write(2, "cafe", {})), "OK");
  auto file = io::SafetensorsReader::open(path);
  ASSERT_TRUE(file.ok()) << messageOf(file);
  EXPECT_THAT(read(*file, "0.second_moment"), ElementsAre(20, 0.25, 0.25, 0.53125));
  EXPECT_THAT(read(*file, "0.absmax"), ElementsAre(6, 1));
}

TEST_F(StatisticsFile, HoldsMeansMaximaAndCounts) {
  Statistics statistics = create({{2, {"query", "key"}}, {1, {"down"}}, {3, {"unused"}}});
  Array rows = makeArray<float>(HONE_F32, {1, 2, 2}, {1, -2, 3, 0.5});
  ASSERT_EQ(messageOf(statistics.add(0, rows.view())), "OK");
  ASSERT_EQ(messageOf(statistics.add(0, rows.view())), "OK");
  // Rows of zeros count nowhere.
  Array zeros = makeArray<float>(HONE_F32, {1, 3, 2}, {0, 0, 1, -2, 0, 0});
  Array other = makeArray<float>(HONE_F32, {1, 2}, {3, 0.5});
  ASSERT_EQ(messageOf(statistics.add(0, zeros.view())), "OK");
  ASSERT_EQ(messageOf(statistics.add(0, other.view())), "OK");
  // Columns of a matrix are rows through strides.
  hone_tensor turned = rows.view();
  turned.rank = 2;
  turned.sizes[0] = 2, turned.sizes[1] = 1;
  turned.strides[0] = 2, turned.strides[1] = 1;
  ASSERT_EQ(messageOf(statistics.add(1, turned)), "OK");
  EXPECT_THAT(listFolder(), testing::IsEmpty()); // sums lie in a file without a name
  EXPECT_THAT(statistics.secondMoment(0), ElementsAre(5, -0.25, -0.25, 2.125));
  std::vector<calibration::Cost> costs = {{"down", 0.5f}};
  ASSERT_EQ(messageOf(statistics.write(2, "cafe", costs)), "OK");
  EXPECT_THAT(listFolder(), ElementsAre("stats.safetensors"));
  auto file = io::SafetensorsReader::open(path);
  ASSERT_TRUE(file.ok()) << messageOf(file);
  EXPECT_THAT(read(*file, "0.second_moment"), ElementsAre(5, -0.25, -0.25, 2.125));
  EXPECT_THAT(read(*file, "0.absmax"), ElementsAre(3, 2));
  EXPECT_THAT(read(*file, "1.second_moment"), ElementsAre(5));
  EXPECT_THAT(read(*file, "2.second_moment"), testing::Each(0));
  EXPECT_EQ(*reinterpret_cast<const int64_t *>(file->bytesOf(*file->find("0.rows"))), 6);
  EXPECT_EQ(*reinterpret_cast<const int64_t *>(file->bytesOf(*file->find("2.rows"))), 0);
  EXPECT_TRUE(file->find("0.rows")->shape.empty());
  EXPECT_THAT(read(*file, "cost of down"), ElementsAre(0.5f));
  EXPECT_EQ(file->find("cost of query"), nullptr);
  std::map<std::string, std::string> expected = {
      {"format", "hone-statistics"}, {"version", "1"},      {"tokens", "2"},        {"model", "cafe"},
      {"input of query", "0"},       {"input of key", "0"}, {"input of down", "1"}, {"input of unused", "2"}};
  EXPECT_EQ(file->metadata(), expected);
}

TEST_F(StatisticsFile, TakesHalfPrecision) {
  Statistics statistics = create({{2, {"w"}}});
  Array half = makeArray<uint16_t>(HONE_F16, {2}, {0x4000, 0xb800});    // 2, -0.5
  Array bfloat = makeArray<uint16_t>(HONE_BF16, {2}, {0xc080, 0x3f80}); // -4, 1
  ASSERT_EQ(messageOf(statistics.add(0, half.view())), "OK");
  ASSERT_EQ(messageOf(statistics.add(0, bfloat.view())), "OK");
  ASSERT_EQ(messageOf(statistics.write(2, "", {})), "OK");
  auto file = io::SafetensorsReader::open(path);
  ASSERT_TRUE(file.ok()) << messageOf(file);
  EXPECT_THAT(read(*file, "0.second_moment"), ElementsAre(10, -2.5, -2.5, 0.625));
  EXPECT_THAT(read(*file, "0.absmax"), ElementsAre(4, 1));
}

TEST_F(StatisticsFile, NamesTheLayerOfWhatIsNotFinite) {
  Statistics statistics = create({{2, {"query", "key"}}});
  Array rows = makeArray<float>(HONE_F32, {3, 2}, {1, 2, 3, 4, 5, NAN});
  EXPECT_EQ(messageOf(statistics.add(0, rows.view())),
            "expected the input of 'query' and 1 more to be finite, but got nan in channel 1 of row 2");
  rows.as<float>()[5] = 6;
  ASSERT_EQ(messageOf(statistics.add(0, rows.view())), "OK");
  rows.as<float>()[0] = -INFINITY;
  EXPECT_THAT(messageOf(statistics.add(0, rows.view())), HasSubstr("but got -inf in channel 0 of row 3"));
}

TEST_F(StatisticsFile, RefusesRowsOfAnotherProgram) {
  Statistics statistics = create({{2, {"w"}}});
  Array rows = makeArray<float>(HONE_F32, {1, 3}, {1, 2, 3}), integers = makeArray<int64_t>(HONE_I64, {2}, {1, 2});
  EXPECT_EQ(messageOf(statistics.add(0, rows.view())), "expected rows of 2 floats at site 0");
  EXPECT_EQ(messageOf(statistics.add(0, integers.view())), "expected rows of 2 floats at site 0");
  EXPECT_EQ(messageOf(statistics.add(1, rows.view())), "the program shows rows of site 1 of 1");
  EXPECT_EQ(messageOf(statistics.add(-1, rows.view())), "the program shows rows of site -1 of 1");
}

TEST_F(StatisticsFile, NeedsAFolderAndRoom) {
  EXPECT_THAT(messageOf(Statistics::create(temporary.file("absent/s"), {{2, {"w"}}})), HasSubstr("No such file"));
  // More than any disk has: 2^28 squared halves of 8 bytes.
  EXPECT_THAT(messageOf(Statistics::create(path, {{int64_t{1} << 28, {"w"}}})), HasSubstr("cannot make room for"));
  EXPECT_THAT(listFolder(), testing::IsEmpty());
}

} // namespace
} // namespace hone::test
