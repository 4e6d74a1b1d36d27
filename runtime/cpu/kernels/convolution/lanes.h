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

/// Writes positions [begin, begin + size) of y: sums of the lanes, `stride` floats from one position to the next, and the epilogue.
inline void storeLanes(const Convolution &problem, const OutputLanes &lanes, int64_t begin, int64_t size,
                       const float *sums, int64_t stride) {
  const Samples &y = problem.y, &residual = problem.epilogue.residual;
  bool isDense = y.isDense() && (!residual.data || residual.isDense());
  for (int64_t next = 0; next < size; next += kLanes) {
    int64_t p =
        isDense && size >= kLanes ? smaller(next, size - kLanes) : next; // the last positions may be written twice
    Vector rows[kLanes];
    for (int64_t i = 0; i < kLanes; ++i)
      rows[i] = load(sums + smaller(p + i, size - 1) * stride);
    transpose(rows);
    int64_t count = smaller(kLanes, size - p);
    for (int64_t i = 0; i < lanes.count; ++i) {
      Vector row = rows[i] + problem.epilogue.biasOf(lanes.first + i);
      float *to = y.at(lanes.sample, lanes.first + i);
      const float *added = residual.data ? residual.at(lanes.sample, lanes.first + i) : nullptr;
      if (isDense) {
        if (added)
          row += loadColumns(added + begin + p, count);
        storeColumns(to + begin + p, problem.epilogue.limit(row), count);
        continue;
      }
      for (int64_t j = 0; j < count; ++j) {
        int64_t position = begin + p + j;
        float sum = row[j] + (added ? added[residual.offsetOf(position)] : 0.0f);
        to[y.offsetOf(position)] = problem.epilogue.limit(sum);
      }
    }
  }
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_CONVOLUTION_LANES_H
