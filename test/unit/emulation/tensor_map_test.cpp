// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Maps of tensors and copies of boxes of them, beside plain loops.

#include "device.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::test {
namespace {

using testing::HasSubstr;

constexpr int kInvalidValue = 1, kIllegalAddress = 700, kMisalignedAddress = 716, kIllegalInstruction = 715,
              kNotSupported = 801;
constexpr int kU32 = 2, kF32 = 7, kBf16 = 9;

struct alignas(64) Map {
  unsigned char bytes[128] = {};
};

/// Arguments of cuTensorMapEncodeTiled that are right: 40 × 12 × 6 × 3 numbers of 32 bits with gaps, boxes of 8 × 4 × 2 × 1.
struct Arguments {
  int type = kU32;
  unsigned rank = 4;
  DevicePointer address = 0;
  uint64_t sizes[5] = {40, 12, 6, 3, 1}, strides[4] = {176, 2112 + 32, 13312, 0};
  unsigned box[5] = {8, 4, 2, 1, 1}, steps[5] = {1, 1, 1, 1, 1};
  int interleave = 0, swizzle = 0, promotion = 2, fill = 0;

  int encode(Device &device, Map &map) const {
    return device.call("cuTensorMapEncodeTiled", static_cast<void *>(map.bytes), type, rank,
                       reinterpret_cast<void *>(address), static_cast<const uint64_t *>(sizes),
                       static_cast<const uint64_t *>(strides), static_cast<const unsigned *>(box),
                       static_cast<const unsigned *>(steps), interleave, swizzle, promotion, fill);
  }
};

/// One thread brings a box of `rank` axes to byte `to` of shared memory; then all bytes of it go out.
std::string kernelOf(int rank, const std::string &to = "0", const std::string &map = "%m") {
  std::string coordinates;
  for (int i = 0; i < rank; ++i)
    coordinates += (i == 0 ? "%c" : ", %c") + std::to_string(i);
  return ".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 1024 .b8 s[];\n"
         ".visible .entry f(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 bytes, .param .u32 x, .param "
         ".u32 y, .param .u32 z, .param .u32 w)\n{\n"
         "  .reg .b32 %c<5>, %n, %s, %b, %v, %i; .reg .b64 %m, %p, %o; .reg .pred %p0, %done;\n"
         "  ld.param.u32 %n, [bytes]; ld.param.u32 %c0, [x]; ld.param.u32 %c1, [y]; ld.param.u32 %c2, [z]; "
         "ld.param.u32 %c3, [w]; mov.u32 %c4, 0;\n"
         "  mov.u32 %s, s; add.u32 %b, %s, %n; add.u32 %s, %s, " +
         to +
         "; mov.b64 %m, map; cvta.param.u64 %m, %m; mov.u32 %i, %tid.x; setp.ne.u32 %p0, %i, 0;\n"
         "  @%p0 bra wait;\n  mbarrier.init.shared::cta.b64 [%b], 1; fence.proxy.async;\n"
         "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], %n;\n"
         "  cp.async.bulk.tensor." +
         std::to_string(rank) + "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%s], [" + map + ", {" +
         coordinates +
         "}], [%b];\n"
         "wait: bar.warp.sync -1;\nagain: mbarrier.try_wait.parity.shared::cta.b64 %done, [%b], 0; @!%done bra "
         "again;\n"
         "  ld.param.u64 %p, [out]; shl.b32 %i, %i, 2;\n"
         "loop: setp.ge.u32 %done, %i, %n; @%done bra end; cvt.u64.u32 %o, %i; add.s64 %o, %p, %o; { .reg .b32 %a; "
         "add.u32 %a, %s, %i; ld.shared.b32 %v, [%a]; } st.global.b32 [%o], %v; add.u32 %i, %i, 128; bra loop;\n"
         "end: ret;\n}\n";
}

struct TensorMaps : testing::Test {
  Device device;
  std::vector<uint32_t> tensor = std::vector<uint32_t>(3 * 13312 / 4);
  Arguments arguments;

  void SetUp() override {
    for (size_t i = 0; i < tensor.size(); ++i)
      tensor[i] = static_cast<uint32_t>(i + 1);
    arguments.address = device.upload(tensor);
  }

  /// What the tensor has at a place, or what stands outside of it.
  uint32_t at(const int64_t (&place)[4]) const {
    int64_t byte = place[0] * 4;
    for (unsigned axis = 0; axis < arguments.rank; ++axis) {
      if (place[axis] < 0 || place[axis] >= static_cast<int64_t>(arguments.sizes[axis]))
        return arguments.fill == 0 ? 0 : 0xffffffff;
      byte += axis == 0 ? 0 : place[axis] * static_cast<int64_t>(arguments.strides[axis - 1]);
    }
    return tensor[static_cast<size_t>(byte / 4)];
  }

  void checkBox(int x, int y, int z, int w) {
    SCOPED_TRACE(std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ", " + std::to_string(w));
    Map map;
    ASSERT_EQ(arguments.encode(device, map), 0);
    ASSERT_EQ(device.loadText(kernelOf(static_cast<int>(arguments.rank))), 0);
    unsigned count = 1;
    for (unsigned axis = 0; axis < arguments.rank; ++axis)
      count *= arguments.box[axis];
    DevicePointer out = device.allocate(4 * count);
    ASSERT_EQ(device.launch("f", {{1, 1, 1}, {32, 1, 1}, 4 * count + 8}, map, out, 4 * count, x, y, z, w), 0);
    std::vector<uint32_t> box = device.download<uint32_t>(out, count);
    for (unsigned i = 0; i < count; ++i) {
      unsigned column = i % arguments.box[0], row = i / arguments.box[0], rest = row;
      int64_t place[4] = {x + static_cast<int64_t>(column), 0, 0, 0};
      const int first[4] = {x, y, z, w};
      for (unsigned axis = 1; axis < arguments.rank; ++axis, rest /= arguments.box[axis - 1])
        place[axis] = first[axis] + static_cast<int64_t>(rest % arguments.box[axis]);
      // Pieces of 16 bytes of a row change places from row to row.
      int turn = arguments.swizzle == 3 ? row % 8 : arguments.swizzle == 2 ? row / 2 % 4 : row / 4 % 2;
      unsigned piece = arguments.swizzle == 0 ? column / 4 : (column / 4) ^ static_cast<unsigned>(turn);
      ASSERT_EQ(box[row * arguments.box[0] + piece * 4 + column % 4], at(place)) << "number " << i;
    }
  }
};

TEST_F(TensorMaps, BringBoxes) {
  checkBox(0, 0, 0, 0);
  checkBox(16, 5, 3, 2);
  checkBox(-3, 10, 5, 1); // over three edges
  checkBox(36, -2, -1, 2);
  checkBox(0, 0, 0, 3); // all of it outside
  arguments.rank = 3;
  checkBox(5, 1, 2, 0);
  arguments.rank = 2;
  checkBox(39, 11, 0, 0);
}

TEST_F(TensorMaps, SwizzleRows) {
  for (int swizzle : {1, 2, 3}) {
    arguments.swizzle = swizzle;
    arguments.box[0] = 4u << swizzle;
    arguments.box[1] = 16;
    checkBox(4, -1, 0, 1);
  }
}

TEST_F(TensorMaps, FillWithNan) {
  arguments.type = kF32, arguments.fill = 1;
  checkBox(36, 9, 4, 2);
}

TEST_F(TensorMaps, CheckTheirArguments) {
  Map map;
  auto resultOf = [&](auto change) {
    Arguments wrong = arguments;
    change(wrong);
    return wrong.encode(device, map);
  };
  EXPECT_EQ(resultOf([](Arguments &) {}), 0);
  EXPECT_EQ(resultOf([](Arguments &a) { a.type = 13; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.rank = 0; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.rank = 6; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.address += 8; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.sizes[3] = 0; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.sizes[2] = (uint64_t{1} << 32) + 1; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.strides[1] = 2120; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.strides[2] = uint64_t{1} << 40; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.box[1] = 257; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.box[1] = 0; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.box[0] = 6; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.steps[1] = 9; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.swizzle = 3, a.box[0] = 64; }), kInvalidValue);
  EXPECT_EQ(resultOf([](Arguments &a) { a.fill = 1; }), kInvalidValue) << "integers have no NaN";
  EXPECT_EQ(resultOf([](Arguments &a) { a.type = kBf16, a.rank = 2, a.interleave = 1; }), kInvalidValue);
  Arguments shifted = arguments;
  alignas(64) unsigned char bytes[192];
  EXPECT_EQ(shifted.encode(device, *reinterpret_cast<Map *>(bytes + 16)), kInvalidValue);
}

TEST_F(TensorMaps, NameWhatIsMissing) {
  Map map;
  testing::internal::CaptureStderr();
  arguments.steps[1] = 2;
  EXPECT_EQ(arguments.encode(device, map), kNotSupported);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("does not have tensor maps with strides of elements"));
  Device older({{"HONE_EMULATED_CHIP", "sm_89"}});
  EXPECT_EQ(Arguments().encode(older, map), kNotSupported);
}

struct BoxFaults : TensorMaps {
  int run(const std::string &text) {
    Map map;
    EXPECT_EQ(arguments.encode(device, map), 0);
    EXPECT_EQ(device.loadText(text), 0);
    EXPECT_EQ(device.launch("f", {{1, 1, 1}, {32, 1, 1}, 512}, map, device.allocate(256), 256u, 0, 0, 0, 0), 0);
    return device.synchronize();
  }
};

TEST_F(BoxFaults, MemoryOutsideOfAllocations) {
  arguments.sizes[1] = 1000, arguments.strides[0] = 1 << 20;
  EXPECT_EQ(run(kernelOf(4)), kIllegalAddress);
}

TEST_F(BoxFaults, BytesThatAreNotAligned) { EXPECT_EQ(run(kernelOf(4, "64")), kMisalignedAddress); }

TEST_F(BoxFaults, OtherMaps) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(kernelOf(3)), kIllegalInstruction);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("a tensor map of 4 axes"));
}

TEST_F(BoxFaults, NoMap) {
  std::string text = kernelOf(4);
  text.insert(text.find("  @%p0 bra wait"), "  ld.param.u64 %m, [out];\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(text), kIllegalInstruction);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no tensor map"));
}

TEST_F(BoxFaults, MapsOfAThread) {
  std::string text = kernelOf(4);
  text.insert(text.find("  .reg .b32"), "  .local .align 64 .b8 copy[128];\n");
  text.insert(text.find("  @%p0 bra wait"), "  mov.b64 %m, copy; cvta.local.u64 %m, %m;\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(text), kIllegalInstruction);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("in shared or local memory"));
}

} // namespace
} // namespace hone::test
