// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What products with 2:4 weights cost, as it was measured: SparseCosts.def.

#ifndef HONE_LIB_TRANSFORMS_WEIGHTS_SPARSECOSTS_H
#define HONE_LIB_TRANSFORMS_WEIGHTS_SPARSECOSTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace hone {

/// A layer with a weight `[outputs, inputs]`.
struct LayerShape {
  int64_t outputs, inputs;
};

/// Names of the levels of the instruction set that the table knows, lowest first.
llvm::ArrayRef<llvm::StringRef> getCostLevels();

/// The time of a product of `rows` rows without the zeros of a 2:4 weight, as a share of the time with them, at `level` and for
/// elements of `format` (the last word of the kernel's name): that of the measured layer whose sizes are nearest, by the sum of
/// their ratios' logarithms, and between two numbers of rows on the line through both over the logarithm of rows. Nothing
/// where no such format was measured.
std::optional<double> getSparseCost(llvm::StringRef level, llvm::StringRef format, LayerShape shape, int64_t rows);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_WEIGHTS_SPARSECOSTS_H
