// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the lowering of one ONNX operator sees: its operands already lowered, its attributes, and builders for sizes,
// element-wise loops and reductions. A lowering is one function in its family's file and one row in that file's table.
//
// Operations are lowered in order, each from the types its operands really have; those are often more static than what
// the file declares, because shape arithmetic folds on the way (IndexMath.h, Node::scalars).

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_LOWERING_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_LOWERING_H

#include "IndexMath.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"

namespace hone::lowering {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::StringRef;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
using Builder = mlir::ImplicitLocOpBuilder;

class Node;
using LoweringFunction = LogicalResult (*)(Node &);
using LoweringTable = llvm::StringMap<LoweringFunction>;

/// State of the lowering of one function: where values went, their sizes, and the table of lowerings.
class Lowerer {
public:
  Lowerer(Operation *root, const LoweringTable &table) : b(root->getLoc(), root->getContext()), math(b), table(table) {}

  /// Lowers every operation of `from` to the end of the current block. Terminators are left to the caller.
  LogicalResult lowerBlock(mlir::Block &from);
  /// Lowers one subgraph region of an operator at the current insertion point: `arguments` stand for its block arguments;
  /// the values of its Yield come back.
  FailureOr<SmallVector<Value>> inlineRegion(mlir::Region &region, ValueRange arguments);

  Value lookUp(Value original) const { return mapping.lookupOrNull(original); }
  void map(Value original, Value lowered);

  /// Sizes of a lowered tensor, one a dimension; the run-time ones are the values the tensor was made with.
  SmallVector<Size> sizes(Value tensor);
  void setSizes(Value tensor, ArrayRef<Size> sizes);
  /// `value` as a tensor of type `declared`, with a run-time check of each size that only becomes fixed now; `value` itself
  /// if the two types contradict each other. `what` begins the check's message.
  Value castTo(Value value, Type declared, const llvm::Twine &what);

  /// A check at run time: ends the call with `message`, whose last "{}" stand for `values`, unless `condition` holds. The message
  /// begins with the name of `op`.
  void check(Operation *op, Value condition, const llvm::Twine &message, ArrayRef<Size> values = {});
  /// Makes sure that a tensor of `op` can have these sizes, before it is made: none is negative, and their product does not wrap. At
  /// run time where they are known only then; failure where they cannot be.
  LogicalResult requireSizes(Operation *op, ArrayRef<Size> sizes, Type element);
  /// The same of a part of a tensor, which has no more elements than the whole.
  LogicalResult requireNonNegative(Operation *op, ArrayRef<Size> sizes);
  /// Declares the sizes of an input, which the runtime has checked.
  void trustSizes(ArrayRef<Size> sizes);

  Builder b;
  IndexMath math;
  /// Whether what is lowered is in a branch that is never taken, for its types.
  bool isDraft = false;

private:
  LogicalResult lowerOperation(Operation *op);
  LogicalResult lowerHone(Operation *op);
  LogicalResult setReifiedSizes(Operation *op);
  bool isNewCheck(Value condition);
  Value isProductAtMost(ArrayRef<Value> factors, int64_t most);

  /// A number of bytes that a check has bounded: `constant` times run-time sizes, those of 0 counted as 1.
  struct Product {
    SmallVector<Value> factors;
    int64_t constant;
    mlir::Region *region; // where that is known
  };

  const LoweringTable &table;
  mlir::IRMapping mapping;
  llvm::DenseMap<Value, SmallVector<Size>> knownSizes;
  /// Regions in which a condition has been checked.
  llvm::DenseMap<Value, SmallVector<mlir::Region *>> checked;
  SmallVector<Product, 0> products;
};

/// One operator being lowered.
class Node {
public:
  Node(Operation *op, Lowerer &lowerer) : op(op), lowerer(lowerer), b(lowerer.b), math(lowerer.math) {}

  // Operands. An optional input that is not given is a null Value.
  unsigned inputs() const { return op->getNumOperands(); }
  bool has(unsigned index) const;
  Value in(unsigned index) const;
  RankedTensorType type(unsigned index) const { return mlir::cast<RankedTensorType>(in(index).getType()); }
  int64_t rank(unsigned index) const { return type(index).getRank(); }
  Type element(unsigned index) const { return type(index).getElementType(); }
  /// Lowered integers have no sign, and narrow types are bytes; the operator's own types say what they are. Where the file leaves a
  /// type open, it is that of the lowered value.
  bool isUnsigned(unsigned index) const;
  Type declared(unsigned index) const;
  SmallVector<Size> sizes(Value tensor) { return lowerer.sizes(tensor); }
  Size size(Value tensor, int64_t dim) { return lowerer.sizes(tensor)[dim]; }

  // Results.
  unsigned results() const { return op->getNumResults(); }
  bool wants(unsigned index) const;
  /// Declared element type of a result, without sign. Null if the file leaves it open.
  Type resultElement(unsigned index) const;
  bool isResultUnsigned(unsigned index) const;
  /// The same as the file says it: with its sign, and before a narrow type becomes a byte.
  Type declaredResult(unsigned index) const;
  /// Declared type of a result if ranked, else null.
  RankedTensorType resultType(unsigned index) const;
  void set(unsigned index, Value value);

  // Attributes, with the default of the schema where the node has none.
  int64_t integer(StringRef name, int64_t otherwise = 0) const;
  double real(StringRef name, double otherwise = 0) const;
  StringRef string(StringRef name, StringRef otherwise = "") const;
  std::optional<SmallVector<int64_t>> integers(StringRef name) const;
  std::optional<SmallVector<float>> reals(StringRef name) const;
  bool hasAttribute(StringRef name) const { return op->hasAttr(name); }
  /// Opset of the operator's domain in this model.
  int64_t opset() const;
  /// `axis` counted from the front; failure with a diagnostic if it is outside [-rank, rank).
  FailureOr<int64_t> axis(int64_t axis, int64_t rank);

  // Constants and shape arithmetic.
  /// All elements of input `index` if they are compile-time integers.
  std::optional<SmallVector<int64_t>> constants(unsigned index);
  /// The elements of a small tensor as scalars, if it was built from scalars or is a constant.
  std::optional<SmallVector<Value>> scalars(Value tensor);
  /// The elements of a one-dimensional integer tensor of fixed length (a shape, axes, pads, …) as sizes; failure with a
  /// diagnostic if the length is not fixed.
  FailureOr<SmallVector<Size>> indices(unsigned index);
  /// Integers that must be known at compile time: from the attribute of older opsets or from the input of newer ones.
  FailureOr<SmallVector<int64_t>> constantIntegers(StringRef attribute, unsigned input, bool &given);
  /// A tensor of `type` built from scalars, row-major.
  Value fromScalars(RankedTensorType type, ValueRange values);
  using Pick = llvm::function_ref<Value(ArrayRef<int64_t> index)>;
  /// A tensor with the element type of `like` whose scalar at each index is what `pick` returns.
  Value fromIndices(ArrayRef<int64_t> shape, Value like, Pick pick);

  // Building.
  Value constant(double value, Type element);
  Value zero(Type element) { return mlir::arith::ConstantOp::create(b, b.getZeroAttr(element)); }
  Value empty(ArrayRef<Size> sizes, Type element);
  Value filled(ArrayRef<Size> sizes, Value scalar);
  /// Sizes of the broadcast of several tensors (ONNX "Multidirectional Broadcasting").
  SmallVector<Size> broadcastSizes(ValueRange tensors);
  Size broadcastSize(Size lhs, Size rhs);

  using Body = llvm::function_ref<Value(Builder &, ValueRange)>;
  /// One result element from one element of each tensor, with broadcasting; small integer tensors are computed as scalars.
  Value elementwise(ValueRange tensors, Type element, Body body);
  /// The same over given result sizes, each tensor broadcast to them.
  Value elementwiseOver(ArrayRef<Size> sizes, ValueRange tensors, Type element, Body body);

  using IndexBody = llvm::function_ref<Value(Builder &, ValueRange indices)>;
  /// Each result element from its indices.
  Value generate(ArrayRef<Size> sizes, Type element, IndexBody body);

  using ReduceBody = llvm::function_ref<Value(Builder &, Value element, Value accumulator)>;
  /// Reduces `tensor` over `axes` from `initial`, keeping the axes as 1 if `keep`.
  Value reduce(Value tensor, ArrayRef<int64_t> axes, bool keep, Value initial, ReduceBody body);

  Value transpose(Value tensor, ArrayRef<int64_t> permutation);
  /// `tensor` with the same elements in row-major order and other sizes, of the same product at run time.
  Value reshape(Value tensor, ArrayRef<Size> sizes);
  Value slice(Value tensor, ArrayRef<Size> offsets, ArrayRef<Size> sizes, ArrayRef<Size> strides);
  /// Element conversion with ONNX's meaning of Cast.
  Value castElements(Value tensor, Type element, bool fromUnsigned, bool toUnsigned);
  Value castScalar(Builder &b, Value scalar, Type element, bool fromUnsigned, bool toUnsigned);
  /// Runtime check: ends the call with `message`, whose last "{}" stand for `values`, unless `condition` holds.
  void check(Value condition, const llvm::Twine &message, ArrayRef<Size> values = {}) {
    lowerer.check(op, condition, message, values);
  }

  /// Reports that this operator cannot be lowered, and why.
  mlir::InFlightDiagnostic fail() const;

  Operation *op;
  Lowerer &lowerer;
  Builder &b;
  IndexMath &math;
  /// Set after the diagnostic of a fault that a builder met, which has a value to return all the same.
  bool isBroken = false;
};

/// `type` as arith and linalg compute with it: integers have no sign; 4- and 2-bit integers and floats of 8 bits and
/// less are the byte that holds them (sign-extended for signed integers).
Type withoutSign(Type type);
/// The same elements with the element type of withoutSign.
mlir::ElementsAttr withoutSign(mlir::ElementsAttr value);

/// True if tensors of this type are computed element by element where their elements are scalars.
bool isScalarShape(RankedTensorType type);
/// Row-major position of `index` in a tensor of `shape`.
int64_t linearize(ArrayRef<int64_t> index, ArrayRef<int64_t> shape);

// The families.
void addMathLowerings(LoweringTable &table);
void addLogicLowerings(LoweringTable &table);
void addCastLowerings(LoweringTable &table);
void addActivationLowerings(LoweringTable &table);
void addNGramLowerings(LoweringTable &table);
void addNonMaxSuppressionLowerings(LoweringTable &table);
void addNormalizeLowerings(LoweringTable &table);
void addSoftmaxLowerings(LoweringTable &table);
void addQuantizeLowerings(LoweringTable &table);
void addSortLowerings(LoweringTable &table);
void addShapeLowerings(LoweringTable &table);
void addAssembleLowerings(LoweringTable &table);
void addBranchLowerings(LoweringTable &table);
void addLoopLowerings(LoweringTable &table);
void addIndexingLowerings(LoweringTable &table);
void addOptimizerLowerings(LoweringTable &table);
void addPadLowerings(LoweringTable &table);
void addScatterLowerings(LoweringTable &table);
void addSelectLowerings(LoweringTable &table);
void addUniqueLowerings(LoweringTable &table);
void addRangeLowerings(LoweringTable &table);
void addReduceLowerings(LoweringTable &table);
void addLinearLowerings(LoweringTable &table);
void addEinsumLowerings(LoweringTable &table);
void addBlockQuantizedLowerings(LoweringTable &table);
void addConvLowerings(LoweringTable &table);
void addIntegerConvLowerings(LoweringTable &table);
void addPoolLowerings(LoweringTable &table);
void addRegionSampleLowerings(LoweringTable &table);
void addFourierLowerings(LoweringTable &table);
void addMoeLowerings(LoweringTable &table);
void addMicrosoftAttentionLowerings(LoweringTable &table);
void addAttentionLowerings(LoweringTable &table);
void addFlexAttentionLowerings(LoweringTable &table);
void addRnnLowerings(LoweringTable &table);
void addLinearAttentionLowerings(LoweringTable &table);
void addGridSampleLowerings(LoweringTable &table);
void addResizeLowerings(LoweringTable &table);

/// Gives `into` the arguments of the function's old body `from`, with sizes by the names of their dimensions.
void lowerArguments(mlir::func::FuncOp function, mlir::Block &from, mlir::Block &into, Lowerer &lowerer);
/// Ends the new body with the lowered operands of the old one's terminator.
void lowerResults(mlir::func::FuncOp function, Operation *terminator, Lowerer &lowerer);

/// Failure, or a check at run time, where an input of these sizes has another number of rows than experts are `chosen` for, or not the
/// `width` of the experts.
LogicalResult checkExpertRows(Node &node, ArrayRef<Size> input, Size chosen, Size width);

/// Every lowering there is, by operation name.
const LoweringTable &getLoweringTable();

/// Reports every operator that has no lowering and of which `isKnown` is false, one line an operator name; success if there is
/// none.
LogicalResult checkSupported(Operation *root, llvm::function_ref<bool(Operation *)> isKnown);

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_LOWERING_H
