// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a function computes from how many positions its state holds.

#ifndef HONE_LIB_TRANSFORMS_SPECULATE_POSITIONREADERS_H
#define HONE_LIB_TRANSFORMS_SPECULATE_POSITIONREADERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hone::speculation {

/// An integer tensor whose elements along `axis` are the positions of the tokens of a call, each with the same added.
struct PositionTensor {
  mlir::Value value;
  int64_t axis;
};

/// Which tensors of positions are looked for: any, or those that have each sequence's along axis 0.
enum class Positions { OfTokens, OfSequences };

/// Says why an operation is in the way, and fails.
using Refusal = llvm::function_ref<llvm::LogicalResult(mlir::Operation *, const llvm::Twine &)>;

/// Whether an operation reads of its operands how large they are, and nothing else.
bool readsSizes(mlir::Operation *op);

/// The tensors of positions of `function`, which takes `tokens` `[batch, sequence]`. Fails with what `refuse` returns where anything but them
/// decides elements that are computed with: those of floats, or what regions do.
llvm::FailureOr<llvm::SmallVector<PositionTensor>> findPositions(mlir::func::FuncOp function, mlir::Value tokens,
                                                                 Positions kind, Refusal refuse);

} // namespace hone::speculation

#endif // HONE_LIB_TRANSFORMS_SPECULATE_POSITIONREADERS_H
