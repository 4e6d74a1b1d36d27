// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed 2:4 weights of 8 and 4 bits. On ISAs with dot products of bytes the activations of kept weights are gathered;
// otherwise, and by tiles, weights become dense, a slice at a time, in the cache.

#include "entries.h"
#include "quantized_kernel.h"
#include "sparse_quantized_block.h"
#include "sparse_quantized_tiles.h"
#include "sparse_quantized_weight.h"
#include "tile_quantized.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// A weight, and how x is rounded.
template <typename Codes> struct SparseOperand {
  SparseQuantizedWeight<Codes> weight;
  int64_t bits;
  bool isLeast; // of the bits: more of x may be kept
};

template <typename Kernel, typename Codes>
void runPacked(const hone_tensor &x, const SparseOperand<Codes> &operand, const hone_tensor &y,
               const Epilogue &epilogue) {
  Kernel kernel(x, operand.weight, countRows(y), operand.bits);
  PackedLayer<Kernel>(kernel, y, epilogue).run();
}

template <typename Codes, typename FORMAT> struct Layer {
  using Format = FORMAT;
  using Operand = SparseOperand<Codes>;

  static Operand weightOf(const hone_tensor *weight, const typename Format::Ints &ints) {
    return {{kernels::planesOf<Format>(weight), ints.group}, ints.bits, ints.atLeast != 0};
  }

  template <typename Body> static bool withEngine(const Operand &operand, int64_t rows, const Body &body) {
#ifdef __AMX_TILE__
    if (rows <= kIndependentRows || operand.bits != 8 || !operand.isLeast)
      return false;
    using Tiles = SparseQuantizedTiles<Codes>;
    body([rows](const Operand &each) { return TileEngine<Tiles>(Tiles(each.weight), rows); });
    return true;
#else
    (void)operand, (void)rows, (void)body;
    return false;
#endif
  }

  static void runGemv(const hone_tensor &x, const Operand &operand, const hone_tensor &y, const Epilogue &epilogue) {
    using Weight [[maybe_unused]] = SparseQuantizedWeight<Codes>;
#ifdef __AMX_TILE__
    if (countRows(y) > kIndependentRows)
      return runPacked<TileQuantizedKernel<ByteCodes<Codes::kBits>, Weight>>(x, operand, y, epilogue);
#endif
#ifdef __AVX512VNNI__
    runPacked<SparseQuantizedKernel<Codes>>(x, operand, y, epilogue);
#else
    withDot<Codes::kBits>(operand.bits, [&](auto dot) {
      runPacked<QuantizedKernel<ByteCodes<Codes::kBits>, Weight, decltype(dot)>>(x, operand, y, epilogue);
    });
#endif
  }
};

} // namespace

#define HONE_KERNEL HONE_DEFINE_LAYER
#include "hone/kernels/cpu/sparse_quantized.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
