// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a CUtensorMap says: a tensor in device memory and the box of it that one copy moves. To programs its bits are opaque.

#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

namespace hone::emulation {

constexpr uint32_t kMostAxes = 5;
constexpr size_t kTensorMapBytes = 128;
constexpr uint64_t kTensorMapAlignment = 64;

/// Axes from the innermost on.
struct TensorMap {
  static constexpr uint64_t kMagic = 0x70616d726f736e74; // "tnsormap"

  uint64_t magic = kMagic;
  uint64_t address = 0;
  std::array<uint64_t, kMostAxes - 1> strides{}; // bytes, of all axes but the innermost
  std::array<uint32_t, kMostAxes> last{};        // indices: sizes - 1
  std::array<uint16_t, kMostAxes> box{};
  uint8_t rank = 0;
  uint8_t elementBytes = 0;
  uint8_t swizzleWidth = 1; // units of 16 bytes: 1, 2, 4 or 8
  bool fillsNan = false;    // NaN and not 0 stands outside of the tensor

  /// The map in these bytes, or none.
  static std::optional<TensorMap> read(const std::byte *bytes);
  uint32_t rowBytes() const { return uint32_t{box[0]} * elementBytes; }
  uint32_t rows() const;
  uint32_t boxBytes() const { return rows() * rowBytes(); }
};
static_assert(sizeof(TensorMap) <= kTensorMapBytes);

/// The arguments of cuTensorMapEncodeTiled, enumerations as their numbers.
struct TensorMapRequest {
  int type;
  uint32_t rank;
  uint64_t address;
  const uint64_t *sizes, *strides;
  const uint32_t *box, *elementStrides;
  int interleave, swizzle, promotion, fill;
};

/// Fills `map` in, or says by its CUresult why the driver, or the emulation of it, refuses the arguments.
int encodeTensorMap(const TensorMapRequest &request, TensorMap &map);

} // namespace hone::emulation
