// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX as text in the library.

#include "cuda/device/images.h"

#pragma clang diagnostic ignored "-Wc23-extensions" // #embed

namespace hone::rt::cuda {
namespace {

constexpr char kStridedCopy[] = {
#embed "strided_copy.ptx" suffix(, )
    0};

} // namespace

const void *stridedCopyImage() { return kStridedCopy; }

const char *stridedCopyName(int width) {
  switch (width) {
  case 1:
    return "hone_strided_copy_1";
  case 2:
    return "hone_strided_copy_2";
  case 4:
    return "hone_strided_copy_4";
  case 8:
    return "hone_strided_copy_8";
  default:
    return "hone_strided_copy_16";
  }
}

} // namespace hone::rt::cuda
