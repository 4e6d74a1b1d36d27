// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed weights of 8 and 4 bits.

#include "../kernels.h"

#include "quantized_activations.h"
#include "quantized_block.h"
#include "tile_quantized.h"
#include "tile_unpacked.h"

namespace hone::cpu::HONE_LEVEL_NAMESPACE {
namespace {

/// Products by vector registers.
template <typename Levels> class QuantizedKernel {
public:
  QuantizedKernel(const hone_tensor &x, const QuantizedWeight &weight, int64_t rows, int64_t bits)
      : weight(weight), steps(weight.steps), panels(weight.panels), bits(bits),
        activations(x, rows, steps * Levels::kInputs, chunkInputs(weight.group, bits), bits, 0),
        height(evenHeight(rows, blockRows())), packed(activations, rows, height) {}

  int64_t blockRows() const { return kQuantizedSums / kQuantizedPanels / activations.digitCount; }
  int64_t blockHeight(int64_t) const { return height; }
  int64_t width(int64_t rows) const { return widthOf(rows * activations.digitCount, kQuantizedSums, kQuantizedPanels); }
  int64_t sliceSteps(int64_t rows) const { return rows <= blockRows() ? steps : kSliceInputs / Levels::kInputs; }

  class Worker {
  public:
    explicit Worker(const QuantizedKernel &kernel) : kernel(kernel) {}

    void select(const Slice &next) { slice = next; }

    void multiply(int64_t row, int64_t rows, float *y, int64_t yStride, int64_t columns) const {
      const QuantizedActivations &x = kernel.activations;
      int64_t chunk = slice.step * Levels::kInputs / x.chunk, panelBytes = kernel.steps * kLineBytes;
      QuantizedOperands operands = {kernel.weight.data + slice.panel * panelBytes + slice.step * kLineBytes,
                                    slice.apart * panelBytes,
                                    slice.apart * kLanes,
                                    x.chunk / Levels::kInputs,
                                    slice.steps,
                                    kernel.weight.scales.from(chunk, slice.panel, slice.apart),
                                    kernel.packed.block(row, rows, slice.step * Levels::kInputs),
                                    kernel.packed.planeStride(),
                                    x.rowScales(row) + chunk,
                                    x.rowSums(row) + chunk,
                                    x.chunks,
                                    y,
                                    yStride,
                                    columns,
                                    slice.step != 0};
      if (kMostDigits == 2 && kernel.bits == 16)
        runDigits<kMostDigits>(rows, slice.width, operands);
      else
        runDigits<1>(rows, slice.width, operands);
    }

  private:
    template <int DIGITS> static void runDigits(int64_t rows, int64_t width, const QuantizedOperands &operands) {
      constexpr int sums = kQuantizedSums / DIGITS;
      runPanels<QuantizedBlock<Levels, DIGITS>, sums, sums / kQuantizedPanels>(width, rows, operands);
    }

    const QuantizedKernel &kernel;
    Slice slice = {};
  };

  static constexpr int64_t kLineBytes = 64;
  /// A multiple of every chunk; the weights of a slice stay in the first-level cache while all rows of a task pass by.
  static constexpr int64_t kSliceInputs = 512;

  const QuantizedWeight &weight;
  int64_t steps, panels, bits;
  QuantizedActivations activations;
  int64_t height;
  PackedDigits packed;
};

/// A call's operands and attributes, as kernels.h lists them.
struct QuantizedCall {
  hone_tensor x, y, factor, residual;
  QuantizedWeight weight;
  Epilogue epilogue;
  int64_t rows, bits;
  bool isLeast; // of the bits: more of x may be kept

  QuantizedCall(const hone_tensor *operands, const int64_t *ints)
      : x(withRowAxis(operands[0])), y(withRowAxis(operands[7])), factor(withRowAxis(operands[5])),
        residual(withRowAxis(operands[6])), weight(operands[1], operands[2], operands[3], ints[1]),
        epilogue(vectorOf(operands[4]), factor, residual, ints[0]), rows(countRows(y)), bits(ints[2]),
        isLeast(ints[3] != 0) {}
};

template <typename Kernel> void runKernel(const QuantizedCall &call) {
  Kernel kernel(call.x, call.weight, call.rows, call.bits);
  PackedLayer<Kernel>(kernel, call.y, call.epilogue).run();
}

template <typename Levels> void runQuantized(const hone_tensor *operands, const int64_t *ints) {
  QuantizedCall call(operands, ints);
  if (isAbsent(call.y))
    return;
#ifdef __AMX_TILE__
  if (call.rows >= kFewestUnpackedRows<Levels> && call.weight.group > 0 && call.bits == 8 && call.isLeast) {
    UnpackedWeights<Levels> weights(call.weight);
    TileEngine<UnpackedWeights<Levels>> engine(weights, call.rows);
    return BandLayer<TileEngine<UnpackedWeights<Levels>>>(call.x, engine, call.y, call.epilogue).run();
  }
  // Tiles add up the same integers in the same chunks, and pay as soon as they hold a few rows.
  if (call.rows >= kFewestTileRows<Levels>)
    return runKernel<TileQuantizedKernel<Levels>>(call);
#endif
  runKernel<QuantizedKernel<Levels>>(call);
}

} // namespace

void packedLinearU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantized<U8Levels>(operands, ints);
}

void packedLinearU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantized<U4Levels>(operands, ints);
}

} // namespace hone::cpu::HONE_LEVEL_NAMESPACE
