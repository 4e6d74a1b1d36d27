// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between rows of channels and positions with sixteen channels as lanes.

#ifndef HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_LANES_H
#define HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_LANES_H

#include "../linear/columns.h"
#include "../transpose.h"
#include "problem.h"

namespace {

/// Output channels [first, first + count), at most sixteen, of a sample.
struct OutputLanes {
  int64_t sample, first, count;
};

/// Writes positions [begin, begin + size) of y: sums of the lanes, `stride` floats from one position to the next, plus biases.
inline void storeLanes(const Convolution &problem, const OutputLanes &lanes, int64_t begin, int64_t size,
                       const float *sums, int64_t stride) {
  const Samples &y = problem.y;
  bool isDense = y.isDense();
  for (int64_t next = 0; next < size; next += kLanes) {
    int64_t p =
        isDense && size >= kLanes ? smaller(next, size - kLanes) : next; // the last positions may be written twice
    Vector rows[kLanes];
    for (int64_t i = 0; i < kLanes; ++i)
      rows[i] = load(sums + smaller(p + i, size - 1) * stride);
    transpose(rows);
    int64_t count = smaller(kLanes, size - p);
    for (int64_t i = 0; i < lanes.count; ++i) {
      Vector row = rows[i] + problem.biasOf(lanes.first + i);
      float *to = y.at(lanes.sample, lanes.first + i);
      if (isDense)
        storeColumns(to + begin + p, row, count);
      else
        for (int64_t j = 0; j < count; ++j)
          to[y.offsetOf(begin + p + j)] = row[j];
    }
  }
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_LANES_H
