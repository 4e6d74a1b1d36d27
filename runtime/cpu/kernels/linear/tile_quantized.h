// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed weights of 8, 4, 3 and 2 bits by tiles. With 8 bits of activation a block is 32 rows; with 16 bits it is 16
// rows, whose two limbs take the places of first and second rows. Codes of fewer bits become bytes once a slice.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_QUANTIZED_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_QUANTIZED_H

#ifdef __AMX_TILE__

#include "quantized_activations.h"
#include "quantized_weight.h"
#include "tiles.h"

namespace {

/// With fewer rows vector registers are no slower: bytes are memory-bound either way, others would be written to memory
/// as bytes first.
template <typename Codes> constexpr int64_t kFewestTileRows = Codes::kQuads == 1 ? 3 : 17;

/// Of a weight that lies as `Codes` has it, or becomes so a slice at a time.
template <typename Codes, typename Weight> class TileQuantizedKernel {
public:
  /// A multiple of every chunk; the weights of a slice stay in the L1 cache while all rows of a task are multiplied.
  static constexpr int64_t kSliceInputs = 512;
  static constexpr int64_t kTilePrefetch = 2048;
  static constexpr bool kIsInPlace =
      Codes::kQuads == 1 && !Weight::kIsUnpacked; // weights are multiplied where they lie

  TileQuantizedKernel(const hone_tensor &x, const Weight &weight, int64_t rows, int64_t bits)
      : weight(weight), steps(weight.lines / Codes::kLines), panels(weight.panels), rows(rows),
        activations(x, rows, steps * Codes::kInputs, chunkInputs(weight.group, bits), bits, kTileRows),
        outliers(weight.outliers, x, rows) {}

  int64_t blockRows() const { return 2 * kTileRows / activations.limbCount; }
  int64_t blockHeight(int64_t) const { return blockRows(); }
  /// One tile of rows leaves registers for the sums of four panels.
  int64_t width(int64_t rows) const { return rows <= kTileRows && activations.limbCount == 1 ? kMostPanels : 2; }
  static int64_t sliceSteps(int64_t) { return kSliceInputs / Codes::kInputs; }

  class Worker {
  public:
    explicit Worker(const TileQuantizedKernel &kernel)
        : kernel(kernel), tileInputs(smaller(kTileRowBytes, kernel.activations.chunk)),
          registers(smaller(kernel.rows, kTileRows), tileInputs) {}

    void select(const Slice &next) {
      slice = next;
      prefetchOutliers(kernel, slice);
      bytes = unpacked;
      bytesOfPanel = kSliceInputs * kPanelOutputs;
      if constexpr (Weight::kIsUnpacked) {
        kernel.weight.unpack(slice, unpacked, bytesOfPanel);
      } else {
        int64_t panelBytes = kernel.weight.panelBytes;
        const uint8_t *from = kernel.weight.data + slice.panel * panelBytes + slice.step * Codes::kStepBytes;
        if constexpr (kIsInPlace) {
          bytes = from;
          bytesOfPanel = slice.panelStride * panelBytes;
        } else {
          for (int64_t panel = 0; panel < slice.width; ++panel)
            unpack(from + panel * slice.panelStride * panelBytes, unpacked + panel * bytesOfPanel);
        }
      }
    }

    void multiply(int64_t row, int64_t rows, float *y, int64_t yStride, int64_t columns) {
      int64_t first = slice.step * Codes::kInputs, end = first + slice.steps * Codes::kInputs;
      for (int64_t input = first; input < end; input += kernel.activations.chunk) {
        int64_t inputs = smaller(kernel.activations.chunk, end - input);
        multiplyChunk(row, rows, input, inputs, bytes + (input - first) * kPanelOutputs);
        for (int64_t panel = 0; panel < slice.width; ++panel) {
          int64_t column = panel * slice.panelStride * kLanes;
          addChunk(row, rows, input, panel, y + column, yStride, columns - column);
        }
      }
      addOutliers(kernel, slice, row, rows, y, yStride, columns);
    }

  private:
    void unpack(const uint8_t *from, uint8_t *to) const {
      for (int64_t step = 0; step < slice.steps; ++step, from += Codes::kStepBytes) {
        Codes::prefetch(from);
#pragma unroll
        for (int q = 0; q < Codes::kQuads; ++q, to += kLineBytes)
          _mm512_store_si512(to, (__m512i)Codes::quad(from, q));
      }
    }

    /// Integer sums of a chunk for both panels and all rows or limbs.
    void multiplyChunk(int64_t row, int64_t rows, int64_t input, int64_t inputs, const uint8_t *tiles) {
      const QuantizedActivations<int8_t> &x = kernel.activations;
      bool hasLimbs = x.limbCount == 2, fromMemory = kIsInPlace && kernel.rows <= kernel.blockRows();
      const auto *from = reinterpret_cast<const uint8_t *>(x.row(row) + input);
      TileOperands operands = {from,
                               from + (hasLimbs ? x.planeStride() : kTileRows * x.stride),
                               x.stride,
                               tileInputs,
                               tileInputs,
                               tiles,
                               bytesOfPanel,
                               inputs / tileInputs,
                               {tiles + kTilePrefetch, fromMemory ? tileInputs / 4 : 0, true}};
      multiplyTiles<ByteProducts>(operands, hasLimbs || rows > kTileRows ? 2 : 1, slice.width, sums);
    }

    /// Adds a panel's sums of a chunk to y, or begins y with them.
    void addChunk(int64_t row, int64_t rows, int64_t input, int64_t panel, float *y, int64_t yStride, int64_t columns) {
      const QuantizedActivations<int8_t> &x = kernel.activations;
      int64_t chunk = input / x.chunk;
      WeightScales scales = kernel.weight.scales.from(chunk, slice.panel + panel * slice.panelStride, 1);
      Vector scale = scales.scale(0, 0);
      for (int64_t r = 0; r < rows; ++r) {
        Vector sum = withoutZeros(r, panel, scales, x.rowSums(row + r)[chunk]);
        float *to = y + r * yStride;
        Vector before = input == 0 ? (Vector)0.0f : loadColumns(to, columns);
        storeColumns(to, __builtin_elementwise_fma(sum, scale * x.rowScales(row + r)[chunk], before), columns);
      }
    }

    /// The sums of a row without what zero points add, rounded where QuantizedBlock rounds them; `xSum` is the sum of the row's integers.
    Vector withoutZeros(int64_t r, int64_t panel, const WeightScales &scales, float xSum) const {
      if (kernel.activations.limbCount == 2)
        return __builtin_elementwise_fma(scales.zero(0, 0, Codes::kZero), Vector(-xSum),
                                         sums.integers(panel, r) * 256.0f + sums.integers(2 + panel, r));
      Integers zero = scales.zeros ? scales.zero(0, 0) : Integers(Codes::kZero);
      auto exact = loadAs<Integers>(sums.bytes[r < kTileRows ? panel : 2 + panel][r % kTileRows]);
      return __builtin_convertvector(exact - zero * static_cast<int32_t>(xSum), Vector);
    }

    const TileQuantizedKernel &kernel;
    int64_t tileInputs;
    TileRegisters registers;
    TileSums sums;
    Slice slice = {};
    const uint8_t *bytes = nullptr;
    int64_t bytesOfPanel = 0;
    alignas(64) uint8_t unpacked[kIsInPlace ? 64 : kMostPanels * kSliceInputs * kPanelOutputs];
  };

  const Weight &weight;
  int64_t steps, panels, rows;
  QuantizedActivations<int8_t> activations;
  OutlierProducts outliers;
};

} // namespace

#endif // __AMX_TILE__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_TILE_QUANTIZED_H
