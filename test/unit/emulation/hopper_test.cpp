// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What only sm_90a has: products of warpgroups by descriptors of shared memory, and changes of how many registers threads have.
//
// Where numbers lie is said here in words of its own: as rows whose pieces of 16 bytes change places, and not by bits of addresses.

#include "device.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::test {
namespace {

using testing::HasSubstr;

constexpr int kThreads = 128, kRows = 64, kInputs = 16, kSteps = 2; // matrices hold the inputs of two products
constexpr int kInvalidPtx = 218, kIllegalInstruction = 715, kLaunchFailed = 719;

uint16_t bf16Bits(int value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16); }
uint16_t f16Bits(int value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }

/// How a matrix of `lines` rows (of A) or columns (of B) lies in shared memory.
struct Storage {
  int swizzle; // bytes, 0 for none
  bool linesInner;
  int lines;
  int inner() const { return linesInner ? lines : kSteps * kInputs; }
  int outer() const { return linesInner ? kSteps * kInputs : lines; }
  int bytes() const {
    int perRow = swizzle / 2;
    return swizzle == 0 ? 2 * inner() * outer() : (inner() + perRow - 1) / perRow * outer() * swizzle;
  }

  /// Blocks of rows that are as long as the swizzle, in which pieces of 16 bytes change places; or 8 × 8 numbers side by side.
  int byteOf(int line, int input) const {
    int i = linesInner ? line : input;
    int row = linesInner ? input : line;
    if (swizzle == 0)
      return (row / 8 * (inner() / 8) + i / 8) * 128 + row % 8 * 16 + i % 8 * 2;
    int perRow = swizzle / 2;
    int turn = swizzle == 128 ? row % 8 : swizzle == 64 ? row / 2 % 4 : row / 4 % 2;
    return (i / perRow * outer() + row) * swizzle + ((i % perRow / 8) ^ turn) * 16 + i % 8 * 2;
  }

  /// Of the inputs of one of the products, of a matrix that begins at byte `base`.
  uint64_t descriptor(int base, int step) const {
    int leading = 16, stride = 8 * swizzle, start = 0;
    if (swizzle == 0) {
      int alongInner = 128, alongOuter = inner() / 8 * 128;
      leading = linesInner ? alongOuter : alongInner;
      stride = linesInner ? alongInner : alongOuter;
      start = step * 2 * leading;
    } else if (linesInner) {
      leading = outer() * swizzle;
      start = step * kInputs * swizzle;
    } else {
      int first = step * kInputs, perRow = swizzle / 2;
      start = first / perRow * outer() * swizzle + first % perRow * 2;
    }
    uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    auto field = [](int bytes) { return static_cast<uint64_t>(bytes) >> 4; };
    return field(base + start) | field(leading) << 16 | field(stride) << 32 | mode << 62;
  }
};

std::string list(const std::string &prefix, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += (i == 0 ? "{%" : ", %") + prefix + std::to_string(i);
  return text + "}";
}

/// A kernel of a warpgroup: `image` comes into shared memory, each thread loads its words of a and c, does `body` with registers %a0 to
/// %a3, %d0 to %d<sums - 1>, descriptors %ma and %mb and the predicates %yes and %no, and stores what %d are.
std::string kernelOf(int sums, const std::string &body, const std::string &target = "sm_90a") {
  std::string text =
      ".version 8.0\n.target " + target +
      "\n.address_size 64\n.extern .shared .align 1024 .b8 s[];\n"
      ".visible .entry f(.param .u64 image, .param .u32 bytes, .param .u64 pa, .param .u64 pd, .param .u64 ma, "
      ".param .u64 mb)\n{\n  .reg .b32 %a<4>, %t, %i, %n, %s, %w; .reg .f32 %d<" +
      std::to_string(sums) +
      ">; .reg .b64 %p, %q, %o, %ma, %mb; .reg .pred %more, %yes, %no;\n"
      "  ld.param.u64 %ma, [ma]; ld.param.u64 %mb, [mb]; ld.param.u32 %n, [bytes]; ld.param.u64 %q, [image];\n"
      "  mov.u32 %t, %tid.x; shl.b32 %i, %t, 2; mov.u32 %s, s;\n"
      "loop: setp.ge.u32 %more, %i, %n; @%more bra done;\n"
      "  cvt.u64.u32 %o, %i; add.s64 %p, %q, %o; ld.global.b32 %w, [%p];\n"
      "  { .reg .b32 %x; add.u32 %x, %s, %i; st.shared.b32 [%x], %w; }\n"
      "  add.u32 %i, %i, 512; bra loop;\ndone: bar.sync 0; fence.proxy.async;\n"
      "  setp.eq.u32 %yes, 0, 0; setp.ne.u32 %no, 0, 0; mul.wide.u32 %o, %t, 4;\n"
      "  ld.param.u64 %q, [pa]; add.s64 %q, %q, %o;\n";
  auto each = [&](const char *what, int i, const std::string &name) {
    std::string address = "[%q+" + std::to_string(4 * kThreads * i) + "]";
    text += std::string(what) + (what[0] == 'l' ? " " + name + ", " + address : " " + address + ", " + name) + ";\n";
  };
  for (int i = 0; i < 4; ++i)
    each("ld.global.b32", i, "%a" + std::to_string(i));
  text += "  ld.param.u64 %q, [pd]; add.s64 %q, %q, %o;\n";
  for (int i = 0; i < sums; ++i)
    each("ld.global.f32", i, "%d" + std::to_string(i));
  text += body;
  for (int i = 0; i < sums; ++i)
    each("st.global.f32", i, "%d" + std::to_string(i));
  return text + "  ret;\n}\n";
}

const char *const kEnd = "  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n";
const char *const kFence = "  wgmma.fence.sync.aligned;\n";

std::string product(int columns, const std::string &type, const std::string &operands, const std::string &tail) {
  return "  wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) + "k16.f32." + type + "." + type + " " +
         list("d", columns / 2) + ", " + operands + ", " + tail + ";\n";
}

int valueOfA(int row, int input) { return (row * 5 + input * 3 + row * input) % 7 - 3; }
int valueOfB(int input, int column) { return (column * 3 + input * 11 + 1) % 9 - 4; }
int valueOfC(int row, int column) { return row * 300 + column; }

/// Row and column of register i of a thread's sums ("WGMMA .m64nNk16 register fragment layout for accumulator matrix D").
int rowOf(int thread, int i) { return thread / 32 * 16 + thread % 32 / 4 + (i / 2 % 2) * 8; }
int columnOf(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

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
  constexpr int kBaseOfB = 8192; // behind A
  std::vector<uint8_t> image(static_cast<size_t>(kBaseOfB + test.b.bytes()), 0xff);
  auto put = [&](int byte, int value) {
    uint16_t number = bits(value);
    std::memcpy(&image[static_cast<size_t>(byte)], &number, sizeof number);
  };
  for (int k = 0; k < kSteps * kInputs; ++k) {
    for (int row = 0; row < kRows; ++row)
      put(test.a.byteOf(row, k), valueOfA(row, k));
    for (int column = 0; column < test.b.lines; ++column)
      put(kBaseOfB + test.b.byteOf(column, k), valueOfB(k, column));
  }
  std::vector<uint32_t> a(4 * kThreads);
  std::vector<float> d(static_cast<size_t>(sums * kThreads));
  for (int thread = 0; thread < kThreads; ++thread) {
    for (int i = 0; i < 8; ++i) { // numbers of A in registers: rows g, g + 8, and then eight inputs further
      int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
      int k = test.step * kInputs + thread % 4 * 2 + i % 2 + i / 4 * 8;
      a[static_cast<size_t>(i / 2 * kThreads + thread)] |= uint32_t{bits(valueOfA(row, k))} << (16 * (i % 2));
    }
    for (int i = 0; i < sums; ++i)
      d[static_cast<size_t>(i * kThreads + thread)] =
          static_cast<float>(valueOfC(rowOf(thread, i), columnOf(thread, i)));
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
  Device device;
  ASSERT_EQ(device.loadText(kernelOf(sums, body)), 0);
  DevicePointer out = device.upload(d);
  ASSERT_EQ(device.launch("f", {{1, 1, 1}, {kThreads, 1, 1}, static_cast<unsigned>(image.size())}, device.upload(image),
                          static_cast<unsigned>(image.size()), device.upload(a), out, test.a.descriptor(0, test.step),
                          test.b.descriptor(kBaseOfB, test.step)),
            0);
  std::vector<float> actual = device.download<float>(out, d.size());
  for (int thread = 0; thread < kThreads; ++thread)
    for (int i = 0; i < sums; ++i)
      ASSERT_EQ(actual[static_cast<size_t>(i * kThreads + thread)],
                static_cast<float>(test.expected(rowOf(thread, i), columnOf(thread, i))))
          << "thread " << thread << ", register " << i;
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
