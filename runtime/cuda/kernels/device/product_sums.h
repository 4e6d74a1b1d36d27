// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code for sm_90a: from the sums of a warpgroup's product of 64 rows by 256 columns to y, 64 columns at a time by way of shared
// memory, so that threads side by side have outputs side by side.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_PRODUCT_SUMS_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_PRODUCT_SUMS_H

#include "../linear/hopper_sums.h"
#include "finish_rows.h"

namespace hone::cuda {

/// Piece `piece` of the sums, registers as in warpgroup.h. With IsTransposed rows of the product are outputs, else rows of y.
template <bool IsTransposed> __device__ inline void leavePiece(const float (&sums)[128], int piece, float *to) {
  int line = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4, first = threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < kPieceSide / 2; i += 2) {
    float2 pair = {sums[piece * kPieceSide / 2 + i], sums[piece * kPieceSide / 2 + i + 1]};
    int below = i / 2 % 2 * 8, column = i / 4 * 8;
    // Places are the same for every eighth row but for what lies between.
    if constexpr (IsTransposed) {
      float *at = to + column * kPieceSide;
      at[piecePlace(first, line + below)] = pair.x, at[piecePlace(first + 1, line + below)] = pair.y;
    } else {
      *reinterpret_cast<float2 *>(to + piecePlace(line + below, column + first)) = pair;
    }
  }
}

/// Whether nothing but a bias follows the sums, and rows of y are vectors one behind the other, so that addresses are sums.
__device__ inline bool isPlain(const LinearArguments &layer) {
  return !layer.factor.data && !layer.residual.data && layer.activation == 0 && layer.y.isVector &&
         layer.y.sizes[0] == 1;
}

/// Finishes a piece of such a layer whose outputs all exist.
__device__ inline void finishPlainPiece(const LinearArguments &layer, const float *piece, int32_t row, int32_t output) {
  constexpr int kFours = kPieceSide / 4;
#pragma unroll 1
  for (int i = threadIdx.x % 128; i < kPieceSide * kFours; i += 128) {
    int64_t own = row + i / kFours, first = output + i % kFours * 4;
    if (own >= layer.rows)
      break;
    float4 sums = *reinterpret_cast<const float4 *>(piece + piecePlace(i / kFours, i % kFours * 4));
    float numbers[4] = {sums.x, sums.y, sums.z, sums.w};
    if (layer.bias.data)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        numbers[j] += loadNumber(layer.bias.data, (first + j) * layer.bias.inner, layer.bias.dtype);
    storeFour(layer.y.data + (own * layer.y.strides[2] + first) * bytesOf(layer.y.dtype), layer.y.dtype, numbers);
  }
}

/// Finishes a piece of any layer.
__device__ inline void finishPiece(const LinearArguments &layer, const float *piece, int32_t row, int32_t output) {
  constexpr int kFours = kPieceSide / 4;
#pragma unroll 1
  for (int i = threadIdx.x % 128; i < kPieceSide * kFours; i += 128) {
    int ownRow = i / kFours, ownOutput = i % kFours * 4;
    if (row + ownRow < layer.rows && output + ownOutput < layer.outputs)
      finishFour(layer, *reinterpret_cast<const float4 *>(piece + piecePlace(ownRow, ownOutput)), row + ownRow,
                 output + ownOutput);
  }
}

/// Finishes them: y from row `row` and output `output` on. `pieces` has room for one piece of each warpgroup; `group` is this one.
template <bool IsTransposed>
__device__ inline void finishProduct(const LinearArguments &layer, const float (&sums)[128], float *pieces, int group,
                                     int32_t row, int32_t output) {
  constexpr int kPieces = 128 / (kPieceSide / 2);
  float *own = pieces + group * kPieceSide * kPieceSide;
  auto meet = [&] { asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory"); };
#pragma unroll 1
  for (int piece = 0; piece < kPieces; ++piece) {
    // Numbers of registers are known in advance: one of these is the piece.
#pragma unroll
    for (int i = 0; i < kPieces; ++i)
      if (i == piece)
        leavePiece<IsTransposed>(sums, i, own);
    meet();
    if (isPlain(layer) && output + kPieceSide <= layer.outputs)
      finishPlainPiece(layer, own, row, output);
    else
      finishPiece(layer, own, row, output);
    meet();
    (IsTransposed ? row : output) += kPieceSide;
  }
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_PRODUCT_SUMS_H
