// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of matrices by tensor cores, and what brings numbers to them.
//
// The kernels are written here: each lane loads its registers, which the test has filled by the tables of the PTX ISA ("Matrix Fragments
// for mma"), in their own words and not by the emulation's formula.

#include "device.h"

#include <bit>
#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::test {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using Shape = Device::Shape;

constexpr int kLanes = 32;

std::string registers(const std::string &prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i)
    text += (i == 0 ? "" : ", ") + prefix + std::to_string(i);
  return text + "}";
}

std::string moves(const char *what, const char *pointer, const std::string &prefix, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    std::string address = "[%" + std::string(pointer) + "+" + std::to_string(4 * kLanes * i) + "]";
    std::string name = prefix + std::to_string(i);
    text += std::string(what) == "ld" ? "  ld.global.b32 " + name + ", " + address + ";\n"
                                      : "  st.global.b32 " + address + ", " + name + ";\n";
  }
  return text;
}

/// A kernel that does `instruction` with registers %a, %b, %c, %d and %e, of which each lane loads its words of a, b, c and e.
std::string kernelOf(const std::string &instruction, int a, int b, int c, int d) {
  std::string text = ".version 8.4\n.target sm_89\n.address_size 64\n.visible .entry f(.param .u64 pa, .param .u64 pb, "
                     ".param .u64 pc, "
                     ".param .u64 pd, .param .u64 pe)\n{\n  .reg .b32 %a<8>, %b<8>, %c<8>, %d<8>, %e<2>, %t;\n  .reg "
                     ".b64 %pa, %pb, %pc, %pd, %pe, %o;\n"
                     "  mov.u32 %t, %laneid;\n  mul.wide.u32 %o, %t, 4;\n";
  for (const char *name : {"pa", "pb", "pc", "pd", "pe"})
    text += "  ld.param.u64 %" + std::string(name) + ", [" + name + "];\n  add.s64 %" + name + ", %" + name + ", %o;\n";
  text +=
      moves("ld", "pa", "%a", a) + moves("ld", "pb", "%b", b) + moves("ld", "pc", "%c", c) + moves("ld", "pe", "%e", 1);
  return text + "  " + instruction + ";\n" + moves("st", "pd", "%d", d) + "  ret;\n}\n";
}

/// Words of registers, by register and lane.
using Words = std::vector<uint32_t>;

/// Puts the bits of elements into words; element i of a lane is part i % (32 / width) of its register i / (32 / width).
Words pack(int perLane, int width, const std::function<uint32_t(int lane, int i)> &bits) {
  int perWord = 32 / width;
  Words words(static_cast<size_t>(perLane / perWord * kLanes));
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < perLane; ++i)
      words[i / perWord * kLanes + lane] |= bits(lane, i) << (i % perWord * width);
  return words;
}

struct Layout {
  const char *shape;
  int depth;
  int width; // bits of an element
  // The tables: row and column of element i of a lane, by its group (lane / 4) and its place in the group (lane % 4).
  std::function<int(int g, int t, int i)> rowA, columnA, rowB;
  int perLaneA, perLaneB;
};

// Elements of 16 bits.
const Layout kHalf16{"m16n8k16",
                     16,
                     16,
                     [](int g, int, int i) { return i < 2 || (i >= 4 && i < 6) ? g : g + 8; },
                     [](int, int t, int i) { return t * 2 + (i & 1) + (i >= 4 ? 8 : 0); },
                     [](int, int t, int i) { return t * 2 + (i & 1) + (i >= 2 ? 8 : 0); },
                     8,
                     4};
const Layout kHalf8{"m16n8k8",
                    8,
                    16,
                    [](int g, int, int i) { return i < 2 ? g : g + 8; },
                    [](int, int t, int i) { return t * 2 + (i & 1); },
                    [](int, int t, int i) { return t * 2 + i; },
                    4,
                    2};
// Elements of 8 bits.
const Layout kByte32{"m16n8k32",
                     32,
                     8,
                     [](int g, int, int i) { return i < 4 || (i >= 8 && i < 12) ? g : g + 8; },
                     [](int, int t, int i) { return t * 4 + (i & 3) + (i < 8 ? 0 : 16); },
                     [](int, int t, int i) { return t * 4 + (i & 3) + (i < 4 ? 0 : 16); },
                     16,
                     8};
const Layout kByte16{"m16n8k16",
                     16,
                     8,
                     [](int g, int, int i) { return i < 4 ? g : g + 8; },
                     [](int, int t, int i) { return t * 4 + (i & 3); },
                     [](int, int t, int i) { return t * 4 + i; },
                     8,
                     4};
// Elements of 32 bits.
const Layout kWord8{"m16n8k8",
                    8,
                    32,
                    [](int g, int, int i) { return i == 0 || i == 2 ? g : g + 8; },
                    [](int, int t, int i) { return i < 2 ? t : t + 4; },
                    [](int, int t, int i) { return i == 0 ? t : t + 4; },
                    4,
                    2};
const Layout kWord4{"m16n8k4",
                    4,
                    32,
                    [](int g, int, int i) { return i == 0 ? g : g + 8; },
                    [](int, int t, int) { return t; },
                    [](int, int t, int) { return t; },
                    2,
                    1};

/// A type of elements: small integers, whose products and sums are exact in any order, and their bits.
struct Element {
  const char *name;
  const char *accumulator;
  std::function<int(int)> value; // of an index
  std::function<uint32_t(int)> bits;
};

uint32_t halfBits(int value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }
uint32_t floatBits(int value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }
int small(int index) { return index * 7 % 11 - 5; }
/// e5m2 is the upper half of f16, e4m3 has one bit more after the point and a bias that is 8 less.
uint32_t e5m2Bits(int value) { return halfBits(value) >> 8; }
uint32_t e4m3Bits(int value) {
  uint32_t half = halfBits(value);
  return value == 0 ? 0 : (half >> 8 & 0x80) | ((half >> 7 & 0xff) - (8 << 3));
}

const Element kF16{"f16", "f32", small, halfBits};
const Element kBf16{"bf16", "f32", small, [](int v) { return floatBits(v) >> 16; }};
const Element kTf32{"tf32", "f32", small, floatBits};
const Element kE4m3{"e4m3", "f32", [](int index) { return index * 7 % 9 - 4; }, e4m3Bits};
const Element kE5m2{"e5m2", "f32", [](int index) { return index * 7 % 9 - 4; }, e5m2Bits};
const Element kS8{"s8", "s32", [](int index) { return index * 37 % 256 - 128; },
                  [](int v) { return static_cast<uint32_t>(v) & 255; }};
const Element kU8{"u8", "s32", [](int index) { return index * 37 % 256; },
                  [](int v) { return static_cast<uint32_t>(v); }};

struct Multiply : testing::TestWithParam<std::tuple<const Layout *, const Element *, const Element *>> {};

TEST_P(Multiply, IsTheProductByTheTables) {
  auto [layout, a, b] = GetParam();
  int depth = layout->depth;
  auto valueA = [&, a = a](int row, int k) { return a->value(row * 31 + k * 5 + row * k); };
  auto valueB = [&, b = b](int k, int column) { return b->value(column * 17 + k * 3 + 2); };
  Words wordsA = pack(layout->perLaneA, layout->width, [&, a = a, layout = layout](int lane, int i) {
    return a->bits(valueA(layout->rowA(lane / 4, lane % 4, i), layout->columnA(lane / 4, lane % 4, i)));
  });
  Words wordsB = pack(layout->perLaneB, layout->width, [&, b = b, layout = layout](int lane, int i) {
    return b->bits(valueB(layout->rowB(lane / 4, lane % 4, i), lane / 4));
  });
  bool integers = std::string(a->accumulator) == "s32";
  auto accumulatorBits = [&](int value) { return integers ? static_cast<uint32_t>(value) : floatBits(value); };
  auto rowC = [](int lane, int i) { return lane / 4 + (i < 2 ? 0 : 8); };
  auto columnC = [](int lane, int i) { return lane % 4 * 2 + (i & 1); };
  Words wordsC = pack(4, 32, [&](int lane, int i) { return accumulatorBits(rowC(lane, i) * 100 + columnC(lane, i)); });
  Words expected = pack(4, 32, [&](int lane, int i) {
    int sum = rowC(lane, i) * 100 + columnC(lane, i);
    for (int k = 0; k < depth; ++k)
      sum += valueA(rowC(lane, i), k) * valueB(k, columnC(lane, i));
    return accumulatorBits(sum);
  });

  Device device;
  auto registersA = static_cast<int>(wordsA.size()) / kLanes;
  auto registersB = static_cast<int>(wordsB.size()) / kLanes;
  std::string accumulator = a->accumulator;
  std::string instruction = "mma.sync.aligned." + std::string(layout->shape) + ".row.col." + accumulator + "." +
                            a->name + "." + b->name + "." + accumulator + " " + registers("%d", 4) + ", " +
                            registers("%a", registersA) + ", " + registers("%b", registersB) + ", " +
                            registers("%c", 4);
  ASSERT_EQ(device.loadText(kernelOf(instruction, registersA, registersB, 4, 4)), 0);
  DevicePointer d = device.allocate(4 * kLanes * 4);
  ASSERT_EQ(device.launch("f", {}, device.upload(wordsA), device.upload(wordsB), device.upload(wordsC), d,
                          device.upload(Words(kLanes))),
            0);
  EXPECT_THAT(device.download<uint32_t>(d, 4 * kLanes), ElementsAreArray(expected));
}

INSTANTIATE_TEST_SUITE_P(Types, Multiply,
                         testing::Values(std::tuple(&kHalf16, &kF16, &kF16), std::tuple(&kHalf8, &kF16, &kF16),
                                         std::tuple(&kHalf16, &kBf16, &kBf16), std::tuple(&kHalf8, &kBf16, &kBf16),
                                         std::tuple(&kWord8, &kTf32, &kTf32), std::tuple(&kWord4, &kTf32, &kTf32),
                                         std::tuple(&kByte32, &kS8, &kS8), std::tuple(&kByte32, &kU8, &kS8),
                                         std::tuple(&kByte16, &kS8, &kU8), std::tuple(&kByte32, &kE4m3, &kE4m3),
                                         std::tuple(&kByte32, &kE5m2, &kE4m3)));

TEST(MultiplyHalves, AccumulatesInHalves) {
  Device device;
  Words ones(4 * kLanes, 0x3c003c00);
  ASSERT_EQ(device.loadText(kernelOf(
                "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%d0,%d1}, {%a0,%a1,%a2,%a3}, {%b0,%b1}, {%c0,%c1}",
                4, 2, 2, 2)),
            0);
  DevicePointer d = device.allocate(2 * kLanes * 4);
  ASSERT_EQ(
      device.launch("f", {}, device.upload(ones), device.upload(ones), device.upload(ones), d, device.upload(ones)), 0);
  EXPECT_THAT(device.download<uint32_t>(d, 2 * kLanes), testing::Each(0x4c404c40u)); // 16 ones and one
}

/// Two of four columns: which, by a row and a group of four columns.
std::pair<int, int> kept(int row, int group) {
  constexpr std::pair<int, int> kChoices[] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  return kChoices[(row * 5 + group) % 6];
}

struct SparseMultiply : testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(SparseMultiply, TakesTwoOfFour) {
  auto [depth, selector] = GetParam();
  const Layout &stored = depth == 32 ? kHalf16 : kHalf8; // A as it is stored has half the depth
  auto valueA = [](int row, int storedColumn) { return small(row * 3 + storedColumn * 2 + 1); };
  auto valueB = [](int k, int column) { return small(column * 13 + k * 3); };
  Words wordsA = pack(stored.perLaneA, 16, [&](int lane, int i) {
    return halfBits(valueA(stored.rowA(lane / 4, lane % 4, i), stored.columnA(lane / 4, lane % 4, i)));
  });
  // Row of B element i: two neighbours, then eight further, and so on to the depth.
  Words wordsB = pack(depth / 4, 16,
                      [&](int lane, int i) { return halfBits(valueB(lane % 4 * 2 + (i & 1) + i / 2 * 8, lane / 4)); });
  auto code = [](int row, int group) {
    return static_cast<uint32_t>(kept(row, group).first | kept(row, group).second << 2);
  };
  Words metadata(kLanes, 0xffffffff); // words of other lanes are not looked at
  for (int lane = 0; lane < kLanes; ++lane) {
    int first = depth == 32 ? (lane % 4 - 2 * selector) * 4 : 0; // group of columns that the lane's word begins with
    if (depth == 32 ? lane % 4 / 2 != selector : lane % 4 != selector)
      continue;
    metadata[lane] = 0;
    for (int group = 0; group < 4; ++group)
      metadata[lane] |= code(lane / 4, first + group) << 4 * group | code(lane / 4 + 8, first + group)
                                                                         << (16 + 4 * group);
  }
  Words expected = pack(4, 32, [&](int lane, int i) {
    int row = lane / 4 + (i < 2 ? 0 : 8);
    int sum = 0;
    for (int group = 0; group < depth / 4; ++group)
      sum += valueA(row, 2 * group) * valueB(4 * group + kept(row, group).first, lane % 4 * 2 + (i & 1)) +
             valueA(row, 2 * group + 1) * valueB(4 * group + kept(row, group).second, lane % 4 * 2 + (i & 1));
    return floatBits(sum);
  });
  Device device;
  auto registersA = static_cast<int>(wordsA.size()) / kLanes;
  auto registersB = static_cast<int>(wordsB.size()) / kLanes;
  std::string instruction = "mma.sp.sync.aligned.m16n8k" + std::to_string(depth) + ".row.col.f32.f16.f16.f32 " +
                            registers("%d", 4) + ", " + registers("%a", registersA) + ", " +
                            registers("%b", registersB) + ", " + registers("%c", 4) + ", %e0, " +
                            std::to_string(selector);
  ASSERT_EQ(device.loadText(kernelOf(instruction, registersA, registersB, 4, 4)), 0);
  DevicePointer d = device.allocate(4 * kLanes * 4);
  ASSERT_EQ(device.launch("f", {}, device.upload(wordsA), device.upload(wordsB), device.upload(Words(4 * kLanes)), d,
                          device.upload(metadata)),
            0);
  EXPECT_THAT(device.download<uint32_t>(d, 4 * kLanes), ElementsAreArray(expected));
}

INSTANTIATE_TEST_SUITE_P(Depths, SparseMultiply,
                         testing::Values(std::tuple(16, 0), std::tuple(16, 3), std::tuple(32, 0), std::tuple(32, 1)));

/// Two numbers at one column are undefined, and so are numbers out of order where metadata are said to be ordered.
TEST(SparseMultiply, RefusesMetadataThatNameNoTwoColumns) {
  for (auto [variant, places, status] :
       {std::tuple("sp", 0x44444444u, 0), std::tuple("sp", 0x11111111u, 0), std::tuple("sp", 0x44440444u, 715),
        std::tuple("sp::ordered_metadata", 0x44444444u, 0), std::tuple("sp::ordered_metadata", 0x11111111u, 715)}) {
    Device device;
    std::string instruction = std::string("mma.") + variant + ".sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " +
                              registers("%d", 4) + ", " + registers("%a", 2) + ", " + registers("%b", 2) + ", " +
                              registers("%c", 4) + ", %e0, 0";
    ASSERT_EQ(device.loadText(kernelOf(instruction, 2, 2, 4, 4)), 0);
    DevicePointer zeros = device.upload(Words(4 * kLanes));
    ASSERT_EQ(device.launch("f", {}, zeros, zeros, zeros, device.allocate(4 * kLanes * 4),
                            device.upload(Words(kLanes, places))),
              0);
    EXPECT_EQ(device.synchronize(), status) << variant << " " << places;
  }
}

TEST(MatrixLoads, BringRowsToLanes) {
  Device device;
  device.loadFile("matrices.ptx");
  std::vector<uint16_t> x(256);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<uint16_t>(i);
  for (bool transposed : {false, true}) {
    DevicePointer y = device.allocate(512);
    ASSERT_EQ(device.launch(transposed ? "load_transposed" : "load_rows", {}, device.upload(x), y), 0);
    std::vector<uint16_t> words = device.download<uint16_t>(y, 256); // register, lane, half
    for (int matrix = 0; matrix < 4; ++matrix)
      for (int lane = 0; lane < kLanes; ++lane)
        for (int i = 0; i < 2; ++i) {
          int row = lane / 4;
          int column = lane % 4 * 2 + i;
          int at = matrix * 64 + (transposed ? column * 8 + row : row * 8 + column);
          EXPECT_EQ(words[(matrix * kLanes + lane) * 2 + i], x[at]);
        }
  }
}

TEST(AsynchronousCopies, ComeWithTheirWait) {
  Device device;
  device.loadFile("matrices.ptx");
  std::vector<uint32_t> x(128);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<uint32_t>(i + 1);
  DevicePointer y = device.allocate(2 * 512);
  // Two groups are begun, of which the kernel waits for the first; then for all. The second reads 8 of 16 bytes.
  ASSERT_EQ(device.launch("copy", {}, device.upload(x), y), 0);
  std::vector<uint32_t> words = device.download<uint32_t>(y, 256);
  for (int i = 0; i < 128; ++i) {
    bool second = i >= 64; // lanes 16 to 31 committed theirs in the second group
    EXPECT_EQ(words[i], second ? 0xffffffffu : x[i]) << i;
    EXPECT_EQ(words[128 + i], second && i % 4 >= 2 ? 0u : x[i]) << i;
  }
}

TEST(Mbarriers, EndPhasesWhenThreadsAndBytesHaveCome) {
  Device device;
  device.loadFile("matrices.ptx");
  std::vector<uint32_t> x(256);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<uint32_t>(3 * i);
  DevicePointer y = device.allocate(1024);
  ASSERT_EQ(device.launch("bulk", {{1, 1, 1}, {64, 1, 1}}, device.upload(x), y), 0);
  EXPECT_THAT(device.download<uint32_t>(y, 256), ElementsAreArray(x));
}

TEST(WholeWarps, AreNeededWhereTheyAre) {
  Device device;
  device.loadFile("matrices.ptx");
  ASSERT_EQ(device.launch("load_rows", {{1, 1, 1}, {16, 1, 1}}, device.upload(Words(128)), device.allocate(512)), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.synchronize(), 700 + 15);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("not all lanes have come to"));
}

} // namespace
} // namespace hone::test
