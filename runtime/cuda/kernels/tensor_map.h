// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the copy engine of sm_90 needs to know of a tensor.

#ifndef HONE_RUNTIME_CUDA_KERNELS_TENSOR_MAP_H
#define HONE_RUNTIME_CUDA_KERNELS_TENSOR_MAP_H

#include <stdint.h>

namespace hone::cuda {

/// A CUtensorMap: opaque, and a parameter of a kernel (__grid_constant__).
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

constexpr uint32_t kBoxColumns = 64, kBoxRowBytes = 128;

/// A tensor of numbers of 16 bits on the device, four axes from the innermost on, and the box of it that one copy brings: rows of 64 or
/// 32 numbers, whose pieces of 16 bytes change places in shared memory as matrixAt() says. Outside of the tensor there are zeros.
struct TensorBox {
  void *data;          // at a multiple of 16 bytes
  int32_t dtype;       // HONE_F16 or HONE_BF16
  uint64_t sizes[4];   // 1 to 2^32 numbers
  uint64_t strides[3]; // bytes from one index to the next, of all axes but the innermost: multiples of 16 below 2^40
  uint32_t rows;       // of the box, along the second axis: up to 256
  uint32_t columns = kBoxColumns;
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_TENSOR_MAP_H
