// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes that passes make of weights: in files that nobody sees, and in memory where there is no room for those.

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/ScratchBytes.h"
#include "hone/io/pages.h"

#include "mlir/IR/MLIRContext.h"

#include "gmock/gmock.h"
#include <filesystem>
#include <random>
#include <unistd.h>

namespace hone {
namespace {

class Scratch : public testing::Test {
protected:
  Scratch() {
    context.loadDialect<HoneDialect>();
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  ~Scratch() override { std::filesystem::remove_all(folder); }

  ScratchBytes &scratch() { return ScratchBytes::get(&context); }
  static std::string makeBytes(size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::string bytes(count, 0);
    for (char &byte : bytes)
      byte = static_cast<char>(random());
    return bytes;
  }

  const std::filesystem::path folder = testing::TempDir() + "/scratch_test." + std::to_string(getpid());
  mlir::MLIRContext context;
};

TEST_F(Scratch, SpillsToUnlinkedFilesAndKeepsItsBytes) {
  scratch().spillBeside(folder / "model.hone");
  std::vector<std::pair<std::string, mlir::AsmResourceBlob>> all;
  // Of one page and a little, and more than a file has.
  for (size_t count : {size_t(20'000), size_t(100'003), size_t(5) << 20, size_t(9) << 20, size_t(300'000)}) {
    std::string bytes = makeBytes(count, static_cast<unsigned>(all.size()));
    all.emplace_back(bytes, scratch().copy({bytes.data(), bytes.size()}));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  for (auto &[bytes, blob] : all) {
    llvm::ArrayRef<char> kept = blob.getData();
    ASSERT_TRUE(scratch().holds(kept));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(kept.data()) % 64, 0U);
    io::releasePages(kept.data(), kept.size());
  }
  for (auto &[bytes, blob] : all)
    EXPECT_EQ(bytes, std::string_view(blob.getData().data(), blob.getData().size()));
}

TEST_F(Scratch, LiesInMemoryWhereThereIsNoFolder) {
  std::string bytes = makeBytes(100'000, 1);
  auto expectInMemory = [&] {
    mlir::AsmResourceBlob blob = scratch().copy({bytes.data(), bytes.size()});
    EXPECT_FALSE(scratch().holds(blob.getData()));
    EXPECT_EQ(bytes, std::string_view(blob.getData().data(), blob.getData().size()));
  };
  expectInMemory();
  scratch().spillBeside(folder / "absent" / "model.hone");
  expectInMemory();
  scratch().spillBeside("");
  expectInMemory();
}

TEST_F(Scratch, LeavesSmallBytesInMemory) {
  scratch().spillBeside(folder / "model.hone");
  std::string bytes = makeBytes(1000, 2);
  EXPECT_FALSE(scratch().holds(scratch().copy({bytes.data(), bytes.size()}).getData()));
}

} // namespace
} // namespace hone
