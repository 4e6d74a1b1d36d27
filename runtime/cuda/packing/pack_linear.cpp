// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packing of weights for device kernels.

#include "pack_linear.h"

#include <algorithm>
#include <cstring>

namespace hone::cuda {

LevelPlace placeOf(const LevelShape &shape, int64_t output, int64_t input) {
  int64_t chunk = input / shape.chunkInputs(), part = input % shape.chunkInputs() / 32;
  int64_t lane = input % 32 / 8, i = input % 8;
  int64_t first = (output * shape.chunks() + chunk) * 64 + lane * 16;
  if (shape.bits == 8)
    return {first + part * 8 + i, 0};
  int64_t bit = i / 2 * 4 + i % 2 * 16;
  return {first + part * 4 + bit / 8, static_cast<int32_t>(bit % 8)};
}

void packLevels(const LevelShape &shape, const uint8_t *levels, int64_t outputStride, int64_t inputStride,
                std::span<uint8_t> packed) {
  std::ranges::fill(packed, uint8_t{0});
  for (int64_t n = 0; n < shape.outputs; ++n)
    for (int64_t k = 0; k < shape.inputs; ++k) {
      LevelPlace place = placeOf(shape, n, k);
      packed[static_cast<size_t>(place.byte)] |=
          static_cast<uint8_t>(levels[n * outputStride + k * inputStride] << place.shift);
    }
}

void packGroups(const LevelShape &shape, int64_t elementBytes, const void *values, std::span<uint8_t> packed) {
  std::ranges::fill(packed, uint8_t{0});
  int64_t given = shape.givenGroups() * elementBytes, stride = shape.groups() * elementBytes;
  for (int64_t n = 0; n < shape.outputs && given > 0; ++n)
    std::memcpy(packed.data() + n * stride, static_cast<const uint8_t *>(values) + n * given,
                static_cast<size_t>(given));
}

} // namespace hone::cuda
