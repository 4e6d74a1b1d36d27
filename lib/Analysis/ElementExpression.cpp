// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element of a tensor at symbolic indices. Operators that only move elements change the indices; element-wise ones
// build expressions; whatever else there is, is a load.

#include "ElementEvaluator.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace hone::analysis {

/// Expressions of one analysis beyond this number mean that a model is adversarial or the normal form does not converge.
static constexpr size_t kMaxExpressions = 1 << 20;
/// Operators between an element and its loads.
static constexpr unsigned kMaxDepth = 300;

const Expression *SymbolicAnalysis::getElement(Value value, Indices indices) {
  ElementEvaluator evaluator(*this, value, indices);
  if (depth >= kMaxDepth || expressions.size() >= kMaxExpressions)
    return evaluator.opaque();
  ++depth;
  const Expression *result = evaluator.evaluate();
  --depth;
  return result ? result : evaluator.opaque();
}

const Expression *SymbolicAnalysis::getElement(Value value) {
  auto shape = getShape(value);
  return shape ? getElement(value, getIndices(*shape)) : nullptr;
}

const Expression *SymbolicAnalysis::getBroadcastElement(Value value, ArrayRef<Polynomial> shape, Indices indices) {
  auto from = getShape(value);
  if (!from || from->size() > shape.size())
    return nullptr;
  SmallVector<Polynomial> at;
  size_t offset = shape.size() - from->size();
  for (auto [dim, size] : llvm::enumerate(*from)) {
    if (size != shape[offset + dim] && !size.isConstant(1))
      return nullptr;
    at.push_back(size.isConstant(1) ? Polynomial(0) : indices[offset + dim]);
  }
  return getElement(value, at);
}

std::optional<SmallVector<Polynomial>> SymbolicAnalysis::getContents(Value value) {
  constexpr int64_t kMaxContents = 64;
  auto type = dyn_cast<TensorType>(value.getType());
  auto shape = getShape(value);
  if (!type || !shape || shape->size() > 1 || !type.getElementType().isIntOrIndex())
    return std::nullopt;
  auto count = shape->empty() ? std::optional<int64_t>(1) : shape->front().getConstant();
  if (!count || *count < 0 || *count > kMaxContents)
    return std::nullopt;
  SmallVector<Polynomial> contents;
  for (int64_t i = 0; i < *count; ++i) {
    const Expression *element = shape->empty() ? getElement(value, {}) : getElement(value, Polynomial(i));
    contents.push_back(expressions.toInteger(element));
  }
  return contents;
}

std::optional<SmallVector<int64_t>> SymbolicAnalysis::getConstants(Value value) {
  auto contents = getContents(value);
  if (!contents)
    return std::nullopt;
  SmallVector<int64_t> constants;
  for (const Polynomial &element : *contents) {
    auto constant = element.getConstant();
    if (!constant)
      return std::nullopt;
    constants.push_back(*constant);
  }
  return constants;
}

std::optional<double> SymbolicAnalysis::getSplat(Value value) {
  const Expression *element = getElement(value);
  if (!element || element->kind != ExpressionKind::Real)
    return std::nullopt;
  return element->real;
}

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

const Expression *ElementEvaluator::opaque() {
  auto type = dyn_cast<TensorType>(value.getType());
  Type element = type ? type.getElementType() : value.getType();
  if (element.isInteger(1))
    return e.loadFlag(value, indices);
  const Expression *load = e.load(value, indices);
  if (!isa<IntegerType, IndexType>(element))
    return load;
  // Generated integers are counts of the state's.
  bool nonNegative = element.isUnsignedInteger() || value.getDefiningOp<tensor::GenerateOp>();
  std::optional<Polynomial> size = getIndexedSize();
  if (size && size->isConstant(1))
    return e.integer(0);
  return e.integer(e.atomOf(load, nonNegative || size, size ? std::optional(*size - 1) : std::nullopt));
}

/// The size of the dimension that the value has indices into: where TopK found what it chose, or NonZero an element.
std::optional<Polynomial> ElementEvaluator::getIndexedSize() {
  StringRef name = op && onnxir::isOnnxOp(op) && onnxir::getDomain(op).empty() ? onnxir::getOpType(op) : StringRef();
  bool isTopK = name == "TopK" && cast<OpResult>(value).getResultNumber() == 1;
  auto shape = isTopK || name == "NonZero" ? analysis.getShape(op->getOperand(0)) : std::nullopt;
  if (!shape)
    return std::nullopt;
  auto axis = isTopK            ? normalizeAxis(getInteger(op, "axis", -1), shape->size())
              : indices.empty() ? std::nullopt
                                : indices[0].getConstant();
  if (!axis || *axis < 0 || *axis >= static_cast<int64_t>(shape->size()))
    return std::nullopt;
  return (*shape)[*axis];
}

/// The few operations of other dialects that carry sizes into tensors.
const Expression *ElementEvaluator::evaluateOther() {
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return analysis.getElement(cast.getSource(), indices);
  if (isa<GetParamOp>(op))
    return param();
  auto elements = dyn_cast<tensor::FromElementsOp>(op);
  if (!elements || elements.getElements().size() != 1)
    return nullptr;
  auto cast = elements.getElements().front().getDefiningOp<arith::IndexCastOp>();
  if (cast && cast.getIn().getDefiningOp<KvLengthOp>())
    return e.integer(Polynomial::of(e.namedSize(kHeldLengthName)));
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//

/// The element of operand `index`, whose dimensions are aligned with the result's from the right and repeated where 1.
const Expression *ElementEvaluator::broadcastOperand(unsigned index) {
  Value operand = getOperand(op, index);
  auto from = operand ? analysis.getShape(operand) : std::nullopt;
  auto to = analysis.getShape(value);
  if (!from || !to || from->size() > to->size())
    return nullptr;
  size_t offset = to->size() - from->size();
  SmallVector<Polynomial> at;
  for (auto [dim, size] : llvm::enumerate(*from)) {
    const Polynomial &wanted = (*to)[offset + dim];
    if (size.isConstant(1))
      at.push_back(0);
    else if (size == wanted || repeatsAlone(index, offset + dim, to->size()))
      at.push_back(indices[offset + dim]);
    else
      return nullptr;
  }
  return analysis.getElement(operand, at);
}

/// Whether every other operand has size 1 in dimension `dim` of the result, so that this operand's size is the result's.
bool ElementEvaluator::repeatsAlone(unsigned index, size_t dim, size_t rank) {
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    if (i == index || !getOperand(op, i))
      continue;
    auto shape = analysis.getShape(op->getOperand(i));
    if (!shape)
      return false;
    size_t offset = rank - shape->size();
    if (dim >= offset && !(*shape)[dim - offset].isConstant(1))
      return false;
  }
  return true;
}

const Expression *ElementEvaluator::integerArithmetic(StringRef name, const Polynomial &a, const Polynomial &b) {
  constexpr size_t kMaxTerms = 32;
  if (name == "Add")
    return e.integer(a + b);
  if (name == "Sub")
    return e.integer(a - b);
  if (name == "Mul" && a.getTerms().size() * b.getTerms().size() <= kMaxTerms)
    return e.integer(a * b);
  if (name == "Div") {
    if (auto quotient = a.divideExactly(b))
      return e.integer(*quotient);
    auto x = a.getConstant(), y = b.getConstant();
    if (x && y && *y != 0 && *y != -1)
      return e.integer(*x / *y);
  }
  if (name == "Mod") {
    auto x = a.getConstant(), y = b.getConstant();
    if (x && y && *x >= 0 && *y > 0)
      return e.integer(*x % *y);
  }
  if (name == "Max" || name == "Min") {
    if (e.isNonNegative(a - b))
      return e.integer(name == "Max" ? a : b);
    if (e.isNonNegative(b - a))
      return e.integer(name == "Max" ? b : a);
  }
  if (name == "Pow") {
    auto x = a.getConstant(), y = b.getConstant();
    if (y == 2 && a.getTerms().size() <= 4)
      return e.integer(a * a);
    if (x && y == 1)
      return e.integer(a);
  }
  bool nonNegative = e.isNonNegative(a) && e.isNonNegative(b) && name != "Sub";
  nonNegative |= name == "Max" && (e.isNonNegative(a) || e.isNonNegative(b));
  return e.integer(e.atomOf(e.call(name, {e.integer(a), e.integer(b)}), nonNegative));
}

const Expression *ElementEvaluator::elementwise(StringRef name) {
  SmallVector<const Expression *> x;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    x.push_back(broadcastOperand(i));
    if (!x.back())
      return nullptr;
  }
  if (x.size() == 1 && (name == "Max" || name == "Min" || name == "Sum"))
    return x[0];
  if (name == "And")
    return e.conjoin({e.toFlag(x[0]), e.toFlag(x[1])});
  if (name == "Or")
    return e.disjoin({e.toFlag(x[0]), e.toFlag(x[1])});
  if (name == "Not")
    return e.negate(e.toFlag(x[0]));
  if (name == "Xor")
    return e.negate(e.equal(e.toFlag(x[0]), e.toFlag(x[1])));
  if (name == "Equal")
    return e.equal(x[0], x[1]);
  if (name == "Less")
    return e.less(x[0], x[1]);
  if (name == "Greater")
    return e.less(x[1], x[0]);
  bool integers = llvm::all_of(x, [](const Expression *part) { return part->kind == ExpressionKind::Integer; });
  if (name == "LessOrEqual" && integers)
    return e.nonNegative(x[1]->polynomial - x[0]->polynomial);
  if (name == "GreaterOrEqual" && integers)
    return e.nonNegative(x[0]->polynomial - x[1]->polynomial);
  if (name == "LessOrEqual" || name == "GreaterOrEqual")
    return e.callFlag(name, x);
  if (name == "Where") {
    if (x[1]->kind == ExpressionKind::Integer || x[2]->kind == ExpressionKind::Integer)
      return selectInteger(e.toFlag(x[0]), x[1], x[2]);
    return e.select(e.toFlag(x[0]), x[1], x[2]);
  }
  if (integers && x.size() == 2)
    return integerArithmetic(name, x[0]->polynomial, x[1]->polynomial);
  if (integers && x.size() == 1)
    return name == "Neg" ? e.integer(-x[0]->polynomial) : nullptr;
  return x.size() <= 2 ? e.arithmetic(name, x) : nullptr;
}

const Expression *ElementEvaluator::selectInteger(const Expression *condition, const Expression *a,
                                                  const Expression *b) {
  if (condition->kind == ExpressionKind::True)
    return a;
  if (condition->kind == ExpressionKind::False || a == b)
    return b;
  if (a == e.integer(1) && b == e.integer(0))
    return e.integer(e.toInteger(condition));
  if (a == e.integer(0) && b == e.integer(1))
    return e.integer(e.toInteger(e.negate(condition)));
  bool nonNegative = e.isNonNegative(e.toInteger(a)) && e.isNonNegative(e.toInteger(b));
  return e.integer(e.atomOf(e.select(condition, a, b), nonNegative));
}

const Expression *ElementEvaluator::cast() {
  const Expression *x = analysis.getElement(op->getOperand(0), indices);
  auto type = dyn_cast<TensorType>(value.getType());
  if (!type)
    return nullptr;
  if (type.getElementType().isInteger(1))
    return e.toFlag(x);
  if (isa<FloatType>(type.getElementType()))
    return e.toReal(x);
  if (isa<IntegerType>(type.getElementType()))
    return e.integer(e.toInteger(x));
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

const Expression *ElementEvaluator::evaluate() {
  if (!op)
    return nullptr;
  auto shape = analysis.getShape(value);
  if (!shape || shape->size() != indices.size())
    return nullptr;
  if (!onnxir::isOnnxOp(op))
    return evaluateOther();
  if (!onnxir::getDomain(op).empty())
    return nullptr;
  StringRef name = onnxir::getOpType(op);
  static const llvm::StringSet<> elementwiseNames = {"Add",
                                                     "Sub",
                                                     "Mul",
                                                     "Div",
                                                     "Mod",
                                                     "Pow",
                                                     "Max",
                                                     "Min",
                                                     "And",
                                                     "Or",
                                                     "Not",
                                                     "Xor",
                                                     "Equal",
                                                     "Less",
                                                     "Greater",
                                                     "LessOrEqual",
                                                     "GreaterOrEqual",
                                                     "Where",
                                                     "Neg",
                                                     "Abs",
                                                     "Sqrt",
                                                     "Exp",
                                                     "Log",
                                                     "Tanh",
                                                     "Floor",
                                                     "Reciprocal",
                                                     "Identity",
                                                     "Sum"};
  if (name == "Identity" || (name == "Dropout" && value == op->getResult(0)))
    return analysis.getElement(op->getOperand(0), indices);
  if (elementwiseNames.contains(name))
    return elementwise(name);
  using Rule = const Expression *(ElementEvaluator::*)();
  static const llvm::StringMap<Rule> rules = {{"Constant", &ElementEvaluator::constantNode},
                                              {"ConstantOfShape", &ElementEvaluator::constantOfShape},
                                              {"Cast", &ElementEvaluator::cast},
                                              {"CastLike", &ElementEvaluator::cast},
                                              {"Shape", &ElementEvaluator::shapeNode},
                                              {"Size", &ElementEvaluator::sizeNode},
                                              {"Range", &ElementEvaluator::range},
                                              {"Unsqueeze", &ElementEvaluator::unsqueeze},
                                              {"Squeeze", &ElementEvaluator::squeeze},
                                              {"Reshape", &ElementEvaluator::reshape},
                                              {"Flatten", &ElementEvaluator::reshape},
                                              {"Transpose", &ElementEvaluator::transpose},
                                              {"Expand", &ElementEvaluator::expand},
                                              {"Tile", &ElementEvaluator::tile},
                                              {"Slice", &ElementEvaluator::slice},
                                              {"Split", &ElementEvaluator::split},
                                              {"Concat", &ElementEvaluator::concat},
                                              {"Gather", &ElementEvaluator::gather},
                                              {"GatherND", &ElementEvaluator::gatherNd},
                                              {"ScatterND", &ElementEvaluator::scatterNd},
                                              {"Trilu", &ElementEvaluator::trilu},
                                              {"OneHot", &ElementEvaluator::oneHot},
                                              {"CumSum", &ElementEvaluator::cumSum},
                                              {"ReduceSum", &ElementEvaluator::reduce},
                                              {"ReduceMax", &ElementEvaluator::reduce},
                                              {"ReduceProd", &ElementEvaluator::product}};
  auto it = rules.find(name);
  return it == rules.end() ? nullptr : (this->*it->second)();
}

} // namespace hone::analysis
