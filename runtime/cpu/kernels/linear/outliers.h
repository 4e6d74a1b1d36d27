// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of a weight that lie apart from its levels, in f16: their products join the sums of a panel while those are in the
// first-level cache.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_OUTLIERS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_OUTLIERS_H

#include "../matrix.h"
#include "../scratch.h"
#include "../transpose.h"
#include "layer.h"

namespace {

/// Outliers row by row, as kernels.h says. Without any, `count` is 0.
struct Outliers {
  const int32_t *starts = nullptr; // [outputs + 1]
  const uint16_t *columns = nullptr;
  const _Float16 *values = nullptr;
  int64_t outputs = 0, count = 0;

  Outliers() = default;
  /// `planes`: starts, columns and values.
  explicit Outliers(const hone_tensor *planes)
      : starts(static_cast<const int32_t *>(planes[0].data)), columns(static_cast<const uint16_t *>(planes[1].data)),
        values(static_cast<const _Float16 *>(planes[2].data)), outputs(planes[0].sizes[0] - 1),
        count(planes[1].sizes[0]) {}

  /// Where those of an output begin, or for one behind the last where all end.
  int64_t start(int64_t output) const { return starts[smaller(output, outputs)]; }
};

/// The products of outliers with rows of x.
class OutlierProducts {
public:
  OutlierProducts(const Outliers &outliers, const hone_tensor &x, int64_t rows)
      : outliers(outliers), isFew(rows <= kFewRows), inputs(x.sizes[x.rank - 1]),
        stride(isFew ? inputs : (ceilDivide(rows, kLanes) | 1) * kLanes), memory(outliers.count == 0 ? 0
                                                                                 : isFew ? rows * inputs
                                                                                         : inputs * stride) {
    if (outliers.count > 0)
      isFew ? copy(x, rows) : turn(x, rows);
  }

  /// Adds those of `rows` rows from `row` on and the outputs of a panel to y, whose first `columns` columns count.
  void add(int64_t row, int64_t rows, int64_t panel, float *y, int64_t yStride, int64_t columns) const {
    int64_t output = panel * kPanelOutputs;
    if (outliers.start(output) == outliers.start(output + kPanelOutputs))
      return;
    askForNext(output + kPanelOutputs);
    for (int64_t r = 0; r < rows && isFew; ++r)
      addToRow(output, memory.data() + (row + r) * stride, y + r * yStride, columns);
    for (int64_t r = 0; r < rows && !isFew; r += kLanes)
      addToRows(output, memory.data() + row + r, smaller(kLanes, rows - r), y + r * yStride, yStride, columns);
  }

private:
  /// Up to so many rows, a product of sixteen outliers takes sixteen inputs of one row; beyond, one outlier takes the same
  /// input of sixteen rows, which lie next to each other.
  static constexpr int64_t kFewRows = 2;
  static constexpr int64_t kMostProducts = 1024; // that are kept until they are added up

  void copy(const hone_tensor &x, int64_t rows) {
    for (int64_t r = 0; r < rows; ++r) {
      Row from = rowOf(x, r);
      for (int64_t k = 0; k < inputs; ++k)
        memory.data()[r * stride + k] = from[k];
    }
  }

  /// x as [input][row]; rows behind the last are 0.
  void turn(const hone_tensor &x, int64_t rows) {
#pragma omp parallel for schedule(static) if (rows * inputs > 1 << 15)
    for (int64_t k = 0; k < inputs; k += kLanes)
      for (int64_t r = 0; r < stride; r += kLanes) {
        Vector block[kLanes] = {};
        int64_t count = smaller(kLanes, inputs - k);
        for (int64_t i = 0; i < kLanes && r + i < rows; ++i)
          block[i] = inputsOf(rowOf(x, r + i), k, count);
        transpose(block);
        for (int64_t i = 0; i < count; ++i)
          store(memory.data() + (k + i) * stride + r, block[i]);
      }
  }

  static Vector inputsOf(Row from, int64_t first, int64_t count) {
    if (from.stride == 1)
      return loadColumns(from.data + first, count);
    float some[kLanes] = {};
    for (int64_t i = 0; i < count; ++i)
      some[i] = from[first + i];
    return load(some);
  }

  /// The outliers of the next panel lie behind those of this one.
  void askForNext(int64_t output) const {
    constexpr int64_t line = 64 / sizeof(uint16_t);
    for (int64_t i = outliers.start(output), end = outliers.start(output + kPanelOutputs); i < end; i += line) {
      __builtin_prefetch(outliers.columns + i);
      __builtin_prefetch(outliers.values + i);
    }
    __builtin_prefetch(outliers.starts + smaller(output + 2 * kPanelOutputs, outliers.outputs));
  }

  void addToRow(int64_t output, const float *x, float *y, int64_t columns) const {
    int64_t begin = outliers.start(output), end = outliers.start(output + kPanelOutputs);
    Vector sums = loadColumns(y, columns);
    for (int64_t first = begin; first < end; first += kMostProducts) {
      int64_t last = smaller(first + kMostProducts, end);
      float products[kMostProducts + kLanes];
      for (int64_t i = first; i < last; i += kLanes)
        store(products + (i - first), productsOf(i, x));
      sums += addUp(products, output, first, last);
    }
    storeColumns(y, sums, columns);
  }

  /// Sixteen outliers times their inputs, those behind the last one 0.
  Vector productsOf(int64_t first, const float *x) const {
    uint16_t columns[kLanes] = {};
    _Float16 values[kLanes] = {};
    if (first + kLanes <= outliers.count) {
      __builtin_memcpy(columns, outliers.columns + first, sizeof columns);
      __builtin_memcpy(values, outliers.values + first, sizeof values);
    } else {
      for (int64_t i = 0; i < outliers.count - first; ++i) {
        columns[i] = outliers.columns[first + i];
        values[i] = outliers.values[first + i];
      }
    }
    return loadHalves(values) * gather(x, columns);
  }

  static Vector gather(const float *x, const uint16_t *columns) {
#ifdef __AVX512F__
    return _mm512_i32gather_ps(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)columns)), x, 4);
#else
    float some[kLanes];
    for (int64_t i = 0; i < kLanes; ++i)
      some[i] = x[columns[i]];
    return load(some);
#endif
  }

  /// The sums of those of the products `first` … `last` - 1 that each output of a panel has.
  Vector addUp(const float *products, int64_t output, int64_t first, int64_t last) const {
    const Integers lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Vector sums[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) {
      int64_t from = larger(outliers.start(output + j), first), end = smaller(outliers.start(output + j + 1), last);
      sums[j] = 0;
      for (int64_t i = from; i < end; i += kLanes) {
        Integers isInside = lane < static_cast<int32_t>(end - i);
        sums[j] += asFloats(loadAs<Words>(products + (i - first)) & (Words)isInside);
      }
    }
    addLanes<8>(sums);
    return sums[0];
  }

  /// Lane j of the first becomes the sum of the lanes of the j-th.
  template <int BIT> static void addLanes(Vector (&sums)[kLanes]) {
    for (int i = 0; i < BIT; ++i)
      sums[i] = lowLanes<BIT>(sums[i], sums[i + BIT]) + highLanes<BIT>(sums[i], sums[i + BIT]);
    if constexpr (BIT > 1)
      addLanes<BIT / 2>(sums);
  }

  /// `x`: a row of the first input.
  void addToRows(int64_t output, const float *x, int64_t rows, float *y, int64_t yStride, int64_t columns) const {
    Vector sums[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) {
      sums[j] = 0;
      for (int64_t i = outliers.start(output + j), end = outliers.start(output + j + 1); i < end; ++i)
        sums[j] += load(x + outliers.columns[i] * stride) * static_cast<float>(outliers.values[i]);
    }
    transpose(sums);
    for (int64_t r = 0; r < rows; ++r)
      storeColumns(y + r * yStride, loadColumns(y + r * yStride, columns) + sums[r], columns);
  }

  const Outliers &outliers;
  bool isFew;
  int64_t inputs, stride;
  Scratch<float> memory;
};

/// Adds the outliers of the panels of a slice to their sums, once those have all inputs.
template <typename Kernel>
void addOutliers(const Kernel &kernel, const Slice &slice, int64_t row, int64_t rows, float *y, int64_t yStride,
                 int64_t columns) {
  if (kernel.weight.outliers.count == 0 || slice.step + slice.steps != kernel.steps)
    return;
  for (int64_t p = 0; p < slice.width; ++p) {
    int64_t column = p * slice.apart * kLanes;
    kernel.outliers.add(row, rows, slice.panel + p * slice.apart, y + column, yStride, columns - column);
  }
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_OUTLIERS_H
