// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Logits from the softmax back to their product, and the rows that the product reads.

#include "Attention.h"

#include <cmath>

using namespace mlir;

namespace hone::raising {

using analysis::ExpressionKind;
using analysis::Indices;

LogitSpace makeLogitSpace(SymbolicAnalysis &analysis, ArrayRef<Polynomial> shape) {
  SmallVector<Polynomial> indices = analysis.getIndices(shape);
  return {shape[0], shape[1], shape[2], shape[3], indices[0], indices[1], indices[2], indices[3]};
}

//===----------------------------------------------------------------------===//
// Logits
//===----------------------------------------------------------------------===//

static Operation *getProduct(Value value) {
  if (Operation *op = getDefiningOp(value, "MatMul"))
    return op;
  Operation *fused = getDefiningOp(value, "FusedMatMul", kMicrosoft);
  bool plain = fused && getInteger(fused, "transA", 0) == 0 && getInteger(fused, "transBatchA", 0) == 0 &&
               getInteger(fused, "transBatchB", 0) == 0;
  return plain ? fused : nullptr;
}

/// Whether the elements of `op` are those of its first operand in other places.
static bool isMove(Operation *op) {
  return isOp(op, "Reshape") || isOp(op, "Squeeze") || isOp(op, "Unsqueeze") || isOp(op, "Transpose");
}

/// Whether the value is made of one product by what stands between a product and a softmax.
static bool leadsToProduct(Value value, unsigned depth = 0) {
  constexpr unsigned kMaxSteps = 16;
  value = skipCasts(value);
  Operation *op = value.getDefiningOp();
  if (!op || depth > kMaxSteps)
    return false;
  if (Operation *product = getProduct(value))
    return !isWeight(product->getOperand(1));
  if (isOp(op, "Add") || isOp(op, "Where") || isOp(op, "Mul") || isOp(op, "Div"))
    return llvm::any_of(op->getOperands(),
                        [&](Value operand) { return isFloat(operand) && leadsToProduct(operand, depth + 1); });
  return (isOp(op, "Tanh") || isMove(op)) && leadsToProduct(op->getOperand(0), depth + 1);
}

namespace {
/// One step of the walk after the other; `outer` is what multiplies the value that is reached.
class LogitWalk {
public:
  LogitWalk(const LogitSpace &space, SymbolicAnalysis &analysis, StringRef &reason)
      : space(space), analysis(analysis), reason(reason), shape(space.shape()), indices(space.indices()) {}

  FailureOr<Logits> run(Value value);

private:
  FailureOr<Value> step(Operation *op);
  FailureOr<Value> stepAdd(Operation *op);
  FailureOr<Value> stepWhere(Operation *op);
  FailureOr<Value> stepScale(Operation *op);
  FailureOr<Value> stepMove(Operation *op);
  Value skipFlags(Value product, const Mask &mask);
  LogicalResult setOperands(Operation *product);
  LogicalResult addMask(Mask mask);
  LogicalResult refuse(StringRef why) {
    reason = why;
    return failure();
  }

  const LogitSpace &space;
  SymbolicAnalysis &analysis;
  StringRef &reason;
  SmallVector<Polynomial> shape, indices;
  double outer = 1;
  Logits logits;
};
} // namespace

LogicalResult LogitWalk::addMask(Mask mask) {
  if (outer != 1 || logits.softcap)
    return refuse("a mask is applied before the logits are scaled");
  mask.shape = shape;
  mask.indices = indices;
  logits.masks.push_back(mask);
  return success();
}

FailureOr<Value> LogitWalk::stepAdd(Operation *op) {
  bool first = leadsToProduct(op->getOperand(0)), second = leadsToProduct(op->getOperand(1));
  if (first == second)
    return refuse("both summands of the logits are products");
  Mask mask;
  mask.value = op->getOperand(first ? 1 : 0);
  if (failed(addMask(mask)))
    return failure();
  return skipFlags(op->getOperand(first ? 0 : 1), logits.masks.back());
}

/// A selection as arithmetic: the logits times 1 or 0, plus 0 or what takes their place. The mask alone says as much.
Value LogitWalk::skipFlags(Value product, const Mask &mask) {
  Operation *times = getDefiningOp(skipCasts(product), "Mul");
  auto visibility = times ? getVisibility(mask, analysis) : std::nullopt;
  if (!visibility)
    return product;
  for (unsigned side : {0u, 1u}) {
    const Expression *flag = analysis.getBroadcastElement(times->getOperand(side), shape, indices);
    bool isSame = flag && flag->kind == ExpressionKind::Select && flag->operands[0] == visibility->predicate &&
                  flag->operands[1]->isReal(1) && flag->operands[2]->isReal(0);
    if (isSame)
      return times->getOperand(1 - side);
  }
  return product;
}

FailureOr<Value> LogitWalk::stepWhere(Operation *op) {
  bool inTrue = leadsToProduct(op->getOperand(1));
  Mask mask;
  mask.value = op->getOperand(0);
  mask.isCondition = true;
  mask.isInverted = !inTrue;
  auto hidden = analysis.getSplat(op->getOperand(inTrue ? 2 : 1));
  if (!hidden || *hidden > -1e4)
    return refuse("logits are selected against something that is no large negative constant");
  mask.hidden = *hidden;
  if (failed(addMask(mask)))
    return failure();
  return op->getOperand(inTrue ? 1 : 2);
}

FailureOr<Value> LogitWalk::stepScale(Operation *op) {
  auto scaled = matchWithConstant(op->getResult(0), onnxir::getOpType(op), analysis);
  if (!scaled || scaled->constant == 0)
    return refuse("the logits are multiplied by something that is no constant");
  outer *= isOp(op, "Div") ? 1 / scaled->constant : scaled->constant;
  return scaled->operand;
}

FailureOr<Value> LogitWalk::stepMove(Operation *op) {
  auto from = analysis.getShape(op->getOperand(0)), to = analysis.getShape(op->getResult(0));
  std::optional<SmallVector<Polynomial>> mapped;
  auto permutation = getIntegers(op, "perm");
  if (isOp(op, "Transpose") && permutation && permutation->size() == indices.size()) {
    mapped.emplace(indices.size());
    for (auto [dim, source] : llvm::enumerate(*permutation))
      (*mapped)[source] = indices[dim];
  } else if (!isOp(op, "Transpose") && from && to && to->size() == indices.size()) {
    mapped = analysis.mapReshape(*from, *to, indices);
  }
  if (!from || !mapped)
    return refuse("the logits are moved in a way that is not understood");
  shape = *from;
  indices = *mapped;
  return op->getOperand(0);
}

FailureOr<Value> LogitWalk::step(Operation *op) {
  if (isOp(op, "Add"))
    return stepAdd(op);
  if (isOp(op, "Where"))
    return stepWhere(op);
  if (isOp(op, "Mul") || isOp(op, "Div"))
    return stepScale(op);
  if (isMove(op))
    return stepMove(op);
  if (!isOp(op, "Tanh") || logits.softcap)
    return refuse("the logits are made by an operator that is not understood");
  logits.softcap = outer;
  outer = 1;
  return op->getOperand(0);
}

FailureOr<Logits> LogitWalk::run(Value value) {
  if (!leadsToProduct(value))
    return refuse("its logits are no product");
  value = skipCasts(value);
  Operation *product = nullptr;
  while (!(product = getProduct(value))) {
    FailureOr<Value> next = step(value.getDefiningOp());
    if (failed(next))
      return failure();
    value = skipCasts(*next);
  }
  if (failed(setOperands(product)))
    return failure();
  // softcap * tanh(scale * product / softcap): what is inside the tanh has the cap divided out.
  if (logits.softcap)
    logits.scale *= *logits.softcap;
  return logits;
}

/// Which operand of the product is the query: that whose rows are queries.
LogicalResult LogitWalk::setOperands(Operation *product) {
  bool isFused = isOp(product, "FusedMatMul", kMicrosoft),
       transposesRight = isFused && getInteger(product, "transB", 0) != 0;
  size_t rank = indices.size();
  bool isPlain = rank >= 2 && indices[rank - 2] == space.i && indices[rank - 1] == space.j;
  bool isSwapped = !isPlain && rank >= 2 && indices[rank - 2] == space.j && indices[rank - 1] == space.i;
  if (!isPlain && !isSwapped)
    return refuse("its product is not that of queries and keys");
  logits.query = product->getOperand(isSwapped ? 1 : 0);
  logits.key = product->getOperand(isSwapped ? 0 : 1);
  logits.isQueryTransposed = isSwapped && !transposesRight;
  logits.isKeyTransposed = !isSwapped && !transposesRight;
  logits.scale = outer * (isFused ? getReal(product, "alpha", 1) : 1);
  logits.leading.assign(indices.begin(), indices.end() - 2);
  return success();
}

FailureOr<Logits> matchLogits(Value value, const LogitSpace &space, SymbolicAnalysis &analysis, StringRef &reason) {
  return LogitWalk(space, analysis, reason).run(value);
}

//===----------------------------------------------------------------------===//
// Rows of heads
//===----------------------------------------------------------------------===//

/// The load under constant factors.
static std::pair<const Expression *, double> splitFactor(const Expression *expression) {
  double factor = 1;
  while (expression && expression->kind == ExpressionKind::Call && expression->operands.size() == 2 &&
         (expression->name == "Mul" || expression->name == "Div")) {
    const Expression *a = expression->operands[0], *b = expression->operands[1];
    bool isMul = expression->name == "Mul";
    if (b->kind == ExpressionKind::Real) {
      factor *= isMul ? b->real : 1 / b->real;
      expression = a;
    } else if (isMul && a->kind == ExpressionKind::Real) {
      factor *= a->real;
      expression = b;
    } else {
      break;
    }
  }
  return {expression, factor};
}

/// The operand through which the elements of a value come from elsewhere; null where the value is made anew.
static Value getSource(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !onnxir::isOnnxOp(op))
    return {};
  static const StringRef moves[] = {"Transpose", "Reshape",  "Expand", "Unsqueeze", "Squeeze", "Slice",
                                    "Split",     "Identity", "Cast",   "Gather",    "Div"};
  if (!onnxir::getDomain(op).empty())
    return {};
  if (llvm::is_contained(moves, onnxir::getOpType(op)))
    return op->getOperand(0);
  if (isOp(op, "Mul"))
    return getRank(op->getOperand(0)) >= getRank(op->getOperand(1)) ? op->getOperand(0) : op->getOperand(1);
  return {};
}

/// How `candidate` holds the rows, if its elements are `wanted`.
static std::optional<HeadRows> matchCandidate(Value candidate, const Expression *wanted, const LogitSpace &space,
                                              const Polynomial &row, const Polynomial &d, int64_t size,
                                              SymbolicAnalysis &analysis) {
  auto shape = analysis.getShape(candidate);
  if (!shape || !isFloat(candidate) || (shape->size() != 4 && shape->size() != 3))
    return std::nullopt;
  auto &e = analysis.expressions;
  auto total = space.heads.getConstant();
  auto headOf = [&](int64_t heads) -> std::optional<Polynomial> {
    if (!total || heads <= 0 || *total % heads != 0)
      return std::nullopt;
    if (heads == *total)
      return space.h;
    if (heads == 1)
      return Polynomial(0);
    return e.atomOf(e.call("FloorDiv", {e.integer(space.h), e.integer(*total / heads)}), /*nonNegative=*/true);
  };
  auto tryLayout = [&](HeadRows::Layout layout, int64_t heads, SmallVector<Polynomial> at) -> std::optional<HeadRows> {
    auto [load, factor] = splitFactor(analysis.getElement(candidate, at));
    if (load != wanted)
      return std::nullopt;
    return HeadRows{candidate, factor, layout, heads, size};
  };
  if (shape->size() == 4) {
    for (auto [layout, dim] : {std::pair(HeadRows::BHSD, 1u), std::pair(HeadRows::BSHD, 2u)}) {
      auto heads = (*shape)[dim].getConstant();
      auto head = heads ? headOf(*heads) : std::nullopt;
      if (!head || !(*shape)[3].isConstant(size))
        continue;
      SmallVector<Polynomial> at = layout == HeadRows::BHSD ? SmallVector<Polynomial>{space.b, *head, row, d}
                                                            : SmallVector<Polynomial>{space.b, row, *head, d};
      if (auto match = tryLayout(layout, *heads, at))
        return match;
    }
    return std::nullopt;
  }
  auto width = shape->back().getConstant();
  auto head = width && *width % size == 0 ? headOf(*width / size) : std::nullopt;
  if (!head)
    return std::nullopt;
  return tryLayout(HeadRows::Packed, *width / size, {space.b, row, *head * size + d});
}

std::optional<HeadRows> matchHeadRows(Value operand, bool isTransposed, ArrayRef<Polynomial> leading,
                                      const LogitSpace &space, const Polynomial &rows, const Polynomial &row,
                                      SymbolicAnalysis &analysis) {
  auto shape = analysis.getShape(operand);
  if (!shape || shape->size() != leading.size() + 2)
    return std::nullopt;
  auto size = (*shape)[shape->size() - (isTransposed ? 2 : 1)].getConstant();
  if (!size || *size <= 0)
    return std::nullopt;
  Polynomial d = analysis.expressions.index(4, *size);
  SmallVector<Polynomial> at;
  for (auto [dim, index] : llvm::enumerate(leading)) // a product repeats leading dimensions of size 1
    at.push_back((*shape)[dim].isConstant(1) ? Polynomial(0) : index);
  at.push_back(isTransposed ? d : row);
  at.push_back(isTransposed ? row : d);
  auto [wanted, factor] = splitFactor(analysis.getElement(operand, at));
  std::optional<HeadRows> best;
  for (Value candidate = operand; candidate; candidate = getSource(candidate)) {
    auto match = matchCandidate(candidate, wanted, space, row, d, *size, analysis);
    // The deepest tensor with the plain layout; another layout only if there is none, or if its heads are fewer.
    if (match && (!best || match->layout <= best->layout || match->heads < best->heads))
      best = match;
  }
  if (!best)
    return std::nullopt;
  best->factor = factor / best->factor;
  return best;
}

Value buildHeadRows(const HeadRows &rows, OpBuilder &b, Location loc) {
  OnnxBuilder onnx(b, loc);
  Value value = rows.value;
  if (rows.layout == HeadRows::Packed) {
    auto shape = cast<RankedTensorType>(value.getType()).getShape();
    value = onnx.reshape(value, {0, 0, rows.heads, rows.size}, {shape[0], shape[1], rows.heads, rows.size});
  }
  return rows.layout == HeadRows::BHSD ? value : onnx.transpose(value, {0, 2, 1, 3});
}

} // namespace hone::raising
