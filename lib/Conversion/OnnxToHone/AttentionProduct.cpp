// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Probabilities from the softmax on to their product with the values.

#include "Attention.h"

#include <limits>

using namespace mlir;

namespace hone::raising {

using analysis::ExpressionKind;

namespace {

/// One step of the walk after the other; `indices` is where in the value that is reached the probability of the space is.
class ProbabilityWalk {
public:
  ProbabilityWalk(const LogitSpace &space, SymbolicAnalysis &analysis)
      : space(space), analysis(analysis), shape(space.shape()), indices(space.indices()) {}

  std::optional<ProbabilityUse> run(Value value);

private:
  bool step(Operation *op);
  bool move(Operation *op);
  bool stepMask(Operation *op);
  std::optional<Mask> matchMask(Operation *op);
  bool divide(Value masked);
  bool isProduct(Operation *op) const;
  bool sumsRows(Operation *op) const;

  const LogitSpace &space;
  SymbolicAnalysis &analysis;
  SmallVector<Polynomial> shape, indices;
  Value value;
  ProbabilityUse use;
};

} // namespace

/// The one user of `value` beside those that ask whether it is NaN or how large it is; null where there is none or are several.
static Operation *findUser(Value value) {
  Operation *found = nullptr;
  for (Operation *user : value.getUsers()) {
    if (isOp(user, "IsNaN") || isOp(user, "Shape"))
      continue;
    if (found)
      return nullptr;
    found = user;
  }
  return found;
}

/// Whether `op` multiplies the probabilities of a query with the values of its keys.
bool ProbabilityWalk::isProduct(Operation *op) const {
  size_t rank = indices.size();
  return isOp(op, "MatMul") && op->getOperand(0) == value && op->getOperand(1) != value && rank >= 3 &&
         indices[rank - 2] == space.i && indices[rank - 1] == space.j;
}

/// Elements in other places.
bool ProbabilityWalk::move(Operation *op) {
  auto to = analysis.getShape(op->getResult(0));
  if (!to || op->getOperand(0) != value)
    return false;
  if (!isOp(op, "Transpose")) {
    auto mapped = analysis.mapReshape(*to, shape, indices);
    if (mapped)
      indices = *mapped;
    shape = *to;
    return mapped.has_value();
  }
  auto permutation = getIntegers(op, "perm");
  if (!permutation || permutation->size() != indices.size())
    return false;
  SmallVector<Polynomial> moved;
  for (int64_t from : *permutation)
    moved.push_back(indices[from]);
  indices = moved;
  shape = *to;
  return true;
}

/// Whether `op` sums the row of each query, which stays a dimension.
bool ProbabilityWalk::sumsRows(Operation *op) const {
  auto axes = getIntegers(op, "axes");
  if (!axes && getOperand(op, 1))
    axes = analysis.getConstants(op->getOperand(1));
  int64_t rank = indices.size();
  return isOp(op, "ReduceSum") && axes && axes->size() == 1 && (axes->front() == -1 || axes->front() == rank - 1) &&
         getInteger(op, "keepdims", 1) != 0 && indices.back() == space.j;
}

/// Whether `op` is that `sum` is greater than 0.
static bool isPositive(Operation *op, Value sum, SymbolicAnalysis &analysis) {
  return isOp(op, "Greater") && op->getOperand(0) == sum && analysis.getSplat(op->getOperand(1)) == 0.0;
}

/// The mask with which `op` sets some of the probabilities to 0.
std::optional<Mask> ProbabilityWalk::matchMask(Operation *op) {
  bool isSelected = isOp(op, "Where");
  Mask mask;
  mask.value = isSelected ? op->getOperand(0) : op->getOperand(op->getOperand(0) == value ? 1 : 0);
  mask.isCondition = true;
  mask.hidden = -std::numeric_limits<double>::infinity();
  mask.shape = shape;
  mask.indices = indices;
  const Expression *element = analysis.getBroadcastElement(mask.value, shape, indices);
  auto from = analysis.getShape(value), to = analysis.getShape(op->getResult(0));
  if (!element || !from || from != to)
    return std::nullopt;
  bool isMask = isSelected ? op->getOperand(1) == value && analysis.getSplat(op->getOperand(2)) == 0.0
                           : element->kind == ExpressionKind::Select && element->operands[1]->isReal(1) &&
                                 element->operands[2]->isReal(0);
  return isMask ? std::optional(mask) : std::nullopt;
}

/// Goes on from `masked` to its quotient by the sum of its rows, the only uses that it has. Rows of 0 are divided by 0, or by
/// something else, or selected to be 0.
bool ProbabilityWalk::divide(Value masked) {
  Operation *sum = nullptr, *quotient = nullptr;
  for (Operation *user : masked.getUsers()) {
    if (isOp(user, "Shape"))
      continue;
    Operation *&place = isOp(user, "Div") ? quotient : sum;
    if (place)
      return false;
    place = user;
  }
  if (!sum || !quotient || !sumsRows(sum) || quotient->getOperand(0) != masked)
    return false;
  Value total = sum->getResult(0), divisor = quotient->getOperand(1);
  // Whether `op` is `chosen` where the sum is greater than 0.
  auto selects = [&](Operation *op, Value chosen) {
    return isOp(op, "Where") && op->getOperand(1) == chosen &&
           isPositive(op->getOperand(0).getDefiningOp(), total, analysis);
  };
  Operation *guard = divisor.getDefiningOp();
  bool isGuarded = guard && selects(guard, total) && analysis.getSplat(guard->getOperand(2)).value_or(0) != 0;
  if (divisor != total && !isGuarded)
    return false;
  value = quotient->getResult(0);
  Operation *next = findUser(value);
  if (next && selects(next, value) && analysis.getSplat(next->getOperand(2)) == 0.0) {
    value = next->getResult(0);
    isGuarded = true;
  }
  if (isGuarded)
    use.emptyRow = EmptyRow::Zero;
  return true;
}

/// Probabilities of which some are set to 0, divided by what is left of their sum, are those of a softmax over the others.
bool ProbabilityWalk::stepMask(Operation *op) {
  if (use.mask)
    return false;
  use.mask = matchMask(op);
  return use.mask && divide(op->getResult(0));
}

/// Goes on to the result of `op`, which is made of the probabilities.
bool ProbabilityWalk::step(Operation *op) {
  if (isOp(op, "Reshape") || isOp(op, "Squeeze") || isOp(op, "Unsqueeze") || isOp(op, "Transpose")) {
    if (!move(op))
      return false;
  } else if (isOp(op, "Where") && op->getOperand(2) == value) {
    Operation *isNan = getDefiningOp(op->getOperand(0), "IsNaN");
    if (!isNan || isNan->getOperand(0) != value || analysis.getSplat(op->getOperand(1)) != 0.0)
      return false;
    if (use.emptyRow == EmptyRow::AsComputed)
      use.emptyRow = EmptyRow::ZeroIfNaN;
  } else if (isOp(op, "Mul") || isOp(op, "Where")) {
    return stepMask(op);
  } else if (!isOp(op, "Cast") && !isOp(op, "Dropout") && !isOp(op, "Identity")) {
    return false;
  }
  value = op->getResult(0);
  return true;
}

std::optional<ProbabilityUse> ProbabilityWalk::run(Value probabilities) {
  constexpr unsigned kMaxSteps = 8;
  value = probabilities;
  for (unsigned count = 0; count < kMaxSteps; ++count) {
    Operation *next = findUser(value);
    if (!next)
      return std::nullopt;
    if (isProduct(next)) {
      use.product = next;
      use.leading.assign(indices.begin(), indices.end() - 2);
      return use;
    }
    if (!step(next))
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<ProbabilityUse> matchProbabilities(Value probabilities, const LogitSpace &space,
                                                 SymbolicAnalysis &analysis) {
  return ProbabilityWalk(space, analysis).run(probabilities);
}

} // namespace hone::raising
