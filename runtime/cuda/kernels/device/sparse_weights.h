// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: how GEMV reads 2:4 weights, kept elements and their indices, and makes operand A of them. A lane has
// two groups of four inputs, as a lane of dense weights has eight inputs: pruned ones become 0, or the zero point, in
// registers, so that x is read as for dense weights.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_SPARSE_WEIGHTS_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_SPARSE_WEIGHTS_H

#include "../linear/sparse_metadata.h"
#include "weights.h"

namespace hone::cuda {

/// The indices of part `part`, a word for 32 inputs, of which a lane has byte `lane`; inputs are a multiple of 32.
__device__ inline uint32_t readIndices(const LinearArguments &args, int32_t output, int64_t part) {
  return reinterpret_cast<const uint32_t *>(args.indices + output * args.indexStride)[part];
}

/// Kept elements of bf16 or f16: 8 bytes of a lane for eight inputs.
template <bool IsHalf> struct SparseWeight {
  static constexpr int kParts = 2, kDepth = 4;
  static constexpr bool kHasScales = false, kIsHalf = IsHalf, kMayHaveOutliers = false;
  static constexpr PairOrder kOrder = PairOrder::Neighbours;

  uint32_t words[2 * kParts], indices[kParts];

  __device__ void read(const LinearArguments &args, int32_t output, int32_t chunk, int lane) {
    const char *row = args.weight + output * args.weightStride;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      int64_t part = int64_t{chunk} * kParts + i;
      uint2 v = {};
      indices[i] = 0;
      if (part * kPartInputs < args.inputs) {
        v = loadNoAllocate8(row + part * kPartInputs + 8 * lane);
        indices[i] = readIndices(args, output, part);
      }
      words[2 * i] = v.x, words[2 * i + 1] = v.y;
    }
  }

  __device__ void expand(const LinearArguments &, int part, int lane, uint32_t, uint32_t (&pairs)[4]) const {
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      uint32_t kept = words[2 * part + group], select = selectHalves(indices[part] >> (8 * lane + 4 * group));
      pairs[2 * group] = __byte_perm(kept, 0, select);
      pairs[2 * group + 1] = __byte_perm(kept, 0, select >> 16);
    }
  }
};

/// Kept quantized values of 8 or 4 bits, packed: four of a lane, 4 or 2 bytes, for eight inputs.
template <int Bits> struct SparseAffineWeight {
  static constexpr int kParts = 2, kDepth = 4;
  static constexpr bool kHasScales = true, kIsHalf = false, kMayHaveOutliers = false;
  static constexpr PairOrder kOrder = Bits == 8 ? PairOrder::Neighbours : PairOrder::Halves;

  uint32_t words[kParts], indices[kParts];

  __device__ void read(const LinearArguments &args, int32_t output, int32_t chunk, int lane) {
    const char *row = args.weight + output * args.weightStride;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      int64_t part = int64_t{chunk} * kParts + i;
      words[i] = indices[i] = 0;
      if (part * kPartInputs < args.inputs) {
        words[i] = reinterpret_cast<const uint32_t *>(row + part * 2 * Bits)[Bits * lane / 8];
        indices[i] = readIndices(args, output, part);
      }
    }
  }

  __device__ static GroupScale scaleOf(const LinearArguments &args, int32_t output, int32_t chunk, int part) {
    return AffineWeight<Bits>::scaleAt(args, output, (chunk * kParts + part) * kPartInputs);
  }

  /// A pruned input becomes the zero point, which is 0 after the subtraction.
  __device__ void expand(const LinearArguments &args, int part, int lane, uint32_t zero, uint32_t (&pairs)[4]) const {
    uint32_t where = indices[part] >> 8 * lane;
    if constexpr (Bits == 8) {
      uint32_t kept = words[part] ^ (args.isSigned ? 0x80808080 : 0);
      expandBytes(__byte_perm(kept, zero, selectBytes(where, 0)), __byte_perm(kept, zero, selectBytes(where >> 4, 2)),
                  zero, pairs);
    } else {
      uint32_t kept = (words[part] >> lane % 2 * 16) ^ (args.isSigned ? 0x8888 : 0);
      expandCodes<4>(placeNibbles(kept, where, zero), zero, pairs);
    }
  }
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_SPARSE_WEIGHTS_H
