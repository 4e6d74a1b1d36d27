//===- npy.cpp - fuzz target: arrays in .npy files ----------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What parses has as many bytes as its shape says, all of them readable.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/io/npy.h"

#include <cstdlib>
#include <numeric>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  absl::StatusOr<hone::io::Array> array = hone::io::parseNpy(bytes, "fuzz");
  if (!array.ok())
    return 0;
  if (array->bytes() < 0 || static_cast<uint64_t>(array->bytes()) > size)
    std::abort();
  volatile int64_t sum = std::accumulate(array->data(), array->data() + array->bytes(), int64_t{0});
  (void)sum;
  return 0;
}
