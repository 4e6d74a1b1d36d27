// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How an operation of linalg on buffers runs as threads: what one of them does.

#ifndef HONE_LIB_CONVERSION_LINALGTOGPU_THREADNEST_H
#define HONE_LIB_CONVERSION_LINALGTOGPU_THREADNEST_H

#include "LinalgToHrt/LoopNest.h"

namespace hone {

/// Threads of a block, and lanes of a warp.
inline constexpr int64_t kBlockThreads = 256, kWarpLanes = 32;

/// Who takes a position of the parallel dimensions.
struct ThreadPlan {
  /// Parallel dimensions from the outside in; neighbouring threads take neighbouring positions of the last.
  llvm::SmallVector<unsigned> parallel;
  llvm::SmallVector<unsigned> reductions;
  /// Elements of the last parallel dimension that a thread takes at once.
  int64_t width = 1;
  /// Whether a warp takes a position, its lanes the terms of the last reduction in turns.
  bool byWarp = false;

  static ThreadPlan get(mlir::linalg::LinalgOp op);
};

/// Builds what a thread does where the builder stands.
class ThreadNest : LoopNest {
public:
  ThreadNest(mlir::linalg::LinalgOp op, ThreadPlan plan, llvm::ArrayRef<mlir::Value> sizes, mlir::IRMapping values)
      : LoopNest(op, LoopOrder(), sizes, std::move(values)), plan(std::move(plan)) {}

  /// Position number `position`, counted with the last parallel dimension fastest, and in steps of the plan's width there.
  void build(mlir::OpBuilder &b, mlir::Location loc, mlir::Value position, mlir::Value lane);

private:
  void buildThread(mlir::OpBuilder &b, mlir::Location loc);
  void buildVector(mlir::OpBuilder &b, mlir::Location loc);
  void buildWarp(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lane);
  llvm::SmallVector<mlir::Value> buildLane(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<unsigned> dims,
                                           mlir::Value lane, mlir::ValueRange accumulators);
  mlir::Value sumLanes(mlir::OpBuilder &b, mlir::Location loc, mlir::Operation *combiner, mlir::Value value);

  ThreadPlan plan;
};

} // namespace hone

#endif // HONE_LIB_CONVERSION_LINALGTOGPU_THREADNEST_H
