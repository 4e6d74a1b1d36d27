// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the parts of a model lie that go together: the rows, columns, heads and slots of one hidden channel or group of heads.

#ifndef HONE_TRANSFORMS_UNITANALYSIS_H
#define HONE_TRANSFORMS_UNITANALYSIS_H

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace hone::units {

/// The unit of each index along one dimension of a tensor; negative where it is of none, and stays.
struct UnitAxis {
  int64_t axis = 0;
  llvm::SmallVector<int32_t, 0> unitOf;

  /// The indices that stay if the units of `isGone` go.
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
std::string getObstacleToCut(ParamOp param);

/// Follows units from where they are marked first to everything that has to be cut with them: through the operations that keep
/// indices apart, to the parameters that make them, the products that sum over them, and the state between calls. Whatever
/// reads the same parameter or slot, in any function, is cut alike.
class UnitAnalysis {
public:
  explicit UnitAnalysis(const SharedUses &shared) : shared(shared) {}

  /// Says what `value` holds along `axis`, of its full size. What is known of it already has to agree.
  void mark(mlir::Value value, int64_t axis, llvm::ArrayRef<int32_t> unitOf);
  /// As mark, of an operand; a constant is cut for this use alone.
  void mark(mlir::OpOperand &use, int64_t axis, llvm::ArrayRef<int32_t> unitOf);
  /// Follows all that is marked. After it, getObstacle() says whether the units can be cut.
  void run();

  /// Why the units cannot be cut; empty if they can.
  llvm::StringRef getObstacle() const { return obstacle; }
  void refuse(const llvm::Twine &reason);
  /// As refuse, if it is still so once all marks are known.
  void refuseLater(const llvm::Twine &reason) {
    if (isSettled)
      refuse(reason);
  }

  /// What is known of `value`, or null.
  const UnitAxis *find(mlir::Value value) const;
  const UnitAxis *find(mlir::OpOperand &use) const;

  llvm::MapVector<mlir::Value, UnitAxis> values; // but for constants
  llvm::MapVector<mlir::OpOperand *, UnitAxis> constants;
  llvm::MapVector<mlir::StringAttr, UnitAxis> params;
  llvm::MapVector<SlotId, UnitAxis> slots;
  /// Every operation with a marked operand or result.
  llvm::SetVector<mlir::Operation *> touched;

private:
  bool join(UnitAxis &known, bool isNew, int64_t axis, llvm::ArrayRef<int32_t> unitOf);
  void markParam(mlir::StringAttr name, int64_t axis, llvm::ArrayRef<int32_t> unitOf);
  void markSlot(SlotId slot, int64_t axis, llvm::ArrayRef<int32_t> unitOf);
  void enqueue(mlir::Value value);

  void visit(mlir::Operation *op);
  void visitLinear(LinearOp linear);
  void visitMlp(mlir::Operation *op);
  void visitAttention(AttentionOp attention);
  void visitNorm(mlir::Operation *op);
  void visitAppend(KvAppendOp append);

  const SharedUses &shared;
  std::string obstacle;
  bool isSettled = false;
  llvm::SetVector<mlir::Operation *> pending;
};

/// Whether `op` is a node of attention.
bool isAttentionNode(mlir::Operation *op);
/// Marks the units of a node of attention, its heads of keys and the queries that read them, in what it makes; their number.
int64_t markHeads(mlir::Operation *op, UnitAnalysis &analysis);

/// What is known of an onnx operation, or one of the tensor dialect, goes to its other operands and results.
void visitOnnx(mlir::Operation *op, UnitAnalysis &analysis);
void visitTensorDim(mlir::Operation *op, UnitAnalysis &analysis);

/// Every operand and result has the units of the others at the same dimension, counted from the last; where that is 1, none.
void visitElementwise(mlir::Operation *op, UnitAnalysis &analysis);

/// The units of heads that read head g of keys, from those of what is shared by `count` neighbours.
llvm::SmallVector<int32_t, 0> repeat(llvm::ArrayRef<int32_t> unitOf, int64_t count);
/// The first of every `count` neighbours; nothing where one of them is of no unit.
llvm::SmallVector<int32_t, 0> sampleWhole(llvm::ArrayRef<int32_t> unitOf, int64_t count);

/// The integers that `value` is known to hold, as a constant.
std::optional<llvm::SmallVector<int64_t>> getIntegers(mlir::Value value);

/// Cuts everything that `analysis` found but for the parameters: types, constants, attributes and the module's slots. Types of
/// functions follow with updateFunctions.
void cutUnits(const UnitAnalysis &analysis, llvm::ArrayRef<bool> isGone, mlir::ModuleOp module);

/// Gives functions the types of their arguments and of what they return.
void updateFunctions(mlir::ModuleOp module);

/// Where the shape that `op`, a Reshape or Expand, is given says the size of dimension `axis` of the result; nothing where it does not.
std::optional<int64_t> getShapeIndex(mlir::Operation *op, int64_t axis);
/// Whether Concat makes `shape` of single numbers.
bool isJoined(mlir::Value shape);
/// Element `index` of `shape`; nothing where it is computed.
std::optional<int64_t> getShapeElement(mlir::Value shape, int64_t index);

} // namespace hone::units

#endif // HONE_TRANSFORMS_UNITANALYSIS_H
