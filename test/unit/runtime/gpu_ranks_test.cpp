// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening NCCL, and the GPU of a rank, where the other ranks are made up.

#include "cuda/ranks/gpu_ranks.h"
#include "device_support.h"

#include <cstring>

namespace hone::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Nccl, ThatIsMissingIsNamed) {
  EXPECT_THAT(
      messageOf(rt::cuda::Nccl::open("libhone-none.so.2")),
      AllOf(HasSubstr("cannot connect the GPUs of ranks: NCCL cannot be loaded: "), HasSubstr("libhone-none.so.2")));
  EXPECT_THAT(messageOf(rt::cuda::Nccl::open("libc.so.6")), HasSubstr("libc.so.6 has no function ncclGetVersion"));
}

/// The other rank sees what this one does.
const char *gatherAlike(const void *from, void *to, int64_t bytes) {
  std::memcpy(to, from, static_cast<size_t>(bytes));
  std::memcpy(static_cast<char *>(to) + bytes, from, static_cast<size_t>(bytes));
  return nullptr;
}

/// The other rank sees other GPUs.
const char *gatherOthers(const void *from, void *to, int64_t bytes) {
  std::memset(to, 1, static_cast<size_t>(bytes));
  std::memcpy(static_cast<char *>(to) + bytes, from, static_cast<size_t>(bytes));
  return nullptr;
}

std::string choose(const char *(*gather)(const void *, void *, int64_t), int32_t localRanks = 2) {
  hone_collectives ranks = {HONE_COLLECTIVES_VERSION, 1, 2, localRanks - 1, localRanks, 0, nullptr, gather, nullptr};
  absl::StatusOr<int> gpu = rt::cuda::chooseGpu(&ranks);
  return gpu.ok() ? std::to_string(*gpu) : std::string(gpu.status().message());
}

class GpusOfRanks : public EmulatedVariables {
protected:
  void SetUp() override {
    EmulatedVariables::SetUp();
    useEmulatedDriver();
  }
};

TEST_F(GpusOfRanks, AreTheirNumbersOnTheMachine) {
  expect("HONE_EMULATED_DEVICES", "2", [] { return "gpu " + choose(gatherAlike); }, "gpu 1");
  expect("HONE_EMULATED_DEVICES", "2", [] { return "gpu " + choose(gatherAlike, 1); }, "gpu 0");
}

TEST_F(GpusOfRanks, MayBeShownToOneAlone) {
  expect("HONE_EMULATED_DEVICES", "1", [] { return "gpu " + choose(gatherOthers); }, "gpu 0");
}

TEST_F(GpusOfRanks, AreNotShared) {
  expect(
      "HONE_EMULATED_DEVICES", "1", [] { return choose(gatherAlike); },
      "expected a GPU for each of the 2 ranks on this machine, but got 1");
}

} // namespace
} // namespace hone::test
