// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of products of experts: grouped GEMV, or grouped GEMM with weights that are converted some experts at
// a time.

#include "expert_products.h"
#include "../copy_rows.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"
#include "experts.h"

#include <algorithm>

namespace hone::cuda {
namespace {

/// In the order of tiles 1x1, 2x1, 2x2, then the same for inputs that are split into hi and lo terms.
const char *mmaFunction(Format format, bool isSplit, const GemvPlan &plan) {
  static constexpr const char *names[8][2][3] = {
      {HONE_GEMV_TILE_NAMES("grouped_gemv_f16")},
      {HONE_GEMV_TILE_NAMES("grouped_gemv_bf16"), HONE_GEMV_TILE_NAMES("grouped_gemv_bf16_split")},
      {HONE_GEMV_TILE_NAMES("grouped_gemv_affine8"), HONE_GEMV_TILE_NAMES("grouped_gemv_affine8_split")},
      {HONE_GEMV_TILE_NAMES("grouped_gemv_affine4"), HONE_GEMV_TILE_NAMES("grouped_gemv_affine4_split")},
      {HONE_GEMV_TILE_NAMES("grouped_gemv_affine6"), HONE_GEMV_TILE_NAMES("grouped_gemv_affine6_split")},
      {HONE_GEMV_TILE_NAMES("grouped_gemv_affine5"), HONE_GEMV_TILE_NAMES("grouped_gemv_affine5_split")},
      {HONE_GEMV_TILE_NAMES("grouped_gemv_affine3"), HONE_GEMV_TILE_NAMES("grouped_gemv_affine3_split")},
      {HONE_GEMV_TILE_NAMES("grouped_gemv_affine2"), HONE_GEMV_TILE_NAMES("grouped_gemv_affine2_split")}};
  return names[static_cast<int>(format) - static_cast<int>(Format::F16)][isSplit][plan.rowTiles + plan.columnTiles - 2];
}

const char *fmaFunction(Format format, int32_t rowsAtOnce) {
  static constexpr const char *names[2][3] = {
      {"grouped_gemv_fma_f32_1", "grouped_gemv_fma_f32_4", "grouped_gemv_fma_f32_16"},
      {"grouped_gemv_fma_f16_1", "grouped_gemv_fma_f16_4", "grouped_gemv_fma_f16_16"}};
  return names[format == Format::F16][rowsAtOnce == 1 ? 0 : rowsAtOnce == 4 ? 1 : 2];
}

const char *planesFunction(const Planes &planes, int32_t tileRows) {
  static constexpr const char *names[4][2] = {{"grouped_gemm_f16_64", "grouped_gemm_f16_128"},
                                              {"grouped_gemm_bf16_64", "grouped_gemm_bf16_128"},
                                              {"grouped_gemm_split_64", "grouped_gemm_split_128"},
                                              {"grouped_gemm_double_64", "grouped_gemm_double_128"}};
  return names[planes.type == HONE_F16 ? 0 : planes.x + planes.weight - 1][tileRows == 128];
}

/// The part of the bias that a product reads.
RowView biasOf(const RowView &rows, const ExpertProduct &product) {
  RowView bias = rows;
  if (bias.data)
    bias.data += product.first * bias.inner * bytesOf(bias.dtype);
  bias.inner *= product.step;
  return bias;
}

int64_t biasStep(const RowView &rows) { return rows.strides[2] * bytesOf(rows.dtype); }

/// The layer of the experts from `first` on, with all their rows.
LinearArguments layerOf(const ExpertWeight &weight, int64_t first, int64_t count) {
  LinearArguments layer = weight.layer;
  int64_t skipped = first * weight.rows;
  layer.outputs = count * weight.rows;
  layer.weight += skipped * layer.weightStride;
  if (layer.scales)
    layer.scales += skipped * layer.groups * bytesOf(layer.scaleType);
  if (layer.zeros)
    layer.zeros += skipped * layer.zeroStride;
  return layer;
}

} // namespace

ExpertInputs::ExpertInputs(KernelDevice &device, Format format, const hone_tensor &tensor, const ExpertChoices &choices)
    : device(device), format(format), choices(choices), isGemm(usesGroupedGemm(choices.pairs(), choices.experts)),
      isPerPair(countRows(tensor) != choices.rows), x(rowsOf(tensor)), planes(), xPlanes() {
  int64_t rows = countRows(tensor);
  bool isCopied = false;
  if (isGemm) {
    planes = planesFor(format, x.dtype);
    xPlanes = planesOfInputs(device, x, rows, planes, isCopied);
    copy = isCopied ? const_cast<char *>(xPlanes.data) : nullptr;
    return;
  }
  int32_t type = inputTypeOf(format, x.dtype);
  if (x.dtype == type && x.isVector && x.count % 8 == 0)
    return;
  x = copyRows(device, x, rows, type);
  copy = x.data;
}

void ExpertInputs::release() {
  if (copy)
    device.release(copy);
}

void ExpertInputs::multiply(const ExpertWeight &weight, std::span<const ExpertProduct> products) {
  if (isGemm)
    return multiplyGemm(weight, products);
  for (const ExpertProduct &product : products)
    multiplyGemv(weight, product);
}

/// Sets what GEMV and GEMM need to know of a product.
void ExpertInputs::describe(ExpertLayer &layer, const ExpertWeight &weight, const ExpertProduct &product) const {
  layer.outputs = product.count;
  layer.activation = product.activation;
  layer.bias = biasOf(weight.bias, product);
  layer.factor = product.factor;
  layer.y = product.y;
  layer.choices = choicesOfInput();
  layer.pairs = choices.groups + choices.experts + 1;
}

void ExpertInputs::multiplyGemv(const ExpertWeight &weight, const ExpertProduct &product) {
  ExpertLayers args = {};
  ExpertLayer &layer = args.layer;
  static_cast<LinearArguments &>(layer) = weight.layer;
  args.weightStep = weight.rows * layer.weightStride;
  args.scaleStep = weight.rows * layer.groups * bytesOf(layer.scaleType);
  args.zeroStep = weight.rows * layer.zeroStride;
  args.biasStep = biasStep(weight.bias);
  layer.weight += product.first * layer.weightStride;
  layer.scales += product.first * layer.groups * bytesOf(layer.scaleType);
  layer.zeros += layer.zeros ? product.first * layer.zeroStride : 0;
  layer.weightStride *= product.step;
  layer.groups *= static_cast<int32_t>(product.step);
  layer.zeroStride *= product.step;
  describe(layer, weight, product);
  layer.x = x;
  args.offsets = choices.groups;
  args.experts = static_cast<int32_t>(choices.experts);

  int32_t multiprocessors = device.limits().multiprocessors;
  DeviceFunction function = {kGroupedGemvFatbin, nullptr};
  int64_t blocks = 0, sharedBytes = 0;
  int32_t tileRows = 0, warps = 0;
  if (usesFma(format, x.dtype)) {
    GemvFmaPlan plan = planGroupedGemvFma(choices.rows, choices.pairs(), choices.experts, layer.outputs, layer.inputs,
                                          multiprocessors);
    function.name = fmaFunction(format, plan.rowsAtOnce);
    tileRows = plan.rowsAtOnce, warps = plan.groups * plan.slices, blocks = plan.blocks;
    layer.slices = plan.slices, sharedBytes = gemvFmaSharedBytes(plan);
  } else {
    bool isSplit = x.dtype == HONE_F32;
    GemvPlan plan =
        planGroupedGemv(choices.rows, choices.pairs(), choices.experts, layer.outputs,
                        divideUp(layer.inputs, chunkInputs(format)), warpsOfGemv(format, layer), multiprocessors);
    function.name = mmaFunction(format, isSplit, plan);
    tileRows = 8 * plan.columnTiles, warps = plan.slices, blocks = plan.blocks;
    layer.slices = plan.slices, sharedBytes = gemvSharedBytes(plan);
  }
  layer.stride = layer.slices;
  void *pointers[] = {&args};
  device.launch(function,
                {{static_cast<uint32_t>(blocks),
                  static_cast<uint32_t>(expertTiles(choices.pairs(), choices.experts, tileRows)), 1},
                 {32 * static_cast<uint32_t>(warps), 1, 1},
                 static_cast<uint32_t>(sharedBytes)},
                pointers);
}

void ExpertInputs::multiplyGemm(const ExpertWeight &weight, std::span<const ExpertProduct> products) {
  bool isExpanded = !planes.areWeights(format);
  int64_t expertBytes = weight.rows * roundUp(weight.layer.inputs, 8) * 2 * planes.weight;
  int64_t slab = isExpanded ? expertsOfSlab(choices.experts, expertBytes) : choices.experts;
  for (int64_t first = 0; first < choices.experts; first += slab) {
    int64_t count = std::min(slab, choices.experts - first);
    LinearArguments layer = layerOf(weight, first, count);
    PlaneView expanded =
        isExpanded ? planesOfWeight(device, format, layer, planes) : PlaneView{layer.weight, layer.weightStride, 0};
    for (const ExpertProduct &product : products)
      multiplyPlanes(weight, expanded, first, count, product);
    if (isExpanded)
      device.release(const_cast<char *>(expanded.data));
  }
}

/// `view`: the weights of `count` experts from `first` on.
void ExpertInputs::multiplyPlanes(const ExpertWeight &weight, const PlaneView &view, int64_t first, int64_t count,
                                  const ExpertProduct &product) {
  ExpertPlanes args = {};
  ExpertLayer &linear = args.layer.linear;
  linear.inputs = weight.layer.inputs;
  describe(linear, weight, product);
  args.biasStep = biasStep(weight.bias);
  if (linear.bias.data)
    linear.bias.data += first * args.biasStep;
  args.layer.x = xPlanes;
  args.layer.weight = {view.data + product.first * view.rowBytes, view.rowBytes * product.step, view.planeBytes};
  args.layer.depth = roundUp(linear.inputs, 8);
  args.layer.steps = static_cast<int32_t>(divideUp(args.layer.depth, kTileDepth));
  args.weightStep = weight.rows * view.rowBytes;
  args.offsets = choices.groups + first;
  args.experts = static_cast<int32_t>(count);

  int32_t tileRows = tileRowsOf(choices.pairs() / choices.experts);
  auto rowTiles = static_cast<int32_t>(expertTiles(choices.pairs(), count, tileRows));
  void *pointers[] = {&args, &rowTiles};
  device.launch({kGroupedGemmFatbin, planesFunction(planes, tileRows)},
                {{static_cast<uint32_t>(rowTiles * divideUp(linear.outputs, kTileOutputs)), 1, 1},
                 {kGemmThreads, 1, 1},
                 static_cast<uint32_t>(expertPlanesSharedBytes(tileRows, planes.x, planes.weight))},
                pointers);
}

} // namespace hone::cuda
