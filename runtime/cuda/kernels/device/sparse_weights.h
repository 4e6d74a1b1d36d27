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

/// Where an output's kept elements and their indices are. The indices of a part are a word for 32 inputs, of which a
/// lane has byte `lane`; inputs are a multiple of 32.
struct SparseRow {
  const char *weight;
  const uint32_t *indices;
  SparseRow() = default;
  __device__ SparseRow(const LinearArguments &args, int64_t output)
      : weight(args.weight + output * args.weightStride),
        indices(reinterpret_cast<const uint32_t *>(args.indices + output * args.indexStride)) {}
};

/// Kept elements of bf16 or f16: 8 bytes of a lane for eight inputs.
template <bool IsHalf> struct SparseWeight {
  static constexpr int kParts = 2, kDepth = 4, kResidents[2] = {1, 1}, kChunkInputs = kParts * kPartInputs;
  static constexpr bool kHasScales = false, kIsHalf = IsHalf, kMayHaveOutliers = false;
  static constexpr PairOrder kOrder = PairOrder::Neighbours;

  uint32_t words[2 * kParts], indices[kParts];
  using Row = SparseRow;

  __device__ static int offsetOf(int part, int lane) { return kPartInputs * part + 8 * lane; }

  __device__ void read(const LinearArguments &args, const Row &row, int32_t chunk, int lane) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      int64_t part = int64_t{chunk} * kParts + i;
      uint2 v = {};
      indices[i] = 0;
      if (part * kPartInputs < args.inputs) {
        v = loadNoAllocate8(row.weight + part * kPartInputs + 8 * lane);
        indices[i] = row.indices[part];
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
  static constexpr int kParts = 2, kDepth = 4, kResidents[2] = {1, 1}, kChunkInputs = kParts * kPartInputs,
                       kScales = kParts;
  static constexpr bool kHasScales = true, kIsHalf = false, kMayHaveOutliers = false;
  static constexpr PairOrder kOrder = Bits == 8 ? PairOrder::Neighbours : PairOrder::Halves;

  uint32_t words[kParts], indices[kParts];
  StoredScale<Bits> scales[kScales];

  struct Row : SparseRow, ScaleRow {
    Row() = default;
    __device__ Row(const LinearArguments &args, int64_t output) : SparseRow(args, output), ScaleRow(args, output) {}
  };
  __device__ static int offsetOf(int part, int lane) { return kPartInputs * part + 8 * lane; }

  __device__ void read(const LinearArguments &args, const Row &row, int32_t chunk, int lane) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      int64_t part = int64_t{chunk} * kParts + i;
      words[i] = indices[i] = 0;
      if (part * kPartInputs < args.inputs) {
        words[i] = reinterpret_cast<const uint32_t *>(row.weight + part * 2 * Bits)[Bits * lane / 8];
        indices[i] = row.indices[part];
      }
    }
  }

  __device__ void readScales(const LinearArguments &args, const Row &row, int32_t chunk) {
#pragma unroll
    for (int i = 0; i < kScales; ++i)
      scales[i].read(args, row, chunk * kChunkInputs + i * kPartInputs);
  }
  __device__ GroupScale scale(const LinearArguments &args, int32_t chunk, int i) const {
    return scales[i].get(args, chunk * kChunkInputs + i * kPartInputs);
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
      expandCodes<4>(placeNibbles(kept, where, zero), false, zero, pairs);
    }
  }
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_SPARSE_WEIGHTS_H
