// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The emulated driver itself: faults, protection of memory, the order of streams, what variables ask for.

#include "device.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::test {
namespace {

using testing::HasSubstr;

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidPtx = 218,
              kUnsupportedPtx = 222, kNotReady = 600, kIllegalAddress = 700, kLaunchTimeout = 702, kMisaligned = 716,
              kLaunchFailed = 719;

TEST(EmulatedDriver, AccessOutOfBoundsEndsTheContext) {
  Device device;
  device.loadFile("kernels.ptx");
  DevicePointer x = device.upload(std::vector<float>(100));
  testing::internal::CaptureStderr();
  ASSERT_EQ(device.launch("beyond", {}, x, 100), kSuccess); // as on a device, the launch itself says nothing
  EXPECT_EQ(device.synchronize(), kIllegalAddress);
  std::string message = testing::internal::GetCapturedStderr();
  EXPECT_THAT(message, HasSubstr("kernel 'beyond': an access to 4 bytes of global memory"));
  EXPECT_THAT(message, HasSubstr("which is 400 bytes into an allocation of 400"));
  EXPECT_THAT(message, HasSubstr("at 'st.global"));
  DevicePointer more = 0;
  EXPECT_EQ(device.call("cuMemAlloc_v2", &more, size_t{16}), kIllegalAddress);
  EXPECT_EQ(device.call("cuDevicePrimaryCtxReset_v2", 0), kSuccess);
  EXPECT_EQ(device.call("cuMemAlloc_v2", &more, size_t{16}), kIllegalAddress) << "as on an H200";
  void *context = nullptr;
  EXPECT_EQ(device.call("cuDevicePrimaryCtxRetain", &context, 0), kIllegalAddress);
}

TEST(EmulatedDriver, FreedMemoryIsOutOfBounds) {
  Device device;
  device.loadFile("kernels.ptx");
  DevicePointer x = device.upload(std::vector<float>(100));
  ASSERT_EQ(device.call("cuMemFree_v2", x), kSuccess);
  ASSERT_EQ(device.launch("beyond", {}, x, 0), kSuccess);
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.synchronize(), kIllegalAddress);
  testing::internal::GetCapturedStderr();
}

TEST(EmulatedDriver, MisalignedVectorIsAFault) {
  Device device;
  device.loadFile("kernels.ptx");
  ASSERT_EQ(device.launch("misaligned", {}, device.allocate(64)), kSuccess);
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.synchronize(), kMisaligned);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("an access to 16 bytes at"));
}

TEST(EmulatedDriver, ThreadsThatWaitForeverAreAFault) {
  Device device;
  device.loadFile("kernels.ptx");
  ASSERT_EQ(device.launch("stuck", {{1, 1, 1}, {64, 1, 1}}, device.allocate(64)), kSuccess);
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.synchronize(), kLaunchFailed);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("all threads wait for threads that never come"));
}

TEST(EmulatedDriver, AFaultEndsBlocksThatWaitForOthers) {
  Device device;
  device.loadFile("kernels.ptx");
  DevicePointer flag = device.upload(std::vector<int>(1));
  ASSERT_EQ(device.launch("waits", {{8, 1, 1}, {1024, 1, 1}}, flag),
            kSuccess); // as much as goes to two threads of the host
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.synchronize(), kIllegalAddress);
  testing::internal::GetCapturedStderr();
}

TEST(EmulatedDriverDeathTest, HostCannotTouchDeviceMemory) {
  Device device;
  DevicePointer x = device.upload(std::vector<int>{1, 2, 3});
  EXPECT_DEATH({ *reinterpret_cast<volatile int *>(x) = 4; }, "");
  EXPECT_DEATH({ (void)*reinterpret_cast<volatile int *>(x); }, "");
}

TEST(EmulatedDriver, NewMemoryIsNotANumber) {
  Device device;
  DevicePointer x = device.allocate(1000);
  std::vector<float> values = device.download<float>(x, 250);
  for (float value : values)
    EXPECT_TRUE(std::isnan(value));
}

TEST(EmulatedDriver, CopiesOutsideOfAllocationsAreRefused) {
  Device device;
  DevicePointer x = device.allocate(100);
  char bytes[200] = {};
  EXPECT_EQ(device.call("cuMemcpyHtoD_v2", x, static_cast<const void *>(bytes), size_t{101}), kInvalidValue);
  EXPECT_EQ(device.call("cuMemcpyHtoD_v2", x + 1, static_cast<const void *>(bytes), size_t{100}), kInvalidValue);
  EXPECT_EQ(device.call("cuMemcpyHtoD_v2", x + 1, static_cast<const void *>(bytes), size_t{99}), kSuccess);
  EXPECT_EQ(device.call("cuMemFree_v2", x + 1), kInvalidValue);
}

struct Streams : testing::Test {
  Device device;
  void *stream = nullptr;
  DevicePointer x = device.allocate(sizeof(int));
  int *pinned = nullptr;

  void SetUp() override {
    ASSERT_EQ(device.call("cuStreamCreate", &stream, 1u), kSuccess);
    ASSERT_EQ(device.call("cuMemHostAlloc", &pinned, sizeof(int), 0u), kSuccess);
  }
  void TearDown() override {
    device.call("cuMemFreeHost", pinned);
    device.call("cuStreamDestroy_v2", stream);
  }
};

TEST_F(Streams, PinnedMemoryIsReadLate) {
  *pinned = 1;
  ASSERT_EQ(device.call("cuMemcpyHtoDAsync_v2", x, static_cast<const void *>(pinned), sizeof(int), stream), kSuccess);
  *pinned = 2; // the mistake that this shows
  ASSERT_EQ(device.call("cuStreamSynchronize", stream), kSuccess);
  EXPECT_EQ(device.download<int>(x, 1)[0], 2);
}

TEST_F(Streams, PageableMemoryIsReadAtOnce) {
  int value = 1;
  ASSERT_EQ(device.call("cuMemcpyHtoDAsync_v2", x, static_cast<const void *>(&value), sizeof(int), stream), kSuccess);
  value = 2;
  ASSERT_EQ(device.call("cuStreamSynchronize", stream), kSuccess);
  EXPECT_EQ(device.download<int>(x, 1)[0], 1);
}

TEST_F(Streams, ResultsComeWithTheirSynchronisation) {
  ASSERT_EQ(device.call("cuMemsetD32Async", x, 7u, size_t{1}, stream), kSuccess);
  ASSERT_EQ(device.call("cuMemcpyDtoHAsync_v2", static_cast<void *>(pinned), x, sizeof(int), stream), kSuccess);
  EXPECT_NE(*pinned, 7);
  EXPECT_EQ(device.call("cuStreamQuery", stream), kNotReady);
  ASSERT_EQ(device.call("cuStreamSynchronize", stream), kSuccess);
  EXPECT_EQ(*pinned, 7);
  EXPECT_EQ(device.call("cuStreamQuery", stream), kSuccess);
}

TEST_F(Streams, EventsOrderStreams) {
  void *other = nullptr;
  void *event = nullptr;
  ASSERT_EQ(device.call("cuStreamCreate", &other, 1u), kSuccess);
  ASSERT_EQ(device.call("cuEventCreate", &event, 0u), kSuccess);
  ASSERT_EQ(device.call("cuMemsetD32Async", x, 5u, size_t{1}, stream), kSuccess);
  ASSERT_EQ(device.call("cuEventRecord", event, stream), kSuccess);
  ASSERT_EQ(device.call("cuMemsetD32Async", x, 6u, size_t{1}, stream), kSuccess);
  EXPECT_EQ(device.call("cuEventQuery", event), kNotReady);
  ASSERT_EQ(device.call("cuStreamWaitEvent", other, event, 0u), kSuccess);
  ASSERT_EQ(device.call("cuMemcpyDtoHAsync_v2", static_cast<void *>(pinned), x, sizeof(int), other), kSuccess);
  ASSERT_EQ(device.call("cuStreamSynchronize", other), kSuccess);
  EXPECT_EQ(*pinned, 5);
  EXPECT_EQ(device.call("cuEventQuery", event), kSuccess);
  EXPECT_EQ(device.call("cuEventDestroy_v2", event), kSuccess);
  EXPECT_EQ(device.call("cuStreamDestroy_v2", other), kSuccess);
}

TEST_F(Streams, PoolsGiveBackInOrder) {
  DevicePointer y = 0;
  ASSERT_EQ(device.call("cuMemAllocAsync", &y, sizeof(int), stream), kSuccess);
  ASSERT_EQ(device.call("cuMemsetD32Async", y, 9u, size_t{1}, stream), kSuccess);
  ASSERT_EQ(device.call("cuMemcpyDtoHAsync_v2", static_cast<void *>(pinned), y, sizeof(int), stream), kSuccess);
  ASSERT_EQ(device.call("cuMemFreeAsync", y, stream), kSuccess);
  ASSERT_EQ(device.call("cuStreamSynchronize", stream), kSuccess);
  EXPECT_EQ(*pinned, 9);
  EXPECT_EQ(device.call("cuMemFreeAsync", y, stream), kInvalidValue);
}

TEST(EmulatedDriver, HasNoDeviceWhereNoneIsAskedFor) {
  Device device({{"HONE_EMULATED_DEVICES", "0"}});
  EXPECT_EQ(device.call("cuInit", 0u), kNoDevice);
}

TEST(EmulatedDriver, HasTheVersionThatIsAskedFor) {
  Device device({{"HONE_EMULATED_DRIVER_VERSION", "12020"}});
  int version = 0;
  ASSERT_EQ(device.call("cuDriverGetVersion", &version), kSuccess);
  EXPECT_EQ(version, 12020);
  EXPECT_EQ(device.loadText(Device::input("kernels.ptx")), kUnsupportedPtx);
}

TEST(EmulatedDriver, HasTheMemoryThatIsAskedFor) {
  Device device({{"HONE_EMULATED_MEMORY", "1000000"}});
  DevicePointer x = 0;
  EXPECT_EQ(device.call("cuMemAlloc_v2", &x, size_t{1000001}), kOutOfMemory);
  ASSERT_EQ(device.call("cuMemAlloc_v2", &x, size_t{600000}), kSuccess);
  DevicePointer y = 0;
  EXPECT_EQ(device.call("cuMemAlloc_v2", &y, size_t{600000}), kOutOfMemory);
  size_t free = 0;
  size_t total = 0;
  ASSERT_EQ(device.call("cuMemGetInfo_v2", &free, &total), kSuccess);
  EXPECT_EQ(free, 400000u);
  EXPECT_EQ(total, 1000000u);
  // What a stream is going to free is waited for.
  ASSERT_EQ(device.call("cuMemFreeAsync", x, static_cast<void *>(nullptr)), kSuccess);
  EXPECT_EQ(device.call("cuMemAlloc_v2", &y, size_t{600000}), kSuccess);
}

TEST(EmulatedDriver, MemoryIsUsedAgain) {
  Device device({{"HONE_EMULATED_MEMORY", "1000000"}});
  for (int i = 0; i < 100; ++i) {
    DevicePointer x = device.allocate(900000);
    ASSERT_EQ(device.call("cuMemFree_v2", x), kSuccess);
  }
}

TEST(EmulatedDriver, FaultsAtTheLaunchThatIsAskedFor) {
  Device device({{"HONE_EMULATED_FAULT_AT", "2"}});
  device.loadFile("kernels.ptx");
  DevicePointer x = device.upload(std::vector<float>(100));
  ASSERT_EQ(device.launch("beyond", {}, x, 0), kSuccess);
  EXPECT_EQ(device.synchronize(), kSuccess);
  ASSERT_EQ(device.launch("beyond", {}, x, 0), kSuccess);
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.synchronize(), kIllegalAddress);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("HONE_EMULATED_FAULT_AT"));
}

TEST(EmulatedDriver, EndsWhenItHasExecutedWhatItMay) {
  Device device({{"HONE_EMULATED_INSTRUCTIONS", "1"}});
  device.loadFile("kernels.ptx");
  DevicePointer x = device.upload(std::vector<float>(100));
  ASSERT_EQ(device.launch("beyond", {}, x, 0), kSuccess);
  EXPECT_EQ(device.synchronize(), kSuccess) << "the first one has executed none when it begins";
  ASSERT_EQ(device.launch("beyond", {}, x, 0), kSuccess);
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.synchronize(), kLaunchTimeout);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("HONE_EMULATED_INSTRUCTIONS"));
}

TEST(EmulatedDriver, IsTheChipThatIsAskedFor) {
  Device device({{"HONE_EMULATED_CHIP", "sm_86"}});
  int major = 0;
  int minor = 0;
  ASSERT_EQ(device.call("cuDeviceGetAttribute", &major, 75, 0), kSuccess);
  ASSERT_EQ(device.call("cuDeviceGetAttribute", &minor, 76, 0), kSuccess);
  EXPECT_EQ(major * 10 + minor, 86);
  std::string text = Device::input("kernels.ptx");
  EXPECT_EQ(device.loadText(text), kSuccess);
  text.replace(text.find("sm_80"), 5, "sm_90");
  EXPECT_EQ(device.loadText(text), kInvalidPtx);
}

TEST(EmulatedDriver, RefusesWhatItDoesNotKnow) {
  Device device;
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f()\n{\n.reg .b32 %r<3>;\n"
                     "vadd.u32.u32.u32 %r1, %r2, %r2;\nret;\n}\n";
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.loadText(text), kInvalidPtx);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("unsupported instruction 'vadd.u32.u32.u32 %r1, %r2, %r2'"));
  text.replace(text.find("vadd.u32.u32.u32"), 16, "add.u32.newly");
  testing::internal::CaptureStderr();
  EXPECT_EQ(device.loadText(text), kInvalidPtx);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("does not have one of its modifiers"));
}

TEST(EmulatedDriver, ChecksLaunches) {
  Device device;
  device.loadFile("kernels.ptx");
  DevicePointer x = device.allocate(4096);
  EXPECT_EQ(device.launch("beyond", {{0, 1, 1}, {32, 1, 1}}, x, 0), kInvalidValue);
  EXPECT_EQ(device.launch("beyond", {{1, 1, 1}, {1025, 1, 1}}, x, 0), kInvalidValue);
  EXPECT_EQ(device.launch("beyond", {{1, 1, 1}, {32, 1, 1}, 50000}, x, 0), kInvalidValue);
  ASSERT_EQ(device.call("cuFuncSetAttribute", device.kernel("beyond"), 8, 50000), kSuccess);
  EXPECT_EQ(device.launch("beyond", {{1, 1, 1}, {32, 1, 1}, 50000}, x, 0), kSuccess);
  EXPECT_EQ(device.call("cuFuncSetAttribute", device.kernel("beyond"), 8, 300000), kInvalidValue);
}

TEST(EmulatedDriver, ReportsWhatItWasAskedFor) {
  std::string file = testing::TempDir() + "emulated-driver-report.json";
  {
    Device device({{"HONE_EMULATED_REPORT", file}});
    device.loadFile("kernels.ptx");
    DevicePointer x = device.upload(std::vector<float>(64));
    ASSERT_EQ(device.launch("beyond", {{2, 1, 1}, {32, 1, 1}}, x, 0), kSuccess);
    ASSERT_EQ(device.synchronize(), kSuccess);
  }
  std::ifstream in(file);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::filesystem::remove(file);
  EXPECT_THAT(text, HasSubstr("\"launches\": 1,"));
  EXPECT_THAT(text, HasSubstr("\"synchronisations\": 2,")); // the copy waits too
  EXPECT_THAT(text, HasSubstr("\"to_device\": {\"count\": 1, \"bytes\": 256}"));
  EXPECT_THAT(text, HasSubstr("\"beyond\": {\"launches\": 1, \"instructions\": "));
}

TEST(EmulatedDriver, IsAskedForFunctionsByName) {
  Device device;
  void *function = nullptr;
  int found = 0;
  ASSERT_EQ(device.call("cuGetProcAddress_v2", "cuMemGetInfo", &function, 12000, uint64_t{0}, &found), kSuccess);
  size_t free = 0;
  size_t total = 0;
  EXPECT_EQ(reinterpret_cast<int (*)(size_t *, size_t *)>(function)(&free, &total), kSuccess);
  EXPECT_EQ(free, total);
  EXPECT_NE(device.call("cuGetProcAddress_v2", "cuNoSuchThing", &function, 12000, uint64_t{0}, &found), kSuccess);
}

} // namespace
} // namespace hone::test
