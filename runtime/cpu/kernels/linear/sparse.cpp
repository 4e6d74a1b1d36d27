// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed 2:4 weights in f32, f16 and bf16. GEMV, and dot products of bf16, gather the activations that they multiply;
// for other GEMM the weights become dense, an N-tile at a time, in the cache.

#include "entries.h"
#include "gemm_vectors.h"
#include "sparse_block.h"
#include "unpacked_tiles.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

template <typename Kernel, typename Weight>
void runPacked(const hone_tensor &x, const Weight &weight, const hone_tensor &y, const Epilogue &epilogue) {
  Kernel kernel(x, weight, countRows(y));
  PackedLayer<Kernel>(kernel, y, epilogue).run();
}

template <typename Elements, typename FORMAT> struct Layer {
  using Format = FORMAT;
  using Weight = SparseWeight<Elements>;

  static Weight weightOf(const hone_tensor *weight, const typename Format::Ints &) {
    const auto &planes = kernels::planesOf<Format>(weight);
    return {planes.values, planes.indices};
  }

  template <typename Body> static bool withEngine(const Weight &, int64_t rows, const Body &body) {
#ifdef __AMX_TILE__
    if constexpr (__is_same(Elements, SparseBf16)) {
      static_assert(kChunkInputs == kTileStepInputs); // a chunk is a tile
      if (rows <= kTileRows)
        return false;
      body([rows](const Weight &weight) { return TileEngine<StepTiles<Weight>>(StepTiles<Weight>(weight), rows); });
      return true;
    }
#endif
    // Where a dot product takes both kept elements, gathering takes fewer of them than dense pairs, for any number of rows.
    // Converted, dense f32 is multiplied in less time where bf16 has no such rate.
    if constexpr (Elements::kStepWords == 2)
      return withWidenedBf16<SparseWeight<WidenedSparseBf16>, Weight>(rows, body);
    else if (rows > kSparseRows) {
      body([](const Weight &weight) { return VectorEngine<Weight>(weight); });
      return true;
    }
    return false;
  }

  static void runGemv(const hone_tensor &x, const Weight &weight, const hone_tensor &y, const Epilogue &epilogue) {
#ifdef __AMX_TILE__
    if constexpr (__is_same(Elements, SparseBf16))
      if (countRows(y) >= StepTileRowsKernel<Weight>::kFewestRows)
        return runPacked<StepTileRowsKernel<Weight>>(x, weight, y, epilogue);
#endif
    runPacked<SparseKernel<Elements>>(x, weight, y, epilogue);
  }
};

} // namespace

#define HONE_KERNEL HONE_DEFINE_LAYER
#include "hone/kernels/cpu/sparse.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
