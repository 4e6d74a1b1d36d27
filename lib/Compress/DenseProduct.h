// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The inner loop of everything here that is cubic.

#ifndef HONE_LIB_COMPRESS_DENSEPRODUCT_H
#define HONE_LIB_COMPRESS_DENSEPRODUCT_H

#include <cstdint>

namespace hone::compress {

/// Rows of a matrix with `leading` elements from one to the next.
struct Block {
  double *data;
  int64_t leading;
};
struct ConstBlock {
  const double *data;
  int64_t leading;
};

/// c [rows, columns] -= a [rows, depth] · b [depth, columns], one thread. An element of c loses its products one after the
/// other, by depth, each by a fused multiply-add: the result does not depend on how the matrices are divided, nor on the processor.
void subtractProduct(int64_t rows, int64_t columns, int64_t depth, ConstBlock a, ConstBlock b, Block c);

} // namespace hone::compress

#endif // HONE_LIB_COMPRESS_DENSEPRODUCT_H
