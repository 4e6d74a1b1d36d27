// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of GEMM: the planes of operands, and weights that are dequantized or split a slab of outputs at a
// time.

#include "gemm.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "hopper_gemm.h"
#include "library_gemm.h"
#include "linear_format.h"
#include "planes.h"
#include "reduce_epilogue.h"
#include "sparse_gemm.h"

#include <algorithm>

namespace hone::cuda {
namespace {

const char *functionFor(const Planes &planes, int32_t tileRows, bool isSparse) {
  static constexpr const char *sparseNames[4][2] = {{"sparse_gemm_f16_64", "sparse_gemm_f16_128"},
                                                    {"sparse_gemm_bf16_64", "sparse_gemm_bf16_128"},
                                                    {"sparse_gemm_split_64", "sparse_gemm_split_128"},
                                                    {"sparse_gemm_double_64", "sparse_gemm_double_128"}};
  static constexpr const char *names[4][2] = {{"gemm_f16_64", "gemm_f16_128"},
                                              {"gemm_bf16_64", "gemm_bf16_128"},
                                              {"gemm_split_64", "gemm_split_128"},
                                              {"gemm_double_64", "gemm_double_128"}};
  return (isSparse ? sparseNames : names)[planes.type == HONE_F16 ? 0 : planes.x + planes.weight - 1][tileRows == 128];
}

void skipOutputs(RowView &view, int64_t count) {
  if (view.data)
    view.data += count * view.inner * bytesOf(view.dtype);
}

/// Outputs first … first + count - 1 of a layer.
LinearArguments slabOf(LinearArguments layer, int64_t first, int64_t count) {
  layer.outputs = count;
  layer.weight += first * layer.weightStride;
  if (layer.scales)
    layer.scales += first * layer.groups * bytesOf(layer.scaleType);
  if (layer.zeros)
    layer.zeros += first * layer.zeroStride;
  if (layer.outliers.starts)
    layer.outliers.starts += first / kPanelOutputs; // slabs are whole panels
  if (layer.indices)
    layer.indices += first * layer.indexStride;
  skipOutputs(layer.bias, first);
  skipOutputs(layer.factor, first);
  skipOutputs(layer.residual, first);
  skipOutputs(layer.y, first);
  return layer;
}

/// The layer whose weight is the kept elements of a 2:4 weight.
LinearArguments keptOf(LinearArguments layer) {
  if (!layer.indices)
    return layer;
  layer.inputs /= 2;
  layer.groupShift -= layer.groupShift < 31 ? 1 : 0;
  return layer;
}

/// By 2:4 weights.
void multiplySparse(KernelDevice &device, GemmArguments args, const Planes &planes) {
  if (fitsHopperGemm(device.limits(), args.linear))
    return runHopperGemm(device, args, planes);
  int32_t tileRows = tileRowsOf(args.linear.rows);
  int64_t blocks = divideUp(args.linear.rows, tileRows) * divideUp(args.linear.outputs, kTileOutputs);
  void *pointers[] = {&args};
  device.launch({kSparseGemmFatbin, functionFor(planes, tileRows, /*isSparse=*/true)},
                {{static_cast<uint32_t>(blocks), 1, 1},
                 {kGemmThreads, 1, 1},
                 static_cast<uint32_t>(sparseSharedBytes(tileRows, planes.x, planes.weight))},
                pointers);
}

void multiply(KernelDevice &device, GemmArguments args, const Planes &planes) {
  const LinearArguments &layer = args.linear;
  if (fitsHopperGemm(device.limits(), layer))
    return runHopperGemm(device, args, planes);
  int32_t tileRows = tileRowsOf(layer.rows);
  int64_t blocks = divideUp(layer.rows, tileRows) * divideUp(layer.outputs, kTileOutputs);
  SplitKPlan plan = planSplitK(blocks, args.depth, device.limits().multiprocessors);
  args.steps = plan.steps;
  int64_t sums = layer.rows * layer.outputs;
  if (plan.splits > 1)
    args.partialSums = static_cast<float *>(device.acquire(static_cast<uint64_t>(4 * plan.splits * sums)));
  void *pointers[] = {&args};
  device.launch({kGemmFatbin, functionFor(planes, tileRows, /*isSparse=*/false)},
                {{static_cast<uint32_t>(blocks), static_cast<uint32_t>(plan.splits), 1},
                 {kGemmThreads, 1, 1},
                 static_cast<uint32_t>(gemmSharedBytes(tileRows, planes.x, planes.weight))},
                pointers);
  if (!args.partialSums)
    return;
  reduceEpilogue(device, {layer, args.partialSums, layer.outputs, sums, plan.splits});
  device.release(args.partialSums);
}

} // namespace

void runGemm(KernelDevice &device, Format format, LinearArguments layer) {
  Planes planes = planesFor(format, layer.x.dtype);
  GemmArguments args = {};
  args.depth = roundUp(layer.inputs, 8);
  bool isCopied = false, isExpanded = !planes.areWeights(format);
  args.x = planesOfInputs(device, layer.x, layer.rows, planes, isCopied);
  int64_t slab = isExpanded ? outputsOfSlab(layer.outputs, args.depth * 2 * planes.weight) : layer.outputs;
  for (int64_t first = 0; first < layer.outputs; first += slab) {
    args.linear = slabOf(layer, first, std::min(slab, layer.outputs - first));
    args.weight = isExpanded ? planesOfWeight(device, format, keptOf(args.linear), planes)
                             : PlaneView{layer.weight, layer.weightStride, 0};
    if (layer.indices)
      multiplySparse(device, args, planes);
    else if (!runLibraryGemm(device, args, planes))
      multiply(device, args, planes);
    if (isExpanded)
      device.release(const_cast<char *>(args.weight.data));
  }
  if (isCopied)
    device.release(const_cast<char *>(args.x.data));
}

} // namespace hone::cuda
