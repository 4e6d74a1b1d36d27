// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of x as blocks of floating-point weights take them.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_ACTIVATIONS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_ACTIVATIONS_H

#include "dense_formats.h"
#include "layer.h"
#include "packed_rows.h"

namespace {

/// Rows of x in words of a format, [block][word][row of the block]: a block reads them one after the other, at addresses that
/// differ by constants. Blocks have `height` rows, the last one fewer. Words that x lacks are zeros. A single row is not copied
/// where x has it so.
template <typename Format> class DenseActivations {
public:
  DenseActivations(const hone_tensor &x, int64_t rows, int64_t words, int64_t height)
      : x(x), words(words), direct(findDirect(rows)), copy(direct ? 0 : rows * words) {
    if (direct)
      return;
    int64_t blocks = ceilDivide(rows, height);
#pragma omp parallel for schedule(static) if (rows * words > 1 << 15)
    for (int64_t block = 0; block < blocks; ++block)
      packBlock(block * height, smaller(height, rows - block * height));
  }

  /// The block of `rows` rows that begins at row `first`, from `word` on.
  const float *block(int64_t first, int64_t rows, int64_t word) const {
    return (direct ? direct : copy.data() + first * words) + word * rows;
  }

private:
  const float *findDirect(int64_t rows) const {
    bool isReady = Format::kWordInputs == 1 && rows == 1 && x.sizes[x.rank - 1] == words && rowOf(x, 0).stride == 1;
    return isReady ? rowOf(x, 0).data : nullptr;
  }

  void packBlock(int64_t first, int64_t rows) const {
    packRows(copy.data() + first * words, rows, words,
             [&](int64_t r, int64_t word) { return readWords(rowOf(x, first + r), word); });
  }

  /// Sixteen words of a row.
  Vector readWords(Row from, int64_t word) const {
    constexpr int64_t inputs = kLanes * Format::kWordInputs;
    int64_t first = word * Format::kWordInputs, given = x.sizes[x.rank - 1] - first;
    if (from.stride == 1 && given >= inputs)
      return Format::words(from.data + first);
    float values[inputs] = {};
    for (int64_t k = 0; k < smaller(given, inputs); ++k)
      values[k] = from[first + k];
    return Format::words(values);
  }

  const hone_tensor &x;
  int64_t words;
  const float *direct;
  Scratch<float> copy;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_ACTIVATIONS_H
