// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of packed linear layers.

#include "packed_layers.h"

#include "limits.h"

#include "cpu/packing/pack_sparse.h"

#include <algorithm>

namespace hone::bench {

using cpu::PackedFormat;

static int64_t elementsOf(const std::array<int64_t, 4> &sizes) { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }

LayerOutliers::LayerOutliers(const LayerSize &size, double share, std::mt19937 &random) {
  constexpr int64_t rows = cpu::kPanelOutputs;
  std::uniform_int_distribution<int64_t> input(0, size.inputs - 1);
  for (int64_t panel = 0; panel <= (size.outputs + rows - 1) / rows; ++panel)
    starts.push_back(static_cast<int32_t>(share * static_cast<double>(panel * size.inputs)));
  for (int64_t i = 0; i < starts.back() * rows; ++i)
    columns.push_back(static_cast<uint16_t>(input(random)));
  values.assign(columns.size(), static_cast<_Float16>(0.25f));
}

std::array<hone_tensor, 3> LayerOutliers::views() {
  int64_t rows = cpu::kPanelOutputs, slots = static_cast<int64_t>(columns.size()) / rows;
  return {viewOf(starts.data(), HONE_I32, {static_cast<int64_t>(starts.size())}),
          viewOf(columns.data(), HONE_I16, {slots, rows}), viewOf(values.data(), HONE_F16, {slots, rows})};
}

PackedLayers::PackedLayers(const LinearCase &test, const LayerSize &size, int64_t rows, int64_t most,
                           std::span<uint8_t> pool)
    : test(test), x(rows * size.inputs, 0.25f), y(rows * size.outputs, 0) {
  cpu::LinearShape shape = {size.outputs, size.inputs, test.group};
  auto weightSizes = test.isSparse ? packedSparseShape(test.format, shape) : packedLinearShape(test.format, shape);
  auto scaleSizes = packedScaleShape(test.format, shape);
  auto indexSizes = packedIndexShape(test.format, shape);
  int64_t elementBytes = test.format == PackedFormat::F32 ? 4 : isQuantized(test.format) ? 1 : 2;
  int64_t sparseBytes = elementsOf(weightSizes) * elementBytes;
  int64_t valueBytes = test.isSparse ? sparseBytes : packedLinearBytes(test.format, shape);
  int64_t weightBytes = valueBytes + (test.isSparse ? elementsOf(indexSizes) : 0);
  int64_t scaleBytes = isQuantized(test.format) ? scaleSizes[0] * scaleSizes[1] * scaleSizes[2] * 2 : 0;
  layerBytes = weightBytes + scaleBytes;
  count = std::min(most, static_cast<int64_t>(pool.size()) / layerBytes);
  for (int64_t i = 0; i < count; ++i) {
    uint8_t *at = pool.data() + i * layerBytes;
    std::vector<hone_tensor> operands = {viewOf(x.data(), HONE_F32, {rows, size.inputs})};
    if (test.outliers > 0)
      for (const hone_tensor &plane : outliers.emplace_back(size, test.outliers, random).views())
        operands.push_back(plane);
    operands.push_back(viewOf(at, HONE_U8, {weightSizes.begin(), weightSizes.end()}));
    if (test.isSparse)
      operands.push_back(viewOf(at + valueBytes, HONE_U8, {indexSizes.begin(), indexSizes.end()}));
    if (isQuantized(test.format)) {
      operands.push_back(viewOf(at + weightBytes, HONE_F16, {scaleSizes.begin(), scaleSizes.end()}));
      operands.push_back(viewOf(nullptr, HONE_U8, {0}));
    }
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
