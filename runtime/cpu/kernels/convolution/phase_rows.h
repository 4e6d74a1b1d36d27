// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of x with their padding, their columns split by the remainder modulo the stride (polyphase): a tap of the window reads neighbours
// for neighbours of y whatever the stride is.

#ifndef HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PHASE_ROWS_H
#define HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PHASE_ROWS_H

#include "problem.h"

namespace {

/// Calls `body(i, vector type)` for vectors that cover [0, count), of which the last ones may overlap; below four elements for each.
template <typename Body> void forVectors(int64_t count, const Body &body) {
  typedef float Eight __attribute__((ext_vector_type(8)));
  typedef float Four __attribute__((ext_vector_type(4)));
  if (count >= 16) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
      body(i, Vector());
    if (i < count)
      body(count - 16, Vector());
  } else if (count >= 8) {
    body(0, Eight());
    body(count - 8, Eight());
  } else if (count >= 4) {
    body(0, Four());
    body(count - 4, Four());
  } else {
    for (int64_t i = 0; i < count; ++i)
      body(i, float());
  }
}

inline void fillZeros(float *to, int64_t count) {
  forVectors(count, [=](int64_t i, auto zeros) { __builtin_memcpy(to + i, &zeros, sizeof zeros); });
}

inline void copyFloats(const float *from, int64_t count, float *to) {
  forVectors(count, [=](int64_t i, auto elements) {
    __builtin_memcpy(&elements, from + i, sizeof elements);
    __builtin_memcpy(to + i, &elements, sizeof elements);
  });
}

class PhaseRows {
public:
  explicit PhaseRows(const Convolution &problem)
      : stride(problem.strides[2]), low(problem.low[2]), size(problem.x.sizes[2]), step(problem.x.strides[2]),
        count(smaller(stride, (problem.kernel[2] - 1) * problem.dilations[2] + 1)),
        columns(divideUp(problem.reach(2), stride)) {}

  /// Phases that windows read, and elements of one.
  int64_t phases() const { return count; }
  int64_t width() const { return columns; }
  /// Where column `w` of the padded row lies among those of `phases()` phases that are `pitch` elements apart.
  int64_t placeOf(int64_t w, int64_t pitch) const { return w % stride * pitch + w / stride; }

  /// What a phase has of each row of x: `count` columns from `first` on, of x's elements from `from` on.
  struct Part {
    int64_t first, count, from;
  };

  Part partOf(int64_t phase) const {
    // Column i is element phase + i * stride - low of the row.
    int64_t begin = smaller(divideUp(larger(low - phase, 0), stride), columns);
    int64_t end = smaller(divideUp(larger(low + size - phase, 0), stride), columns);
    return {begin, larger(end - begin, 0), (phase + begin * stride - low) * step};
  }

  /// Writes that part to a row of the phase; its padding is left as it is.
  void copy(const float *row, const Part &part, float *to) const {
    copyStrided(row + part.from, stride * step, part.count, to + part.first);
  }

private:
  static int64_t divideUp(int64_t a, int64_t b) { return b == 1 ? a : b == 2 ? (a + 1) >> 1 : (a + b - 1) / b; }

  static void copyStrided(const float *from, int64_t stride, int64_t count, float *to) {
    if (stride == 1)
      return copyFloats(from, count, to);
    int64_t i = 0;
    if (stride == 2) // the last element is the first of a pair that may not be whole
      for (; i + kLanes < count; i += kLanes) {
        Vector first = load(from + 2 * i), second = load(from + 2 * i + kLanes);
        store(to + i,
              __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30));
      }
    for (; i < count; ++i)
      to[i] = from[i * stride];
  }

  int64_t stride, low, size, step, count, columns;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_PHASE_ROWS_H
