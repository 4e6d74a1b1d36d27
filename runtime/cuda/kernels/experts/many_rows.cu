// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of experts that have many rows each.

#include "../device/expert_tile.h"
#include "../device/many_rows_kernel.h"

namespace hone::cuda {

template <bool IsHalf, int TileRows, int XPlanes, int WeightPlanes>
__device__ inline void multiplyExperts(const ExpertPlanes &args, int32_t rowTiles, char *shared) {
  auto &layer =
      *reinterpret_cast<PlanesOfLayer<ExpertLayer> *>(shared + manyRowsSharedBytes(TileRows, XPlanes, WeightPlanes));
  TilePlace place = tileOfBlock(blockIdx.x, rowTiles, divideUp(args.layer.linear.outputs, kTileOutputs));
  int32_t rowTile = 0;
  if (!enterExpert(args, TileRows, static_cast<int32_t>(place.row), layer, rowTile))
    return;
  place.row = rowTile;
  ManyRows<IsHalf, TileRows, XPlanes, WeightPlanes, PlanesOfLayer<ExpertLayer>>(layer, place, shared).run();
}

} // namespace hone::cuda

#define HONE_MANY_EXPERT_ROWS(name, isHalf, tileRows, xPlanes, weightPlanes)                                           \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kManyRowsThreads, 1)                                        \
      name(const __grid_constant__ hone::cuda::ExpertPlanes args, int32_t rowTiles) {                                  \
    extern __shared__ __align__(128) char manyRowsShared[];                                                            \
    hone::cuda::multiplyExperts<isHalf, tileRows, xPlanes, weightPlanes>(args, rowTiles, manyRowsShared);              \
  }

HONE_MANY_EXPERT_ROWS(many_expert_rows_f16_64, true, 64, 1, 1)
HONE_MANY_EXPERT_ROWS(many_expert_rows_f16_128, true, 128, 1, 1)
HONE_MANY_EXPERT_ROWS(many_expert_rows_bf16_64, false, 64, 1, 1)
HONE_MANY_EXPERT_ROWS(many_expert_rows_bf16_128, false, 128, 1, 1)
HONE_MANY_EXPERT_ROWS(many_expert_rows_split_64, false, 64, 2, 1)
HONE_MANY_EXPERT_ROWS(many_expert_rows_split_128, false, 128, 2, 1)
HONE_MANY_EXPERT_ROWS(many_expert_rows_double_64, false, 64, 2, 2)
HONE_MANY_EXPERT_ROWS(many_expert_rows_double_128, false, 128, 2, 2)
