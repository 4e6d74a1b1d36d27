// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the parts of a prunable group lie: the rows, columns, heads and slots of one hidden channel or GQA group.

#ifndef HONE_TRANSFORMS_GROUPANALYSIS_H
#define HONE_TRANSFORMS_GROUPANALYSIS_H

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace hone::prunable {

/// The prunable group of each index along one dimension of a tensor; negative where it is of none, and stays.
struct GroupAxis {
  int64_t axis = 0;
  llvm::SmallVector<int32_t, 0> groupOf;

  /// The indices that stay if the groups of `isGone` go.
  llvm::SmallVector<int64_t, 0> listKept(llvm::ArrayRef<bool> isGone) const;
};

/// What reads each parameter and each slot of the state.
struct SharedUses {
  explicit SharedUses(mlir::ModuleOp module);

  mlir::ModuleOp module;
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<GetParamOp>> reads;
  llvm::DenseMap<SlotId, llvm::SmallVector<mlir::Operation *>> slots;
};

/// The elements of all floats that the module's functions read.
int64_t countElements(const SharedUses &shared);

/// Why the elements of `param` cannot be read and cut, or an empty string.
std::string getCutBlocker(ParamOp param);

/// Follows prunable groups from where they are marked first to everything that has to be cut with them: through the operations that keep
/// indices separate, to the parameters that make them, the products that sum over them, and the state between calls. Whatever
/// reads the same parameter or slot, in any function, is cut alike.
class GroupAnalysis {
public:
  explicit GroupAnalysis(const SharedUses &shared) : shared(shared) {}

  /// Says what `value` holds along `axis`, of its full size. What is known of it already has to agree.
  void mark(mlir::Value value, int64_t axis, llvm::ArrayRef<int32_t> groupOf);
  /// As mark, of an operand; a constant is cut for this use alone.
  void mark(mlir::OpOperand &use, int64_t axis, llvm::ArrayRef<int32_t> groupOf);
  /// Follows all that is marked. After it, getBlocker() says whether the groups can be cut.
  void run();

  /// Why the groups cannot be cut; empty if they can.
  llvm::StringRef getBlocker() const { return blocker; }
  void refuse(const llvm::Twine &reason);
  /// As refuse, if it is still so once all marks are known.
  void refuseLater(const llvm::Twine &reason) {
    if (isComplete)
      refuse(reason);
  }

  /// What is known of `value`, or null.
  const GroupAxis *find(mlir::Value value) const;
  const GroupAxis *find(mlir::OpOperand &use) const;

  llvm::MapVector<mlir::Value, GroupAxis> values; // but for constants
  llvm::MapVector<mlir::OpOperand *, GroupAxis> constants;
  llvm::MapVector<mlir::StringAttr, GroupAxis> params;
  llvm::MapVector<SlotId, GroupAxis> slots;
  /// Every operation with a marked operand or result.
  llvm::SetVector<mlir::Operation *> touched;

private:
  bool join(GroupAxis &known, bool isNew, int64_t axis, llvm::ArrayRef<int32_t> groupOf);
  void markParam(mlir::StringAttr name, int64_t axis, llvm::ArrayRef<int32_t> groupOf);
  void markSlot(SlotId slot, int64_t axis, llvm::ArrayRef<int32_t> groupOf);
  void enqueue(mlir::Value value);

  void visit(mlir::Operation *op);
  void visitGrouped(GroupedOpInterface op);
  bool markLinked(mlir::Operation *op, llvm::ArrayRef<GroupDim> dims, const GroupDim &from, const GroupAxis &known,
                  bool coverAll);
  void visitAppend(KvAppendOp append);

  const SharedUses &shared;
  std::string blocker;
  bool isComplete = false;
  llvm::SetVector<mlir::Operation *> pending;
};

/// Whether `op` is a node of attention.
bool isAttentionNode(mlir::Operation *op);
/// Marks the prunable groups of a node of attention, its KV heads and the query heads that share them, in what it makes; their number.
int64_t markHeads(mlir::Operation *op, GroupAnalysis &analysis);

/// What is known of an onnx operation, or one of the tensor dialect, goes to its other operands and results.
void visitOnnx(mlir::Operation *op, GroupAnalysis &analysis);
void visitTensorDim(mlir::Operation *op, GroupAnalysis &analysis);

/// Every operand and result has the groups of the others at the same dimension, counted from the last; where that is 1, none.
void visitElementwise(mlir::Operation *op, GroupAnalysis &analysis);

/// The groups of the query heads that share KV head g, from those of what `count` neighbours share.
llvm::SmallVector<int32_t, 0> repeat(llvm::ArrayRef<int32_t> groupOf, int64_t count);
/// The first of every `count` neighbours; nothing where one of them is of no group.
llvm::SmallVector<int32_t, 0> sampleWhole(llvm::ArrayRef<int32_t> groupOf, int64_t count);

/// The integers that `value` is known to hold, as a constant.
std::optional<llvm::SmallVector<int64_t>> getIntegers(mlir::Value value);

/// Cuts everything that `analysis` found but for the parameters: types, constants, attributes and the module's slots. Types of
/// functions follow with updateFunctions.
void cutGroups(const GroupAnalysis &analysis, llvm::ArrayRef<bool> isGone, mlir::ModuleOp module);

/// Gives functions the types of their arguments and of what they return.
void updateFunctions(mlir::ModuleOp module);

/// Where the shape that `op`, a Reshape or Expand, is given says the size of dimension `axis` of the result; nothing where it does not.
std::optional<int64_t> getShapeIndex(mlir::Operation *op, int64_t axis);
/// Whether Concat makes `shape` of single numbers.
bool isJoined(mlir::Value shape);
/// Element `index` of `shape`; nothing where it is computed.
std::optional<int64_t> getShapeElement(mlir::Value shape, int64_t index);

} // namespace hone::prunable

#endif // HONE_TRANSFORMS_GROUPANALYSIS_H
