// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rotary position embedding.

#include "entry.h"

#include "parallel_for.h"
#include "rows.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// The row of a table [B|1, S, R/2] for sequence `b` and position `s`.
Row tableRow(const hone_tensor &table, int64_t b, int64_t s) {
  int64_t sequence = table.sizes[0] == 1 ? 0 : b;
  return {floats(table) + sequence * table.strides[0] + s * table.strides[1], table.strides[2]};
}

/// Elements of a pair are `apart` from each other, pairs are `step` apart. Pairs do not touch each other, also in
/// place.
inline void rotate(Row x, Row y, Row cos, Row sin, int64_t pairs, int64_t step, int64_t pairStride) {
#pragma omp simd
  for (int64_t i = 0; i < pairs; ++i) {
    float a = x[i * step], b = x[i * step + pairStride];
    y[i * step] = a * cos[i] - b * sin[i];
    y[i * step + pairStride] = b * cos[i] + a * sin[i];
  }
}

void run(const kernels::Call<kernels::Rope, kernels::NoWeight> &call) {
  const auto &o = call.operands;
  const hone_tensor &x = o.x, &cos = o.cos, &sin = o.sin, &y = o.y;
  if (isAbsent(x))
    return;
  int64_t heads = x.sizes[1], positions = x.sizes[2], size = x.sizes[3], pairs = cos.sizes[2];
  int64_t step = call.ints.interleaved ? 2 : 1, pairStride = call.ints.interleaved ? 1 : pairs, rows = countRows(x);
  parallelFor(rows, rows * size > 4096, [&](int64_t row) {
    int64_t b = row / (heads * positions), s = row % positions;
    Row from = rowOf(x, row), to = rowOf(y, row);
    Row c = tableRow(cos, b, s), n = tableRow(sin, b, s);
    withKnownStrides(
        [=](Row from, Row to, Row cos, Row sin) {
          if (step == 1)
            rotate(from, to, cos, sin, pairs, 1, pairs);
          else
            rotate(from, to, cos, sin, pairs, step, pairStride);
        },
        from, to, c, n);
    for (int64_t i = 2 * pairs; i < size; ++i)
      to[i] = from[i];
  });
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cpu/rope.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
