// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs of the emulated driver, and fatbins.

#include "device.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::test {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int kSuccess = 0, kNoBinary = 209, kNotSupported = 801, kCaptureUnsupported = 900, kCaptureInvalidated = 901,
              kUnjoined = 904, kIsolation = 905, kUpdateFailure = 910;

struct Graphs : testing::Test {
  Device device;
  void *stream = nullptr;
  static constexpr int kCount = 100;
  DevicePointer a = device.upload(std::vector<float>(kCount, 1.0f));
  DevicePointer b = device.upload(std::vector<float>(kCount, 2.0f));
  DevicePointer c = device.allocate(kCount * sizeof(float));

  void SetUp() override {
    device.loadFile("kernels.ptx");
    ASSERT_EQ(device.call("cuStreamCreate", &stream, 1u), kSuccess);
  }
  void TearDown() override { device.call("cuStreamDestroy_v2", stream); }

  int begin(int mode = 1) { return device.call("cuStreamBeginCapture_v2", stream, mode); }
  int end(void **graph) { return device.call("cuStreamEndCapture", stream, graph); }
  int add(DevicePointer x, DevicePointer y, DevicePointer z, void *on) {
    return device.launchOn(on, "vector_add", {{1, 1, 1}, {128, 1, 1}}, x, y, z, kCount);
  }
  int instantiate(void **executable, void *graph) {
    return device.call("cuGraphInstantiateWithFlags", executable, graph, 0ull);
  }
  std::vector<float> sums() { return device.download<float>(c, kCount); }
};

TEST_F(Graphs, DoWhatWasRecordedEachTime) {
  void *graph = nullptr;
  void *executable = nullptr;
  ASSERT_EQ(begin(), kSuccess);
  ASSERT_EQ(add(a, b, c, stream), kSuccess);
  ASSERT_EQ(add(c, c, c, stream), kSuccess);
  ASSERT_EQ(end(&graph), kSuccess);
  ASSERT_EQ(device.synchronize(), kSuccess);
  EXPECT_THAT(sums(), Each(testing::IsNan())); // recorded, not done
  ASSERT_EQ(instantiate(&executable, graph), kSuccess);
  ASSERT_EQ(device.call("cuGraphLaunch", executable, stream), kSuccess);
  ASSERT_EQ(device.call("cuStreamSynchronize", stream), kSuccess);
  EXPECT_THAT(sums(), Each(6.0f));
  // What the graph reads is read when it is launched.
  ASSERT_EQ(device.call("cuMemsetD32Async", a, 0u, size_t{kCount}, stream), kSuccess);
  ASSERT_EQ(device.call("cuGraphLaunch", executable, stream), kSuccess);
  ASSERT_EQ(device.call("cuStreamSynchronize", stream), kSuccess);
  EXPECT_THAT(sums(), Each(4.0f));
  EXPECT_EQ(device.call("cuGraphDestroy", graph), kSuccess);
  EXPECT_EQ(device.call("cuGraphExecDestroy", executable), kSuccess);
}

TEST_F(Graphs, TakeOtherArguments) {
  void *graph = nullptr;
  void *executable = nullptr;
  ASSERT_EQ(begin(), kSuccess);
  ASSERT_EQ(add(a, b, c, stream), kSuccess);
  ASSERT_EQ(end(&graph), kSuccess);
  ASSERT_EQ(instantiate(&executable, graph), kSuccess);
  // One that was launched before keeps what it had.
  ASSERT_EQ(device.call("cuGraphLaunch", executable, stream), kSuccess);
  void *other = nullptr;
  ASSERT_EQ(begin(), kSuccess);
  ASSERT_EQ(add(c, b, c, stream), kSuccess);
  ASSERT_EQ(end(&other), kSuccess);
  int info[6] = {-1};
  ASSERT_EQ(device.call("cuGraphExecUpdate_v2", executable, other, static_cast<void *>(info)), kSuccess);
  EXPECT_EQ(info[0], 0);
  ASSERT_EQ(device.call("cuGraphLaunch", executable, stream), kSuccess);
  ASSERT_EQ(device.call("cuStreamSynchronize", stream), kSuccess);
  EXPECT_THAT(sums(), Each(5.0f));
  // A graph of another shape does not fit.
  void *longer = nullptr;
  ASSERT_EQ(begin(), kSuccess);
  ASSERT_EQ(add(c, b, c, stream), kSuccess);
  ASSERT_EQ(add(c, b, c, stream), kSuccess);
  ASSERT_EQ(end(&longer), kSuccess);
  EXPECT_EQ(device.call("cuGraphExecUpdate_v2", executable, longer, static_cast<void *>(info)), kUpdateFailure);
  EXPECT_EQ(info[0], 2);
}

TEST_F(Graphs, KernelNodesAreChangedAlone) {
  void *graph = nullptr;
  void *executable = nullptr;
  ASSERT_EQ(begin(), kSuccess);
  ASSERT_EQ(add(a, b, c, stream), kSuccess);
  ASSERT_EQ(end(&graph), kSuccess);
  ASSERT_EQ(instantiate(&executable, graph), kSuccess);
  size_t count = 1;
  void *node = nullptr;
  ASSERT_EQ(device.call("cuGraphGetNodes", graph, &node, &count), kSuccess);
  ASSERT_EQ(count, 1u);
  struct {
    void *function;
    unsigned grid[3] = {1, 1, 1};
    unsigned block[3] = {128, 1, 1};
    unsigned sharedBytes = 0;
    void **arguments;
    void *rest[3] = {};
  } parameters;
  int n = kCount;
  void *arguments[] = {&b, &b, &c, &n};
  parameters.function = device.kernel("vector_add");
  parameters.arguments = arguments;
  ASSERT_EQ(device.call("cuGraphExecKernelNodeSetParams_v2", executable, node, &parameters), kSuccess);
  ASSERT_EQ(device.call("cuGraphLaunch", executable, stream), kSuccess);
  ASSERT_EQ(device.call("cuStreamSynchronize", stream), kSuccess);
  EXPECT_THAT(sums(), Each(4.0f));
}

TEST_F(Graphs, NodesAreKnownWhileTheyAreRecorded) {
  int status = -1;
  void *const *nodes = nullptr;
  size_t count = 0;
  auto ask = [&] {
    return device.call("cuStreamGetCaptureInfo_v3", stream, &status, static_cast<void *>(nullptr),
                       static_cast<void *>(nullptr), &nodes, static_cast<void *>(nullptr), &count);
  };
  ASSERT_EQ(ask(), kSuccess);
  EXPECT_EQ(status, 0);
  void *graph = nullptr;
  std::vector<void *> recorded;
  ASSERT_EQ(begin(), kSuccess);
  ASSERT_EQ(ask(), kSuccess);
  EXPECT_EQ(count, 0u); // nothing yet
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(add(a, b, c, stream), kSuccess);
    ASSERT_EQ(ask(), kSuccess);
    EXPECT_EQ(status, 1);
    ASSERT_EQ(count, 1u);
    recorded.push_back(nodes[0]);
  }
  ASSERT_EQ(end(&graph), kSuccess);
  // They come in another order than that in which they were recorded.
  std::vector<void *> listed(recorded.size());
  count = listed.size();
  ASSERT_EQ(device.call("cuGraphGetNodes", graph, listed.data(), &count), kSuccess);
  EXPECT_NE(listed, recorded);
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(recorded));
}

TEST_F(Graphs, StreamsForkAndJoin) {
  void *other = nullptr;
  void *fork = nullptr;
  void *join = nullptr;
  ASSERT_EQ(device.call("cuStreamCreate", &other, 1u), kSuccess);
  ASSERT_EQ(device.call("cuEventCreate", &fork, 2u), kSuccess);
  ASSERT_EQ(device.call("cuEventCreate", &join, 2u), kSuccess);
  for (bool joined : {false, true}) {
    void *graph = nullptr;
    ASSERT_EQ(begin(), kSuccess);
    ASSERT_EQ(device.call("cuEventRecord", fork, stream), kSuccess);
    ASSERT_EQ(device.call("cuStreamWaitEvent", other, fork, 0u), kSuccess);
    ASSERT_EQ(add(a, b, c, other), kSuccess);
    if (joined) {
      ASSERT_EQ(device.call("cuEventRecord", join, other), kSuccess);
      ASSERT_EQ(device.call("cuStreamWaitEvent", stream, join, 0u), kSuccess);
    }
    EXPECT_EQ(end(&graph), joined ? kSuccess : kUnjoined);
  }
  device.call("cuStreamDestroy_v2", other);
}

TEST_F(Graphs, WaitingLosesARecording) {
  void *graph = nullptr;
  ASSERT_EQ(begin(), kSuccess);
  EXPECT_EQ(device.call("cuStreamSynchronize", stream), kCaptureUnsupported);
  EXPECT_EQ(add(a, b, c, stream), kCaptureInvalidated);
  EXPECT_EQ(end(&graph), kCaptureInvalidated);
  ASSERT_EQ(begin(), kSuccess);
  DevicePointer more = 0;
  EXPECT_EQ(device.call("cuMemAlloc_v2", &more, size_t{4}), kCaptureUnsupported);
  EXPECT_EQ(end(&graph), kCaptureInvalidated);
  // In the relaxed mode a program knows what it does.
  ASSERT_EQ(begin(2), kSuccess);
  EXPECT_EQ(device.call("cuMemAlloc_v2", &more, size_t{4}), kSuccess);
  EXPECT_EQ(end(&graph), kSuccess);
}

TEST_F(Graphs, RecordingsDoNotWaitForOthersWork) {
  void *event = nullptr;
  void *other = nullptr;
  void *graph = nullptr;
  ASSERT_EQ(device.call("cuStreamCreate", &other, 1u), kSuccess);
  ASSERT_EQ(device.call("cuEventCreate", &event, 2u), kSuccess);
  ASSERT_EQ(device.call("cuEventRecord", event, other), kSuccess);
  ASSERT_EQ(begin(), kSuccess);
  EXPECT_EQ(device.call("cuStreamWaitEvent", stream, event, 0u), kIsolation);
  EXPECT_EQ(end(&graph), kCaptureInvalidated);
  device.call("cuStreamDestroy_v2", other);
}

/// Appends an entry of a fatbin: kind 1 is PTX, 2 a cubin.
void append(std::string &fatbin, uint16_t kind, uint32_t architecture, const std::string &bytes,
            uint64_t flags = 0x11) {
  char header[64] = {};
  auto put = [&](size_t at, auto value) { std::memcpy(header + at, &value, sizeof value); };
  put(0, kind);
  put(2, uint16_t{0x101});
  put(4, uint32_t{sizeof header});
  put(8, uint64_t{bytes.size()});
  put(28, architecture);
  put(40, flags);
  fatbin += std::string(header, sizeof header) + bytes;
}

std::string finished(const std::string &entries) {
  char header[16] = {};
  auto put = [&](size_t at, auto value) { std::memcpy(header + at, &value, sizeof value); };
  put(0, uint32_t{0xba55ed50});
  put(4, uint16_t{1});
  put(6, uint16_t{16});
  put(8, uint64_t{entries.size()});
  return std::string(header, sizeof header) + entries;
}

std::string ptxFor(const std::string &chip, const std::string &kernel) {
  return ".version 8.0\n.target " + chip + "\n.address_size 64\n.visible .entry " + kernel + "()\n{\nret;\n}\n";
}

TEST(Fatbins, HaveThePtxThatIsNearestToTheChip) {
  std::string entries;
  append(entries, 2, 90,
         "\x7f"
         "ELF");
  append(entries, 1, 70, ptxFor("sm_70", "for_70"));
  append(entries, 1, 86, ptxFor("sm_86", "for_86"));
  append(entries, 1, 90, ptxFor("sm_90a", "for_90"));
  std::string fatbin = finished(entries);
  for (auto [chip, kernel] : {std::pair("sm_80", "for_70"), std::pair("sm_89", "for_86"), std::pair("sm_90", "for_90"),
                              std::pair("sm_100", "for_86")}) {
    Device device({{"HONE_EMULATED_CHIP", chip}});
    void *module = nullptr;
    void *function = nullptr;
    ASSERT_EQ(device.call("cuModuleLoadData", &module, static_cast<const void *>(fatbin.data())), kSuccess);
    EXPECT_EQ(device.call("cuModuleGetFunction", &function, module, kernel), kSuccess) << chip;
  }
}

TEST(Fatbins, WithoutCodeForTheChipAreRefused) {
  std::string entries;
  append(entries, 1, 90, ptxFor("sm_90", "f"));
  append(entries, 2, 90,
         "\x7f"
         "ELF");
  std::string fatbin = finished(entries);
  Device device({{"HONE_EMULATED_CHIP", "sm_80"}});
  void *module = nullptr;
  EXPECT_EQ(device.call("cuModuleLoadData", &module, static_cast<const void *>(fatbin.data())), kNoBinary);
}

TEST(Fatbins, WithMachineCodeAloneAreBeyondTheEmulation) {
  std::string entries;
  append(entries, 2, 90,
         "\x7f"
         "ELF");
  std::string fatbin = finished(entries);
  entries.clear();
  append(entries, 1, 90, "compressed", 0x8011);
  std::string compressed = finished(entries);
  Device device;
  void *module = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.call("cuModuleLoadData", &module, static_cast<const void *>(fatbin.data())), kNotSupported);
  EXPECT_EQ(device.call("cuModuleLoadData", &module, static_cast<const void *>(compressed.data())), kNotSupported);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(HasSubstr("with PTX beside its cubin"), HasSubstr("compressed PTX")));
}

} // namespace
} // namespace hone::test
