// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversion of float rows and quantized weights to planes of 16-bit elements: a thread makes eight elements of a
// row.

#include "../copy_rows.h"
#include "../device/weights.h"
#include "planes.h"

namespace hone::cuda {

__device__ inline void storePlanes(const PlanesArguments &args, int64_t row, int64_t column, const float (&values)[8]) {
  uint32_t high[4], low[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float a = values[2 * i], b = values[2 * i + 1];
    high[i] = args.type == HONE_F16 ? packF16x2(a, b) : packBf16x2(a, b);
    low[i] = packRestBf16x2(high[i], a, b);
  }
  char *to = args.to + (row * args.depth + column) * 2;
  *reinterpret_cast<uint4 *>(to) = {high[0], high[1], high[2], high[3]};
  if (args.planes == 2)
    *reinterpret_cast<uint4 *>(to + args.planeBytes) = {low[0], low[1], low[2], low[3]};
}

/// The element is the sum of the dense part, which is in the planes, and the outlier.
__device__ inline void addOutlier(const PlanesArguments &args, int64_t row, int64_t column, float value) {
  auto *high = reinterpret_cast<uint16_t *>(args.to + (row * args.depth + column) * 2);
  auto *low = reinterpret_cast<uint16_t *>(reinterpret_cast<char *>(high) + args.planeBytes);
  value += fromBf16(*high) + (args.planes == 2 ? fromBf16(*low) : 0);
  *high = static_cast<uint16_t>(packBf16x2(value, 0));
  if (args.planes == 2)
    *low = static_cast<uint16_t>(packBf16x2(value - fromBf16(*high), 0));
}

template <int Bits> __device__ inline void dequantizeToPlanes(const PlanesArguments &args, int64_t row,
                                                              int64_t column) {
  using Weight = AffineWeight<Bits>;
  const LinearArguments &layer = args.layer;
  Weight weight;
  int part = column / kPartInputs % Weight::kParts, lane = column / 8 % 4;
  auto chunk = static_cast<int32_t>(column / (kPartInputs * Weight::kParts));
  typename Weight::Row from(layer, row);
  weight.read(layer, from, chunk, lane);
  auto input = static_cast<int32_t>(column);
  StoredScale<Bits> stored;
  stored.read(layer, from, input);
  GroupScale group = stored.get(layer, input);
#pragma unroll
  for (int i = 0; i < Weight::kParts; ++i) {
    if (i != part)
      continue;
    uint32_t pairs[4];
    weight.expand(layer, i, lane, group.zero, pairs);
    float values[8];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      bool areHalves = Weight::kOrder == PairOrder::Halves;
      values[areHalves ? j : 2 * j] = group.scale * __uint_as_float(pairs[j] << 16);
      values[areHalves ? j + 4 : 2 * j + 1] = group.scale * __uint_as_float(pairs[j] & 0xffff0000);
    }
#pragma unroll
    for (int j = 0; j < 8; ++j)
      values[j] = column + j < layer.inputs ? values[j] : 0;
    storePlanes(args, row, column, values);
  }
}

} // namespace hone::cuda

extern "C" __global__ void __launch_bounds__(hone::cuda::kPlaneThreads)
    planes_of_rows(const __grid_constant__ hone::cuda::PlanesArguments args) {
  using namespace hone::cuda;
  int64_t column = 8 * (int64_t{kPlaneThreads} * blockIdx.x + threadIdx.x);
  if (column >= args.depth)
    return;
#pragma unroll 1
  for (int64_t row = blockIdx.y; row < args.rows; row += gridDim.y) {
    const char *from = args.from.data + args.from.offset(row) * bytesOf(args.from.dtype);
    float values[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      values[i] = column + i < args.from.count ? loadElement(from, (column + i) * args.from.inner, args.from.dtype) : 0;
    storePlanes(args, row, column, values);
  }
}

/// The same of rows whose neighbours are elements of a column, by tiles in shared memory: a thread has a quarter of a row's.
extern "C" __global__ void __launch_bounds__(hone::cuda::kPlaneThreads)
    planes_of_columns(const __grid_constant__ hone::cuda::PlanesArguments args) {
  using namespace hone::cuda;
  static_assert(kPlaneThreads * 8 == kTransposedTile * kTransposedTile);
  __shared__ float tile[kTransposedTile][kTransposedTile + 1];
  int lane = threadIdx.x % kTransposedTile, warp = threadIdx.x / kTransposedTile;
  int own = threadIdx.x / (kTransposedTile / 8), part = threadIdx.x % (kTransposedTile / 8) * 8;
  int64_t left = int64_t{kTransposedTile} * blockIdx.x, step = int64_t{kTransposedTile} * gridDim.y;
  for (int64_t top = int64_t{kTransposedTile} * blockIdx.y; top < args.rows; top += step) {
    for (int i = warp; i < kTransposedTile; i += kPlaneThreads / kTransposedTile) {
      bool exists = top + lane < args.rows && left + i < args.from.count;
      tile[i][lane] =
          exists ? loadElement(args.from.data, top + lane + (left + i) * args.from.inner, args.from.dtype) : 0;
    }
    __syncthreads();
    float values[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      values[i] = tile[part + i][own];
    if (top + own < args.rows && left + part < args.depth)
      storePlanes(args, top + own, left + part, values);
    __syncthreads();
  }
}

/// Blocks have panels of outputs, threads the outliers of their slots.
extern "C" __global__ void __launch_bounds__(hone::cuda::kPlaneThreads)
    add_outliers(const __grid_constant__ hone::cuda::PlanesArguments args) {
  using namespace hone::cuda;
  const Outliers &outliers = args.layer.outliers;
  int64_t row = int64_t{kPanelOutputs} * blockIdx.x + threadIdx.x % kPanelOutputs;
  if (row >= args.rows)
    return;
  int64_t end = int64_t{kPanelOutputs} * outliers.starts[blockIdx.x + 1];
  for (int64_t i = int64_t{kPanelOutputs} * outliers.starts[blockIdx.x] + threadIdx.x; i < end; i += kPlaneThreads)
    addOutlier(args, row, outliers.columns[i], fromF16(outliers.elements[i]));
}

#define HONE_PLANES_OF_CODES(name, bits)                                                                               \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kPlaneThreads)                                              \
      name(const __grid_constant__ hone::cuda::PlanesArguments args) {                                                 \
    int64_t column = 8 * (int64_t{hone::cuda::kPlaneThreads} * blockIdx.x + threadIdx.x);                              \
    if (column >= args.depth)                                                                                          \
      return;                                                                                                          \
    for (int64_t row = blockIdx.y; row < args.rows; row += gridDim.y)                                                  \
      hone::cuda::dequantizeToPlanes<bits>(args, row, column);                                                         \
  }

HONE_PLANES_OF_CODES(planes_of_affine8, 8)
HONE_PLANES_OF_CODES(planes_of_affine6, 6)
HONE_PLANES_OF_CODES(planes_of_affine5, 5)
HONE_PLANES_OF_CODES(planes_of_affine4, 4)
HONE_PLANES_OF_CODES(planes_of_affine3, 3)
HONE_PLANES_OF_CODES(planes_of_affine2, 2)
