// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradients that reverse mode has so far, and what is wanted of them.

#ifndef HONE_TRANSFORMS_ADJOINTS_H
#define HONE_TRANSFORMS_ADJOINTS_H

#include "hone/Transforms/Loops.h"

#include "mlir/IR/Block.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace hone {

/// The gradients of one scalar, or of what a tensor is multiplied with and summed up, with respect to values. That of a tensor has its
/// shape and elements, and no encoding; that of a number its type.
class Adjoints {
public:
  /// Wants the gradient of `value`.
  void want(mlir::Value value) { wanted.insert(value); }
  /// Wants those of all floats in `block`, before `end` if that is given, that are computed of wanted ones.
  void wantResults(mlir::Block &block, mlir::Operation *end = nullptr);
  bool isWanted(mlir::Value value) const { return wanted.contains(value); }

  /// The sum of what was added to the gradient of `value`, or null where nothing was: it is zero.
  mlir::Value get(mlir::Value value) const { return gradients.lookup(value); }
  /// Adds a part of the gradient of `value`; one that is not wanted is dropped.
  void add(LocBuilder &builder, mlir::Value value, mlir::Value part);
  /// Makes `gradient`, which has what was added before in it, the gradient of `value`, which is wanted.
  void replace(mlir::Value value, mlir::Value gradient) { gradients[value] = gradient; }
  /// The same values wanted, and no gradients yet.
  Adjoints withoutGradients() const;

private:
  llvm::DenseSet<mlir::Value> wanted;
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
};

/// Whether values of the type have gradients: floats, and tensors of them.
bool hasGradient(mlir::Type type);

/// A tensor of zeros of the shape and elements of `like`.
mlir::Value buildZeros(LocBuilder &builder, mlir::Value like);

/// Attaches the models of `DifferentiableOpInterface` to the operations of hone, linalg and tensor that have adjoints.
void registerAdjoints(mlir::DialectRegistry &registry);

} // namespace hone

#endif // HONE_TRANSFORMS_ADJOINTS_H
