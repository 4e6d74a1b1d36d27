// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening the driver of NVIDIA GPUs.

#include "core/module.h"
#include "cuda/driver.h"
#include "device_support.h"

namespace hone::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Drivers, ThatAreMissingAreNamed) {
  EXPECT_THAT(
      messageOf(rt::cuda::Driver::open("libhone-none.so.1")),
      AllOf(HasSubstr("cannot use an NVIDIA GPU: the driver is not installed: "), HasSubstr("libhone-none.so.1")));
  EXPECT_THAT(messageOf(rt::cuda::Driver::open("libc.so.6")), HasSubstr("libc.so.6 has no function cuInit"));
}

class EmulatedDrivers : public EmulatedVariables {
protected:
  static std::string open() { return messageOf(rt::cuda::Driver::open(HONE_TEST_EMULATED_DRIVER)); }
};

TEST_F(EmulatedDrivers, Open) { expect("HONE_EMULATED_DEVICES", "1", open, "OK"); }

TEST_F(EmulatedDrivers, WithoutAGpuAreRefused) {
  expect("HONE_EMULATED_DEVICES", "0", open, "cannot use an NVIDIA GPU: the driver finds none");
}

TEST_F(EmulatedDrivers, ThatAreTooOldAreRefused) {
  expect("HONE_EMULATED_DRIVER_VERSION", "11080", open,
         "cannot use an NVIDIA GPU: expected a driver for CUDA 12.4 or newer, but the installed one is for 11.8");
}

TEST_F(EmulatedDrivers, WithoutRoomForWeightsAreNamed) {
  TemporaryFolder temporary;
  std::string folder = temporary.file("toy.hone");
  auto load = [&] {
    writeToy(folder, "cuda");
    return messageOf(rt::Module::load(folder));
  };
  expect("HONE_EMULATED_MEMORY", "128", load,
         "cannot allocate 256 bytes of GPU memory for the weights: 128 of 128 bytes are free");
}

} // namespace
} // namespace hone::test
