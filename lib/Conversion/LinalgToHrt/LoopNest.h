// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How an operation of linalg on buffers runs as loops: in which order, what may run at once, and what one position costs.

#ifndef HONE_LIB_CONVERSION_LINALGTOHRT_LOOPNEST_H
#define HONE_LIB_CONVERSION_LINALGTOHRT_LOOPNEST_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace hone {

/// The loops of an operation. `outer` and `reductions` are loop dimensions from the outside in; the innermost loop is the
/// dimension along which most operands lie contiguously: the last reduction, or a parallel dimension after all others.
struct LoopOrder {
  llvm::SmallVector<unsigned> outer, reductions;
  /// The parallel dimension that is innermost, if that is not a reduction.
  std::optional<unsigned> inner;

  static LoopOrder get(mlir::linalg::LinalgOp op);
};

/// The stride, in elements, of `operand` along loop dimension `dim`: 0 where it does not depend on it, nothing where it is
/// not known.
std::optional<int64_t> getStride(mlir::linalg::LinalgOp op, mlir::OpOperand &operand, unsigned dim);

/// Whether any two iterations that differ in a parallel dimension write different elements, and iterations do nothing else
/// than read, compute and write.
bool isParallel(mlir::linalg::LinalgOp op);

/// The same operation with fewer loops: without those of one iteration, and with one for dimensions that lie next to each other in all
/// operands, as rows of a few elements do in planes. Replaces `op` where there are such loops.
mlir::linalg::LinalgOp collapseLoops(mlir::linalg::LinalgOp op);

/// The work of one iteration, in operations on scalars.
int64_t estimateCost(mlir::linalg::LinalgOp op);

/// Lets sums and products be computed in any order: vectors of partial results are what makes them fast.
void allowReordering(mlir::ValueRange results, mlir::ValueRange accumulators);

/// What the loops of an operation use from outside where they become a function: constants are made again inside, all else is
/// captured.
struct LoopCaptures {
  llvm::SmallVector<mlir::Value> captures, constants;

  static LoopCaptures get(mlir::linalg::LinalgOp op, llvm::ArrayRef<mlir::Value> sizes);
  /// The values inside, where `arguments` are those of the function that stand for the captures.
  mlir::IRMapping map(mlir::OpBuilder &b, mlir::ValueRange arguments) const;
};

/// Builds the loops of one operation where the builder stands; `values` says what the operation's operands, and what its
/// region uses from outside, are there.
class LoopNest {
public:
  LoopNest(mlir::linalg::LinalgOp op, LoopOrder order, llvm::ArrayRef<mlir::Value> sizes, mlir::IRMapping values)
      : op(op), order(std::move(order)), sizes(sizes), values(std::move(values)), ivs(sizes.size()) {}

  /// One loop for each dimension.
  void buildAll(mlir::OpBuilder &b, mlir::Location loc);

  /// The positions from `begin` to `end` of the product of the parallel dimensions, counted with the innermost fastest.
  void buildRange(mlir::OpBuilder &b, mlir::Location loc, mlir::Value begin, mlir::Value end);

protected:
  using Body = llvm::function_ref<void(mlir::OpBuilder &)>;
  mlir::Value constant(mlir::OpBuilder &b, mlir::Location loc, int64_t value) const;
  void buildLoops(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<unsigned> dims, Body body);
  void buildRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value begin, mlir::Value end);
  /// Says by which indices of `dims` position number `position` is meant, counted with the last fastest.
  void delinearize(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<unsigned> dims, mlir::Value position);
  /// All that is left when the indices of `outer` are known; `begin` and `end` bound the innermost parallel dimension.
  void buildPoint(mlir::OpBuilder &b, mlir::Location loc, mlir::Value begin, mlir::Value end);
  /// The innermost loop, where it is parallel.
  void buildInner(mlir::OpBuilder &b, mlir::Location loc, mlir::Value begin, mlir::Value end);
  void buildElements(mlir::OpBuilder &b, mlir::Location loc, mlir::Value begin, mlir::Value end);
  /// The same by blocks of a fixed size, before each of which the streams are prefetched some blocks ahead. Gives the first position of the
  /// rest.
  mlir::Value buildBlocks(mlir::OpBuilder &b, mlir::Location loc, mlir::Value begin, mlir::Value end,
                          llvm::ArrayRef<mlir::OpOperand *> streams);
  void loadInvariants(mlir::OpBuilder &b, mlir::Location loc);
  llvm::SmallVector<mlir::Value> buildReductions(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<unsigned> dims,
                                                 mlir::ValueRange accumulators);

  llvm::SmallVector<mlir::Value> getIndices(mlir::OpBuilder &b, mlir::Location loc, mlir::OpOperand &operand);
  mlir::Value load(mlir::OpBuilder &b, mlir::Location loc, mlir::OpOperand &operand);
  void store(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange results);
  llvm::SmallVector<mlir::Value> loadOutputs(mlir::OpBuilder &b, mlir::Location loc);
  /// Whether `op` is the index of the innermost loop, or 0 where a condition says that the loop is broadcast.
  bool isInnerBroadcast(mlir::Operation &op) const;
  /// Whether something is broadcast along the innermost loop, as a value; null where nothing may be.
  mlir::Value buildIsBroadcast(mlir::OpBuilder &b, mlir::Location loc);
  /// The results of the region for the outputs' elements `outputs`.
  llvm::SmallVector<mlir::Value> compute(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<mlir::Value> outputs);

  mlir::linalg::LinalgOp op;
  LoopOrder order;
  llvm::ArrayRef<mlir::Value> sizes;
  mlir::IRMapping values;
  llvm::SmallVector<mlir::Value> ivs;
  /// Elements of operands that need not be loaded any more.
  llvm::DenseMap<mlir::OpOperand *, mlir::Value> loaded;
  /// Whether it is known that nothing is broadcast along the innermost loop.
  bool isFull = false;
};

} // namespace hone

#endif // HONE_LIB_CONVERSION_LINALGTOHRT_LOOPNEST_H
