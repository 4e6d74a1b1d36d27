// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of activations interleaved: a block of rows of y reads the words of all its rows one after the other, at
// addresses that differ by constants.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_PACKED_ROWS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_PACKED_ROWS_H

#include "../rows.h"
#include "../transpose.h"
#include "columns.h"

namespace {

/// to[word][row], from up to 16 rows of words of 32 bits; `read(row, word)` gives sixteen words of a row from `word`
/// on.
template <typename Read> void packRows(float *to, int64_t rows, int64_t words, Read read) {
  if (rows == 1) {
    for (int64_t word = 0; word < words; word += kLanes)
      storeColumns(to + word, read(0, word), words - word);
    return;
  }
  for (int64_t word = 0; word < words; word += kLanes) {
    Vector lines[kLanes];
    for (int64_t r = 0; r < kLanes; ++r)
      lines[r] = r < rows ? read(r, word) : (Vector)0.0f;
    transpose(lines);
    // What a line has too much, the next one replaces; after the last ones there is nothing to replace.
    for (int64_t i = 0; i < smaller(kLanes, words - word); ++i)
      storeColumns(to + (word + i) * rows, lines[i], (words - word - i) * rows >= kLanes ? kLanes : rows);
  }
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_PACKED_ROWS_H
