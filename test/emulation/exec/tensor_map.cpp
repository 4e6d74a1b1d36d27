// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Requirements of cuTensorMapEncodeTiled ("CUDA Driver API", Tensor Map Object Management).

#include "exec/tensor_map.h"

#include "driver/abi.h"

#include <cstdio>

namespace hone::emulation {
namespace {

struct ElementType {
  uint8_t bytes;
  bool isFloat;
};

// CUtensorMapDataType: u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, f32 flushed, tf32, tf32 flushed.
constexpr std::array<ElementType, 13> kTypes{{{1, false},
                                              {2, false},
                                              {4, false},
                                              {4, false},
                                              {8, false},
                                              {8, false},
                                              {2, true},
                                              {4, true},
                                              {8, true},
                                              {2, true},
                                              {4, true},
                                              {4, true},
                                              {4, true}}};
constexpr int kSwizzles = 4;
constexpr int kPromotions = 4;
constexpr uint64_t kMostSize = uint64_t{1} << 32;
constexpr uint64_t kMostStride = uint64_t{1} << 40;
constexpr uint32_t kMostBox = 256;
constexpr uint32_t kMostElementStride = 8;
constexpr uint32_t kUnit = 16;

bool isValidAxis(const TensorMapRequest &request, uint32_t axis) {
  uint64_t size = request.sizes[axis];
  uint32_t box = request.box[axis];
  uint32_t step = request.elementStrides[axis];
  bool stride = axis == 0 || (request.strides[axis - 1] % kUnit == 0 && request.strides[axis - 1] < kMostStride);
  return size != 0 && size <= kMostSize && box != 0 && box <= kMostBox && step != 0 && step <= kMostElementStride &&
         stride;
}

bool isValid(const TensorMapRequest &request) {
  auto among = [](int value, int count) { return value >= 0 && value < count; };
  if (!among(request.type, static_cast<int>(kTypes.size())) || request.rank == 0 || request.rank > kMostAxes ||
      !among(request.interleave, 3) || !among(request.swizzle, kSwizzles) || !among(request.promotion, kPromotions) ||
      !among(request.fill, 2) || request.address == 0 || request.address % kUnit != 0)
    return false;
  if (request.sizes == nullptr || request.box == nullptr || request.elementStrides == nullptr ||
      (request.rank > 1 && request.strides == nullptr))
    return false;
  for (uint32_t axis = 0; axis < request.rank; ++axis)
    if (!isValidAxis(request, axis))
      return false;
  ElementType type = kTypes[static_cast<size_t>(request.type)];
  if (request.fill != 0 && !type.isFloat)
    return false;
  if (request.interleave != 0)
    return request.rank >= 3;
  uint32_t rowBytes = request.box[0] * type.bytes;
  return rowBytes % kUnit == 0 && (request.swizzle == 0 || rowBytes <= kUnit << request.swizzle);
}

/// Names what only the emulation does not have.
const char *missing(const TensorMapRequest &request) {
  if (request.interleave != 0)
    return "interleaved tensors";
  for (uint32_t axis = 0; axis < request.rank; ++axis)
    if (request.elementStrides[axis] != 1)
      return "tensor maps with strides of elements";
  uint32_t rowBytes = request.box[0] * kTypes[static_cast<size_t>(request.type)].bytes;
  if (request.swizzle != 0 && rowBytes != kUnit << request.swizzle)
    return "rows of a box that are shorter than its swizzle";
  return nullptr;
}

} // namespace

std::optional<TensorMap> TensorMap::read(const std::byte *bytes) {
  TensorMap map;
  std::memcpy(&map, bytes, sizeof map);
  return map.magic == kMagic ? std::optional(map) : std::nullopt;
}

uint32_t TensorMap::rows() const {
  uint32_t count = 1;
  for (uint32_t axis = 1; axis < rank; ++axis)
    count *= box[axis];
  return count;
}

int encodeTensorMap(const TensorMapRequest &request, TensorMap &map) {
  if (!isValid(request))
    return kInvalidValue;
  if (const char *what = missing(request)) {
    std::fprintf(stderr, "emulated driver: the emulation does not have %s\n", what);
    return kNotSupported;
  }
  ElementType type = kTypes[static_cast<size_t>(request.type)];
  map = {};
  map.address = request.address;
  map.rank = static_cast<uint8_t>(request.rank);
  map.elementBytes = type.bytes;
  map.swizzleWidth = static_cast<uint8_t>(1 << request.swizzle);
  map.fillsNan = request.fill != 0;
  for (uint32_t axis = 0; axis < request.rank; ++axis) {
    map.last[axis] = static_cast<uint32_t>(request.sizes[axis] - 1);
    map.box[axis] = static_cast<uint16_t>(request.box[axis]);
    if (axis > 0)
      map.strides[axis - 1] = request.strides[axis - 1];
  }
  return kSuccess;
}

} // namespace hone::emulation
