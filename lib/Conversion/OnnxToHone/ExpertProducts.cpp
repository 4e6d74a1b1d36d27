// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Three spellings: a matrix is gathered for each row; or rows are sorted by expert, and those of an expert, which begin at the token
// counts of the experts before it, are multiplied with its matrix; or all rows are multiplied with all matrices.

#include "ExpertProducts.h"

#include <cmath>

using namespace mlir;

namespace hone::raising {

using analysis::Expression;
using analysis::ExpressionKind;

bool isReshape(Operation *op) {
  return isOp(op, "Unsqueeze") || isOp(op, "Squeeze") || isOp(op, "Reshape") || isOp(op, "Flatten");
}

Value skipReshapes(Value value) {
  while (Operation *op = skipCasts(value).getDefiningOp()) {
    if (!isReshape(op))
      break;
    value = op->getOperand(0);
  }
  return skipCasts(value);
}

std::optional<std::pair<Value, Value>> matchGather(Value value) {
  Operation *op = skipCasts(value).getDefiningOp();
  bool isGather = op && isOp(op, "Gather") && getInteger(op, "axis", 0) == 0 && getRank(op->getOperand(1)) == 1;
  bool isGatherNd = op && isOp(op, "GatherND") && getInteger(op, "batch_dims", 0) == 0 &&
                    getRank(op->getOperand(1)) == 2 && getLastSize(op->getOperand(1)) == 1;
  if (!isGather && !isGatherNd)
    return std::nullopt;
  return std::pair(op->getOperand(0), op->getOperand(1));
}

Value matchGatheredBy(Value value, Value order) {
  auto gather = matchGather(value);
  return gather && skipReshapes(gather->second) == order ? gather->first : Value();
}

//===----------------------------------------------------------------------===//
// Gathered matrices
//===----------------------------------------------------------------------===//

/// The weights whose entries along the first dimension are chosen by `ids`; null if there are none, or if `ids` are already others.
static Value matchGathered(Value value, Value &ids) {
  auto gather = matchGather(value);
  if (!gather || !isWeight(gather->first))
    return {};
  Value source = skipReshapes(gather->second);
  if (ids && ids != source)
    return {};
  ids = source;
  return gather->first;
}

/// The rows `[R, K]` that `value` has as `[R, K, 1]` or `[R, 1, K]`, with the new dimension at `axis`; null if they are none.
static Value dropDimension(Value value, int64_t axis) {
  Operation *op = skipCasts(value).getDefiningOp();
  if (!op || !isReshape(op) || getRank(op->getOperand(0)) != 2 || getRank(op->getResult(0)) != 3)
    return {};
  ArrayRef<int64_t> shape = getRankedType(op->getResult(0)).getShape();
  bool fits = shape[axis] == 1 && shape[3 - axis] == getLastSize(op->getOperand(0));
  return fits ? skipCasts(op->getOperand(0)) : Value();
}

/// What `rows` `[R, N]` are as `[R, N, 1]` or `[R, 1, N]`, by the axis that was dropped.
static std::optional<std::pair<Operation *, int64_t>> matchDropped(Value rows) {
  Operation *op = rows.getDefiningOp();
  if (!op || !isReshape(op) || getRank(op->getOperand(0)) != 3 || getRank(op->getResult(0)) != 2)
    return std::nullopt;
  ArrayRef<int64_t> shape = getRankedType(op->getOperand(0)).getShape();
  Operation *product = getDefiningOp(skipCasts(op->getOperand(0)), "MatMul");
  for (int64_t axis : {2, 1})
    if (product && shape[axis] == 1 && shape[3 - axis] == getLastSize(op->getResult(0)))
      return std::pair(product, axis);
  return std::nullopt;
}

/// A matrix times a column, or a row times a matrix that is transposed.
static bool matchGatheredProduct(Value rows, ExpertProduct &product) {
  auto matmul = matchDropped(rows);
  if (!matmul)
    return false;
  auto [op, axis] = *matmul;
  bool isTransposed = axis == 1;
  product.weights.all = matchGathered(skipCasts(op->getOperand(isTransposed ? 1 : 0)), product.ids);
  product.weights.isTransposed = isTransposed;
  product.x = dropDimension(op->getOperand(isTransposed ? 0 : 1), axis);
  return product.weights.all && getRank(product.weights.all) == 3 &&
         getRankedType(product.weights.all).hasStaticShape() && product.x;
}

//===----------------------------------------------------------------------===//
// Sorted rows
//===----------------------------------------------------------------------===//

namespace {
/// A function of one integer by element-wise operators, as they calculate it.
class IntegerFunction {
public:
  explicit IntegerFunction(SymbolicAnalysis &analysis) : analysis(analysis) {}
  /// The value at `x` of `value`, which reads nothing but `source`; NaN where an operator is not known.
  double evaluate(Value value, double x, unsigned depth = 0);

  Value source; // the first that is found: what TopK has chosen

private:
  SymbolicAnalysis &analysis;
};
} // namespace

/// `x` as an element of the type of `value`.
static double roundTo(Value value, double x) {
  RankedTensorType type = getRankedType(value);
  if (!type)
    return std::nan("");
  if (type.getElementType().isF32())
    return static_cast<float>(x);
  return isa<IntegerType>(type.getElementType()) ? std::trunc(x) : std::nan("");
}

double IntegerFunction::evaluate(Value value, double x, unsigned depth) {
  constexpr unsigned kMaxDepth = 16;
  Operation *op = value.getDefiningOp();
  if (const Expression *element = analysis.getElement(value)) {
    if (element->kind == ExpressionKind::Real)
      return element->real;
    if (element->kind == ExpressionKind::Integer && element->polynomial.getConstant())
      return static_cast<double>(*element->polynomial.getConstant());
  }
  if (!op || !onnxir::isOnnxOp(op) || depth > kMaxDepth)
    return std::nan("");
  if (isOp(op, "TopK") && value == op->getResult(0) && (!source || source == value)) {
    source = value;
    return x;
  }
  if (isReshape(op))
    return evaluate(op->getOperand(0), x, depth + 1);
  SmallVector<double> operands;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    operands.push_back(getOperand(op, i) ? evaluate(op->getOperand(i), x, depth + 1) : std::nan(""));
  if (isOp(op, "Cast"))
    return roundTo(value, operands[0]);
  if (isOp(op, "Floor"))
    return std::floor(operands[0]);
  if (isOp(op, "Clip")) {
    double limited = operands.size() > 1 && getOperand(op, 1) ? std::max(operands[0], operands[1]) : operands[0];
    return operands.size() > 2 && getOperand(op, 2) ? std::min(limited, operands[2]) : limited;
  }
  if (operands.size() != 2)
    return std::nan("");
  double a = operands[0], b = operands[1];
  double result = isOp(op, "Add")   ? a + b
                  : isOp(op, "Sub") ? a - b
                  : isOp(op, "Mul") ? a * b
                  : isOp(op, "Div") ? a / b
                  : isOp(op, "Max") ? std::max(a, b)
                  : isOp(op, "Min") ? std::min(a, b)
                                    : std::nan("");
  return roundTo(value, result);
}

/// Whether all elements of `value` are `constant`.
static bool isFilledWith(Value value, int64_t constant, SymbolicAnalysis &analysis) {
  const Expression *element = analysis.getElement(value);
  return element && (element->isReal(static_cast<double>(constant)) ||
                     (element->kind == ExpressionKind::Integer && element->polynomial.isConstant(constant)));
}

/// Sorted ids of which `counts` `[experts]` is how many are each expert; null if they are none.
static Value matchCounts(Value counts, int64_t experts, SymbolicAnalysis &analysis) {
  while (Operation *cast = getDefiningOp(counts, "Cast"))
    counts = cast->getOperand(0);
  Operation *scatter = getDefiningOp(counts, "ScatterElements");
  auto reduction = scatter ? scatter->getAttrOfType<StringAttr>("reduction") : StringAttr();
  bool isSum = reduction && reduction == "add" && getRank(counts) == 1 && getLastSize(counts) == experts &&
               isFilledWith(scatter->getOperand(0), 0, analysis) && isFilledWith(scatter->getOperand(2), 1, analysis);
  if (!isSum)
    return {};
  IntegerFunction bin(analysis);
  for (int64_t expert = 0; expert < experts; ++expert)
    if (bin.evaluate(scatter->getOperand(1), static_cast<double>(expert)) != static_cast<double>(expert))
      return {};
  return bin.source;
}

/// Element `index` of what an integer scalar is read from, which has to be of one operator; null if it is read from nothing.
static Operation *matchElement(Value scalar, int64_t index, StringRef opType, SymbolicAnalysis &analysis) {
  auto contents = analysis.getContents(scalar);
  auto atom = contents && contents->size() == 1 ? contents->front().getAtom() : std::nullopt;
  const Expression *load = atom ? analysis.expressions.info(*atom).definition : nullptr;
  bool fits =
      load && load->kind == ExpressionKind::Load && load->indices.size() == 1 && load->indices[0].isConstant(index);
  return fits ? getDefiningOp(load->source, opType) : nullptr;
}

namespace {
/// Rows first … first + count - 1 of `rows`, as what a product reads.
struct RowRange {
  Value rows, first, end;
};
} // namespace

static std::optional<RowRange> matchRange(Value value, SymbolicAnalysis &analysis) {
  auto gather = matchGather(value);
  Operation *range = gather ? getDefiningOp(gather->second, "Range") : nullptr;
  auto step = range ? analysis.getConstants(range->getOperand(2)) : std::nullopt;
  if (!step || step->size() != 1 || step->front() != 1)
    return std::nullopt;
  return RowRange{skipCasts(gather->first), range->getOperand(0), range->getOperand(1)};
}

/// Element (i) or (i, 0) of `indices`.
static const Expression *getIndex(Value indices, SymbolicAnalysis &analysis) {
  auto shape = analysis.getShape(indices);
  if (!shape || shape->empty())
    return nullptr;
  SmallVector<Polynomial> at(shape->size());
  at[0] = analysis.expressions.index(0, shape->front());
  return analysis.getElement(indices, at);
}

/// Whether all elements of `[R]` are at least 0 and less than `count`.
static bool areBelow(Value ids, int64_t count, SymbolicAnalysis &analysis) {
  const Expression *id = getIndex(ids, analysis);
  return id && id->kind == ExpressionKind::Integer && analysis.expressions.isNonNegative(id->polynomial) &&
         analysis.expressions.isNonNegative(Polynomial(count - 1) - id->polynomial);
}

std::optional<SortedIds> matchSortedIds(Value ids, SymbolicAnalysis &analysis) {
  Operation *sort = getDefiningOp(ids, "TopK");
  if (!sort || ids != sort->getResult(0) || getRank(ids) != 1 || getInteger(sort, "largest", 1) != 0 ||
      getInteger(sort, "sorted", 1) != 1)
    return std::nullopt;
  auto count = analysis.getContents(sort->getOperand(1));
  auto shape = analysis.getShape(sort->getOperand(0));
  if (!count || count->size() != 1 || !shape || count->front() != shape->front())
    return std::nullopt;
  return SortedIds{sort->getOperand(0), sort->getResult(1)};
}

/// The rows of each expert in turn, from where those of the expert before it end, times its matrix.
static bool matchSortedProduct(Value rows, ExpertProduct &product, SymbolicAnalysis &analysis) {
  Operation *concat = getDefiningOp(rows, "Concat");
  if (!concat || getInteger(concat, "axis", 0) != 0 || getRank(rows) != 2)
    return false;
  int64_t experts = concat->getNumOperands();
  Polynomial end(0);
  Operation *sums = nullptr;
  for (auto [expert, operand] : llvm::enumerate(concat->getOperands())) {
    auto linear = skipCasts(operand).getDefiningOp<LinearOp>();
    auto range = linear && !linear.getBias() ? matchRange(linear.getX(), analysis) : std::nullopt;
    auto first = range ? analysis.getContents(range->first) : std::nullopt;
    if (!first || first->size() != 1 || first->front() != end || (product.x && product.x != range->rows))
      return false;
    Operation *read = matchElement(range->end, static_cast<int64_t>(expert), "CumSum", analysis);
    if (!read || (sums && sums != read))
      return false;
    sums = read;
    end = analysis.getContents(range->end)->front();
    product.x = range->rows;
    product.weights.parts.push_back(linear.getWeight());
  }
  bool isPlain = getInteger(sums, "exclusive", 0) == 0 && getInteger(sums, "reverse", 0) == 0;
  Value ids = isPlain ? matchCounts(sums->getOperand(0), experts, analysis) : Value();
  auto sorted = ids ? matchSortedIds(ids, analysis) : std::nullopt;
  if (!sorted || !areBelow(sorted->source, experts, analysis) || (product.ids && product.ids != ids))
    return false;
  product.ids = ids;
  Type type = product.weights.parts.front().getType();
  return llvm::all_of(product.weights.parts, [&](Value part) { return part.getType() == type; });
}

Value matchSortedBack(Value value, Value order, SymbolicAnalysis &analysis) {
  auto gather = matchGather(value);
  Operation *scatter = gather ? getDefiningOp(skipReshapes(gather->second), "ScatterND") : nullptr;
  if (!scatter || skipReshapes(scatter->getOperand(1)) != order || getRank(scatter->getResult(0)) != 1)
    return {};
  auto reduction = scatter->getAttrOfType<StringAttr>("reduction");
  Value updates = scatter->getOperand(2);
  auto shape = analysis.getShape(updates), all = analysis.getShape(scatter->getResult(0)),
       some = analysis.getShape(order);
  bool isWhole = shape && shape->size() == 1 && all && some && all->front() == some->front();
  const Expression *element = isWhole ? getIndex(updates, analysis) : nullptr;
  bool counts = element && element->kind == ExpressionKind::Integer &&
                element->polynomial == analysis.expressions.index(0, shape->front());
  return counts && (!reduction || reduction == "none") ? gather->first : Value();
}

Value matchSortedRows(Value rows, Value order, int64_t times, SymbolicAnalysis &analysis) {
  auto gather = matchGather(rows);
  auto all = gather ? analysis.getShape(gather->first) : std::nullopt, places = analysis.getShape(order);
  if (!all || !places || all->front() * Polynomial(times) != places->front())
    return {};
  const Expression *row = gather ? getIndex(gather->second, analysis) : nullptr;
  const Expression *place = getIndex(order, analysis);
  if (!row || !place || row->kind != ExpressionKind::Integer || getRank(gather->first) != 2)
    return {};
  auto atom = row->polynomial.getAtom();
  const Expression *quotient = atom ? analysis.expressions.info(*atom).definition : nullptr;
  bool divides = quotient && (quotient->isCall("Div") || quotient->isCall("FloorDiv")) &&
                 quotient->operands[0] == place && quotient->operands[1]->polynomial.isConstant(times);
  return divides || (times == 1 && row == place) ? skipCasts(gather->first) : Value();
}

//===----------------------------------------------------------------------===//
// All rows with all matrices
//===----------------------------------------------------------------------===//

/// `[E, R, K]` times `[E, K, N]`, plus `[E, 1, N]`.
static bool matchDenseProduct(Value rows, ExpertProduct &product) {
  if (Operation *sum = getDefiningOp(rows, "Add"))
    for (unsigned side : {0u, 1u}) {
      Value bias = sum->getOperand(side);
      if (isWeight(bias) && getRank(bias) == 3 && getRankedType(bias).getDimSize(1) == 1) {
        product.bias = bias;
        rows = skipCasts(sum->getOperand(1 - side));
        break;
      }
    }
  Operation *matmul = getDefiningOp(rows, "MatMul");
  if (!matmul || getRank(rows) != 3 || !isWeight(matmul->getOperand(1)) || getRank(matmul->getOperand(1)) != 3 ||
      !getRankedType(matmul->getOperand(1)).hasStaticShape() || getRank(matmul->getOperand(0)) != 3)
    return false;
  product.x = skipCasts(matmul->getOperand(0));
  product.weights.all = matmul->getOperand(1), product.weights.isTransposed = true;
  return !product.bias || getRankedType(product.bias).getDimSize(0) == product.weights.getExpertCount();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

std::optional<ExpertProduct> matchExpertProduct(Value rows, SymbolicAnalysis &analysis) {
  ExpertProduct product;
  // Dimensions of size 1 that are added and dropped again.
  rows = skipCasts(rows);
  while (Operation *drop = rows.getDefiningOp()) {
    Operation *add = isReshape(drop) ? skipCasts(drop->getOperand(0)).getDefiningOp() : nullptr;
    if (!add || !isReshape(add) || add->getOperand(0).getType() != rows.getType() ||
        getRankedType(rows).getNumDynamicDims() > 1)
      break;
    rows = skipCasts(add->getOperand(0));
  }
  if (matchDenseProduct(rows, product))
    return product;
  product = {};
  if (Operation *sum = getDefiningOp(rows, "Add"))
    for (unsigned side : {0u, 1u})
      if (!product.bias && (product.bias = matchGathered(skipCasts(sum->getOperand(side)), product.ids)))
        rows = skipCasts(sum->getOperand(1 - side));
  if (!matchGatheredProduct(rows, product) && !matchSortedProduct(rows, product, analysis))
    return std::nullopt;
  return product;
}

} // namespace hone::raising
