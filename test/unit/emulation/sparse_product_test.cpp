// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of warpgroups with a sparse A: wgmma.mma_async.sp, m64nNk32. Two of every four columns of A are stored, and metadata say
// which, by the PTX ISA's section "Sparse matrix storage" of wgmma.mma_async.sp and its figure "Sparse WGMMA .m64nNk32 metadata layout
// for .f16/.bf16 type"; CUTLASS describes the same table as ELayout_64x32.

#include "group_products.h"

#include <gmock/gmock.h>

namespace hone::test {
namespace {

using testing::HasSubstr;

constexpr int kDepth = 32; // of one product, of which kInputs are stored
constexpr int kInvalidPtx = 218, kIllegalInstruction = 715;

/// All that two columns of four may be, taking turns over rows and groups.
struct Pair {
  int first, second;
};
Pair pairOf(int row, int group) {
  static constexpr Pair kPairs[] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  return kPairs[(row * 7 + group * 3 + row * group) % 6];
}

/// A with its zeros.
int denseA(int row, int column) {
  Pair pair = pairOf(row, column / 4);
  return column % 4 == pair.first || column % 4 == pair.second ? valueOfA(row, column) : 0;
}

/// The number that is stored at place `i` of a row.
int storedA(int row, int i) {
  Pair pair = pairOf(row, i / 2);
  return denseA(row, i / 2 * 4 + (i % 2 == 0 ? pair.first : pair.second));
}

/// In each four threads the selector names two, which have words of rows g (bits 0 to 15) and g + 8 (16 to 31) of the warp's 16: the
/// first of columns 0 to 15 of the product, the second of 16 to 31. Others have what is no metadata.
std::vector<uint32_t> metadata(int step, int selector) {
  std::vector<uint32_t> words(kThreads, 0);
  for (int thread = 0; thread < kThreads; ++thread) {
    int warp = thread / 32, g = thread % 32 / 4, t = thread % 4;
    if (t / 2 != selector)
      continue;
    for (int half = 0; half < 2; ++half)
      for (int group = 0; group < 4; ++group) {
        Pair pair = pairOf(16 * warp + g + 8 * half, (step * kDepth + t % 2 * 16) / 4 + group);
        words[static_cast<size_t>(thread)] |= static_cast<uint32_t>(pair.first | pair.second << 2)
                                              << (16 * half + 4 * group);
      }
  }
  return words;
}

struct SparseProduct {
  bool half = false, registers = false;
  Storage a{64, false, kRows}, b{128, false, 64, kDepth};
  int step = 1, selector = 0, signA = 1;
  bool adds = true;

  int expected(int row, int column) const {
    int sum = adds ? valueOfC(row, column) : 0;
    for (int k = step * kDepth; k < (step + 1) * kDepth; ++k)
      sum += signA * denseA(row, k) * valueOfB(k, column);
    return sum;
  }
};

std::string product(int columns, const std::string &type, const std::string &operands) {
  return "  wgmma.mma_async.sp.sync.aligned.m64n" + std::to_string(columns) + "k32.f32." + type + "." + type + " " +
         list("d", columns / 2) + ", " + operands + ";\n";
}

void check(const SparseProduct &test) {
  SCOPED_TRACE("A " + std::to_string(test.a.swizzle) + ", B " + std::to_string(test.b.swizzle) +
               (test.b.linesInner ? " columns" : " inputs") + ", selector " + std::to_string(test.selector));
  auto bits = test.half ? f16Bits : bf16Bits;
  Image image(kBaseOfB + test.b.bytes());
  for (int row = 0; row < kRows; ++row)
    for (int i = 0; i < kSteps * kInputs; ++i)
      image.put(test.a.byteOf(row, i), bits(storedA(row, i)));
  for (int column = 0; column < test.b.lines; ++column)
    for (int k = 0; k < kSteps * kDepth; ++k)
      image.put(kBaseOfB + test.b.byteOf(column, k), bits(valueOfB(k, column)));
  std::vector<uint32_t> a(4 * kThreads);
  for (int thread = 0; thread < kThreads; ++thread)
    for (int i = 0; i < 8; ++i) { // stored numbers in registers, as of a dense A
      int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
      int at = test.step * kInputs + thread % 4 * 2 + i % 2 + i / 4 * 8;
      a[static_cast<size_t>(i / 2 * kThreads + thread)] |= uint32_t{bits(storedA(row, at))} << (16 * (i % 2));
    }
  std::vector<uint32_t> words = metadata(test.step, test.selector);
  a.insert(a.end(), words.begin(), words.end());
  std::string operands = std::string(test.registers ? "{%a0, %a1, %a2, %a3}" : "%ma") + ", %mb, %a4, " +
                         std::to_string(test.selector) + (test.adds ? ", %yes, " : ", %no, ") +
                         std::to_string(test.signA) + ", 1" +
                         (test.registers      ? ""
                          : test.a.linesInner ? ", 1"
                                              : ", 0") +
                         (test.b.linesInner ? ", 1" : ", 0");
  runAndCompare(kFence + product(test.b.lines, test.half ? "f16" : "bf16", operands) + kEnd, image, a,
                test.a.descriptor(0, test.step), test.b.descriptor(kBaseOfB, test.step), test.b.lines / 2,
                [&](int row, int column) { return test.expected(row, column); });
}

TEST(SparseGroupProducts, AreThoseOfTheTables) {
  for (int step : {0, 1})
    for (int selector : {0, 1}) {
      SparseProduct test;
      test.step = step, test.selector = selector;
      check(test);
      test.half = true, test.registers = true;
      check(test);
    }
}

TEST(SparseGroupProducts, ReadWhatDescriptorsSay) {
  for (int swizzle : {0, 32, 64, 128})
    for (bool linesInner : {false, true}) {
      SparseProduct test;
      test.a = {swizzle, linesInner, kRows};
      check(test);
      test.a = {64, false, kRows};
      test.b = {swizzle, linesInner, 128, kDepth};
      if (swizzle != 32 || linesInner)
        check(test);
    }
}

TEST(SparseGroupProducts, HaveAllShapesAndSigns) {
  for (int columns : {8, 24, 192, 256}) {
    SparseProduct test;
    test.b.lines = columns, test.signA = columns == 24 ? -1 : 1, test.adds = columns != 192;
    check(test);
  }
}

struct SparseGroupRules : testing::Test {
  std::string one = product(8, "bf16", "%ma, %mb, %a4, 0, %yes, 1, 1, 0, 0");
  /// What the launch of a kernel with this body ends with; all words of metadata are `word`.
  int run(const std::string &body, uint32_t word) {
    Device device;
    std::vector<uint8_t> image(16384);
    DevicePointer out = device.upload(std::vector<float>(4 * kThreads, 1.0f));
    EXPECT_EQ(device.loadText(kernelOf(4, body)), 0);
    EXPECT_EQ(device.launch("f", {{1, 1, 1}, {kThreads, 1, 1}, 16384}, device.upload(image), 16384u,
                            device.upload(std::vector<uint32_t>(kWordsOfA * kThreads, word)), out,
                            Storage{64, false, kRows}.descriptor(0, 0),
                            Storage{128, false, 64, kDepth}.descriptor(kBaseOfB, 0)),
              0);
    return device.synchronize();
  }
};

TEST_F(SparseGroupRules, MetadataNameTwoColumnsInTheirOrder) {
  EXPECT_EQ(run(kFence + one + kEnd, 0x44444444), 0);
  for (uint32_t word : {0x44444044u, 0x54444444u, 0x44444441u}) { // columns 0 and 0, 1 and 1, 1 and 0
    testing::internal::CaptureStderr();
    EXPECT_EQ(run(kFence + one + kEnd, word), kIllegalInstruction);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("do not name two columns of four"));
  }
}

TEST_F(SparseGroupRules, MetadataAreNotWritten) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(kFence + one + "  mov.u32 %a4, 0;\n" + kEnd, 0x44444444), kIllegalInstruction);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("were written before it was waited for"));
}

TEST_F(SparseGroupRules, OtherShapesAndSelectorsAreRefused) {
  Device device;
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.loadText(kernelOf(4, product(8, "bf16", "%ma, %mb, %a4, 2, %yes, 1, 1, 0, 0"))), kInvalidPtx);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("expected operand 4 to be 0 or 1"));
  std::string dense = one;
  dense.replace(dense.find("k32"), 3, "k16");
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.loadText(kernelOf(4, dense)), kInvalidPtx);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("of f16 and of bf16 with sums in f32"));
}

} // namespace
} // namespace hone::test
