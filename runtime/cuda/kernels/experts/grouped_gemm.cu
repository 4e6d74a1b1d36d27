// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Grouped GEMM: layers of experts with large M.

#include "../device/expert_tile.h"
#include "../device/gemm_kernel.h"

namespace hone::cuda {

template <bool IsHalf, int TileRows, int XPlanes, int WeightPlanes>
__device__ inline void groupedGemm(const ExpertPlanes &args, int32_t rowTiles, char *shared) {
  auto &layer =
      *reinterpret_cast<PlanesOfLayer<ExpertLayer> *>(shared + gemmSharedBytes(TileRows, XPlanes, WeightPlanes));
  TileIndex index = tileOfBlock(blockIdx.x, rowTiles, divideUp(args.layer.linear.outputs, kTileOutputs));
  int32_t rowTile = 0;
  if (!enterExpert(args, TileRows, static_cast<int32_t>(index.row), layer, rowTile))
    return;
  index.row = rowTile;
  Gemm<IsHalf, TileRows, XPlanes, WeightPlanes, PlanesOfLayer<ExpertLayer>>(layer, index, shared).run();
}

} // namespace hone::cuda

#define HONE_GROUPED_GEMM(name, isHalf, tileRows, xPlanes, weightPlanes)                                               \
  extern "C" __global__ void __launch_bounds__(hone::cuda::kGemmThreads, 1)                                            \
      name(const __grid_constant__ hone::cuda::ExpertPlanes args, int32_t rowTiles) {                                  \
    extern __shared__ __align__(128) char gemmShared[];                                                                \
    hone::cuda::groupedGemm<isHalf, tileRows, xPlanes, weightPlanes>(args, rowTiles, gemmShared);                      \
  }

HONE_GROUPED_GEMM(grouped_gemm_f16_64, true, 64, 1, 1)
HONE_GROUPED_GEMM(grouped_gemm_f16_128, true, 128, 1, 1)
HONE_GROUPED_GEMM(grouped_gemm_bf16_64, false, 64, 1, 1)
HONE_GROUPED_GEMM(grouped_gemm_bf16_128, false, 128, 1, 1)
HONE_GROUPED_GEMM(grouped_gemm_split_64, false, 64, 2, 1)
HONE_GROUPED_GEMM(grouped_gemm_split_128, false, 128, 2, 1)
HONE_GROUPED_GEMM(grouped_gemm_double_64, false, 64, 2, 2)
HONE_GROUPED_GEMM(grouped_gemm_double_128, false, 128, 2, 2)
