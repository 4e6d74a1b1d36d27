// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of several matrices by FMA in f32: a block makes a tile of c, and loads the next inputs while it multiplies.

#include "../device/elements.h"
#include "matmul.h"

namespace hone::cuda {

/// Tiles of operands, [inputs][rows of a or columns of b]; four elements more keep accesses of 16 bytes aligned and neighbours in
/// different banks.
using ProductTile = float[kProductDepth][kProductTile + 4];

constexpr int kElementsOfThread = kProductTile * kProductDepth / kProductThreads;

/// One of the operands of a product: `outer` are rows of a or columns of b. A thread has elements of a tile a step apart, and threads go
/// along the axis whose elements are neighbours.
struct ProductOperand {
  const char *data; // of the thread's first element
  int32_t dtype, outer, input, outerStep, inputStep, outersLeft, inputsLeft;
  int64_t step, advance; // elements: between those of the thread, and from tile to tile

  __device__ ProductOperand(const char *matrix, int32_t type, int64_t outerStride, int64_t inputStride, int64_t outers,
                            int64_t inputs, int64_t firstOuter)
      : dtype(type) {
    bool goesAlongInputs = inputStride == 1;
    auto thread = static_cast<int32_t>(threadIdx.x);
    outer = goesAlongInputs ? thread / kProductDepth : thread % kProductTile;
    input = goesAlongInputs ? thread % kProductDepth : thread / kProductTile;
    outerStep = goesAlongInputs ? kProductThreads / kProductDepth : 0;
    inputStep = goesAlongInputs ? 0 : kProductThreads / kProductTile;
    outersLeft = static_cast<int32_t>(outers - firstOuter) - outer;
    inputsLeft = static_cast<int32_t>(inputs) - input;
    step = outerStep * outerStride + inputStep * inputStride;
    advance = kProductDepth * inputStride;
    data = matrix + ((firstOuter + outer) * outerStride + input * inputStride) * bytesOf(type);
  }

  /// Elements of the next tile; 0 outside of the matrix.
  __device__ void load(float (&values)[kElementsOfThread]) {
#pragma unroll
    for (int i = 0; i < kElementsOfThread; ++i) {
      bool exists = i * outerStep < outersLeft && i * inputStep < inputsLeft;
      values[i] = exists ? loadElement(data, i * step, dtype) : 0;
    }
    data += advance * bytesOf(dtype);
    inputsLeft -= kProductDepth;
  }

  __device__ void store(const float (&values)[kElementsOfThread], ProductTile &tile) const {
#pragma unroll
    for (int i = 0; i < kElementsOfThread; ++i)
      tile[input + i * inputStep][outer + i * outerStep] = values[i];
  }
};

/// The bytes before matrix `number` of a tensor.
__device__ inline int64_t bytesBefore(const MatmulArguments &args, const Matrices &matrices, int64_t number) {
  int64_t elements = 0;
  for (int axis = 0; axis < kLeadingAxes; ++axis) {
    elements += number % args.sizes[axis] * matrices.strides[axis];
    number /= args.sizes[axis];
  }
  return elements * bytesOf(matrices.dtype);
}

/// The thread's part of a tile of c.
struct ProductSums {
  float sums[kThreadRows][kThreadColumns] = {};
  int row = static_cast<int>(threadIdx.x) / (kProductTile / kThreadColumns) * kThreadRows;
  int column = static_cast<int>(threadIdx.x) % (kProductTile / kThreadColumns) * kThreadColumns;

  __device__ void add(const ProductTile &a, const ProductTile &b) {
#pragma unroll
    for (int k = 0; k < kProductDepth; ++k) {
      float4 rows[kThreadRows / 4], columns = *reinterpret_cast<const float4 *>(&b[k][column]);
#pragma unroll
      for (int i = 0; i < kThreadRows / 4; ++i)
        rows[i] = *reinterpret_cast<const float4 *>(&a[k][row + 4 * i]);
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) {
        const float4 &four = rows[i / 4];
        float x = i % 4 == 0 ? four.x : i % 4 == 1 ? four.y : i % 4 == 2 ? four.z : four.w;
        sums[i][0] = fmaf(x, columns.x, sums[i][0]);
        sums[i][1] = fmaf(x, columns.y, sums[i][1]);
        sums[i][2] = fmaf(x, columns.z, sums[i][2]);
        sums[i][3] = fmaf(x, columns.w, sums[i][3]);
      }
    }
  }

  __device__ void store(const MatmulArguments &args, char *c, int64_t firstRow, int64_t firstColumn) const {
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i)
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) {
        int64_t m = firstRow + row + i, n = firstColumn + column + j;
        if (m >= args.rows || n >= args.columns)
          continue;
        int64_t place = m * args.c.rowStride + n * args.c.columnStride;
        float before = args.accumulates ? loadElement(c, place, args.c.dtype) : 0;
        storeElement(c, place, args.c.dtype, before + sums[i][j]);
      }
  }
};

__device__ inline void multiplyTile(const MatmulArguments &args, int64_t matrix, int64_t firstRow, int64_t firstColumn,
                                    ProductTile &aTile, ProductTile &bTile) {
  ProductOperand a(args.a.data + bytesBefore(args, args.a, matrix), args.a.dtype, args.a.rowStride, args.a.columnStride,
                   args.rows, args.inputs, firstRow);
  ProductOperand b(args.b.data + bytesBefore(args, args.b, matrix), args.b.dtype, args.b.columnStride, args.b.rowStride,
                   args.columns, args.inputs, firstColumn);
  ProductSums sums;
  float aValues[kElementsOfThread], bValues[kElementsOfThread];
  a.load(aValues);
  b.load(bValues);
  for (int64_t first = 0; first < args.inputs; first += kProductDepth) {
    a.store(aValues, aTile);
    b.store(bValues, bTile);
    __syncthreads();
    a.load(aValues); // nothing after the last
    b.load(bValues);
    sums.add(aTile, bTile);
    __syncthreads();
  }
  sums.store(args, args.c.data + bytesBefore(args, args.c, matrix), firstRow, firstColumn);
}

} // namespace hone::cuda

extern "C" __global__ void __launch_bounds__(hone::cuda::kProductThreads, 4)
    matmul(const __grid_constant__ hone::cuda::MatmulArguments args) {
  using namespace hone::cuda;
  __shared__ __align__(16) ProductTile aTile, bTile;
  int64_t firstColumn = int64_t{kProductTile} * blockIdx.x;
  for (int64_t matrix = blockIdx.z; matrix < args.matrices; matrix += gridDim.z)
    for (int64_t row = int64_t{kProductTile} * blockIdx.y; row < args.rows; row += int64_t{kProductTile} * gridDim.y)
      multiplyTile(args, matrix, row, firstColumn, aTile, bTile);
}
