// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of x as blocks of floating-point weights take them.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_ACTIVATIONS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_ACTIVATIONS_H

#include "dense_formats.h"
#include "packed_layer.h"
#include "packed_rows.h"

namespace {

/// Sixteen words of a row from input `first` on, of which x has `given`; the others are zeros.
template <typename Format> Vector readWords(Row from, int64_t first, int64_t given) {
  constexpr int64_t inputs = kLanes * Format::kWordInputs;
  if (from.stride == 1 && given >= inputs)
    return Format::words(from.data + first);
  float values[inputs] = {};
  for (int64_t k = 0; k < smaller(given, inputs); ++k)
    values[k] = from[first + k];
  return Format::words(values);
}

/// As packWords, of a column-major x: words of neighbouring rows are neighbours there too.
template <typename Format>
void packColumns(const Matrix &x, int64_t row, int64_t rows, int64_t firstWord, int64_t words, float *to) {
  for (int64_t i = 0; i < words; ++i) {
    Vector inputs[Format::kWordInputs];
    for (int64_t k = 0; k < Format::kWordInputs; ++k) {
      int64_t input = (firstWord + i) * Format::kWordInputs + k;
      inputs[k] = input < x.columns ? loadColumns(&x.at(row, input), x.rows - row) : (Vector)0.0f;
    }
    // What a line has too much, the next one replaces; after the last ones there is nothing to replace.
    storeColumns(to + i * rows, wordsOf<Format>(inputs), (words - i) * rows >= kLanes ? kLanes : rows);
  }
}

/// to[word][row], from `rows` rows of x and `words` words of a format. Words that x lacks are zeros.
template <typename Format>
void packWords(const hone_tensor &x, int64_t row, int64_t rows, int64_t firstWord, int64_t words, float *to) {
  Matrix columns;
  if (isColumnMajor(x, columns))
    return packColumns<Format>(columns, row, rows, firstWord, words, to);
  Row from[kLanes];
  for (int64_t r = 0; r < rows; ++r)
    from[r] = rowOf(x, row + r);
  int64_t size = x.sizes[x.rank - 1];
  packRows(to, rows, words, [&](int64_t r, int64_t word) {
    int64_t first = (firstWord + word) * Format::kWordInputs;
    return readWords<Format>(from[r], first, size - first);
  });
}

/// A block of rows of x in words of a format, [word][row]: they are read one after the other, at addresses that differ
/// by constants. A single row is not copied where x has it so.
template <typename Format> class DenseActivations {
public:
  /// In blocks of `height` rows, the last one lower.
  DenseActivations(const hone_tensor &x, int64_t rows, int64_t words, int64_t height)
      : words(words), direct(findDirect(x, rows, words)), copy(direct ? 0 : rows * words) {
    for (int64_t first = 0; !direct && first < rows; first += height)
      packWords<Format>(x, first, smaller(height, rows - first), 0, words, copy.data() + first * words);
  }

  /// The block of `rows` rows that begins at row `first`, from `word` on.
  const float *block(int64_t first, int64_t rows, int64_t word) const {
    return (direct ? direct : copy.data()) + first * words + word * rows;
  }

private:
  static const float *findDirect(const hone_tensor &x, int64_t rows, int64_t words) {
    bool isReady = Format::kWordInputs == 1 && rows == 1 && x.sizes[x.rank - 1] == words && rowOf(x, 0).stride == 1;
    return isReady ? rowOf(x, 0).data : nullptr;
  }

  int64_t words;
  const float *direct;
  Scratch<float> copy;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_DENSE_ACTIVATIONS_H
