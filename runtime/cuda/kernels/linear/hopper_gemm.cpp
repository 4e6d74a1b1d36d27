// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of both GEMMs on sm_90a, by dense and by 2:4 weights.

#include "hopper_gemm.h"

#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "hopper_sparse_gemm.h"
#include "planes.h"

namespace hone::cuda {
namespace {

/// What differs between the two kernels. In clusters, the blocks of the dense kernel have the same outputs and
/// multicast halves of W; those of the sparse kernel have the same rows and multicast halves of x.
struct Kernel {
  DeviceFunction functions[2][2]; // [bf16][clustered]
  int32_t rows, outputs;          // of a tile
  int32_t threads, sharedBytes;
};

constexpr Kernel kDense = {
    {{{kHopperGemmFatbin, "hopper_gemm_f16"}, {kHopperGemmFatbin, "hopper_gemm_cluster2_f16"}},
     {{kHopperGemmFatbin, "hopper_gemm_bf16"}, {kHopperGemmFatbin, "hopper_gemm_cluster2_bf16"}}},
    kHopperGemmRows,
    kHopperGemmOutputs,
    kHopperGemmThreads,
    kHopperGemmBytes};

constexpr Kernel kSparse = {{{{kHopperSparseGemmFatbin, "hopper_sparse_gemm_f16"},
                              {kHopperSparseGemmFatbin, "hopper_sparse_gemm_cluster2_f16"}},
                             {{kHopperSparseGemmFatbin, "hopper_sparse_gemm_bf16"},
                              {kHopperSparseGemmFatbin, "hopper_sparse_gemm_cluster2_bf16"}}},
                            kHopperSparseRows,
                            kHopperSparseOutputs,
                            kHopperSparseThreads,
                            kHopperSparseBytes};

const Kernel &kernelOf(const LinearArguments &layer) { return layer.indices ? kSparse : kDense; }

} // namespace

bool fitsHopperGemm(const DeviceLimits &limits, const LinearArguments &layer) {
  const Kernel &kernel = kernelOf(layer);
  int64_t tiles = divideUp(layer.rows, kernel.rows) * divideUp(layer.outputs, kernel.outputs);
  return limits.chip == 90 && layer.rows > kernel.rows / 2 && layer.inputs > 0 && 2 * tiles >= limits.multiprocessors;
}

void runHopperGemm(KernelDevice &device, const GemmArguments &args, const Planes &planes) {
  const LinearArguments &layer = args.linear;
  const Kernel &kernel = kernelOf(layer);
  bool isSparse = layer.indices != nullptr;
  int64_t rowTiles = divideUp(layer.rows, kernel.rows), outputTiles = divideUp(layer.outputs, kernel.outputs);
  bool isClustered = usesClusters(isSparse ? outputTiles : rowTiles);
  int32_t blocks = isClustered ? 2 : 1;
  TensorMap x = tensorMapOfPlanes(device, args.x, {planes.type, args.depth, layer.rows, planes.x},
                                  isSparse ? kernel.rows / blocks : kernel.rows);
  TensorMap weight = tensorMapOfPlanes(
      device, args.weight, {planes.type, isSparse ? args.depth / 2 : args.depth, layer.outputs, planes.weight},
      isSparse ? kernel.outputs : kernel.outputs / blocks, isSparse ? kHopperSparseKept : kBoxColumns);
  HopperGemmArguments all = {args, planes.x + planes.weight - 1};
  void *pointers[] = {&all, &x, &weight};
  device.launch(kernel.functions[planes.type != HONE_F16][isClustered],
                {{persistentBlocks(rowTiles * outputTiles, isClustered, device.limits().multiprocessors), 1, 1},
                 {static_cast<uint32_t>(kernel.threads), 1, 1},
                 static_cast<uint32_t>(kernel.sharedBytes)},
                pointers);
}

} // namespace hone::cuda
