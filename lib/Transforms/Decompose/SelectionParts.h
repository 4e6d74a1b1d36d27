// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What decompositions of the selection of blocks have in common.

#ifndef HONE_LIB_TRANSFORMS_DECOMPOSE_SELECTIONPARTS_H
#define HONE_LIB_TRANSFORMS_DECOMPOSE_SELECTIONPARTS_H

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/Loops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {

/// Arithmetic on indices, in the step of a computation.
struct IndexBuilder {
  LocBuilder &b;

  mlir::Value constant(int64_t value) { return mlir::arith::ConstantIndexOp::create(b, value); }
  mlir::Value loop(int64_t number) { return mlir::linalg::IndexOp::create(b, number); }
  mlir::Value add(mlir::Value x, mlir::Value y) { return mlir::arith::AddIOp::create(b, x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return mlir::arith::SubIOp::create(b, x, y); }
  mlir::Value times(mlir::Value x, int64_t by) { return mlir::arith::MulIOp::create(b, x, constant(by)); }
  mlir::Value divide(mlir::Value x, int64_t by) { return mlir::arith::DivUIOp::create(b, x, constant(by)); }
  mlir::Value modulo(mlir::Value x, int64_t by) { return mlir::arith::RemUIOp::create(b, x, constant(by)); }
  mlir::Value larger(mlir::Value x, mlir::Value y) { return mlir::arith::MaxSIOp::create(b, x, y); }
  mlir::Value smaller(mlir::Value x, mlir::Value y) { return mlir::arith::MinSIOp::create(b, x, y); }
  mlir::Value isLess(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::slt, x, y);
  }
  mlir::Value both(mlir::Value x, mlir::Value y) { return mlir::arith::AndIOp::create(b, x, y); }
  mlir::Value of(mlir::Value integer) { return mlir::arith::IndexCastOp::create(b, b.getIndexType(), integer); }
};

inline mlir::Value choose(LocBuilder &b, mlir::Value condition, mlir::Value x, mlir::Value y) {
  return mlir::arith::SelectOp::create(b, condition, x, y);
}

inline mlir::Value compare(LocBuilder &b, mlir::arith::CmpFPredicate predicate, mlir::Value x, mlir::Value y) {
  return mlir::arith::CmpFOp::create(b, predicate, x, y);
}

/// What gives a loop its size, and is not read.
inline Operand ofSize(LocBuilder &b, mlir::OpFoldResult size, int64_t loop) {
  return {mlir::tensor::EmptyOp::create(b, llvm::ArrayRef<mlir::OpFoldResult>{size}, b.getF32Type()), {loop}};
}

/// Lists `[B, Hk, lists, places]` of numbers of blocks as i64, of which what is below -1, where a place has no block, becomes -1.
mlir::Value toBlocks(LocBuilder &builder, mlir::Value blocks, const Sizes &sizes);

mlir::Value decomposeSelectAntidiagonals(LocBuilder &builder, SelectAntidiagonalsOp op);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DECOMPOSE_SELECTIONPARTS_H
