// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses and memory that come from the driver apart from each other.

#include "device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::test {
namespace {

using testing::Each;

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kIllegalAddress = 700;
constexpr size_t kPage = size_t{2} << 20;
constexpr unsigned long long kNoFlags = 0;

struct Location {
  int type = 1, id = 0;
};

struct Properties {
  int type = 1, handleTypes = 0;
  Location location;
  void *win32 = nullptr;
  unsigned char flags[8] = {};
};

struct Access {
  Location location;
  int flags = 3;
};

class VirtualMemory : public testing::Test {
protected:
  int reserve(DevicePointer &range, size_t pages) {
    return device.call("cuMemAddressReserve", &range, pages * kPage, size_t{0}, DevicePointer{0}, kNoFlags);
  }
  int create(unsigned long long &piece, size_t bytes = kPage) {
    return device.call("cuMemCreate", &piece, bytes, static_cast<const Properties *>(&properties), kNoFlags);
  }
  int map(DevicePointer at, unsigned long long piece, size_t bytes = kPage) {
    return device.call("cuMemMap", at, bytes, size_t{0}, piece, kNoFlags);
  }
  int allow(DevicePointer at, size_t pages) {
    return device.call("cuMemSetAccess", at, pages * kPage, static_cast<const Access *>(&access), size_t{1});
  }
  int unmap(DevicePointer at, size_t pages) { return device.call("cuMemUnmap", at, pages * kPage); }
  int fill(DevicePointer at, size_t bytes) {
    return device.call("cuMemsetD8_v2", at, static_cast<unsigned char>(7), bytes);
  }
  size_t available() {
    size_t free = 0, total = 0;
    EXPECT_EQ(device.call("cuMemGetInfo_v2", &free, &total), kSuccess);
    return free;
  }

  Device device{{{"HONE_EMULATED_MEMORY", std::to_string(4 * kPage)}}};
  Properties properties;
  Access access;
};

TEST_F(VirtualMemory, ComesInPages) {
  size_t bytes = 0;
  EXPECT_EQ(device.call("cuMemGetAllocationGranularity", &bytes, static_cast<const Properties *>(&properties), 0),
            kSuccess);
  EXPECT_EQ(bytes, kPage);
  DevicePointer range = 0;
  unsigned long long piece = 0;
  EXPECT_EQ(device.call("cuMemAddressReserve", &range, kPage + 1, size_t{0}, DevicePointer{0}, kNoFlags),
            kInvalidValue);
  EXPECT_EQ(create(piece, kPage / 2), kInvalidValue);
  properties.location.type = 0;
  EXPECT_EQ(create(piece), kInvalidValue);
}

TEST_F(VirtualMemory, IsTouchedWhereItIsMappedAndAllowed) {
  DevicePointer range = 0;
  unsigned long long first = 0, second = 0;
  ASSERT_EQ(reserve(range, 3), kSuccess);
  EXPECT_EQ(range % kPage, 0u);
  ASSERT_EQ(create(first), kSuccess);
  ASSERT_EQ(create(second), kSuccess);
  EXPECT_EQ(available(), 2 * kPage);
  ASSERT_EQ(map(range, first), kSuccess);
  ASSERT_EQ(map(range + kPage, second), kSuccess);
  ASSERT_EQ(allow(range, 2), kSuccess);
  EXPECT_THAT(device.download<unsigned char>(range, 100), Each(0xff)) << "new memory is all ones";
  EXPECT_EQ(fill(range + kPage - 50, 100), kSuccess) << "over the border of two pages";
  EXPECT_THAT(device.download<unsigned char>(range + kPage - 50, 100), Each(7));
  EXPECT_EQ(unmap(range + kPage, 1), kSuccess);
  ASSERT_EQ(map(range + 2 * kPage, second), kSuccess);
  ASSERT_EQ(allow(range + 2 * kPage, 1), kSuccess);
  EXPECT_THAT(device.download<unsigned char>(range + 2 * kPage, 50), Each(7)) << "a page takes what it holds along";
}

TEST_F(VirtualMemory, IsAFaultElsewhere) {
  DevicePointer range = 0;
  unsigned long long piece = 0;
  ASSERT_EQ(reserve(range, 2), kSuccess);
  ASSERT_EQ(create(piece), kSuccess);
  ASSERT_EQ(map(range, piece), kSuccess);
  testing::internal::CaptureStderr();
  EXPECT_NE(fill(range, 4), kSuccess) << "mapped, but not allowed";
  ASSERT_EQ(allow(range, 1), kSuccess);
  ASSERT_EQ(fill(range, kPage), kSuccess);
  EXPECT_NE(fill(range + kPage - 2, 4), kSuccess) << "beyond what is mapped";
  device.loadFile("kernels.ptx");
  ASSERT_EQ(device.launch("beyond", {}, range, static_cast<int>(kPage / 4)), kSuccess);
  EXPECT_EQ(device.synchronize(), kIllegalAddress);
  testing::internal::GetCapturedStderr();
}

TEST_F(VirtualMemory, IsMappedAndGivenBackAsAWhole) {
  DevicePointer range = 0, other = 0;
  unsigned long long piece = 0;
  ASSERT_EQ(reserve(range, 2), kSuccess);
  ASSERT_EQ(reserve(other, 1), kSuccess);
  EXPECT_GE(other, range + 3 * kPage) << "nothing follows a range";
  ASSERT_EQ(create(piece, 2 * kPage), kSuccess);
  EXPECT_EQ(map(other, piece, 2 * kPage), kInvalidValue) << "longer than the range";
  ASSERT_EQ(map(range, piece, 2 * kPage), kSuccess);
  EXPECT_EQ(map(range + kPage, piece), kInvalidValue) << "mapped already";
  EXPECT_EQ(allow(range, 1), kInvalidValue);
  EXPECT_EQ(unmap(range, 1), kInvalidValue) << "a part of a mapping";
  EXPECT_EQ(device.call("cuMemAddressFree", range, 2 * kPage), kInvalidValue) << "something is mapped";
  EXPECT_EQ(device.call("cuMemRelease", piece), kSuccess);
  EXPECT_EQ(device.call("cuMemRelease", piece), kInvalidValue);
  EXPECT_EQ(available(), 2 * kPage) << "it is still mapped";
  EXPECT_EQ(unmap(range, 2), kSuccess);
  EXPECT_EQ(available(), 4 * kPage);
  EXPECT_EQ(device.call("cuMemAddressFree", range, kPage), kInvalidValue) << "not the range that was reserved";
  EXPECT_EQ(device.call("cuMemAddressFree", range, 2 * kPage), kSuccess);
  EXPECT_EQ(create(piece, 5 * kPage), kOutOfMemory);
}

} // namespace
} // namespace hone::test
