// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What fails in a parallel region of a program fails the call, in whichever thread it was.

#include "core/module.h"
#include "support.h"

#include <omp.h>

namespace hone::test {
namespace {

using testing::HasSubstr;

constexpr int kThreads = 4;
constexpr int64_t kCount = 4096;

class ParallelFailures : public testing::Test {
protected:
  void SetUp() override {
    io::Manifest manifest = toyManifest();
    io::EntryInfo main;
    main.name = "main";
    main.inputs = {{"x", HONE_F32, {io::Dim::symbolic("n")}, {}}};
    main.outputs = {{"doubled", HONE_F32, {io::Dim::symbolic("n")}, {}}};
    manifest.entries = {main};
    writeArtefact(folder, HONE_TEST_PROGRAM_PARALLEL, manifest);
    auto loaded = rt::Module::load(folder);
    ASSERT_EQ(messageOf(loaded), "OK");
    module = *loaded;
  }

  absl::StatusOr<std::vector<Array>> call(std::vector<float> x) {
    Array array = makeArray<float>(HONE_F32, {static_cast<int64_t>(x.size())}, x);
    rt::NamedTensor input = {"x", array.view()};
    return module->call("main", {&input, 1}, kThreads);
  }

  void expectDoubles() {
    auto outputs = call(std::vector<float>(kCount, 3));
    ASSERT_EQ(messageOf(outputs), "OK");
    EXPECT_EQ(elementsOf<float>((*outputs)[0]), std::vector<float>(kCount, 6));
  }

  TemporaryFolder temporary;
  std::string folder = temporary.file("parallel.hone");
  std::shared_ptr<const rt::Module> module;
};

TEST_F(ParallelFailures, InAnyPartEndTheCall) {
  expectDoubles();
  for (int64_t place : {int64_t{0}, kCount / 2, kCount - 1}) {
    std::vector<float> x(kCount, 3);
    x[static_cast<size_t>(place)] = -1;
    EXPECT_EQ(messageOf(call(x)), "expected x to be at least 0") << "at " << place;
    EXPECT_EQ(omp_get_level(), 0) << "OpenMP's region has ended";
    expectDoubles();
  }
}

TEST_F(ParallelFailures, InAllPartsAreOne) {
  EXPECT_EQ(messageOf(call(std::vector<float>(kCount, -1))), "expected x to be at least 0");
  expectDoubles();
}

TEST_F(ParallelFailures, OfAllocationsEndTheCall) {
  for (int64_t place : {int64_t{0}, kCount - 1}) {
    std::vector<float> x(kCount, 3);
    x[static_cast<size_t>(place)] = 2000;
    auto outputs = call(x);
    EXPECT_EQ(outputs.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(messageOf(outputs), HasSubstr("cannot allocate 1152921504606846976 bytes"));
    expectDoubles();
  }
}

} // namespace
} // namespace hone::test
