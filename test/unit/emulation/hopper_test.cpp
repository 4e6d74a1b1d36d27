// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What only sm_90a has: products of warpgroups by descriptors of shared memory, and changes of how many registers threads have.
#include "group_products.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::test {
namespace {

using testing::HasSubstr;

constexpr int kInvalidPtx = 218, kIllegalInstruction = 715, kLaunchFailed = 719;

std::string product(int columns, const std::string &type, const std::string &operands, const std::string &tail) {
  return "  wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) + "k16.f32." + type + "." + type + " " +
         list("d", columns / 2) + ", " + operands + ", " + tail + ";\n";
}

struct GroupProduct {
  bool half = false;
  bool registers = false; // A
  Storage a{128, false, kRows}, b{128, false, 64};
  int step = 1;
  int signA = 1, signB = 1;
  bool adds = true;

  int expected(int row, int column) const {
    int sum = adds ? valueOfC(row, column) : 0;
    for (int k = step * kInputs; k < (step + 1) * kInputs; ++k)
      sum += signA * signB * valueOfA(row, k) * valueOfB(k, column);
    return sum;
  }
};

void check(const GroupProduct &test) {
  SCOPED_TRACE("A " + std::to_string(test.a.swizzle) + (test.a.linesInner ? " rows" : " inputs") + ", B " +
               std::to_string(test.b.swizzle) + (test.b.linesInner ? " columns" : " inputs") + ", " +
               std::to_string(test.b.lines) + " columns");
  int sums = test.b.lines / 2;
  auto bits = test.half ? f16Bits : bf16Bits;
  Image image(kBaseOfB + test.b.bytes());
  for (int k = 0; k < kSteps * kInputs; ++k) {
    for (int row = 0; row < kRows; ++row)
      image.put(test.a.byteOf(row, k), bits(valueOfA(row, k)));
    for (int column = 0; column < test.b.lines; ++column)
      image.put(kBaseOfB + test.b.byteOf(column, k), bits(valueOfB(k, column)));
  }
  std::vector<uint32_t> a(kWordsOfA * kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    for (int i = 0; i < 8; ++i) { // numbers of A in registers: rows g, g + 8, and then eight inputs further
      int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
      int k = test.step * kInputs + thread % 4 * 2 + i % 2 + i / 4 * 8;
      a[static_cast<size_t>(i / 2 * kThreads + thread)] |= uint32_t{bits(valueOfA(row, k))} << (16 * (i % 2));
    }
  }
  std::string tail = std::string(test.adds ? "%yes" : "%no") + ", " + std::to_string(test.signA) + ", " +
                     std::to_string(test.signB) +
                     (test.registers      ? ""
                      : test.a.linesInner ? ", 1"
                                          : ", 0") +
                     (test.b.linesInner ? ", 1" : ", 0");
  std::string body = kFence +
                     product(test.b.lines, test.half ? "f16" : "bf16",
                             test.registers ? "{%a0, %a1, %a2, %a3}, %mb" : "%ma, %mb", tail) +
                     kEnd;
  runAndCompare(body, image, a, test.a.descriptor(0, test.step), test.b.descriptor(kBaseOfB, test.step), sums,
                [&](int row, int column) { return test.expected(row, column); });
}

TEST(GroupProducts, ReadWhatDescriptorsSay) {
  for (int swizzle : {0, 32, 64, 128})
    for (bool linesInner : {false, true}) {
      GroupProduct test;
      test.a = {swizzle, linesInner, kRows};
      check(test);
      test.a = {128, false, kRows};
      test.b = {swizzle, linesInner, 128};
      check(test);
    }
}

TEST(GroupProducts, HaveAllShapes) {
  for (int columns : {8, 24, 96, 248, 256}) {
    GroupProduct test;
    test.b.lines = columns;
    check(test);
  }
}

TEST(GroupProducts, TakeRegistersTypesAndSigns) {
  GroupProduct test;
  test.registers = true;
  check(test);
  test.half = true, test.step = 0, test.signA = -1;
  check(test);
  test.registers = false, test.signB = -1, test.adds = false;
  check(test);
}

struct GroupRules : testing::Test {
  Device device;
  /// What the launch of a kernel with this body ends with.
  int run(const std::string &body, unsigned threads = kThreads) {
    if (int result = device.loadText(kernelOf(4, body)); result != 0)
      return result;
    std::vector<uint8_t> image(8192);
    Storage matrix{128, false, kRows};
    out = device.upload(std::vector<float>(12 * kThreads, 1.0f));
    EXPECT_EQ(device.launch("f", {{1, 1, 1}, {threads, 1, 1}, 8192}, device.upload(image), 8192u,
                            device.upload(std::vector<uint32_t>(12 * kThreads)), out, matrix.descriptor(0, 0),
                            matrix.descriptor(4096, 0)),
              0);
    return device.synchronize();
  }
  std::string one = product(8, "bf16", "%ma, %mb", "%yes, 1, 1, 0, 0");
  std::string fromRegisters = product(8, "bf16", "{%a0, %a1, %a2, %a3}, %mb", "%yes, 1, 1, 0");
  DevicePointer out = 0;
};

TEST_F(GroupRules, SumsComeWithTheWait) {
  ASSERT_EQ(run(kFence + one + "  wgmma.commit_group.sync.aligned;\n"), 0);
  EXPECT_TRUE(std::isnan(device.download<float>(out, 1)[0]));
  // Of two groups the second is under way: its registers are those of the first, too.
  ASSERT_EQ(run(kFence + one + "  wgmma.commit_group.sync.aligned;\n" + one +
                "  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;\n"),
            0);
  EXPECT_TRUE(std::isnan(device.download<float>(out, 1)[0]));
  ASSERT_EQ(run(kFence + one + one + kEnd), 0);
  EXPECT_EQ(device.download<float>(out, 1)[0], 1.0f);
}

TEST_F(GroupRules, WhatIsUnderWayIsNotWritten) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(kFence + one + "  mov.b32 %d1, 0f00000000;\n" + kEnd), kIllegalInstruction);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("were written before it was waited for"));
}

TEST_F(GroupRules, RegistersOfAAreNotWritten) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(kFence + fromRegisters + "  mov.u32 %a2, 7;\n" + kEnd), kIllegalInstruction);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("were written before it was waited for"));
}

TEST_F(GroupRules, NeedAFence) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(kFence + one + kEnd + one + kEnd), kIllegalInstruction);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("without wgmma.fence"));
}

TEST_F(GroupRules, AreForFourWarps) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(kFence + one + kEnd, 96), kIllegalInstruction);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("fewer than four warps"));
}

TEST_F(GroupRules, AreForAllOfThem) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run("  setp.lt.u32 %more, %t, 64; @%more bra skip;\n" + (kFence + one + kEnd) + "skip:\n"),
            kIllegalInstruction);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("execute different instructions"));
}

TEST_F(GroupRules, AreOnlyOnTheirChip) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.loadText(kernelOf(4, kFence + one + kEnd, "sm_90")), kInvalidPtx);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("it needs the target sm_90a"));
  Device other({{"HONE_EMULATED_CHIP", "sm_100"}});
  EXPECT_EQ(other.loadText(kernelOf(4, kFence + one + kEnd)), kInvalidPtx);
}

TEST_F(GroupRules, OtherTypesAreRefused) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.loadText(kernelOf(4, "  wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 " + list("d", 4) +
                                            ", %ma, %mb, %yes, 1, 1;\n")),
            kInvalidPtx);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("of f16 and of bf16 with sums in f32"));
}

TEST_F(GroupRules, RegistersAreGivenBackBeforeTheyAreTaken) {
  EXPECT_EQ(run("  setmaxnreg.dec.sync.aligned.u32 24; setmaxnreg.inc.sync.aligned.u32 240;\n"), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.loadText(kernelOf(4, "  setmaxnreg.dec.sync.aligned.u32 20;\n")), kInvalidPtx);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("expected 24, 32, ... or 256 registers"));
  // Of 65536 registers each of 384 threads has 168: three warpgroups cannot have 176.
  testing::internal::CaptureStderr();
  EXPECT_EQ(run("  setmaxnreg.inc.sync.aligned.u32 176;\n", 384), kLaunchFailed);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("registers that no warp gives back"));
}

} // namespace
} // namespace hone::test
