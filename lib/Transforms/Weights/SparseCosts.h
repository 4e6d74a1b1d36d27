// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What products with 2:4 weights cost: on processors as it was measured (SparseCosts.def), on GPUs as it is estimated.

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

/// Names of the ISAs that the table knows, lowest first.
llvm::ArrayRef<llvm::StringRef> getCostIsas();

/// The time of a product of `rows` rows without the zeros of a 2:4 weight, as a share of the time with them, at `isa` and for
/// elements of `format` (the last word of the kernel's name): that of the measured layer whose sizes are nearest, by the sum of
/// their ratios' logarithms, and between two numbers of rows on the line through both over the logarithm of rows. An ISA
/// without rows for a format has the kernels, and so the costs, of the one before. Nothing where no such format was measured.
std::optional<double> getSparseCost(llvm::StringRef isa, llvm::StringRef format, LayerShape shape, int64_t rows);

/// Whether costs on the chip, sm_80 for instance, can be estimated.
bool isCostChip(llvm::StringRef name);

/// Bytes of a weight with its zeros and without.
struct LayerBytes {
  int64_t dense, sparse;
};

/// The same share on a GPU. Nobody has measured it: it is what bytes and operations take at the rates of data sheets, with activations
/// of f32, whichever takes longer, and at least what a launch takes. Dense products are taken to be as fast as the chip's tensor
/// cores are, whoever multiplies, so that the share is rather too large than too small. Nothing for an unknown format.
std::optional<double> estimateSparseCost(llvm::StringRef chip, llvm::StringRef format, LayerShape shape, int64_t rows,
                                         LayerBytes bytes);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_WEIGHTS_SPARSECOSTS_H
