// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tests of products of warpgroups share.
//
// Where numbers lie is said here in words of its own: as rows whose pieces of 16 bytes change places, and not by bits of addresses.

#ifndef HONE_TEST_UNIT_EMULATION_GROUP_PRODUCTS_H
#define HONE_TEST_UNIT_EMULATION_GROUP_PRODUCTS_H

#include "device.h"

#include <bit>
#include <cstring>
#include <gtest/gtest.h>

namespace hone::test {

constexpr int kThreads = 128, kRows = 64, kInputs = 16, kSteps = 2; // matrices hold the inputs of two products
constexpr int kWordsOfA = 5;                                        // of a thread: A, and metadata
constexpr int kBaseOfB = 8192;                                      // after A

inline uint16_t bf16Bits(int value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
}
inline uint16_t f16Bits(int value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }

/// How a matrix of `lines` rows (of A) or columns (of B) lies in shared memory.
struct Storage {
  int swizzle; // bytes, 0 for none
  bool linesInner;
  int lines;
  int depth = kInputs; // of one product
  int inner() const { return linesInner ? lines : kSteps * depth; }
  int outer() const { return linesInner ? kSteps * depth : lines; }
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
      start = step * depth / 8 * leading;
    } else if (linesInner) {
      leading = outer() * swizzle;
      start = step * depth * swizzle;
    } else {
      int first = step * depth, perRow = swizzle / 2;
      start = first / perRow * outer() * swizzle + first % perRow * 2;
    }
    uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    auto field = [](int bytes) { return static_cast<uint64_t>(bytes) >> 4; };
    return field(base + start) | field(leading) << 16 | field(stride) << 32 | mode << 62;
  }
};

inline std::string list(const std::string &prefix, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += (i == 0 ? "{%" : ", %") + prefix + std::to_string(i);
  return text + "}";
}

/// A kernel of a warpgroup: `image` comes into shared memory, each thread loads its words of a and c, does `body` with registers %a0 to
/// %a4, %d0 to %d<sums - 1>, descriptors %ma and %mb and the predicates %yes and %no, and stores what %d are.
inline std::string kernelOf(int sums, const std::string &body, const std::string &target = "sm_90a") {
  std::string text =
      ".version 8.0\n.target " + target +
      "\n.address_size 64\n.extern .shared .align 1024 .b8 s[];\n"
      ".visible .entry f(.param .u64 image, .param .u32 bytes, .param .u64 pa, .param .u64 pd, .param .u64 ma, "
      ".param .u64 mb)\n{\n  .reg .b32 %a<5>, %t, %i, %n, %s, %w; .reg .f32 %d<" +
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
  for (int i = 0; i < kWordsOfA; ++i)
    each("ld.global.b32", i, "%a" + std::to_string(i));
  text += "  ld.param.u64 %q, [pd]; add.s64 %q, %q, %o;\n";
  for (int i = 0; i < sums; ++i)
    each("ld.global.f32", i, "%d" + std::to_string(i));
  text += body;
  for (int i = 0; i < sums; ++i)
    each("st.global.f32", i, "%d" + std::to_string(i));
  return text + "  ret;\n}\n";
}

inline const char *const kEnd = "  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n";
inline const char *const kFence = "  wgmma.fence.sync.aligned;\n";

inline int valueOfA(int row, int input) { return (row * 5 + input * 3 + row * input) % 7 - 3; }
inline int valueOfB(int input, int column) { return (column * 3 + input * 11 + 1) % 9 - 4; }
inline int valueOfC(int row, int column) { return row * 300 + column; }

/// Row and column of register i of a thread's sums ("WGMMA .m64nNk16 register fragment layout for accumulator matrix D").
inline int rowOf(int thread, int i) { return thread / 32 * 16 + thread % 32 / 4 + (i / 2 % 2) * 8; }
inline int columnOf(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

/// Bytes of shared memory; those that nobody puts there are of NaN.
struct Image {
  explicit Image(int size) : bytes(static_cast<size_t>(size), 0xff) {}
  void put(int byte, uint16_t number) { std::memcpy(&bytes[static_cast<size_t>(byte)], &number, sizeof number); }
  std::vector<uint8_t> bytes;
};

/// Runs kernelOf(sums, body) by one warpgroup whose sums begin as valueOfC, and compares them with expected(row, column).
template <class Expected>
void runAndCompare(const std::string &body, const Image &image, const std::vector<uint32_t> &a, uint64_t descriptorA,
                   uint64_t descriptorB, int sums, const Expected &expected) {
  std::vector<float> d(static_cast<size_t>(sums * kThreads));
  for (int thread = 0; thread < kThreads; ++thread)
    for (int i = 0; i < sums; ++i)
      d[static_cast<size_t>(i * kThreads + thread)] =
          static_cast<float>(valueOfC(rowOf(thread, i), columnOf(thread, i)));
  Device device;
  ASSERT_EQ(device.loadText(kernelOf(sums, body)), 0);
  DevicePointer out = device.upload(d);
  auto size = static_cast<unsigned>(image.bytes.size());
  ASSERT_EQ(device.launch("f", {{1, 1, 1}, {kThreads, 1, 1}, size}, device.upload(image.bytes), size, device.upload(a),
                          out, descriptorA, descriptorB),
            0);
  std::vector<float> actual = device.download<float>(out, d.size());
  for (int thread = 0; thread < kThreads; ++thread)
    for (int i = 0; i < sums; ++i)
      ASSERT_EQ(actual[static_cast<size_t>(i * kThreads + thread)],
                static_cast<float>(expected(rowOf(thread, i), columnOf(thread, i))))
          << "thread " << thread << ", register " << i;
}

} // namespace hone::test

#endif // HONE_TEST_UNIT_EMULATION_GROUP_PRODUCTS_H
