// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of packed linear layers.

#include "packed_layers.h"

#include "limits.h"

#include "cpu/packing/pack_codebook.h"
#include "cpu/packing/pack_sparse.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace hone::bench {

using cpu::PackedFormat;

static int64_t elementsOf(const std::array<int64_t, 4> &sizes) { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }

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

namespace {
/// Sizes of the planes of a weight; those that it lacks have none. All but scales are bytes, whatever their elements are.
struct Planes {
  using Sizes = std::vector<int64_t>;

  Sizes weight, second, scales;
  int64_t weightBytes;

  static int64_t countOf(const Sizes &sizes) {
    return sizes.empty() ? 0 : std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }
  int64_t secondBytes() const { return countOf(second); }
  int64_t scaleBytes() const { return 2 * countOf(scales); }
};
} // namespace

static Planes planesOf(const LinearCase &test, const cpu::LinearShape &shape) {
  auto list = [](const auto &sizes) { return Planes::Sizes(sizes.begin(), sizes.end()); };
  if (test.codebook > 0) {
    auto indices = cpu::packedIndexPlane(test.codebook, shape);
    return {list(indices), list(cpu::packedTablePlane(test.codebook, shape)), {}, elementsOf(indices)};
  }
  Planes planes;
  if (isQuantized(test.format))
    planes.scales = list(packedScaleShape(test.format, shape));
  auto sizes = test.isSparse ? packedSparseShape(test.format, shape) : packedLinearShape(test.format, shape);
  int64_t elementBytes = test.format == PackedFormat::F32 ? 4 : isQuantized(test.format) ? 1 : 2;
  planes.weight = list(sizes);
  planes.weightBytes = elementsOf(sizes) * elementBytes;
  if (test.isSparse)
    planes.second = list(packedIndexShape(test.format, shape));
  return planes;
}

PackedLayers::PackedLayers(const LinearCase &test, const LayerSize &size, int64_t rows, int64_t most,
                           std::span<uint8_t> pool)
    : test(test), x(rows * size.inputs, 0.25f), y(rows * size.outputs, 0) {
  Planes planes = planesOf(test, {size.outputs, size.inputs, test.group});
  layerBytes = planes.weightBytes + planes.secondBytes() + planes.scaleBytes();
  count = std::min(most, static_cast<int64_t>(pool.size()) / layerBytes);
  for (int64_t i = 0; i < count; ++i) {
    uint8_t *at = pool.data() + i * layerBytes;
    std::vector<hone_tensor> operands = {viewOf(x.data(), HONE_F32, {rows, size.inputs})};
    if (test.outliers > 0)
      for (const hone_tensor &plane : outliers.emplace_back(size, test.outliers, random).views())
        operands.push_back(plane);
    operands.push_back(viewOf(at, HONE_U8, planes.weight));
    if (!planes.second.empty())
      operands.push_back(viewOf(at + planes.weightBytes, HONE_U8, planes.second));
    if (!planes.scales.empty()) {
      operands.push_back(viewOf(at + planes.weightBytes + planes.secondBytes(), HONE_F16, planes.scales));
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
