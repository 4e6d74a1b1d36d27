// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps, the descriptors of TMA loads.

#ifndef HONE_RUNTIME_CUDA_KERNELS_TENSOR_MAP_H
#define HONE_RUNTIME_CUDA_KERNELS_TENSOR_MAP_H

#include <stdint.h>

namespace hone::cuda {

/// A CUtensorMap: opaque, and a parameter of a kernel (__grid_constant__).
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

constexpr uint32_t kBoxColumns = 64, kBoxRowBytes = 128;

/// A tensor of 16-bit elements on the device, four axes, innermost first, and the box that one TMA load copies: rows
/// of 64 or 32 elements, with the 128- or 64-byte swizzle that makeSmemDescriptor() describes. Elements outside of
/// the tensor are zero-filled.
struct TensorBox {
  void *data;          // at a multiple of 16 bytes
  int32_t dtype;       // HONE_F16 or HONE_BF16
  uint64_t sizes[4];   // 1 to 2^32 elements
  uint64_t strides[3]; // in bytes, of all axes but the innermost: multiples of 16 below 2^40
  uint32_t rows;       // of the box, along the second axis: up to 256
  uint32_t columns = kBoxColumns;
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_TENSOR_MAP_H
