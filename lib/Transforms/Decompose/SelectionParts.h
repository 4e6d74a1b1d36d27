// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What decompositions of the selection of blocks have in common.

#ifndef HONE_LIB_TRANSFORMS_DECOMPOSE_SELECTIONPARTS_H
#define HONE_LIB_TRANSFORMS_DECOMPOSE_SELECTIONPARTS_H

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/IndexBuilder.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {

inline mlir::Value compare(LocBuilder &b, mlir::arith::CmpFPredicate predicate, mlir::Value x, mlir::Value y) {
  return mlir::arith::CmpFOp::create(b, predicate, x, y);
}

/// What gives a loop its size, and is not read.
inline Operand ofSize(LocBuilder &b, mlir::OpFoldResult size, int64_t loop) {
  return {mlir::tensor::EmptyOp::create(b, llvm::ArrayRef<mlir::OpFoldResult>{size}, b.getF32Type()), {loop}};
}

/// The sums over G of the softmaxes over `blocks` of scores `[B, Hk, lists, blocks, G]`, in which minus infinity stands for what is not
/// there; 0 where nothing is.
mlir::Value sumSoftmaxes(LocBuilder &builder, mlir::Value scores);

/// Puts blocks in order. Values of all blocks are f32 `[B, Hk, lists, blocks]`, of which a list has candidates from `begin` to `end`.
class BlockRanking {
public:
  /// Loops of such values.
  enum : int64_t { Batch, Head, List, Block };

  /// `begin` and `end` are `[B or 1, lists]`.
  BlockRanking(LocBuilder &builder, Sizes sizes, mlir::Value begin, mlir::Value end)
      : builder(builder), sizes(std::move(sizes)), begin(begin), end(end) {}

  /// Whether the block of `loop` is a candidate; `interval` are the elements of getInterval's operands.
  static mlir::Value isCandidate(LocBuilder &b, mlir::ValueRange interval, int64_t loop);
  llvm::SmallVector<Operand> getInterval() const;

  /// The sums `[B, Hk, lists]` over all blocks, or over those that are no candidates.
  mlir::Value sumAll(mlir::Value values) const;
  mlir::Value sumOthers(mlir::Value values) const;

  /// What lists have, each null or `[B, Hk, lists]`: at least so much importance of candidates, and at least so many of them. Without
  /// either all.
  struct Goal {
    mlir::Value importance, blocks;
  };
  /// Lists of `places` as i64: the candidates of greatest `order`, of equal ones the earlier, as many as the goal needs and all whose order
  /// is infinite; -1 in the other places.
  mlir::Value buildLists(mlir::Value importance, mlir::Value order, const Goal &goal, mlir::OpFoldResult places) const;

private:
  mlir::Value sum(mlir::Value values, bool areAll) const;
  mlir::Value sumBefore(mlir::Value order, mlir::Value values) const;

  LocBuilder &builder;
  Sizes sizes;
  mlir::Value begin, end;
};

mlir::Value decomposeSelectAntidiagonals(LocBuilder &builder, SelectAntidiagonalsOp op);
mlir::Value decomposeSelectMeans(LocBuilder &builder, SelectMeansOp op);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DECOMPOSE_SELECTIONPARTS_H
