// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clusters of two blocks: addresses in each other's shared memory, barriers of both, and copies of boxes to both.

#include "device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::test {
namespace {

using testing::HasSubstr;

constexpr unsigned kThreads = 32;
constexpr int kIllegalAddress = 700, kIllegalInstruction = 715, kLaunchFailed = 719, kInvalidClusterSize = 912;

struct alignas(64) Map {
  unsigned char bytes[128] = {};
};

/// A kernel in clusters of two. %t is the thread, %b the block, %r its rank, %x the other's, %s 1 KiB of shared memory, %n where the
/// same place of the other block is; %v is what the thread stores after `body`.
std::string kernelOf(const std::string &body) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 1024 .b8 s[1024];\n"
         ".visible .entry f(.param .align 64 .b8 map[128], .param .u64 out)\n"
         ".explicitcluster\n.reqnctapercluster 2, 1, 1\n{\n"
         "  .reg .b16 %h; .reg .b32 %t, %b, %r, %x, %s, %n, %v, %i, %a; .reg .b64 %p, %o, %m; .reg .pred %q, %done;\n"
         "  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %r, %cluster_ctarank; xor.b32 %x, %r, 1; mov.u32 %s, s;\n"
         "  mapa.shared::cluster.u32 %n, %s, %x; mov.u32 %v, 0; setp.ne.u32 %q, %t, 0;\n" +
         body +
         "  ld.param.u64 %p, [out]; shl.b32 %i, %b, 5; add.u32 %i, %i, %t; mul.wide.u32 %o, %i, 4; add.s64 %p, %p, "
         "%o;\n"
         "  st.global.b32 [%p], %v;\n  ret;\n}\n";
}

const char *const kMeet = "  barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n";
const char *const kWait = "again: mbarrier.try_wait.parity.shared::cta.b64 %done, [%s+512], 0; @!%done bra again;\n";

struct Clusters : testing::Test {
  Device device;
  Map map;
  std::vector<uint32_t> run(const std::string &body, unsigned blocks = 4) {
    EXPECT_EQ(device.loadText(kernelOf(body)), 0);
    DevicePointer out = device.allocate(4 * kThreads * blocks);
    EXPECT_EQ(device.launch("f", {{blocks, 1, 1}, {kThreads, 1, 1}}, map, out), 0);
    return device.download<uint32_t>(out, kThreads * blocks);
  }
  /// What a launch with this body ends with.
  int end(const std::string &body, unsigned blocks = 2) {
    EXPECT_EQ(device.loadText(kernelOf(body)), 0);
    DevicePointer out = device.allocate(4 * kThreads * blocks);
    if (int result = device.launch("f", {{blocks, 1, 1}, {kThreads, 1, 1}}, map, out); result != 0)
      return result;
    return device.synchronize();
  }
};

TEST_F(Clusters, HaveRanks) {
  std::vector<uint32_t> values = run("  mov.u32 %i, %clusterid.x; shl.b32 %v, %r, 8; or.b32 %v, %v, %i;\n"
                                     "  mov.u32 %i, %nclusterid.x; shl.b32 %i, %i, 16; or.b32 %v, %v, %i;\n"
                                     "  mov.u32 %i, %cluster_nctarank; shl.b32 %i, %i, 24; or.b32 %v, %v, %i;\n");
  for (uint32_t block = 0; block < 4; ++block)
    EXPECT_EQ(values[kThreads * block], 2u << 24 | 2u << 16 | block % 2 << 8 | block / 2);
}

TEST_F(Clusters, ReadAndWriteEachOther) {
  std::vector<uint32_t> values =
      run("  shl.b32 %i, %t, 2; add.u32 %a, %s, %i; add.u32 %n, %n, %i; mad.lo.u32 %v, %b, 100, %t; st.shared.b32 "
          "[%a], %v;\n" +
          std::string(kMeet) + "  ld.shared::cluster.b32 %v, [%n]; st.shared::cluster.b32 [%n+128], %v;\n" + kMeet +
          "  ld.shared.b32 %i, [%a+128]; mad.lo.u32 %v, %i, 1000, %v;\n");
  for (uint32_t block = 0; block < 4; ++block)
    for (uint32_t thread = 0; thread < kThreads; ++thread)
      EXPECT_EQ(values[kThreads * block + thread], (block * 100 + thread) * 1000 + (block ^ 1) * 100 + thread);
}

/// The second phase of the barrier ends once both have arrived at both.
TEST_F(Clusters, ArriveAtEachOther) {
  std::string arrive = "  @%q bra skip; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%n+512];\n"
                       "  mbarrier.arrive.shared::cta.b64 _, [%s+512];\nskip: bar.warp.sync -1;\n";
  std::vector<uint32_t> values =
      run("  @%q bra start; mbarrier.init.shared::cta.b64 [%s+512], 2;\nstart: bar.warp.sync -1;\n" +
          std::string(kMeet) + arrive + kWait + "  mov.u32 %v, 7;\n" + kMeet);
  EXPECT_THAT(values, testing::Each(7u));
}

TEST_F(Clusters, CopyToBoth) {
  std::vector<uint32_t> tensor(64);
  for (size_t i = 0; i < tensor.size(); ++i)
    tensor[i] = static_cast<uint32_t>(1000 + i);
  const uint64_t sizes[] = {64}, strides[] = {0};
  const unsigned box[] = {32}, steps[] = {1};
  constexpr int kU32 = 2;
  ASSERT_EQ(device.call("cuTensorMapEncodeTiled", static_cast<void *>(map.bytes), kU32, 1u,
                        reinterpret_cast<void *>(device.upload(tensor)), sizes, strides, box, steps, 0, 0, 0, 0),
            0);
  // Each block brings a half; barriers of both expect all of it. Threads add up a number of each.
  std::vector<uint32_t> values =
      run("  mov.b64 %m, map; cvta.param.u64 %m, %m; mov.u16 %h, 3; @%q bra start;\n"
          "  mbarrier.init.shared::cta.b64 [%s+512], 1;\nstart: bar.warp.sync -1;\n" +
          std::string(kMeet) +
          "  @%q bra copied; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s+512], 256; shl.b32 %i, %r, 5;\n"
          "  shl.b32 %a, %r, 7; add.u32 %a, %a, %s; add.u32 %n, %s, 512;\n"
          "  cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%a], "
          "[%m, {%i}], [%n], %h;\ncopied: bar.warp.sync -1;\n" +
          kWait +
          "  shl.b32 %i, %t, 2; add.u32 %a, %s, %i; ld.shared.b32 %v, [%a]; ld.shared.b32 %i, [%a+128]; "
          "mad.lo.u32 %v, %i, 10000, %v;\n" +
          kMeet);
  for (uint32_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], (1032 + i % kThreads) * 10000 + 1000 + i % kThreads);
}

TEST_F(Clusters, AreWhole) { EXPECT_EQ(end("", 3), kInvalidClusterSize); }

TEST_F(Clusters, HaveNoOtherBlocks) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(end("  mov.u32 %i, 2; mapa.shared::cluster.u32 %n, %s, %i;\n"), kIllegalInstruction);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("a block of a cluster that has fewer"));
}

TEST_F(Clusters, BlocksThatEndedHaveNoMemory) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(end("  setp.eq.u32 %q, %r, 1; @%q bra end;\n  mov.u32 %i, 30000;\n"
                "loop: sub.u32 %i, %i, 1; setp.ne.u32 %q, %i, 0; @%q bra loop;\n"
                "  ld.shared::cluster.b32 %v, [%n];\nend:\n"),
            kIllegalAddress);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("which does not exist or has ended"));
}

const char *const kBarrier = "  mbarrier.init.shared::cta.b64 [%s+512], 2; setp.eq.u32 %q, %r, 1;\n";

TEST_F(Clusters, DoNotWaitInMemoryForever) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(end(std::string(kBarrier) + kWait), kLaunchFailed);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("all threads wait for threads that never come"));
}

/// One block is at the barrier of the cluster, and the other never comes there.
TEST_F(Clusters, DoNotWaitForEachOtherForever) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(end(std::string(kBarrier) + "  @%q bra stay;\n" + kMeet + "stay:\n" + kWait), kLaunchFailed);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("all threads wait for threads that never come"));
}

} // namespace
} // namespace hone::test
