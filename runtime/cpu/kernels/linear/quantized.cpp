// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed weights of 8, 6, 5, 4, 3 and 2 bits, and feed-forward blocks of them.

#include "dequantized_weights.h"
#include "entries.h"
#include "quantized_kernel.h"
#include "tile_bytes.h"
#include "tile_quantized.h"
#include "tile_unpacked.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// A weight, and how x is rounded.
struct QuantizedOperand {
  QuantizedWeight weight;
  int64_t bits;
  bool isLeast; // of the bits: more of x may be kept

  /// Of codes that are bytes.
  bool isTiles() const { return bits == 8 && weight.group == 0 && weight.outliers.count == 0; }
  bool unpacks(int64_t fewestRows, int64_t rows) const { return rows >= fewestRows && bits == 8 && isLeast; }
};

template <typename Kernel>
void runPacked(const hone_tensor &x, const QuantizedOperand &operand, const hone_tensor &y, const Epilogue &epilogue) {
  Kernel kernel(x, operand.weight, countRows(y), operand.bits);
  PackedLayer<Kernel>(kernel, y, epilogue).run();
}

template <typename Codes, typename FORMAT> struct Layer {
  using Format = FORMAT;

  static QuantizedOperand weightOf(const hone_tensor *weight, const typename Format::Ints &ints) {
    const auto &planes = kernels::planesOf<Format>(weight);
    return {{planes.codes, planes.scales, planes.zeros, ints.group, outliersOf<Format>(weight)},
            ints.bits,
            ints.atLeast != 0};
  }

  /// False also where rows have to be rounded as GEMV does, or dot products of bytes are faster. `operand` stands for
  /// all weights of a block.
  template <typename Body>
  static bool withEngine(const QuantizedOperand &operand, int64_t rows, const Body &body) {
#if defined(__AMX_TILE__)
    if constexpr (Codes::kQuads == 1)
      if (operand.isTiles() && rows > kIndependentRows) {
        body([](const QuantizedOperand &each) { return ByteTileEngine(each.weight); });
        return true;
      }
    if (!operand.unpacks(kFewestUnpackedRows, rows))
      return false;
    using Weights = UnpackedWeights<Codes>;
    body([rows](const QuantizedOperand &each) { return TileEngine<Weights>(Weights(each.weight), rows); });
    return true;
#elif !defined(HONE_HAS_BYTE_DOT)
    if (operand.weight.outliers.count == 0 || !operand.unpacks(kFewestFloatRows, rows))
      return false;
    using Weights = DequantizedWeights<Codes>;
    body([](const QuantizedOperand &each) { return VectorEngine<Weights>(Weights(each.weight)); });
    return true;
#else
    (void)operand, (void)rows, (void)body;
    return false;
#endif
  }

  static void runGemv(const hone_tensor &x, const QuantizedOperand &operand, const hone_tensor &y,
                      const Epilogue &epilogue) {
#ifdef __AMX_TILE__
    // Tiles add up the same integers in the same chunks, and pay from a small M on.
    if (countRows(y) >= kFewestTileRows<Codes>)
      return runPacked<TileQuantizedKernel<Codes, QuantizedWeight>>(x, operand, y, epilogue);
#endif
    withDot<Codes::kBits>(operand.bits, [&](auto dot) {
      runPacked<QuantizedKernel<Codes, QuantizedWeight, decltype(dot)>>(x, operand, y, epilogue);
    });
  }
};

} // namespace

#define HONE_KERNEL HONE_DEFINE_LAYER
#include "hone/kernels/cpu/quantized.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
