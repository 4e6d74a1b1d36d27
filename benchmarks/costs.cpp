// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What packed layers take without the zeros of 2:4 weights, beside the same layers with them: the table that the compiler decides by.

#include "packed_layers.h"

#include <algorithm>
#include <cstdio>

namespace hone::bench {
namespace {

using cpu::PackedFormat;

struct Pair {
  LinearCase dense, sparse;
};

const Pair kPairs[] = {
    {{"f32", "hone.packed_linear.f32", PackedFormat::F32, 0, 0},
     {"f32", "hone.sparse_linear.f32", PackedFormat::F32, 0, 0, true}},
    {{"f16", "hone.packed_linear.f16", PackedFormat::F16, 0, 0},
     {"f16", "hone.sparse_linear.f16", PackedFormat::F16, 0, 0, true}},
    {{"bf16", "hone.packed_linear.bf16", PackedFormat::Bf16, 0, 0},
     {"bf16", "hone.sparse_linear.bf16", PackedFormat::Bf16, 0, 0, true}},
    {{"u8", "hone.packed_linear.u8", PackedFormat::U8, 0, 8},
     {"u8", "hone.sparse_linear.u8", PackedFormat::U8, 0, 8, true}},
    {{"u4", "hone.packed_linear.u4", PackedFormat::U4, 64, 8},
     {"u4", "hone.sparse_linear.u4", PackedFormat::U4, 64, 8, true}},
};

/// A small square matrix, and both ways of a feed-forward block.
const LayerSize kSizes[] = {{896, 896}, {4864, 896}, {896, 4864}};

const int64_t kRows[] = {1, 2, 4, 8, 16, 64, 512};

const char kHeader[] = R"(// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What products take without the zeros of 2:4 weights, as a share of what they take with them, as
// hone-kernel-ratios --costs --all-isas printed it: HONE_SPARSE_ROWS(numbers of rows) and
// HONE_SPARSE_COSTS(ISA, elements, outputs, inputs, share for each number of rows).

#ifndef HONE_SPARSE_ROWS
#define HONE_SPARSE_ROWS(...)
#endif
#ifndef HONE_SPARSE_COSTS
#define HONE_SPARSE_COSTS(isa, format, outputs, inputs, ...)
#endif

)";
const char kFooter[] = R"(
#undef HONE_SPARSE_ROWS
#undef HONE_SPARSE_COSTS
)";

/// The time of the layers without zeros, as a share of that with them: the median of turns.
double ratioOf(const Options &options, Pool &pool, const Pair &pair, const LayerSize &size, int64_t rows,
               cpu::Isa isa) {
  // GEMV is memory-bound and reads every layer from memory; GEMM is compute-bound, and a few layers are enough.
  int64_t most = rows <= 16 ? int64_t{1} << 20 : std::max<int64_t>(1024 / rows, 4);
  PackedLayers dense(pair.dense, size, rows, most, pool.all()), sparse(pair.sparse, size, rows, most, pool.all());
  hone_kernel_fn whole = findKernel(pair.dense.kernel, isa), kept = findKernel(pair.sparse.kernel, isa);
  Measurement measurement;
  takeTurns(options, [&](bool counts) {
    double before = dense.run(whole, options.threads) / dense.layers();
    double after = sparse.run(kept, options.threads) / sparse.layers();
    if (counts)
      measurement.add(after, before);
  });
  return median(measurement.ratios);
}

} // namespace

void printCosts(const Options &options, Pool &pool, std::span<const cpu::Isa> isas) {
  std::printf("%s", kHeader);
  std::string rows;
  for (int64_t count : kRows)
    rows += (rows.empty() ? "" : ", ") + std::to_string(count);
  std::printf("HONE_SPARSE_ROWS(%s)\n", rows.c_str());
  for (cpu::Isa isa : isas)
    for (const Pair &pair : kPairs)
      for (const LayerSize &size : kSizes) {
        std::string name = std::string(isaName(isa)) + ", " + pair.dense.name + ", " + std::to_string(size.outputs) +
                           ", " + std::to_string(size.inputs);
        if (!isWanted(options, "costs/" + name))
          continue;
        std::printf("HONE_SPARSE_COSTS(%s", name.c_str());
        for (int64_t count : kRows)
          std::printf(", %.2f", ratioOf(options, pool, pair, size, count, isa));
        std::printf(")\n");
        std::fflush(stdout);
      }
  std::printf("%s", kFooter);
}

} // namespace hone::bench
