// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the values of a function are before it runs: shapes as polynomials over the named sizes of its inputs, and elements
// as expressions over their indices. It changes no IR. A mask is recognised by asking for its element (b, h, i, j) here,
// whatever operators compute it.

#ifndef HONE_ANALYSIS_SYMBOLICANALYSIS_H
#define HONE_ANALYSIS_SYMBOLICANALYSIS_H

#include "hone/Analysis/Expressions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace hone::analysis {

using Shape = llvm::SmallVector<Polynomial>;
using Indices = llvm::ArrayRef<Polynomial>;

/// Name of the size that is the number of positions held by the state when the call began.
inline constexpr llvm::StringLiteral kHeldLengthName = "hone.kv_length";

/// Stands for the dimension that a reduction goes over, where an index variable is asked for by axis.
inline constexpr unsigned kReducedAxis = 1000;

/// A matrix that has one value where `first <= row - column < end`, and another one elsewhere; without an end, up to the last
/// diagonal.
struct Diagonals {
  int64_t first = 0;
  std::optional<int64_t> end;
  mlir::Attribute inside, outside;
};

class SymbolicAnalysis {
public:
  explicit SymbolicAnalysis(mlir::func::FuncOp function);

  /// Sizes of a tensor; nothing if its rank is not known.
  std::optional<Shape> getShape(mlir::Value value);
  /// The element of a tensor at `indices`: an Integer for integers, a predicate for i1, any other kind for floats. What is
  /// not understood is a load of the value itself.
  const Expression *getElement(mlir::Value value, Indices indices);
  /// All elements of an integer tensor that is a scalar or has one dimension of fixed and small size, in order.
  std::optional<llvm::SmallVector<Polynomial>> getContents(mlir::Value value);
  /// The same if all of them are known.
  std::optional<llvm::SmallVector<int64_t>> getConstants(mlir::Value value);
  /// The value of all elements of a floating-point tensor, if it is one constant.
  std::optional<double> getSplat(mlir::Value value);

  /// The index variables (i0 … in) of a tensor of the given shape.
  llvm::SmallVector<Polynomial> getIndices(llvm::ArrayRef<Polynomial> shape);
  /// The element at its own index variables; null if the rank is not known.
  const Expression *getElement(mlir::Value value);

  /// The element of `value`, broadcast to `shape`, at `indices`; null where the broadcast is not certain.
  const Expression *getBroadcastElement(mlir::Value value, llvm::ArrayRef<Polynomial> shape, Indices indices);
  /// Where in a tensor of shape `from` the element `indices` of its reshape to `to` is; nothing if that is not known.
  std::optional<llvm::SmallVector<Polynomial>> mapReshape(llvm::ArrayRef<Polynomial> from,
                                                          llvm::ArrayRef<Polynomial> to, Indices indices);

  /// Forgets what was found out about values, but not the names; to be called after the IR has changed.
  void invalidate();

  Expressions expressions;

private:
  friend class ElementEvaluator;

  std::optional<Shape> computeShape(mlir::OpResult value);
  Shape getArgumentShape(mlir::BlockArgument argument, mlir::RankedTensorType type);
  Polynomial sizeOf(mlir::Value value, unsigned dim);

  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Value, std::optional<Shape>> shapes;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, Atom> unknownSizes;
  llvm::DenseMap<mlir::Attribute, std::optional<Diagonals>> diagonals; // of constants
  unsigned depth = 0;
};

/// Whether the operands of an ONNX operation are broadcast to one shape, which is that of its result: Add, Where, Expand, …
bool isBroadcast(mlir::Operation *op);

/// Parses a dimension's name such as "past_sequence + sequence" or "4*batch" as a polynomial over names.
Polynomial parseSizeName(llvm::StringRef name, Expressions &expressions);

} // namespace hone::analysis

#endif // HONE_ANALYSIS_SYMBOLICANALYSIS_H
