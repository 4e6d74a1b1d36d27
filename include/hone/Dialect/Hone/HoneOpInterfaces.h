//===- HoneOpInterfaces.h - what an operation says of itself to passes --------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interfaces of dialects/Hone/HoneOpInterfaces.td, the plain structs that their methods return, and the questions that passes
// ask them most.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_HONEOPINTERFACES_H
#define HONE_DIALECT_HONE_HONEOPINTERFACES_H

#include "hone/Dialect/Hone/HoneShapes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/PatternMatch.h"

#include <optional>

namespace hone {

//===- Weights ----------------------------------------------------------------------------------------------------===//

/// What the inputs of a weight are.
enum class WeightInputs {
  Rows,    // the last dimension of an operand, each row of which it is multiplied with
  Hidden,  // hidden channels, which the operation computes and multiplies it with
  Numbers, // nothing: integers of an operand are the numbers of rows that are looked up
};

/// What the outputs of a weight are.
enum class WeightOutputs {
  Result,    // the last dimension of the result, to which nothing but the bias is added
  Hidden,    // hidden channels, each of which is a multiple of its output
  Activated, // hidden channels, after an activation
};

/// A matrix `[outputs, inputs]` that an operation reads. The weights of experts are one matrix, `[experts · outputs, inputs]`.
struct WeightUse {
  mlir::OpOperand *weight;
  WeightInputs inputs;
  mlir::OpOperand
      *read; // the rows or numbers, which the operation reads for its weights alone; null of hidden channels
  WeightOutputs outputs;
  mlir::MutableOperandRange bias;     // a number an output, at most one operand; of experts a row each
  int64_t experts = 0;                // how many have a matrix in it; 0 where all rows are multiplied with all of it
  int64_t choices = 0;                // how many experts each row chooses; negative where that is not known
  mlir::OpOperand *partner = nullptr; // a weight that kernels read in the same form as this one

  /// Whether all rows of an operand are multiplied with it and nothing else happens to them: the operation is this product.
  bool isProduct() const { return inputs == WeightInputs::Rows && outputs == WeightOutputs::Result && experts == 0; }
};

//===- Rows -------------------------------------------------------------------------------------------------------===//

/// What a norm does to a row: it is shifted to mean 0 or not, divided by the root of its mean square, multiplied by the gain, and the
/// bias is added.
struct NormParts {
  mlir::OpOperand *rows;
  mlir::OpOperand *gain;          // a number a channel
  mlir::MutableOperandRange bias; // a number a channel, at most one operand
  bool hasUnitOffset;             // the factor of a channel is 1 + gain
  bool subtractsMean;             // which rotations of the row do not keep
};

//===- Groups -----------------------------------------------------------------------------------------------------===//

/// A dimension of an operand, or of result number `result` where `operand` is null: `each` neighbouring indices of it belong to one
/// of the dimensions that it is cut together with.
struct GroupDim {
  mlir::OpOperand *operand;
  int64_t dim;
  int64_t each = 1;
  unsigned result = 0;
};

/// How an operation keeps indices separate.
struct GroupRules {
  /// Dimensions that are cut together.
  llvm::SmallVector<llvm::SmallVector<GroupDim>> linked;
  /// Why nothing that the operation reads or makes can be cut; empty where something can.
  llvm::StringRef blocker = "";
  /// Why operands and results cannot be cut along a dimension that is not linked.
  llvm::StringRef blockerOfOperands = "", blockerOfResults = "";
  /// Whether groups cover a linked dimension as a whole, so that no index stays whatever is cut.
  bool coverAll = false;
};

/// What the groups inside a block of a layer are.
enum class GroupKind {
  Heads,    // KV heads, each with the query heads that share it (GQA)
  Channels, // hidden channels of a feed-forward block
};

/// The groups that begin and end in an operation: an index of dimension `dim` of `operand` is one.
struct InnerGroups {
  GroupKind kind;
  mlir::OpOperand *operand;
  int64_t dim;

  /// How many there are, or ShapedType::kDynamic.
  int64_t count() const { return llvm::cast<mlir::RankedTensorType>(operand->get().getType()).getDimSize(dim); }
};

class Adjoints; // hone/Transforms/Adjoints.h

} // namespace hone

#include "hone/Dialect/Hone/HoneOpInterfaces.h.inc"

namespace hone {

//===- Questions, answered for every operation --------------------------------------------------------------------===//

/// The weight that `use` is, or nothing.
std::optional<WeightUse> findWeight(mlir::OpOperand &use);

/// Whether rows of the operand are looked up by their numbers, and nothing else happens to it.
bool isLookedUp(mlir::OpOperand &use);

/// The lookup that `op` is, or nothing.
std::optional<WeightUse> findLookup(mlir::Operation *op);

/// The weights that all rows of the operand are multiplied with; none where something else happens to them, or where rows choose among
/// experts.
llvm::SmallVector<WeightUse> listReaders(mlir::OpOperand &rows);

/// The weight that makes the result of `op` from all of its rows, or by looking rows up; nothing where there is none.
std::optional<WeightUse> findWriter(mlir::Operation *op);

/// The one weight of `op` where it is a product of an operand with it; nothing otherwise.
std::optional<WeightUse> findProduct(mlir::Operation *op);

/// The groups that begin and end in `op`, or nothing.
std::optional<InnerGroups> findInnerGroups(mlir::Operation *op);

namespace detail {
/// The rules of an operation that reads all of each row of its first operand, and makes a row of it.
GroupRules getRulesOfRows(mlir::Operation *op);
} // namespace detail

} // namespace hone

#endif // HONE_DIALECT_HONE_HONEOPINTERFACES_H
