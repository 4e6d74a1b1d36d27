// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with weights of few bits by vector registers, for PackedLayer.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_KERNEL_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_KERNEL_H

#include "quantized_activations.h"
#include "quantized_block.h"

namespace {

/// Products by vector registers of a weight that lies as `Codes` has it, or becomes so a slice at a time.
template <typename Codes, typename Weight, typename Dot> class QuantizedKernel {
  using Limb = typename Dot::Limb;

public:
  /// A multiple of every chunk; the weights of a slice stay in the L1 cache, of bytes in the L2 cache, while all rows of a task are
  /// multiplied.
  static constexpr int64_t kSliceInputs = Weight::kIsUnpacked ? 512 : 1024;
  static constexpr int64_t kMostRows = Dot::kSums / Dot::kPanels;

  QuantizedKernel(const hone_tensor &x, const Weight &weight, int64_t rows, int64_t bits)
      : weight(weight), steps(weight.lines / Codes::kLines), panels(weight.panels),
        activations(x, rows, steps * Codes::kInputs, chunkInputs(weight.group, bits), bits, 0),
        height(evenHeight(rows, blockRows())), isCached(isCacheable(weight)), packed(activations, rows, height),
        outliers(weight.outliers, x, rows) {}

  int64_t blockRows() const { return kMostRows / activations.limbCount; }
  int64_t blockHeight(int64_t) const { return height; }
  int64_t width(int64_t rows) const { return widthOf(rows * activations.limbCount, Dot::kSums, Dot::kPanels); }
  int64_t sliceSteps(int64_t rows) const {
    return rows <= blockRows() && !Weight::kIsUnpacked ? steps : kSliceInputs / Codes::kInputs;
  }

  class Worker {
  public:
    explicit Worker(const QuantizedKernel &kernel) : kernel(kernel) {}

    void select(const Slice &next) {
      slice = next;
      prefetchOutliers(kernel, slice);
      if constexpr (Weight::kIsUnpacked) {
        kernel.weight.unpack(slice, unpacked, kPanelBytes);
        from = unpacked;
        panelBytes = kPanelBytes;
      } else {
        from = kernel.weight.data + slice.panel * kernel.weight.panelBytes + slice.step * Codes::kStepBytes;
        panelBytes = slice.panelStride * kernel.weight.panelBytes;
      }
    }

    void multiply(int64_t row, int64_t rows, float *y, int64_t yStride, int64_t columns) const {
      const QuantizedActivations<Limb> &x = kernel.activations;
      int64_t chunk = slice.step * Codes::kInputs / x.chunk;
      QuantizedOperands<Limb> operands = {from,
                                          panelBytes,
                                          slice.panelStride * kLanes,
                                          x.chunk / Codes::kInputs,
                                          slice.steps,
                                          kernel.weight.scales.from(chunk, slice.panel, slice.panelStride),
                                          kernel.packed.block(row, rows, slice.step * Codes::kInputs),
                                          kernel.packed.planeStride(),
                                          kernel.packed.scales(row, rows, chunk),
                                          kernel.packed.minus(row, rows, chunk),
                                          y,
                                          yStride,
                                          columns,
                                          slice.step != 0,
                                          kernel.isCached};
      if (Dot::kMostLimbs > 1 && kernel.activations.limbCount > 1)
        runLimbs<Dot::kMostLimbs>(rows, slice.width, operands);
      else
        runLimbs<1>(rows, slice.width, operands);
      addOutliers(kernel, slice, row, rows, y, yStride, columns);
    }

  private:
    template <int LIMBS> static void runLimbs(int64_t rows, int64_t width, const QuantizedOperands<Limb> &operands) {
      constexpr int sums = Dot::kSums / LIMBS;
      runPanels<QuantizedBlock<Codes, Dot, LIMBS>, sums, kMostRows / LIMBS>(width, rows, operands);
    }

    static constexpr int64_t kPanelBytes = kSliceInputs / Codes::kInputs * Codes::kStepBytes;

    const QuantizedKernel &kernel;
    Slice slice = {};
    const uint8_t *from = nullptr;
    int64_t panelBytes = 0;
    alignas(64) uint8_t unpacked[Weight::kIsUnpacked ? kMostPanels * kPanelBytes : 64];
  };

  static bool isCacheable(const Weight &weight) {
    if constexpr (Weight::kIsUnpacked)
      return true;
    else
      return hone::cpu::isReadAgain(weight.data) || weight.panels * weight.panelBytes <= hone::cpu::l2CacheBytes() / 2;
  }

  const Weight &weight;
  int64_t steps, panels;
  QuantizedActivations<Limb> activations;
  int64_t height;
  bool isCached;
  PackedLimbs<Limb> packed;
  OutlierProducts outliers;
};

/// Calls `body` with the products that codes of CODE_BITS bits and activations of `bits` bits take, as a value of their type.
template <int CODE_BITS, typename Body> void withDot(int64_t bits, const Body &body) {
#if defined(__AVX512VNNI__)
  (void)bits;
  body(ByteDot());
#elif defined(HONE_HAS_BYTE_DOT)
  bits == 8 ? body(ByteDot()) : body(WordDot());
#else
  if constexpr (CODE_BITS <= 6)
    if (bits == 8)
      return body(PairDot<CODE_BITS>());
  body(WordDot());
#endif
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_KERNEL_H
