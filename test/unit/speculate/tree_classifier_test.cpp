// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The classifier of drafted tokens: its function, its file, and what training makes of trees whose law is known.

#include "hone/io/file.h"
#include "hone/io/safetensors.h"
#include "speculate/classifier_training.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <gmock/gmock.h>
#include <random>

namespace hone::test {
namespace {

using speculate::ClassifierPruner;
using speculate::RecordedTree;
using speculate::TreeCandidate;
using speculate::TreeClassifier;
using testing::HasSubstr;

TreeClassifier::Parameters randomParameters(uint32_t seed) {
  std::mt19937 random(seed);
  TreeClassifier::Parameters parameters;
  for (float &parameter : parameters)
    parameter = static_cast<float>(static_cast<int>(random() % 201) - 100) / 100;
  return parameters;
}

class ClassifierFile : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "classifier.XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  using Metadata = std::map<std::string, std::string>;
  static Metadata known() { return {{"format", "hone tree classifier"}, {"version", "1"}}; }

  /// What is said of a file of these tensors, all of whose numbers are `value`.
  std::string complaint(const std::vector<io::StoredTensor> &tensors, const Metadata &metadata, float value = 0) {
    auto writer = io::SafetensorsWriter::create(path(), tensors, metadata);
    EXPECT_TRUE(writer.ok());
    for (const io::StoredTensor &tensor : writer->tensors())
      for (uint64_t i = 0; i < tensor.bytes / sizeof(float); ++i)
        EXPECT_TRUE(writer->append({reinterpret_cast<const char *>(&value), sizeof(float)}).ok());
    EXPECT_TRUE(writer->commit().ok());
    return std::string(TreeClassifier::open(path()).status().message());
  }

  static std::vector<io::StoredTensor> tensors() {
    return {{"hidden.weight", HONE_F32, {48, 3}},
            {"hidden.bias", HONE_F32, {48}},
            {"output.weight", HONE_F32, {1, 48}},
            {"output.bias", HONE_F32, {1}}};
  }

  std::string path() const { return folder + "/classifier.safetensors"; }

  std::string folder;
};

TEST(TreeClassifier, IsTheNetworkOfItsParameters) {
  TreeClassifier::Parameters parameters = {};
  parameters[0] = 2;      // of the first unit: the probability
  parameters[5] = 1;      // of the second: the depth
  parameters[144] = -0.5; // biases
  parameters[145] = -3;
  parameters[192] = 10; // outputs
  parameters[193] = -4;
  parameters[240] = 0.25;
  TreeClassifier classifier(parameters);
  EXPECT_EQ(TreeClassifier::kParameters, 241);
  EXPECT_DOUBLE_EQ(classifier.scoreOf({0.5, 9, 2}), 0.25 + 10 * 0.5);
  EXPECT_DOUBLE_EQ(classifier.scoreOf({0.1, 9, 5}), 0.25 - 4 * 2);
  EXPECT_DOUBLE_EQ(classifier.scoreOf({0, 0, 0}), 0.25);
}

TEST(TreeClassifier, AThresholdOfZeroKeepsAllAndOneNone) {
  std::mt19937 random(3);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    TreeClassifier classifier(randomParameters(seed));
    for (int trial = 0; trial < 50; ++trial) {
      TreeCandidate candidate = {
          0, 0, static_cast<int64_t>(1 + random() % 9), 0.5, static_cast<double>(random() % 1000) / 1000, 2};
      bool before = true;
      for (double threshold : {0.0, 0.1, 0.5, 0.9, 1.0}) {
        bool keeps = ClassifierPruner(classifier, threshold).keeps(candidate);
        EXPECT_LE(keeps, before) << "what goes at a threshold goes at each above";
        before = keeps;
        if (threshold == 0 || threshold == 1)
          EXPECT_EQ(keeps, threshold == 0);
      }
    }
  }
}

TEST_F(ClassifierFile, HoldsAllParameters) {
  TreeClassifier written(randomParameters(1));
  ASSERT_TRUE(written.write(path()).ok());
  absl::StatusOr<TreeClassifier> read = TreeClassifier::open(path());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->values(), written.values());
  EXPECT_LT(std::filesystem::file_size(path()), 2048);
}

TEST_F(ClassifierFile, OtherFilesAreRefused) {
  EXPECT_EQ(complaint(tensors(), known()), "");
  EXPECT_EQ(complaint(tensors(), {}), path() + ": expected a file of the format 'hone tree classifier', but got ''");
  Metadata later = known();
  later["version"] = "2";
  EXPECT_EQ(complaint(tensors(), later), path() + ": expected version 1 of the format, but got '2'");
  auto changed = tensors();
  changed[0].shape = {48, 4};
  EXPECT_EQ(complaint(changed, known()), path() + ": expected 'hidden.weight' to be f32 [48, 3], but got f32 [48, 4]");
  changed = tensors();
  changed[1].dtype = HONE_I32;
  EXPECT_EQ(complaint(changed, known()), path() + ": expected 'hidden.bias' to be f32 [48], but got i32 [48]");
  changed = tensors();
  changed.pop_back();
  EXPECT_EQ(complaint(changed, known()), path() + ": expected a tensor 'output.bias', but there is none");
  changed = tensors();
  changed.push_back({"more", HONE_F32, {1}});
  EXPECT_EQ(complaint(changed, known()), path() + ": unexpected tensor 'more'");
  EXPECT_EQ(complaint(tensors(), known(), INFINITY),
            path() + ": expected finite numbers in 'hidden.weight', but element 0 is inf");
}

TEST_F(ClassifierFile, DamagedFilesAreRefused) {
  ASSERT_TRUE(TreeClassifier(randomParameters(1)).write(path()).ok());
  std::string whole = *io::readFile(path());
  for (size_t size : {size_t{0}, size_t{7}, size_t{100}, whole.size() - 1}) {
    ASSERT_TRUE(io::writeFile(path(), whole.substr(0, size)).ok());
    EXPECT_THAT(std::string(TreeClassifier::open(path()).status().message()), HasSubstr(path()));
  }
  EXPECT_THAT(std::string(TreeClassifier::open(folder + "/none").status().message()), HasSubstr("No such file"));
}

TEST(Training, TheAreaIsTheShareOfPairsInOrder) {
  std::vector<double> scores = {3, 1, 2, 2};
  EXPECT_DOUBLE_EQ(speculate::areaUnderCurve(scores, {true, false, false, false}), 1);
  EXPECT_DOUBLE_EQ(speculate::areaUnderCurve(scores, {false, true, false, false}), 0);
  EXPECT_DOUBLE_EQ(speculate::areaUnderCurve(scores, {false, false, true, false}), 0.5);
  EXPECT_DOUBLE_EQ(speculate::areaUnderCurve(scores, {true, false, true, false}), 3.5 / 4);
}

/// Trees in which acceptance follows from probability and entropy together: the same probability means less where entropy is high.
std::vector<RecordedTree> recordByLaw(size_t count) {
  std::mt19937_64 random(17);
  auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<RecordedTree> trees(count);
  for (RecordedTree &tree : trees)
    for (int i = 0; i < 30; ++i) {
      double joint = unit() * unit(), entropy = 5 * unit();
      double score = 6 * joint - 2 * entropy + 1;
      tree.push_back({{joint, entropy, 1.0 + static_cast<double>(random() % 5)}, unit() < 1 / (1 + std::exp(-score))});
    }
  return trees;
}

TEST(Training, FindsMoreThanTheProbabilitySays) {
  std::vector<RecordedTree> trees = recordByLaw(400);
  auto trained = speculate::trainClassifier(trees, {});
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  EXPECT_EQ(trained->trainingTrees, 380);
  EXPECT_EQ(trained->heldTrees, 20);
  EXPECT_GT(trained->area, 0.85);
  EXPECT_GT(trained->area, trained->areaOfProbability + 0.1);
  ASSERT_EQ(trained->effects.size(), 9);
  for (size_t i = 1; i < trained->effects.size(); ++i) {
    EXPECT_LE(trained->effects[i].recall, trained->effects[i - 1].recall);
    EXPECT_LE(trained->effects[i].kept, trained->effects[i - 1].kept);
  }
  EXPECT_EQ(speculate::trainClassifier(trees, {})->classifier.values(), trained->classifier.values());
  EXPECT_NE(speculate::trainClassifier(trees, {.seed = 1})->classifier.values(), trained->classifier.values());
}

TEST(Training, NeedsBothKinds) {
  std::vector<RecordedTree> trees = recordByLaw(40);
  for (RecordedTree &tree : trees)
    for (speculate::TreeExample &example : tree)
      example.isAccepted = false;
  EXPECT_THAT(std::string(speculate::trainClassifier(trees, {}).status().message()),
              HasSubstr("of 1140 candidates of the trees for training, 0 were accepted"));
  EXPECT_THAT(std::string(speculate::trainClassifier({}, {}).status().message()),
              HasSubstr("of 0 candidates of the trees for training, 0 were accepted"));
  trees = recordByLaw(19);
  EXPECT_THAT(std::string(speculate::trainClassifier(trees, {}).status().message()),
              HasSubstr("of 0 candidates of the trees that are held out, 0 were accepted"));
}

} // namespace
} // namespace hone::test
