// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Axes of reductions, known at compile time or at run time, and the loops over them.

#include "Axes.h"

#include "Loops.h"

using namespace mlir;

namespace hone::lowering {

/// Run-time axes: dimension `d` is one if some element, counted from the front, is `d`.
static FailureOr<Axes> getRuntimeAxes(Node &node, int64_t rank) {
  auto given = node.indices(1);
  if (failed(given))
    return failure();
  Builder &b = node.b;
  Axes axes;
  axes.count = given->size();
  Value none = arith::ConstantIndexOp::create(b, 0), all = arith::ConstantIndexOp::create(b, rank);
  for (int64_t d = 0; d < rank; ++d)
    axes.flags.push_back(arith::ConstantOp::create(b, b.getBoolAttr(false)));
  for (Size size : *given) {
    Value axis = node.math.value(size);
    Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, axis, none);
    axis = arith::SelectOp::create(b, isNegative, arith::AddIOp::create(b, axis, all), axis);
    node.check(arith::CmpIOp::create(b, arith::CmpIPredicate::ult, axis, all), "an axis is out of range");
    Value never = arith::ConstantOp::create(b, b.getBoolAttr(false)), isAgain = never;
    for (auto [d, flag] : llvm::enumerate(axes.flags)) {
      Value own = arith::ConstantIndexOp::create(b, d);
      Value isOwn = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, axis, own);
      isAgain = b.createOrFold<arith::OrIOp>(isAgain, b.createOrFold<arith::AndIOp>(flag, isOwn));
      flag = b.createOrFold<arith::OrIOp>(flag, isOwn);
    }
    // The result has as many dimensions less as there are axes.
    node.check(b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, isAgain, never), "an axis is given twice");
  }
  return axes;
}

FailureOr<Axes> getAxes(Node &node) {
  int64_t rank = node.rank(0);
  SmallVector<int64_t> given;
  if (auto attribute = node.integers("axes"))
    given = *attribute;
  else if (node.has(1) && !(node.type(1).hasStaticShape() && node.type(1).getNumElements() == 0)) {
    auto constants = node.constants(1);
    if (!constants)
      return getRuntimeAxes(node, rank);
    given = *constants;
  }
  Axes axes;
  if (given.empty() && !node.integer("noop_with_empty_axes", 0))
    axes.known = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  for (int64_t axis : given) {
    auto positive = node.axis(axis, rank);
    if (failed(positive))
      return failure();
    if (!llvm::is_contained(axes.known, *positive))
      axes.known.push_back(*positive);
  }
  axes.count = axes.known.size();
  return axes;
}

Size getReducedCount(Node &node, Value tensor, const Axes &axes) {
  Size count = node.b.getIndexAttr(1), one = node.b.getIndexAttr(1);
  SmallVector<Size> sizes = node.sizes(tensor);
  for (int64_t axis : axes.known)
    count = node.math.mul(count, sizes[axis]);
  for (auto [flag, size] : llvm::zip(axes.flags, sizes))
    count = node.math.mul(count, node.math.select(flag, size, one));
  return count;
}

//===----------------------------------------------------------------------===//
// Folding
//===----------------------------------------------------------------------===//

/// The fold of scalars of shape arithmetic over known axes; null if the tensor has none.
static Value reduceScalars(Node &node, Value tensor, const Axes &axes, bool keep, Value initial,
                           Node::ReduceBody body) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto values = type.getElementType().isSignlessInteger() ? node.scalars(tensor) : std::nullopt;
  bool all = static_cast<int64_t>(axes.known.size()) == type.getRank() && axes.isKnown();
  if (!values || !all || !isa<IntegerType>(initial.getType()))
    return {};
  Value result = initial;
  for (Value value : *values)
    result = body(node.b, value, result);
  SmallVector<int64_t> shape(keep ? type.getRank() : 0, 1);
  return node.fromScalars(RankedTensorType::get(shape, result.getType()), result);
}

/// Sizes without the dimensions that are axes at run time: the j-th is that of the j-th dimension that is none.
static SmallVector<Size> dropRuntimeAxes(Node &node, ArrayRef<Size> sizes, const Axes &axes) {
  Builder &b = node.b;
  SmallVector<Size> kept(sizes.size() - std::min<int64_t>(axes.count, sizes.size()), b.getIndexAttr(1));
  Value position = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  for (auto [flag, size] : llvm::zip(axes.flags, sizes)) {
    for (auto [j, slot] : llvm::enumerate(kept)) {
      Value own = arith::ConstantIndexOp::create(b, j);
      Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, position, own);
      // A later dimension that is an axis writes 1 here first; the next one that is none overwrites it.
      slot = node.math.select(isHere, node.math.select(flag, b.getIndexAttr(1), size), slot);
    }
    position = arith::SelectOp::create(b, flag, position, arith::AddIOp::create(b, position, one));
  }
  return kept;
}

/// Loops over all dimensions twice: those that stay, and those that fold, of which either has size 1.
static Value reduceAtRuntime(Node &node, Value tensor, const Axes &axes, bool keep, Value initial,
                             Node::ReduceBody body) {
  SmallVector<Size> sizes = node.sizes(tensor), staying, folding;
  Size one = node.b.getIndexAttr(1);
  for (auto [flag, size] : llvm::zip(axes.flags, sizes)) {
    staying.push_back(node.math.select(flag, one, size));
    folding.push_back(node.math.select(flag, size, one));
  }
  size_t rank = sizes.size();
  Value result = accumulate(node, staying, folding, {}, initial, [&](Builder &b, ValueRange, Value accumulator) {
    SmallVector<Value> at;
    for (size_t d = 0; d < rank; ++d)
      at.push_back(arith::SelectOp::create(b, axes.flags[d], linalg::IndexOp::create(b, rank + d),
                                           linalg::IndexOp::create(b, d)));
    return body(b, tensor::ExtractOp::create(b, tensor, at), accumulator);
  });
  return keep ? result : node.reshape(result, dropRuntimeAxes(node, sizes, axes));
}

Value reduceOver(Node &node, Value tensor, const Axes &axes, bool keep, Value initial, Node::ReduceBody body) {
  if (!axes.isKnown())
    return reduceAtRuntime(node, tensor, axes, keep, initial, body);
  if (Value folded = reduceScalars(node, tensor, axes, keep, initial, body))
    return folded;
  return node.reduce(tensor, axes.known, keep, initial, body);
}

} // namespace hone::lowering
