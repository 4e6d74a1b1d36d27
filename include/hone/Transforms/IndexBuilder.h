// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on indices, as what computes numbers of positions and blocks in IR writes it.

#ifndef HONE_TRANSFORMS_INDEXBUILDER_H
#define HONE_TRANSFORMS_INDEXBUILDER_H

#include "hone/Transforms/Loops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace hone {

struct IndexBuilder {
  LocBuilder &b;

  mlir::Value constant(int64_t value) { return mlir::arith::ConstantIndexOp::create(b, value); }
  /// The number of the step in a loop of the linalg.generic that is being built.
  mlir::Value loop(int64_t number) { return mlir::linalg::IndexOp::create(b, number); }
  mlir::Value of(mlir::Value integer) { return mlir::arith::IndexCastOp::create(b, b.getIndexType(), integer); }

  mlir::Value add(mlir::Value x, mlir::Value y) { return mlir::arith::AddIOp::create(b, x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return mlir::arith::SubIOp::create(b, x, y); }
  mlir::Value times(mlir::Value x, int64_t by) { return mlir::arith::MulIOp::create(b, x, constant(by)); }
  /// Of what is not negative.
  mlir::Value divide(mlir::Value x, int64_t by) { return mlir::arith::DivUIOp::create(b, x, constant(by)); }
  mlir::Value modulo(mlir::Value x, int64_t by) { return mlir::arith::RemUIOp::create(b, x, constant(by)); }
  mlir::Value divideDown(mlir::Value x, int64_t by) { return mlir::arith::FloorDivSIOp::create(b, x, constant(by)); }
  mlir::Value divideUp(mlir::Value x, int64_t by) { return mlir::arith::CeilDivSIOp::create(b, x, constant(by)); }
  mlir::Value larger(mlir::Value x, mlir::Value y) { return mlir::arith::MaxSIOp::create(b, x, y); }
  mlir::Value smaller(mlir::Value x, mlir::Value y) { return mlir::arith::MinSIOp::create(b, x, y); }

  mlir::Value isLess(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::slt, x, y);
  }
  mlir::Value both(mlir::Value x, mlir::Value y) { return mlir::arith::AndIOp::create(b, x, y); }
};

/// `x` where the condition holds, and `y` otherwise.
inline mlir::Value choose(LocBuilder &b, mlir::Value condition, mlir::Value x, mlir::Value y) {
  return mlir::arith::SelectOp::create(b, condition, x, y);
}

} // namespace hone

#endif // HONE_TRANSFORMS_INDEXBUILDER_H
