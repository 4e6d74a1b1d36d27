// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed linear layers of a model of 0.5 B parameters; operations are those of the dense weight. A few rows are bound by reading weights: their rate is given as a share
// of the read bandwidth over the same memory. Many rows are bound by arithmetic: their rate is a share of the peak.

#include "limits.h"
#include "measure.h"

#include "cpu/packing/pack_linear.h"
#include "cpu/packing/pack_sparse.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <random>

namespace hone::bench {
namespace {

using cpu::PackedFormat;

struct Case {
  const char *name, *kernel;
  PackedFormat format;
  int64_t group, bits;   // bits of activations, 0 where they stay floats
  bool isSparse = false; // two of every four inputs are kept
  double outliers = 0;   // share of the elements that lie apart
};

const Case kCases[] = {
    {"f32", "hone.packed_linear.f32", PackedFormat::F32, 0, 0},
    {"f16", "hone.packed_linear.f16", PackedFormat::F16, 0, 0},
    {"bf16", "hone.packed_linear.bf16", PackedFormat::Bf16, 0, 0},
    {"u8", "hone.packed_linear.u8", PackedFormat::U8, 0, 8},
    {"u8-x16", "hone.packed_linear.u8", PackedFormat::U8, 0, 16},
    {"u8-g128", "hone.packed_linear.u8", PackedFormat::U8, 128, 8},
    {"u4-g128", "hone.packed_linear.u4", PackedFormat::U4, 128, 8},
    {"u4-g64", "hone.packed_linear.u4", PackedFormat::U4, 64, 8},
    {"u4-g64-x16", "hone.packed_linear.u4", PackedFormat::U4, 64, 16},
    {"u4-g32", "hone.packed_linear.u4", PackedFormat::U4, 32, 8},
    {"u4-g32-x16", "hone.packed_linear.u4", PackedFormat::U4, 32, 16},
    {"u3-g128", "hone.packed_linear.u3", PackedFormat::U3, 128, 8},
    {"u3-g64", "hone.packed_linear.u3", PackedFormat::U3, 64, 8},
    {"u3-g64-x16", "hone.packed_linear.u3", PackedFormat::U3, 64, 16},
    {"u3-g32", "hone.packed_linear.u3", PackedFormat::U3, 32, 8},
    {"u2-g128", "hone.packed_linear.u2", PackedFormat::U2, 128, 8},
    {"u2-g64", "hone.packed_linear.u2", PackedFormat::U2, 64, 8},
    {"u2-g64-x16", "hone.packed_linear.u2", PackedFormat::U2, 64, 16},
    {"u2-g32", "hone.packed_linear.u2", PackedFormat::U2, 32, 8},
    {"f32-2of4", "hone.sparse_linear.f32", PackedFormat::F32, 0, 0, true},
    {"f16-2of4", "hone.sparse_linear.f16", PackedFormat::F16, 0, 0, true},
    {"bf16-2of4", "hone.sparse_linear.bf16", PackedFormat::Bf16, 0, 0, true},
};

struct LayerSize {
  int64_t outputs, inputs;
};
const LayerSize kLayers[] = {{4864, 896}, {896, 4864}};

bool isQuantized(PackedFormat format) { return cpu::levelsOf(format) != nullptr; }

/// What a level multiplies a format with at best. Quantized layers are given against VNNI also where tiles do more.
Arithmetic arithmeticOf(PackedFormat format, cpu::Level level) {
  if (level == cpu::Level::Avx2)
    return Arithmetic::F32Avx2;
  if (isQuantized(format))
    return level >= cpu::Level::Avx512Bf16 ? Arithmetic::Vnni : Arithmetic::F32;
  if (format != PackedFormat::Bf16 || level < cpu::Level::Avx512Bf16)
    return Arithmetic::F32;
  return level == cpu::Level::Amx ? Arithmetic::Bf16Tiles : Arithmetic::Bf16Vectors;
}

/// Random outliers of a layer, a share of its elements, as many in every row but for one.
struct LayerOutliers {
  std::vector<int32_t> starts;
  std::vector<uint16_t> columns;
  std::vector<_Float16> values;

  LayerOutliers(const LayerSize &size, double share, std::mt19937 &random) {
    double most = static_cast<double>(size.inputs - 1);
    for (int64_t row = 0; row <= size.outputs; ++row) {
      starts.push_back(static_cast<int32_t>(columns.size()));
      auto count = static_cast<size_t>(share * static_cast<double>((row + 1) * size.inputs));
      while (row < size.outputs && columns.size() < count)
        columns.push_back(static_cast<uint16_t>(std::uniform_real_distribution(0.0, most)(random)));
      std::sort(columns.begin() + starts.back(), columns.end());
    }
    values.assign(columns.size(), static_cast<_Float16>(0.25f));
  }

  std::array<hone_tensor, 3> views() {
    auto count = static_cast<int64_t>(columns.size());
    return {viewOf(starts.data(), HONE_I32, {static_cast<int64_t>(starts.size())}),
            viewOf(columns.data(), HONE_I16, {count}), viewOf(values.data(), HONE_F16, {count})};
  }
};

/// One layer after another from the pool, as a decoder reads them.
class Layers {
public:
  Layers(const Case &test, const LayerSize &size, int64_t rows, int64_t most, std::span<uint8_t> pool)
      : test(test), x(rows * size.inputs, 0.25f), y(rows * size.outputs, 0) {
    cpu::LinearShape shape = {size.outputs, size.inputs, test.group};
    auto weightSizes = test.isSparse ? packedSparseShape(test.format, shape) : packedLinearShape(test.format, shape);
    auto scaleSizes = packedScaleShape(test.format, shape);
    auto indexSizes = packedIndexShape(shape);
    int64_t sparseBytes = elementsOf(weightSizes) * (test.format == PackedFormat::F32 ? 4 : 2);
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

  double bytes() const { return static_cast<double>(count * layerBytes); }

  /// Seconds that all layers take.
  double run(hone_kernel_fn kernel, int threads) const {
    int64_t ints[] = {0, test.group, test.bits, /*at_least=*/1};
    double start = seconds(threads);
    for (const std::vector<hone_tensor> &operands : calls)
      kernel(nullptr, operands.data(), ints, nullptr);
    return seconds(threads) - start;
  }

private:
  static int64_t elementsOf(const std::array<int64_t, 4> &sizes) { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }

  const Case &test;
  Floats x, y;
  std::mt19937 random{5};
  std::deque<LayerOutliers> outliers;
  std::vector<std::vector<hone_tensor>> calls;
  int64_t layerBytes = 0, count = 0;
};

void fewRows(const Options &options, Pool &pool, const Case &test, const LayerSize &size, hone_kernel_fn kernel,
             const std::string &name) {
  Layers one(test, size, 1, 1 << 20, pool.all()), eight(test, size, 8, 1 << 20, pool.all());
  Layers sixteen(test, size, 16, 1 << 20, pool.all());
  Measurement first, second, third;
  takeTurns(options, [&](bool counts) {
    double limit = readBandwidth(pool.all(), options.threads);
    double seconds1 = one.run(kernel, options.threads), seconds8 = eight.run(kernel, options.threads);
    double seconds16 = sixteen.run(kernel, options.threads);
    if (!counts)
      return;
    first.add(one.bytes() / seconds1, limit);
    second.add(seconds8, seconds1);
    third.add(seconds16, seconds1);
  });
  std::printf("%-34s decode   %6.1f GB/s, %4.0f %% of reading; 8 rows cost %.2f, 16 rows %.2f times one\n",
              name.c_str(), median(first.rates) * 1e-9, median(first.ratios) * 100, median(second.ratios),
              median(third.ratios));
  std::fflush(stdout);
}

void manyRows(const Options &options, Pool &pool, const Case &test, const LayerSize &size, cpu::Level level,
              const std::string &name) {
  constexpr int64_t rows = 512, layers = 4;
  Layers many(test, size, rows, layers, pool.all());
  double operations = 2.0 * static_cast<double>(layers * rows * size.outputs * size.inputs);
  hone_kernel_fn kernel = findKernel(test.kernel, level);
  Arithmetic arithmetic = arithmeticOf(test.format, level);
  bool byTiles = arithmetic == Arithmetic::Bf16Tiles;
  Measurement measurement, loaded;
  takeTurns(options, [&](bool counts) {
    double limit = peak(arithmetic, options.threads), limitOfLoaded = byTiles ? loadedTiles(options.threads) : limit;
    double rate = operations / many.run(kernel, options.threads);
    if (!counts)
      return;
    measurement.add(rate, limit);
    loaded.add(rate, limitOfLoaded);
  });
  std::printf("%-34s 512 rows %6.0f GFLOP/s, %4.0f %% of the peak", name.c_str(), median(measurement.rates) * 1e-9,
              median(measurement.ratios) * 100);
  if (byTiles)
    std::printf(", %4.0f %% of tiles loaded from the cache", median(loaded.ratios) * 100);
  std::printf("\n");
  std::fflush(stdout);
}

/// Two layers of GPT-2's width with an activation between them, beside the same two as calls of their own.
void pairOfLayers(const Options &options, Pool &pool, const Case &test, cpu::Level level, const std::string &name) {
  constexpr int64_t rows = 512, size = 768, width = 3072, gelu = 4;
  auto packed = [&](int64_t outputs, int64_t inputs, int64_t at) {
    auto sizes = packedLinearShape(test.format, {outputs, inputs, 0});
    return viewOf(pool.all().data() + at, HONE_U8, {sizes.begin(), sizes.end()});
  };
  Floats x(rows * size, 0.25f), between(rows * width, 0), y(rows * size, 0);
  hone_tensor none = absentOperand(), up = packed(width, size, 0);
  hone_tensor down = packed(size, width, packedLinearBytes(test.format, {width, size, 0}));
  hone_tensor in = viewOf(x.data(), HONE_F32, {rows, size}), out = viewOf(y.data(), HONE_F32, {rows, size});
  hone_tensor hidden = viewOf(between.data(), HONE_F32, {rows, width});
  hone_tensor both[] = {in, up, none, down, none, none, out};
  hone_tensor first[] = {in, up, none, none, none, hidden}, second[] = {hidden, down, none, none, none, out};
  int64_t ints[] = {gelu, width}, plain[] = {0};
  hone_kernel_fn pair = findKernel("hone.packed_mlp." + std::string(test.name), level);
  hone_kernel_fn layer = findKernel(test.kernel, level);
  Measurement measurement, alone;
  takeTurns(options, [&](bool counts) {
    double limit = peak(arithmeticOf(test.format, level), options.threads);
    double start = seconds(options.threads);
    pair(nullptr, both, ints, nullptr);
    double middle = seconds(options.threads);
    layer(nullptr, first, ints, nullptr);
    layer(nullptr, second, plain, nullptr);
    double end = seconds(options.threads);
    if (!counts)
      return;
    measurement.add(4.0 * rows * size * width / (middle - start), limit);
    alone.add(end - middle, middle - start);
  });
  std::printf("%-34s 512 rows %6.0f GFLOP/s, %4.0f %% of the peak; two calls take %.2f times\n", name.c_str(),
              median(measurement.rates) * 1e-9, median(measurement.ratios) * 100, median(alone.ratios));
  std::fflush(stdout);
}

/// A layer with outliers beside the same one without.
void outliersBesideNone(const Options &options, Pool &pool, const LayerSize &size, cpu::Level level,
                        const std::string &name) {
  const Case plain = {"", "hone.packed_linear.u4", PackedFormat::U4, 64, 8};
  const Case sparse = {"", "hone.packed_linear.outliers.u4", PackedFormat::U4, 64, 8, false, 0.005};
  std::printf("%-34s times of a layer without:", name.c_str());
  for (int64_t rows : {1, 2, 4, 8, 16, 64, 512}) {
    int64_t most = rows < 64 ? 1 << 20 : 4;
    Layers with(sparse, size, rows, most, pool.all()), without(plain, size, rows, most, pool.all());
    Measurement measurement;
    takeTurns(options, [&](bool counts) {
      double seconds = with.run(findKernel(sparse.kernel, level), options.threads);
      double limit = without.run(findKernel(plain.kernel, level), options.threads);
      if (counts)
        measurement.add(seconds, limit);
    });
    std::printf(" %.2f (%d rows)", median(measurement.ratios), static_cast<int>(rows));
  }
  std::printf("\n");
  std::fflush(stdout);
}

} // namespace

void reportLinear(const Options &options, Pool &pool, cpu::Level level) {
  for (const Case &test : kCases)
    for (const LayerSize &size : kLayers) {
      std::string name = std::string("linear/") + test.name + "/" + std::to_string(size.outputs) + "x" +
                         std::to_string(size.inputs) + "/" + std::string(levelName(level));
      if (!isWanted(options, name))
        continue;
      fewRows(options, pool, test, size, findKernel(test.kernel, level), name);
      manyRows(options, pool, test, size, level, name);
    }
  for (const LayerSize &size : kLayers) {
    std::string name = "outliers/u4-g64-0.5%/" + std::to_string(size.outputs) + "x" + std::to_string(size.inputs) +
                       "/" + std::string(levelName(level));
    if (isWanted(options, name))
      outliersBesideNone(options, pool, size, level, name);
  }
  for (const Case &test : kCases) {
    std::string name = std::string("mlp/") + test.name + "/768-3072-768/" + std::string(levelName(level));
    if (!isQuantized(test.format) && !test.isSparse && isWanted(options, name))
      pairOfLayers(options, pool, test, level, name);
  }
}

} // namespace hone::bench
