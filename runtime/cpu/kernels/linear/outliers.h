// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Outliers of a dense-and-sparse weight, in f16: their products are added to the sums of a panel while those are in the
// L1 cache.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_OUTLIERS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_OUTLIERS_H

#include "hone/kernels/arguments.h"

#include "../matrix.h"
#include "../parallel_for.h"
#include "../scratch.h"
#include "../transpose.h"
#include "packed_layer.h"

namespace {

/// Planes of outliers, the first of a weight that has any.
constexpr size_t kOutlierPlanes = 3;

/// Outliers by panels (include/hone/kernels/cpu/quantized.def). Without any, `count` is 0.
struct Outliers {
  const int32_t *starts = nullptr; // [panels + 1]
  const uint16_t *columns = nullptr;
  const _Float16 *values = nullptr;
  int64_t count = 0; // slots

  Outliers() = default;
  Outliers(const hone_tensor &starts, const hone_tensor &columns, const hone_tensor &outliers)
      : starts(static_cast<const int32_t *>(starts.data)), columns(static_cast<const uint16_t *>(columns.data)),
        values(static_cast<const _Float16 *>(outliers.data)), count(columns.sizes[0]) {}

  const uint16_t *columnsOf(int64_t slot) const { return columns + slot * kPanelOutputs; }
  const _Float16 *valuesOf(int64_t slot) const { return values + slot * kPanelOutputs; }

  /// Calls `take(input, output, value)` for each outlier of a panel among `count` inputs from `first` on, whose numbers
  /// begin at 0. Of most slots some are none, and comparing all columns of a slot at once tells which.
  template <typename Take> void takeWithin(int64_t panel, int64_t first, int64_t count, const Take &take) const {
    typedef uint16_t Columns __attribute__((ext_vector_type(kPanelOutputs)));
    typedef bool Flags __attribute__((ext_vector_type(kPanelOutputs)));
    auto begin = static_cast<uint16_t>(first), last = static_cast<uint16_t>(count - 1);
    for (int64_t slot = starts[panel], end = starts[panel + 1]; slot < end; ++slot) {
      const uint16_t *inputs = columnsOf(slot);
      auto areWithin = __builtin_convertvector(loadAs<Columns>(inputs) - begin <= last, Flags);
      for (uint32_t left = __builtin_bit_cast(uint16_t, areWithin); left != 0; left &= left - 1) {
        int64_t output = __builtin_ctz(left);
        take(inputs[output] - first, output, valuesOf(slot)[output]);
      }
    }
  }

  /// Prefetches the outliers of a panel.
  void prefetch(int64_t panel) const {
    constexpr int64_t slotsOfLine = 64 / (kPanelOutputs * sizeof(uint16_t));
    for (int64_t slot = starts[panel]; slot < starts[panel + 1]; slot += slotsOfLine) {
      __builtin_prefetch(columnsOf(slot));
      __builtin_prefetch(valuesOf(slot));
    }
  }
};

/// Those of a weight of this format.
template <typename Format> Outliers outliersOf(const hone_tensor *weight) {
  if constexpr (hone::kernels::kHasOutliers<Format>) {
    const auto &planes = hone::kernels::planesOf<Format>(weight);
    return {planes.starts, planes.columns, planes.outliers};
  } else {
    return {};
  }
}

/// The products of outliers with rows of x.
class OutlierProducts {
public:
  OutlierProducts(const Outliers &outliers, const hone_tensor &x, int64_t rows)
      : outliers(outliers), x(x), isFew(rows <= kGemvRows), inputs(x.sizes[x.rank - 1]),
        isInPlace(isFew && x.strides[x.rank - 1] == 1),
        stride(isFew ? inputs : (ceilDivide(rows, kLanes) | 1) * kLanes),
        memory(outliers.count == 0 || isInPlace ? 0 : (isFew ? rows : inputs) * stride + kLanes) {
    if (outliers.count > 0 && !isInPlace)
      isFew ? copyRows(rows) : transposeRows(rows);
  }

  /// Adds those of `rows` rows from `row` on and the outputs of a panel to y, whose first `columns` columns count.
  void add(int64_t row, int64_t rows, int64_t panel, float *y, int64_t yStride, int64_t columns) const {
    for (int64_t r = 0; r < rows && isFew; ++r)
      addToRow(panel, isInPlace ? rowOf(x, row + r).data : memory.data() + (row + r) * stride, y + r * yStride,
               columns);
    for (int64_t r = 0; r < rows && !isFew; r += kLanes)
      addToRows(panel, memory.data() + row + r, smaller(kLanes, rows - r), y + r * yStride, yStride, columns);
  }

private:
  /// Up to so many rows, a slot takes an input of one row for each of its outputs; beyond, an outlier takes the same
  /// input of sixteen rows, which lie next to each other.
  static constexpr int64_t kGemvRows = 2;

  void copyRows(int64_t rows) {
    for (int64_t r = 0; r < rows; ++r) {
      Row from = rowOf(x, r);
      for (int64_t k = 0; k < inputs; ++k)
        memory.data()[r * stride + k] = from[k];
    }
  }

  /// x as [input][row]; rows after the last are 0. Sixteen are read from any row on: of the last input some that are after all.
  void transposeRows(int64_t rows) {
    parallelFor(ceilDivide(inputs, kLanes), rows * inputs > 1 << 15, [&](int64_t task) {
      int64_t k = task * kLanes;
      for (int64_t r = 0; r < stride; r += kLanes) {
        Vector block[kLanes] = {};
        int64_t count = smaller(kLanes, inputs - k);
        for (int64_t i = 0; i < kLanes && r + i < rows; ++i)
          block[i] = inputsOf(rowOf(x, r + i), k, count);
        transpose(block);
        for (int64_t i = 0; i < count; ++i)
          store(memory.data() + (k + i) * stride + r, block[i]);
      }
    });
  }

  static Vector inputsOf(Row from, int64_t first, int64_t count) {
    if (from.stride == 1)
      return loadColumns(from.data + first, count);
    float some[kLanes] = {};
    for (int64_t i = 0; i < count; ++i)
      some[i] = from[first + i];
    return load(some);
  }

  static Vector gather(const float *x, const uint16_t *indices) {
#ifdef __AVX512F__
    return _mm512_i32gather_ps(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)indices)), x, 4);
#else
    float some[kLanes];
    for (int64_t i = 0; i < kLanes; ++i)
      some[i] = x[indices[i]];
    return load(some);
#endif
  }

  void addToRow(int64_t panel, const float *row, float *y, int64_t columns) const {
    Vector sums = 0;
    for (int64_t slot = outliers.starts[panel], end = outliers.starts[panel + 1]; slot < end; ++slot)
      sums += loadHalves(outliers.valuesOf(slot)) * gather(row, outliers.columnsOf(slot));
    storeColumns(y, loadColumns(y, columns) + sums, columns);
  }

  /// `transposedX`: x as [input][row], from the first row on.
  void addToRows(int64_t panel, const float *transposedX, int64_t rows, float *y, int64_t yStride,
                 int64_t columns) const {
    Vector sums[kLanes] = {};
    for (int64_t slot = outliers.starts[panel], end = outliers.starts[panel + 1]; slot < end; ++slot) {
      const uint16_t *inputsOfSlot = outliers.columnsOf(slot);
      float values[kLanes];
      store(values, loadHalves(outliers.valuesOf(slot)));
      for (int64_t j = 0; j < kLanes; ++j)
        sums[j] += load(transposedX + inputsOfSlot[j] * stride) * values[j];
    }
    transpose(sums);
    for (int64_t r = 0; r < rows; ++r)
      storeColumns(y + r * yStride, loadColumns(y + r * yStride, columns) + sums[r], columns);
  }

  const Outliers &outliers;
  const hone_tensor &x;
  bool isFew;
  int64_t inputs;
  bool isInPlace; // rows are read where they lie
  int64_t stride;
  Scratch<float> memory;
};

/// Whether the sums of a slice have all inputs with it.
template <typename Kernel> bool endsInputs(const Kernel &kernel, const Slice &slice) {
  return slice.step + slice.steps == kernel.steps;
}

/// Prefetches what addOutliers will read, before the quantized values of the slice are multiplied.
template <typename Kernel> void prefetchOutliers(const Kernel &kernel, const Slice &slice) {
  bool hasSome = kernel.weight.outliers.count > 0 && endsInputs(kernel, slice);
  for (int64_t p = 0; p < slice.width && hasSome; ++p)
    kernel.weight.outliers.prefetch(slice.panel + p * slice.panelStride);
}

/// Adds the outliers of the panels of a slice to their sums, once those have all inputs.
template <typename Kernel>
void addOutliers(const Kernel &kernel, const Slice &slice, int64_t row, int64_t rows, float *y, int64_t yStride,
                 int64_t columns) {
  if (kernel.weight.outliers.count == 0 || !endsInputs(kernel, slice))
    return;
  for (int64_t p = 0; p < slice.width; ++p) {
    int64_t column = p * slice.panelStride * kLanes;
    kernel.outliers.add(row, rows, slice.panel + p * slice.panelStride, y + column, yStride, columns - column);
  }
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_OUTLIERS_H
