// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed linear layers of a model of 0.5 B parameters; operations are those of the dense weight. Small-M products are
// memory-bound: their rate is given as a share of the read bandwidth over the same memory. Large-M products are compute-bound: their
// rate is a share of the peak.

#include "limits.h"
#include "packed_layers.h"

#include "cpu/bf16_rate.h"

#include <algorithm>
#include <cstdio>

namespace hone::bench {
namespace {

using cpu::PackedFormat;

const LinearCase kCases[] = {
    {"f32", "hone.packed_linear.f32", PackedFormat::F32, 0, 0},
    {"f16", "hone.packed_linear.f16", PackedFormat::F16, 0, 0},
    {"bf16", "hone.packed_linear.bf16", PackedFormat::Bf16, 0, 0},
    {"u8", "hone.packed_linear.u8", PackedFormat::U8, 0, 8},
    {"u8-x16", "hone.packed_linear.u8", PackedFormat::U8, 0, 16},
    {"u8-g128", "hone.packed_linear.u8", PackedFormat::U8, 128, 8},
    {"u6-g64", "hone.packed_linear.u6", PackedFormat::U6, 64, 8},
    {"u6-g64-x16", "hone.packed_linear.u6", PackedFormat::U6, 64, 16},
    {"u5-g64", "hone.packed_linear.u5", PackedFormat::U5, 64, 8},
    {"u5-g64-x16", "hone.packed_linear.u5", PackedFormat::U5, 64, 16},
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
    {"codebook4", "hone.packed_linear.codebook.u4", PackedFormat::Bf16, 0, 0, false, 0, 4},
    {"codebook3", "hone.packed_linear.codebook.u3", PackedFormat::Bf16, 0, 0, false, 0, 3},
    {"codebook2", "hone.packed_linear.codebook.u2", PackedFormat::Bf16, 0, 0, false, 0, 2},
    {"u4-g64-0.5%", "hone.packed_linear.outliers.u4", PackedFormat::U4, 64, 8, false, 0.005},
    {"codebook4-0.5%", "hone.packed_linear.outliers.codebook.u4", PackedFormat::Bf16, 0, 0, false, 0.005, 4},
    {"f32-2of4", "hone.sparse_linear.f32", PackedFormat::F32, 0, 0, true},
    {"f16-2of4", "hone.sparse_linear.f16", PackedFormat::F16, 0, 0, true},
    {"bf16-2of4", "hone.sparse_linear.bf16", PackedFormat::Bf16, 0, 0, true},
    {"u8-2of4", "hone.sparse_linear.u8", PackedFormat::U8, 0, 8, true},
    {"u8-g128-2of4", "hone.sparse_linear.u8", PackedFormat::U8, 128, 8, true},
    {"u4-g64-2of4", "hone.sparse_linear.u4", PackedFormat::U4, 64, 8, true},
    {"u4-g32-2of4", "hone.sparse_linear.u4", PackedFormat::U4, 32, 8, true},
};

const LayerSize kLayers[] = {{4864, 896}, {896, 4864}};

/// What an ISA multiplies a format with at best. Quantized layers are given against VNNI also where tiles do more.
Arithmetic arithmeticOf(PackedFormat format, cpu::Isa isa) {
  if (isa == cpu::Isa::AvxVnni && isQuantized(format))
    return Arithmetic::AvxVnni;
  if (isa < cpu::Isa::Avx512)
    return Arithmetic::F32Avx2;
  if (isQuantized(format))
    return isa >= cpu::Isa::Avx512Vnni ? Arithmetic::Vnni : Arithmetic::F32;
  if (format != PackedFormat::Bf16 || isa < cpu::Isa::Avx512Bf16)
    return Arithmetic::F32;
  if (isa == cpu::Isa::Amx)
    return Arithmetic::Bf16Tiles;
  return cpu::hasFastBf16Products() ? Arithmetic::Bf16Vectors : Arithmetic::F32;
}

void measureSmallM(const Options &options, Pool &pool, const LinearCase &test, const LayerSize &size,
                   hone_kernel_fn kernel, const std::string &name) {
  PackedLayers one(test, size, 1, 1 << 20, pool.all()), eight(test, size, 8, 1 << 20, pool.all());
  PackedLayers sixteen(test, size, 16, 1 << 20, pool.all());
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

void measureLargeM(const Options &options, Pool &pool, const LinearCase &test, const LayerSize &size, cpu::Isa isa,
                   const std::string &name) {
  constexpr int64_t rows = 512, layers = 4;
  PackedLayers many(test, size, rows, layers, pool.all());
  double operations = 2.0 * static_cast<double>(layers * rows * size.outputs * size.inputs);
  hone_kernel_fn kernel = findKernel(test.kernel, isa);
  Arithmetic arithmetic = arithmeticOf(test.format, isa);
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

/// A feed-forward block, beside its layers as calls of their own.
struct BlockSize {
  int64_t size, width;
  bool hasGate;
};

/// Those of GPT-2 and of a model of 0.5 B parameters.
const BlockSize kBlocks[] = {{768, 3072, false}, {896, 4864, true}};

using Operands = std::vector<hone_tensor>;

Operands joined(const std::vector<Operands> &parts) {
  Operands all;
  for (const Operands &part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

void feedForward(const Options &options, Pool &pool, const LinearCase &test, const BlockSize &block, cpu::Isa isa,
                 const std::string &name) {
  constexpr int64_t rows = 512, silu = 2;
  auto [size, width, hasGate] = block;
  int64_t layerBytes = packedLinearBytes(test.format, {width, size, 0});
  Floats x(rows * size, 0.25f), gated(rows * width, 0), between(rows * width, 0), y(rows * size, 0);
  Floats scales(width, 1e-3f);
  hone_tensor none = absentOperand();
  // A weight and what comes with it.
  auto packed = [&](int64_t outputs, int64_t inputs, int64_t layer) -> Operands {
    auto sizes = packedLinearShape(test.format, {outputs, inputs, 0});
    hone_tensor weight = viewOf(pool.all().data() + layer * layerBytes, HONE_U8, {sizes.begin(), sizes.end()});
    if (!isQuantized(test.format))
      return {weight};
    return {weight, viewOf(scales.data(), HONE_F32, {sizes[0], 1, cpu::kPanelOutputs}), none};
  };
  Operands up = packed(width, size, 0), down = packed(size, width, 1), gate = packed(width, size, 2);
  Operands noGate(gate.size(), none);
  hone_tensor in = viewOf(x.data(), HONE_F32, {rows, size}), out = viewOf(y.data(), HONE_F32, {rows, size});
  hone_tensor hidden = viewOf(between.data(), HONE_F32, {rows, width});
  hone_tensor factor = hasGate ? viewOf(gated.data(), HONE_F32, {rows, width}) : none;
  Operands whole = joined({{in}, hasGate ? gate : noGate, {none}, up, {none}, down, {none, none, out}});
  Operands ofGate = joined({{in}, gate, {none, none, none, factor}});
  Operands ofUp = joined({{in}, up, {none, factor, none, hidden}});
  Operands ofDown = joined({{hidden}, down, {none, none, none, out}});
  int64_t ints[] = {silu, width, 0, test.bits, /*at_least=*/1}, plain[] = {0, 0, test.bits, 1};
  int64_t activated[] = {silu, 0, test.bits, 1};
  hone_kernel_fn run = findKernel("hone.packed_mlp." + std::string(test.name), isa);
  hone_kernel_fn layer = findKernel(test.kernel, isa);
  Measurement measurement, alone;
  takeTurns(options, [&](bool counts) {
    double limit = peak(arithmeticOf(test.format, isa), options.threads);
    double start = seconds(options.threads);
    run(nullptr, whole.data(), ints, nullptr);
    double middle = seconds(options.threads);
    if (hasGate)
      layer(nullptr, ofGate.data(), activated, nullptr);
    layer(nullptr, ofUp.data(), hasGate ? plain : activated, nullptr);
    layer(nullptr, ofDown.data(), plain, nullptr);
    double end = seconds(options.threads);
    if (!counts)
      return;
    measurement.add((hasGate ? 6.0 : 4.0) * rows * size * width / (middle - start), limit);
    alone.add(end - middle, middle - start);
  });
  std::printf("%-34s 512 rows %6.0f GFLOP/s, %4.0f %% of the peak; single calls take %.2f times\n", name.c_str(),
              median(measurement.rates) * 1e-9, median(measurement.ratios) * 100, median(alone.ratios));
  std::fflush(stdout);
}

/// A layer with outliers beside the same one without.
void outliersBesideNone(const Options &options, Pool &pool, const LayerSize &size, cpu::Isa isa,
                        const std::string &name) {
  const LinearCase plain = {"", "hone.packed_linear.u4", PackedFormat::U4, 64, 8};
  const LinearCase sparse = {"", "hone.packed_linear.outliers.u4", PackedFormat::U4, 64, 8, false, 0.005};
  std::printf("%-34s times of a layer without:", name.c_str());
  for (int64_t rows : {1, 2, 4, 8, 16, 64, 512}) {
    int64_t most = rows < 64 ? 1 << 20 : 4;
    PackedLayers with(sparse, size, rows, most, pool.all()), without(plain, size, rows, most, pool.all());
    Measurement measurement;
    takeTurns(options, [&](bool counts) {
      double seconds = with.run(findKernel(sparse.kernel, isa), options.threads);
      double limit = without.run(findKernel(plain.kernel, isa), options.threads);
      if (counts)
        measurement.add(seconds, limit);
    });
    std::printf(" %.2f (%d rows)", median(measurement.ratios), static_cast<int>(rows));
  }
  std::printf("\n");
  std::fflush(stdout);
}

} // namespace

void reportLinear(const Options &options, Pool &pool, cpu::Isa isa) {
  for (const LinearCase &test : kCases)
    for (const LayerSize &size : kLayers) {
      std::string name = std::string("linear/") + test.name + "/" + std::to_string(size.outputs) + "x" +
                         std::to_string(size.inputs) + "/" + std::string(isaName(isa));
      if (!isWanted(options, name))
        continue;
      measureSmallM(options, pool, test, size, findKernel(test.kernel, isa), name);
      measureLargeM(options, pool, test, size, isa, name);
    }
  for (const LayerSize &size : kLayers) {
    std::string name = "outliers/u4-g64-0.5%/" + std::to_string(size.outputs) + "x" + std::to_string(size.inputs) +
                       "/" + std::string(isaName(isa));
    if (isWanted(options, name))
      outliersBesideNone(options, pool, size, isa, name);
  }
  for (const BlockSize &block : kBlocks)
    for (const LinearCase &test : kCases) {
      std::string sizes =
          std::to_string(block.size) + "-" + std::to_string(block.width) + "-" + std::to_string(block.size);
      std::string name = (block.hasGate ? "gated_mlp/" : "mlp/") + std::string(test.name) + "/" + sizes + "/" +
                         std::string(isaName(isa));
      if (test.group == 0 && test.bits <= 8 && !test.isSparse && test.codebook == 0 && isWanted(options, name))
        feedForward(options, pool, test, block, isa, name);
    }
}

} // namespace hone::bench
