// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed indices of 4, 3 and 2 bits into tables of bf16, and pairs of them. GEMV multiplies what it
// looks up; for GEMM the weights become bf16, or f32 where nothing multiplies that, an N-tile at a time, in the cache.

#include "codebook_block.h"
#include "entries.h"
#include "gemm_vectors.h"
#include "unpacked_tiles.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

template <typename Kernel, typename Weight>
void runPacked(const hone_tensor &x, const Weight &weight, const hone_tensor &y, const Epilogue &epilogue) {
  Kernel kernel(x, weight, countRows(y));
  PackedLayer<Kernel>(kernel, y, epilogue).run();
}

template <typename Indices, typename FORMAT> struct Layer {
  using Format = FORMAT;
  using Weight = CodebookWeight<Indices>;

  static Weight weightOf(const hone_tensor *weight, const typename Format::Ints &) {
    const auto &planes = kernels::planesOf<Format>(weight);
    return Weight(planes.indices, planes.tables, outliersOf<Format>(weight));
  }

  template <typename Body> static bool withEngine(const Weight &, int64_t rows, const Body &body) {
#ifdef __AMX_TILE__
    if (rows <= kTileRows)
      return false;
    body([rows](const Weight &weight) { return TileEngine<StepTiles<Weight>>(StepTiles<Weight>(weight), rows); });
#else
    if (rows <= kIndependentRows) // GEMM adds up inputs, not quads of them
      return false;
    if (!withWidenedBf16<CodebookWeight<Indices, F32Format>, Weight>(rows, body))
      body([](const Weight &weight) { return VectorEngine<Weight>(weight); });
#endif
    return true;
  }

  static void runGemv(const hone_tensor &x, const Weight &weight, const hone_tensor &y, const Epilogue &epilogue) {
#ifdef __AMX_TILE__
    if (countRows(y) >= StepTileRowsKernel<Weight>::kFewestRows)
      return runPacked<StepTileRowsKernel<Weight>>(x, weight, y, epilogue);
#endif
    runPacked<CodebookKernel<Indices>>(x, weight, y, epilogue);
  }
};

} // namespace

#define HONE_KERNEL HONE_DEFINE_LAYER
#include "hone/kernels/cpu/codebook.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
