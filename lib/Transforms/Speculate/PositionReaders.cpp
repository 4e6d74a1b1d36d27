// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows the number of held positions through integers, up to the tensors that are the positions of tokens.

#include "PositionReaders.h"

#include "hone/Analysis/SymbolicAnalysis.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone::speculation {

using analysis::Atom;
using analysis::Expression;
using analysis::ExpressionKind;
using analysis::Polynomial;
using analysis::Shape;
using analysis::SymbolicAnalysis;

bool readsSizes(Operation *op) { return isa<tensor::DimOp>(op) || onnxir::isNode(op, "Shape"); }

namespace {

class PositionFinder {
public:
  PositionFinder(func::FuncOp function, Value tokens, Positions kind) : analysis(function), kind(kind) {
    if (std::optional<Shape> shape = analysis.getShape(tokens)) {
      batch = (*shape)[0];
      sequence = (*shape)[1];
    }
    held = analysis.expressions.namedSize(analysis::kHeldLengthName);
  }

  /// The axis along which the elements are positions of tokens; nothing for other tensors.
  std::optional<int64_t> getPositionAxis(Value value);

private:
  SymbolicAnalysis analysis;
  Positions kind;
  std::optional<Polynomial> batch, sequence;
  Atom held;
};

} // namespace

/// The element is `held + i + …`, where the rest is the same for all tokens.
std::optional<int64_t> PositionFinder::getPositionAxis(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  std::optional<Shape> shape = analysis.getShape(value);
  if (!type || !type.getElementType().isInteger(64) || !shape || !sequence)
    return std::nullopt;
  const Expression *element = analysis.getElement(value);
  if (!element || element->kind != ExpressionKind::Integer)
    return std::nullopt;
  SmallVector<Polynomial> indices = analysis.getIndices(*shape);
  for (auto [axis, size] : llvm::enumerate(*shape)) {
    std::optional<Atom> index = indices[axis].getAtom();
    bool isOfKind = kind == Positions::OfTokens || (axis > 0 && shape->front() == *batch);
    if (size != *sequence || !index || !isOfKind)
      continue;
    Polynomial rest = element->polynomial - Polynomial::of(held) - indices[axis];
    if (!rest.contains(held) && !rest.contains(*index))
      return axis;
  }
  return std::nullopt;
}

/// Whether the number of held positions is in what `op` reads, or in what its regions do.
static bool readsAny(Operation *op, const llvm::DenseSet<Value> &values) {
  bool reads = false;
  op->walk([&](Operation *inner) {
    reads |= llvm::any_of(inner->getOperands(), [&](Value operand) { return values.contains(operand); });
  });
  return reads;
}

static bool isSource(Operation *op) {
  bool isOfSlot = readsSizes(op) && isa_and_nonnull<KvAppendOp, KvViewOp>(op->getOperand(0).getDefiningOp());
  return isa<KvLengthOp>(op) || isOfSlot;
}

static bool isInteger(Type type) { return getElementTypeOrSelf(type).isIntOrIndex(); }

FailureOr<SmallVector<PositionTensor>> findPositions(func::FuncOp function, Value tokens, Positions kind,
                                                     Refusal refuse) {
  PositionFinder finder(function, tokens, kind);
  SmallVector<PositionTensor> positions;
  llvm::DenseSet<Value> counts; // that the number of held positions decides
  for (Operation &op : function.getBody().front()) {
    if (isSource(&op)) {
      counts.insert(op.result_begin(), op.result_end());
      continue;
    }
    if (!readsAny(&op, counts))
      continue;
    bool isCount = op.getNumRegions() == 0 && op.getNumResults() > 0 && llvm::all_of(op.getResultTypes(), isInteger);
    if (!isCount && !(op.getNumResults() > 0 && op.use_empty()))
      return refuse(&op, op.getName().getStringRef() + " computes with the number of held positions");
    for (Value result : op.getResults())
      if (std::optional<int64_t> axis = finder.getPositionAxis(result))
        positions.push_back({result, *axis});
      else
        counts.insert(result);
  }
  return positions;
}

} // namespace hone::speculation
