// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening the driver of NVIDIA GPUs.

#include "cuda/driver.h"
#include "support.h"

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

} // namespace
} // namespace hone::test
