// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mixtures of experts: kernel arguments, and the tile of rows of each block. A pair is a row with one of its choices,
// number row · choices + choice; the pairs routed to an expert are the rows of its layer, wherever they lie.

#ifndef HONE_RUNTIME_CUDA_KERNELS_EXPERTS_EXPERTS_H
#define HONE_RUNTIME_CUDA_KERNELS_EXPERTS_EXPERTS_H

#include "../linear/gemm.h"
#include "../linear/gemv.h"

namespace hone::cuda {

/// Pairs by expert, as expert_groups writes them: experts + 1 offsets of the pairs of each expert, then the pairs, in
/// order within an expert. Choices that name no expert are left out.
HONE_HOST_DEVICE constexpr int64_t groupsCount(int64_t pairs, int64_t experts) { return experts + 1 + pairs; }

/// The layer of one expert: its row r is row pairs[r] of factor and y, and pairs[r] / choices of x.
struct ExpertLayer : LinearArguments {
  static constexpr bool kMayHaveOutliers = false;

  const int32_t *pairs;
  int32_t choices;

  HONE_HOST_DEVICE int64_t inputRow(int64_t row) const { return pairs[row] / choices; }
  HONE_HOST_DEVICE int64_t outputRow(int64_t row) const { return pairs[row]; }
};

/// The layers of consecutive experts. `Layer` is ExpertLayer or PlanesOfLayer<ExpertLayer>: the layer of the first
/// one, without its rows.
template <class Layer> struct LayersOfExperts {
  Layer layer;
  const int32_t *offsets; // of the first expert in the groups
  int32_t experts;
  int64_t weightStep, scaleStep, zeroStep, biasStep; // bytes between experts
};
using ExpertLayers = LayersOfExperts<ExpertLayer>;
using ExpertPlanes = LayersOfExperts<PlanesOfLayer<ExpertLayer>>;

/// Stages and accumulators of GEMM, followed by the block's layer.
HONE_HOST_DEVICE constexpr int32_t expertPlanesSharedBytes(int32_t tileRows, int32_t xPlanes, int32_t weightPlanes) {
  return gemmSharedBytes(tileRows, xPlanes, weightPlanes) + int32_t{sizeof(PlanesOfLayer<ExpertLayer>)};
}

struct GroupsArguments {
  RowView ids; // its dtype is HONE_I32 or HONE_I64
  int64_t pairs;
  int32_t experts;
  int32_t *groups;
};

/// y[r] = sum over t of weights[r, t] · parts[r · choices + t], over the choices that are experts.
struct ExpertSumArguments {
  RowView ids, weights, y;
  const float *parts; // dense rows of y's elements
  int64_t rows;
  int32_t experts, choices;
};

constexpr int32_t kGroupsThreads = 256, kExpertSumThreads = 256;

/// The most tiles of `tileRows` rows that `pairs` pairs of `experts` experts make, whatever the routing: all full
/// ones, and a partial one for each expert that is chosen.
HONE_HOST_DEVICE constexpr int64_t expertTiles(int64_t pairs, int64_t experts, int64_t tileRows) {
  int64_t chosen = pairs < experts ? pairs : experts;
  return (pairs + chosen * (tileRows - 1)) / tileRows;
}

/// Whether experts have so many rows on average that grouped GEMM pays.
HONE_HOST_DEVICE constexpr bool usesGroupedGemm(int64_t pairs, int64_t experts) { return pairs > 32 * experts; }

/// The rows that grouped GEMV is planned for: no expert has more than there are rows, and with few on average most
/// have one tile of eight.
HONE_HOST_DEVICE constexpr int64_t plannedRows(int64_t rows, int64_t pairs, int64_t experts) {
  return pairs > 4 * experts && rows > 8 ? 16 : rows < 8 ? rows : 8;
}

/// The most warps of a block: with sixteen, the expert's layer in shared memory leaves too few registers.
constexpr int32_t kExpertSlices = 8;

/// planGemv for all chosen experts at once.
HONE_HOST_DEVICE constexpr GemvPlan planGroupedGemv(int64_t rows, int64_t pairs, int64_t experts, int64_t outputs,
                                                    int64_t chunks, int32_t warps, int32_t multiprocessors) {
  int64_t chosen = pairs < experts ? pairs : experts;
  GemvPlan plan = planGemv(plannedRows(rows, pairs, experts), outputs * chosen, chunks, warps, multiprocessors);
  plan.blocks = divideUp(outputs, 16 * plan.rowTiles);
  plan.slices = plan.slices < kExpertSlices ? plan.slices : kExpertSlices;
  return plan;
}

/// planGemvFma likewise.
HONE_HOST_DEVICE constexpr GemvFmaPlan planGroupedGemvFma(int64_t rows, int64_t pairs, int64_t experts, int64_t outputs,
                                                          int64_t inputs, int32_t multiprocessors) {
  int64_t chosen = pairs < experts ? pairs : experts;
  GemvFmaPlan plan = planGemvFma(plannedRows(rows, pairs, experts), outputs * chosen, inputs, multiprocessors);
  plan.blocks = divideUp(outputs, int64_t{kGemvFmaOutputs} * plan.groups);
  return plan;
}

/// How many experts' weights are converted at once: up to 64 MiB of `expertBytes` each, but one at least.
HONE_HOST_DEVICE constexpr int64_t expertsOfSlab(int64_t experts, int64_t expertBytes) {
  int64_t most = (int64_t{64} << 20) / (expertBytes > 0 ? expertBytes : 1);
  return most < 1 ? 1 : most < experts ? most : experts;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_EXPERTS_EXPERTS_H
