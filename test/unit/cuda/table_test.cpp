// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables: kernels, their fatbins, and what ptxas reports of them.

#include "cuda/kernels/kernel_device.h"
#include "cuda/kernels/kernel_table.h"

#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>
#include <set>

namespace hone::test {
namespace {

/// Names of kernels that tests of this program have as their parameter.
std::set<std::string> kernelsWithParityTests() {
  std::set<std::string> names;
  const auto &program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite &suite = *program.GetTestSuite(i);
    if (std::string(suite.name()).find("Parity") == std::string::npos)
      continue;
    for (int j = 0; j < suite.total_test_count(); ++j)
      if (const char *parameter = suite.GetTestInfo(j)->value_param()) {
        std::smatch match;
        std::string text = parameter;
        if (std::regex_search(text, match, std::regex("\"(cuda\\.[a-z0-9_.]+)\"")))
          names.insert(match[1]);
      }
  }
  return names;
}

TEST(TableTest, EveryKernelHasAParityTest) {
  std::set<std::string> table;
  for (const cuda::KernelRow &row : cuda::kernelRows())
    table.insert(std::string(row.name));
  EXPECT_EQ(kernelsWithParityTests(), table);
}

TEST(TableTest, NamesAreFound) {
  for (const cuda::KernelRow &row : cuda::kernelRows())
    EXPECT_EQ(cuda::findKernel(row.name), row.function);
  EXPECT_EQ(cuda::findKernel("cuda.linear"), nullptr);
  EXPECT_EQ(cuda::findKernel("zzz"), nullptr);
}

TEST(TableTest, FatbinsAreFatbins) {
  for (const cuda::Fatbin &fatbin : cuda::fatbins()) {
    ASSERT_GT(fatbin.bytes.size(), 16u) << fatbin.name;
    uint32_t magic = 0;
    std::memcpy(&magic, fatbin.bytes.data(), sizeof magic);
    EXPECT_EQ(magic, 0xba55ed50u) << fatbin.name;
    // Uncompressed PTX can be read by any PTX reader.
    EXPECT_NE(std::string_view(reinterpret_cast<const char *>(fatbin.bytes.data()), fatbin.bytes.size())
                  .find(".visible .entry"),
              std::string_view::npos)
        << fatbin.name;
  }
}

/// What ptxas reports of a kernel for a chip: name, chip, and bytes of stack frame, spill stores and spill loads.
struct Resources {
  std::string function, chip;
  int stack, stores, loads;
};

std::vector<Resources> readResources(const std::string &file) {
  std::ifstream stream(file);
  std::vector<Resources> all;
  const std::regex entry("Compiling entry function '([^']*)' for '([^']*)'");
  const std::regex frame("([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads");
  std::smatch match;
  for (std::string line, function, chip; std::getline(stream, line);) {
    if (std::regex_search(line, match, entry))
      function = match[1], chip = match[2];
    else if (!function.empty() && std::regex_search(line, match, frame))
      all.push_back({function, chip, std::stoi(match[1]), std::stoi(match[2]), std::stoi(match[3])});
  }
  return all;
}

TEST(TableTest, NothingSpills) {
  for (const cuda::Fatbin &fatbin : cuda::fatbins()) {
    std::vector<Resources> all = readResources(std::string(HONE_FATBINS) + "/" + fatbin.name + ".ptxas");
    EXPECT_FALSE(all.empty()) << fatbin.name << ": ptxas said nothing";
    for (const Resources &r : all)
      EXPECT_EQ(r.stack + r.stores + r.loads, 0)
          << r.function << " for " << r.chip << ": " << r.stack << " bytes of stack, " << r.stores << " stored and "
          << r.loads << " loaded by spills";
  }
}

std::string_view textOf(std::string_view name) {
  for (const cuda::Fatbin &fatbin : cuda::fatbins())
    if (name == fatbin.name)
      return {reinterpret_cast<const char *>(fatbin.bytes.data()), fatbin.bytes.size()};
  return {};
}

int countOf(std::string_view text, std::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

/// wgmma of the largest shape, two a step and two steps of a loop, for single blocks and clusters, and TMA loads,
/// multicast in clusters.
TEST(TableTest, SparseGemmUsesWgmma) {
  std::string_view text = textOf("HopperSparseGemm");
  for (std::string type : {"f16", "bf16"})
    EXPECT_EQ(countOf(text, "wgmma.mma_async.sp.sync.aligned.m64n256k32.f32." + type + "." + type), 8);
  EXPECT_GT(countOf(text, "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"), 0);
  EXPECT_GT(countOf(text, "mbarrier::complete_tx::bytes.multicast::cluster"), 0);
  EXPECT_EQ(countOf(text, "ldmatrix") + countOf(text, "cp.async.cg"), 0);
  EXPECT_EQ(countOf(textOf("SparseGemm"), "wgmma"), 0);
}

/// wgmma that ptxas serializes are not asynchronous.
TEST(TableTest, NoWgmmaIsSerialized) {
  for (const cuda::Fatbin &fatbin : cuda::fatbins()) {
    std::ifstream stream(std::string(HONE_FATBINS) + "/" + fatbin.name + ".ptxas");
    for (std::string line; std::getline(stream, line);) {
      EXPECT_EQ(line.find("serialized"), std::string::npos) << line;
      EXPECT_EQ(line.find("setmaxnreg ignored"), std::string::npos) << line;
    }
  }
}

} // namespace
} // namespace hone::test
