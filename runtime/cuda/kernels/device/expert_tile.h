// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: the expert and the tile of rows that a block of a grouped kernel computes.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_EXPERT_TILE_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_EXPERT_TILE_H

#include "../experts/experts.h"

namespace hone::cuda {

/// Tile `rowTile` of an expert whose pairs are `count` from `begin` on; count is 0 where the block has no work.
struct ExpertTile {
  int32_t expert, rowTile, begin, count;
};

/// Tile `tile` of all, in the order of experts. A warp looks at 32 experts at a time.
__device__ inline ExpertTile findExpertTile(const int32_t *offsets, int32_t experts, int32_t tileRows, int32_t tile) {
  int32_t lane = threadIdx.x % 32;
  for (int32_t first = 0; first < experts; first += 32) {
    int32_t expert = first + lane;
    int32_t begin = expert < experts ? offsets[expert] : 0, count = expert < experts ? offsets[expert + 1] - begin : 0;
    int32_t tiles = (count + tileRows - 1) / tileRows, end = tiles;
    for (int32_t distance = 1; distance < 32; distance *= 2) {
      int32_t other = __shfl_up_sync(~0u, end, distance);
      end += lane >= distance ? other : 0;
    }
    uint32_t endsAfter = __ballot_sync(~0u, tile < end);
    if (endsAfter != 0) {
      int32_t found = __ffs(endsAfter) - 1;
      return {first + found, tile - __shfl_sync(~0u, end - tiles, found), __shfl_sync(~0u, begin, found),
              __shfl_sync(~0u, count, found)};
    }
    tile -= __shfl_sync(~0u, end, 31);
  }
  return {0, 0, 0, 0};
}

/// Advances the layer of the first expert to the tile's expert.
__device__ inline void moveTo(const ExpertLayers &all, const ExpertTile &tile, ExpertLayer &layer) {
  layer.weight += tile.expert * all.weightStep;
  if (layer.scales)
    layer.scales += tile.expert * all.scaleStep;
  if (layer.zeros)
    layer.zeros += tile.expert * all.zeroStep;
  if (layer.bias.data)
    layer.bias.data += tile.expert * all.biasStep;
  layer.pairs += tile.begin;
  layer.rows = tile.count;
}

__device__ inline void moveTo(const ExpertPlanes &all, const ExpertTile &tile, PlanesOfLayer<ExpertLayer> &layer) {
  layer.weight.data += tile.expert * all.weightStep;
  if (layer.linear.bias.data)
    layer.linear.bias.data += tile.expert * all.biasStep;
  layer.linear.pairs += tile.begin;
  layer.linear.rows = tile.count;
}

/// The layer of the block's expert, in shared memory, and the tile of its rows; false where the block has no rows.
template <class Layer> __device__ inline bool enterExpert(const LayersOfExperts<Layer> &args, int32_t tileRows,
                                                          int32_t tile, Layer &layer, int32_t &rowTile) {
  __shared__ ExpertTile found;
  if (threadIdx.x < 32) {
    ExpertTile own = findExpertTile(args.offsets, args.experts, tileRows, tile);
    if (threadIdx.x == 0) {
      found = own;
      if (own.count > 0) {
        layer = args.layer;
        moveTo(args, own, layer);
      }
    }
  }
  __syncthreads();
  rowTile = found.rowTile;
  return found.count > 0;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_EXPERT_TILE_H
