// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: GEMV by FMA in f32 on CUDA cores, for weights of f32, and of f16 with inputs that f16 cannot
// represent.
//
// A warp reads four outputs, four inputs a lane at a time, and multiplies them with up to 16 rows of x, which lie in
// L1. With 16 rows a lane executes 64 FMAs for 64 bytes of f32 weights. Weights that arrive at 20.7 bytes a cycle
// then keep 5.2 · 16 = 83 of the 128 FP32 lanes of an SM busy.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_GEMV_FMA_KERNEL_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_GEMV_FMA_KERNEL_H

#include "epilogue.h"
#include "overlap.h"

namespace hone::cuda {

template <bool IsHalf> struct FmaWeight {
  uint4 words;

  __device__ void read(const LinearArguments &args, int32_t output, int64_t k) {
    const char *row = args.weight + output * args.weightStride;
    if constexpr (IsHalf) {
      uint2 v = loadNoAllocate8(row + 2 * k);
      words.x = v.x, words.y = v.y;
    } else {
      words = loadNoAllocate16(row + 4 * k);
    }
  }
  __device__ float at(int i) const {
    if constexpr (IsHalf) {
      uint32_t pair = i < 2 ? words.x : words.y;
      return fromF16(static_cast<uint16_t>(i % 2 ? pair >> 16 : pair & 0xffff));
    } else {
      return __uint_as_float(i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w);
    }
  }
};

/// 2:4 weights: two values for four inputs, and the 4 bits of indices (linear/sparse_metadata.h).
template <bool IsHalf> struct SparseFmaWeight {
  uint2 words;
  uint32_t indices;

  __device__ void read(const LinearArguments &args, int32_t output, int64_t k) {
    const char *row = args.weight + output * args.weightStride;
    if constexpr (IsHalf)
      words.x = *reinterpret_cast<const uint32_t *>(row + k);
    else
      words = loadNoAllocate8(row + 2 * k);
    indices = args.indices[output * args.indexStride + k / 8] >> k % 8;
  }
  __device__ float at(int i) const {
    float first = IsHalf ? fromF16(static_cast<uint16_t>(words.x & 0xffff)) : __uint_as_float(words.x);
    float second = IsHalf ? fromF16(static_cast<uint16_t>(words.x >> 16)) : __uint_as_float(words.y);
    return (indices & 3) == i ? first : (indices >> 2 & 3) == i ? second : 0;
  }
};

/// Arguments as in Gemv. With IsGated the first half of a block's groups are outputs of the gate.
template <class Weight, int Rows, class Layer = LinearArguments, bool IsGated = false> class GemvFma {
public:
  __device__ GemvFma(const Layer &args, int32_t rowTile) : GemvFma(args, args, blockIdx.x, rowTile) {}

  __device__ GemvFma(const Layer &args, const Layer &own, int32_t block, int32_t rowTile)
      : args(args), own(own), lane(threadIdx.x % 32), slice(threadIdx.x / 32 % args.slices),
        group(threadIdx.x / 32 / args.slices), groups(blockDim.x / 32 / args.slices),
        firstOutput(int64_t{outputsOfBlock()} * block), firstRow(Rows * rowTile) {
    for (int i = 0; i < kGemvFmaOutputs; ++i) {
      int64_t output = firstOutput + kGemvFmaOutputs * group % outputsOfBlock() + i, last = layer().outputs - 1;
      outputs[i] = static_cast<int32_t>(output < last ? output : last);
    }
  }

  __device__ void run(float *shared) {
    multiply(shared);
    reduceAndStore(own, shared, Rows, outputsOfBlock(), firstRow, firstOutput);
  }

  /// The outputs of a block, from `firstOutput` on.
  __device__ int outputsOfBlock() const { return kGemvFmaOutputs * (IsGated ? groups / 2 : groups); }

  /// The sums of the block's warps, [slices][Rows][4 · groups].
  __device__ void multiply(float *shared) {
    Weight ring[kDepth][kGemvFmaOutputs];
    int64_t k = int64_t{kGemvFmaInputs} * (blockIdx.z * args.slices + slice) + 4 * lane,
            step = int64_t{kGemvFmaInputs} * args.stride;
    letNextBegin();
    if (!args.isConstant)
      waitForPrevious();
#pragma unroll
    for (int slot = 0; slot < kDepth; ++slot)
      readWeights(ring[slot], k + slot * step);
    waitForPrevious();
    for (; k < args.inputs; k += kDepth * step) {
#pragma unroll
      for (int slot = 0; slot < kDepth; ++slot) {
        multiply(ring[slot], k + slot * step);
        readWeights(ring[slot], k + (slot + kDepth) * step);
      }
    }
    stageSums(shared);
  }

private:
  static constexpr int kDepth = Rows == 16 ? 2 : 4;

  /// The layer of the warp's outputs.
  __device__ const Layer &layer() const { return IsGated && group < groups / 2 ? args : own; }

  __device__ void readWeights(Weight (&to)[kGemvFmaOutputs], int64_t k) {
    if (k >= args.inputs)
      return;
#pragma unroll
    for (int i = 0; i < kGemvFmaOutputs; ++i)
      to[i].read(layer(), outputs[i], k);
  }

  __device__ void multiply(const Weight (&weight)[kGemvFmaOutputs], int64_t k) {
    if (k >= args.inputs)
      return;
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      if (firstRow + row >= args.rows)
        break;
      int64_t index = args.x.offset(args.inputRow(firstRow + row)) + k;
      float4 v = *reinterpret_cast<const float4 *>(args.x.data + 4 * index);
      float x[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < kGemvFmaOutputs; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          sums[i][row] = fmaf(weight[i].at(j), x[j], sums[i][row]);
    }
  }

  /// sums[slice][row of x][output], as reduceAndStore reads them.
  __device__ void stageSums(float *shared) {
    float *to = shared + (slice * Rows * groups + group) * kGemvFmaOutputs;
#pragma unroll
    for (int i = 0; i < kGemvFmaOutputs; ++i)
#pragma unroll
      for (int row = 0; row < Rows; ++row) {
        float sum = sums[i][row];
        for (int distance = 16; distance > 0; distance /= 2)
          sum += __shfl_xor_sync(~0u, sum, distance);
        if (lane == 0)
          to[row * groups * kGemvFmaOutputs + i] = sum;
      }
  }

  const Layer &args, &own;
  const int lane, slice, group, groups;
  const int64_t firstOutput, firstRow;
  int32_t outputs[kGemvFmaOutputs];
  float sums[kGemvFmaOutputs][Rows] = {};
};

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_GEMV_FMA_KERNEL_H
