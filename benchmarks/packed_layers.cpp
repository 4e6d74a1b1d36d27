// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of packed linear layers.

#include "packed_layers.h"

#include "limits.h"

#include "hone/cpu/packing/pack_codebook.h"
#include "hone/cpu/packing/pack_sparse.h"
#include "hone/cpu/packing/panel_block.h"

#include <algorithm>
#include <cstring>

namespace hone::bench {

using cpu::PackedFormat;

LayerOutliers::LayerOutliers(const LayerSize &size, double share, std::mt19937 &random) {
  constexpr size_t rows = cpu::kPanelOutputs;
  std::uniform_int_distribution<int64_t> input(0, size.inputs - 1);
  for (int64_t panel = 0; panel <= (size.outputs + cpu::kPanelOutputs - 1) / cpu::kPanelOutputs; ++panel)
    starts.push_back(static_cast<int32_t>(share * static_cast<double>(panel * size.inputs)));
  columns.resize(static_cast<size_t>(starts.back()) * rows);
  for (size_t panel = 0; panel + 1 < starts.size(); ++panel) {
    std::vector<uint16_t> inputs(static_cast<size_t>(starts[panel + 1] - starts[panel]));
    for (size_t output = 0; output < rows; ++output) {
      std::ranges::generate(inputs, [&] { return static_cast<uint16_t>(input(random)); });
      std::ranges::sort(inputs);
      for (size_t i = 0; i < inputs.size(); ++i)
        columns[(static_cast<size_t>(starts[panel]) + i) * rows + output] = inputs[i];
    }
  }
  values.assign(columns.size(), static_cast<_Float16>(0.25f));
}

std::array<hone_tensor, 3> LayerOutliers::views() {
  int64_t rows = cpu::kPanelOutputs, slots = static_cast<int64_t>(columns.size()) / rows;
  return {viewOf(starts.data(), HONE_I32, {static_cast<int64_t>(starts.size())}),
          viewOf(columns.data(), HONE_I16, {slots, rows}), viewOf(values.data(), HONE_F16, {slots, rows})};
}

/// The planes of a weight by their sizes, of f16 or of bytes, whatever their elements are.
static std::vector<hone_tensor> planesOf(const LinearCase &test, const cpu::LinearShape &shape) {
  std::vector<hone_tensor> planes;
  auto add = [&](hone_dtype dtype, const auto &sizes) {
    planes.push_back(viewOf(nullptr, dtype, std::vector<int64_t>(sizes.begin(), sizes.end())));
  };
  if (test.codebook > 0) {
    add(HONE_U8, cpu::packedIndexPlane(test.codebook, shape));
    add(HONE_U8, cpu::packedTablePlane(test.codebook, shape));
    return planes;
  }
  auto sizes = test.isSparse ? packedSparseShape(test.format, shape) : packedLinearShape(test.format, shape);
  int64_t elementBytes = test.format == PackedFormat::F32 ? 4 : isQuantized(test.format) ? 1 : 2;
  sizes[3] *= elementBytes;
  add(HONE_U8, sizes);
  if (test.isSparse)
    add(HONE_U8, packedIndexShape(test.format, shape));
  if (isQuantized(test.format))
    add(HONE_F16, packedScaleShape(test.format, shape));
  return planes;
}

static int64_t elementBytesOf(const hone_tensor &plane) { return plane.dtype == HONE_F16 ? 2 : 1; }

/// What `planes` have of a panel.
static cpu::PanelBlock blockOf(std::span<const hone_tensor> planes) {
  std::vector<int64_t> bytes;
  for (const hone_tensor &plane : planes)
    bytes.push_back(plane.strides[0] * elementBytesOf(plane));
  return cpu::PanelBlock(bytes);
}

/// Makes all numbers of tables normal: their low and high bytes lie apart, so that those of the memory would have
/// subnormal ones, which FMA is slow with.
static void writeTables(const hone_tensor &tables) {
  constexpr int isNormal = 0x3c; // 0x3c3c is 0.011 as bf16, and 1.06 as f16
  auto *panel = static_cast<uint8_t *>(tables.data);
  for (int64_t i = 0; i < tables.sizes[0]; ++i, panel += tables.strides[0])
    std::memset(panel, isNormal, static_cast<size_t>(tables.sizes[1] * tables.sizes[2] * tables.sizes[3]));
}

PackedLayers::PackedLayers(const LinearCase &test, const LayerSize &size, int64_t rows, int64_t most,
                           std::span<uint8_t> pool)
    : test(test), x(rows * size.inputs, 0.25f), y(rows * size.outputs, 0) {
  std::vector<hone_tensor> planes = planesOf(test, {size.outputs, size.inputs, test.group});
  cpu::PanelBlock block = blockOf(planes);
  bool isRecord = planes.size() > 1;
  layerBytes = planes[0].sizes[0] * (isRecord ? block.bytes : planes[0].strides[0]);
  count = std::min(most, static_cast<int64_t>(pool.size()) / layerBytes);
  for (int64_t i = 0; i < count; ++i) {
    std::vector<hone_tensor> operands = {viewOf(x.data(), HONE_F32, {rows, size.inputs})};
    if (test.outliers > 0)
      for (const hone_tensor &plane : outliers.emplace_back(size, test.outliers, random).views())
        operands.push_back(plane);
    for (size_t p = 0; p < planes.size(); ++p) {
      hone_tensor &plane = operands.emplace_back(planes[p]);
      plane.data = pool.data() + i * layerBytes + block.offsets[p];
      if (isRecord)
        plane.strides[0] = block.bytes / elementBytesOf(plane);
      if (test.codebook > 0 && p == 1)
        writeTables(plane);
    }
    if (isQuantized(test.format) && test.codebook == 0)
      operands.push_back(viewOf(nullptr, HONE_U8, {0})); // zeros
    for (int absent = 0; absent < 3; ++absent)
      operands.push_back(absentOperand());
    operands.push_back(viewOf(y.data(), HONE_F32, {rows, size.outputs}));
    calls.push_back(std::move(operands));
  }
}

double PackedLayers::run(hone_kernel_fn kernel, int threads) const {
  int64_t ints[] = {0, test.group, test.bits, /*at_least=*/1};
  double start = seconds(threads);
  for (const std::vector<hone_tensor> &operands : calls)
    kernel(nullptr, operands.data(), ints, nullptr);
  return seconds(threads) - start;
}

} // namespace hone::bench
