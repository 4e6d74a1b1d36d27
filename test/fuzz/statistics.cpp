//===- statistics.cpp - fuzz target: what `--calibration` reads ----------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every number that a file gives is one that methods of compression can take, or an error.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "MemoryFile.h"

#include "hone/Compress/Statistics.h"

#include <cstdlib>

static void readInput(const hone::compress::Statistics &statistics, int64_t input) {
  (void)statistics.countRows(input);
  for (int64_t width : {1, 2, 3, 64}) {
    absl::StatusOr<std::vector<float>> hessian = statistics.readHessian(input, width);
    if (hessian.ok() && static_cast<int64_t>(hessian->size()) != width * width)
      std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hone::fuzz::MemoryFile file(data, size);
  absl::StatusOr<hone::compress::Statistics> statistics = hone::compress::Statistics::open(file.path());
  if (!statistics.ok())
    return 0;
  (void)statistics->hasCosts();
  for (const char *weight : {"w", "layers.0.w", ""}) {
    if (std::optional<int64_t> input = statistics->findInput(weight))
      readInput(*statistics, *input);
    absl::StatusOr<double> cost = statistics->readCost(weight);
    if (cost.ok() && !(*cost >= 0))
      std::abort();
  }
  for (int64_t input = 0; input < 4; ++input)
    readInput(*statistics, input);
  return 0;
}
