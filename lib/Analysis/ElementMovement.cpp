// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of the operators that move elements: where in the operand the element of the result comes from.

#include "ElementEvaluator.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/ParamBytes.h"

using namespace mlir;

namespace hone::analysis {

std::optional<SmallVector<int64_t>> ElementEvaluator::constants(StringRef attribute, unsigned index) {
  if (auto values = getIntegers(op, attribute))
    return values;
  Value operand = in(index);
  return operand ? analysis.getConstants(operand) : std::nullopt;
}

/// An index that may count from the end, counted from the front; nothing where its sign is not known.
std::optional<Polynomial> ElementEvaluator::wrap(const Polynomial &index, const Polynomial &size) {
  if (e.isNonNegative(index))
    return index;
  if (e.isNonNegative(Polynomial(-1) - index))
    return index + size;
  return std::nullopt;
}

const Expression *ElementEvaluator::constantNode() {
  Attribute attr = op->getAttr("value");
  if (isa_and_nonnull<DenseElementsAttr, DenseResourceElementsAttr>(attr))
    return constant(attr);
  if (auto integer = op->getAttrOfType<IntegerAttr>("value_int"))
    return e.integer(integer.getInt());
  if (auto real = op->getAttrOfType<FloatAttr>("value_float"))
    return e.real(real.getValueAsDouble());
  auto at = indices.empty() ? std::optional<int64_t>() : indices[0].getConstant();
  if (auto integers = op->getAttrOfType<DenseI64ArrayAttr>("value_ints");
      integers && at && *at >= 0 && *at < integers.size())
    return e.integer(integers[*at]);
  return nullptr;
}

const Expression *ElementEvaluator::constantOfShape() {
  auto fill = op->getAttrOfType<DenseElementsAttr>("value");
  if (!fill)
    return e.real(0);
  return fill.isSplat() ? constant(fill) : nullptr;
}

const Expression *ElementEvaluator::shapeNode() {
  auto shape = analysis.getShape(op->getOperand(0));
  auto at = indices.size() == 1 ? indices[0].getConstant() : std::nullopt;
  if (!shape || !at)
    return nullptr;
  int64_t rank = shape->size(), start = getInteger(op, "start", 0);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  if (*at < 0 || start + *at >= rank)
    return nullptr;
  return e.integer((*shape)[start + *at]);
}

const Expression *ElementEvaluator::sizeNode() {
  auto shape = analysis.getShape(op->getOperand(0));
  if (!shape)
    return nullptr;
  Polynomial product(1);
  for (const Polynomial &size : *shape)
    product = product * size;
  return e.integer(product);
}

const Expression *ElementEvaluator::range() {
  auto start = analysis.getContents(op->getOperand(0)), delta = analysis.getContents(op->getOperand(2));
  if (!start || !delta || start->size() != 1 || delta->size() != 1)
    return nullptr;
  return e.integer(start->front() + indices[0] * delta->front());
}

const Expression *ElementEvaluator::unsqueeze() {
  auto axes = constants("axes", 1);
  if (!axes)
    return nullptr;
  SmallVector<Polynomial> at;
  for (auto [dim, index] : llvm::enumerate(indices))
    if (llvm::none_of(*axes,
                      [&](int64_t axis) { return normalizeAxis(axis, indices.size()) == static_cast<int64_t>(dim); }))
      at.push_back(index);
  return analysis.getElement(op->getOperand(0), at);
}

const Expression *ElementEvaluator::squeeze() {
  auto input = analysis.getShape(op->getOperand(0));
  auto axes = constants("axes", 1);
  if (!input || (!axes && in(1)))
    return nullptr;
  SmallVector<Polynomial> at;
  size_t next = 0;
  for (auto [dim, size] : llvm::enumerate(*input)) {
    bool dropped =
        axes ? llvm::any_of(
                   *axes, [&](int64_t axis) { return normalizeAxis(axis, input->size()) == static_cast<int64_t>(dim); })
             : size.isConstant(1);
    if (!dropped && next >= indices.size())
      return nullptr;
    at.push_back(dropped ? Polynomial(0) : indices[next++]);
  }
  return analysis.getElement(op->getOperand(0), at);
}

namespace {
/// Splits row-major positions of one shape into indices of another with the same number of elements.
class Reshaping {
public:
  Reshaping(Expressions &e, ArrayRef<Polynomial> from, ArrayRef<Polynomial> to, ArrayRef<Polynomial> indices)
      : e(e), from(from), to(to), indices(indices) {}

  /// Indices into `from` for the indices into `to`; nothing where the division does not come out.
  std::optional<SmallVector<Polynomial>> compute() {
    SmallVector<Polynomial> front, back;
    while (!from.empty() && !to.empty() && from.front() == to.front()) {
      front.push_back(indices.front());
      from = from.drop_front(), to = to.drop_front(), indices = indices.drop_front();
    }
    while (!from.empty() && !to.empty() && from.back() == to.back()) {
      back.push_back(indices.back());
      from = from.drop_back(), to = to.drop_back(), indices = indices.drop_back();
    }
    Polynomial position;
    for (auto [size, index] : llvm::zip(to, indices))
      position = position * size + index;
    SmallVector<Polynomial> middle(from.size());
    for (size_t dim = from.size(); dim-- > 0;) {
      if (from[dim].isConstant(1))
        continue;
      bool isOuter = llvm::all_of(from.take_front(dim), [](const Polynomial &size) { return size.isConstant(1); });
      auto parts = isOuter ? std::optional(std::make_pair(Polynomial(), position)) : divide(position, from[dim]);
      if (!parts)
        return std::nullopt;
      position = parts->first;
      middle[dim] = parts->second;
    }
    front.append(middle);
    front.append(back.rbegin(), back.rend());
    return front;
  }

private:
  /// Quotient and remainder, proven to be those of a division rounding down; new atoms where a constant divides.
  std::optional<std::pair<Polynomial, Polynomial>> divide(const Polynomial &position, const Polynomial &size) {
    auto parts = position.divide(size);
    if (!parts)
      return std::nullopt;
    auto &[quotient, remainder] = *parts;
    if (e.isNonNegative(remainder) && e.isNonNegative(size - 1 - remainder))
      return parts;
    if (!e.isNonNegative(remainder) || !e.isNonNegative(quotient))
      return std::nullopt;
    Polynomial floor = e.atomOf(e.call("FloorDiv", {e.integer(remainder), e.integer(size)}), /*nonNegative=*/true);
    return std::make_pair(quotient + floor, remainder - floor * size);
  }

  Expressions &e;
  ArrayRef<Polynomial> from, to, indices;
};
} // namespace

std::optional<SmallVector<Polynomial>> SymbolicAnalysis::mapReshape(ArrayRef<Polynomial> from, ArrayRef<Polynomial> to,
                                                                    Indices indices) {
  return Reshaping(expressions, from, to, indices).compute();
}

const Expression *ElementEvaluator::reshape() {
  auto from = analysis.getShape(op->getOperand(0)), to = analysis.getShape(value);
  if (!from || !to)
    return nullptr;
  auto at = analysis.mapReshape(*from, *to, indices);
  return at ? analysis.getElement(op->getOperand(0), *at) : nullptr;
}

const Expression *ElementEvaluator::transpose() {
  auto permutation = getIntegers(op, "perm");
  int64_t rank = indices.size();
  SmallVector<Polynomial> at(rank);
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t from = permutation ? (*permutation)[dim] : rank - 1 - dim;
    at[from] = indices[dim];
  }
  return analysis.getElement(op->getOperand(0), at);
}

/// Along an axis of size 1, one that is repeated once, or where it is known which copy an element is in.
const Expression *ElementEvaluator::tile() {
  auto from = analysis.getShape(op->getOperand(0));
  auto repeats = analysis.getContents(op->getOperand(1));
  if (!from || !repeats || repeats->size() != from->size())
    return nullptr;
  SmallVector<Polynomial> at;
  for (auto [size, count, index] : llvm::zip_equal(*from, *repeats, indices)) {
    if (size.isConstant(1) || count.isConstant(1)) {
      at.push_back(size.isConstant(1) ? Polynomial(0) : index);
      continue;
    }
    auto parts = index.divide(size);
    if (!parts || !e.isNonNegative(parts->second) || !e.isNonNegative(size - 1 - parts->second))
      return nullptr;
    at.push_back(parts->second);
  }
  return analysis.getElement(op->getOperand(0), at);
}

const Expression *ElementEvaluator::expand() {
  auto from = analysis.getShape(op->getOperand(0)), to = analysis.getShape(value);
  auto wanted = analysis.getContents(op->getOperand(1));
  if (!from || !to)
    return nullptr;
  size_t offset = to->size() - from->size();
  SmallVector<Polynomial> at;
  for (auto [dim, size] : llvm::enumerate(*from)) {
    bool asked = wanted && offset + dim >= to->size() - wanted->size() &&
                 !(*wanted)[offset + dim - (to->size() - wanted->size())].isConstant(1);
    if (size.isConstant(1))
      at.push_back(0);
    else if (size == (*to)[offset + dim] || (wanted && !asked))
      at.push_back(indices[offset + dim]);
    else
      return nullptr;
  }
  return analysis.getElement(op->getOperand(0), at);
}

const Expression *ElementEvaluator::slice() {
  auto shape = analysis.getShape(op->getOperand(0));
  auto starts = analysis.getContents(op->getOperand(1));
  auto axes = in(3) ? analysis.getConstants(in(3)) : std::nullopt;
  auto steps = in(4) ? analysis.getConstants(in(4)) : std::nullopt;
  if (!shape || !starts || (in(3) && !axes) || (in(4) && !steps))
    return nullptr;
  SmallVector<Polynomial> at(indices);
  for (auto [i, start] : llvm::enumerate(*starts)) {
    if ((axes && i >= axes->size()) || (steps && (i >= steps->size() || (*steps)[i] <= 0)))
      return nullptr;
    auto axis = normalizeAxis(axes ? (*axes)[i] : static_cast<int64_t>(i), shape->size());
    if (!axis)
      return nullptr;
    // A start before the front counts as 0, one beyond the end leaves nothing to ask for.
    bool beforeFront = start.getConstant() && *start.getConstant() < -(int64_t(1) << 31);
    bool isWhole = (*shape)[*axis] + start == 0; // as many as there are, from the end
    auto first = beforeFront || isWhole ? std::optional<Polynomial>(0) : wrap(start, (*shape)[*axis]);
    if (!first || (!e.isNonNegative(*first)))
      return nullptr;
    at[*axis] = *first + at[*axis] * (steps ? (*steps)[i] : 1);
  }
  return analysis.getElement(op->getOperand(0), at);
}

const Expression *ElementEvaluator::split() {
  auto shape = analysis.getShape(op->getOperand(0));
  auto axis = shape ? normalizeAxis(getInteger(op, "axis", 0), shape->size()) : std::nullopt;
  if (!axis)
    return nullptr;
  SmallVector<Polynomial> at(indices);
  for (unsigned i = 0; i < cast<OpResult>(value).getResultNumber(); ++i) {
    auto piece = analysis.getShape(op->getResult(i));
    if (!piece)
      return nullptr;
    at[*axis] = at[*axis] + (*piece)[*axis];
  }
  return analysis.getElement(op->getOperand(0), at);
}

/// Only where it is known which operand the element lies in. Concatenated floats are data, not masks: they stay loads.
const Expression *ElementEvaluator::concat() {
  auto type = dyn_cast<TensorType>(value.getType());
  auto axis = normalizeAxis(getInteger(op, "axis", 0), indices.size());
  if (!type || !axis || (isa<FloatType>(type.getElementType()) && op->getNumOperands() > 1))
    return nullptr;
  SmallVector<Polynomial> at(indices);
  for (Value operand : op->getOperands()) {
    auto shape = analysis.getShape(operand);
    if (!shape || shape->size() != indices.size())
      return nullptr;
    const Polynomial &size = (*shape)[*axis];
    if (op->getNumOperands() == 1 || e.isPositive(size - at[*axis]))
      return analysis.getElement(operand, at);
    if (!e.isNonNegative(at[*axis] - size))
      return nullptr;
    at[*axis] = at[*axis] - size;
  }
  return nullptr;
}

const Expression *ElementEvaluator::gather() {
  auto data = analysis.getShape(op->getOperand(0)), positions = analysis.getShape(op->getOperand(1));
  auto axis = data ? normalizeAxis(getInteger(op, "axis", 0), data->size()) : std::nullopt;
  if (!axis || !positions || *axis + positions->size() > indices.size())
    return nullptr;
  ArrayRef<Polynomial> all(indices);
  const Expression *position = analysis.getElement(op->getOperand(1), all.slice(*axis, positions->size()));
  auto index = position->kind == ExpressionKind::Integer ? wrap(position->polynomial, (*data)[*axis]) : std::nullopt;
  if (!index)
    return nullptr;
  SmallVector<Polynomial> at(all.take_front(*axis));
  at.push_back(*index);
  at.append(all.begin() + *axis + positions->size(), all.end());
  return analysis.getElement(op->getOperand(0), at);
}

const Expression *ElementEvaluator::gatherNd() {
  auto data = analysis.getShape(op->getOperand(0)), tuples = analysis.getShape(op->getOperand(1));
  if (!data || !tuples || tuples->empty() || getInteger(op, "batch_dims", 0) != 0)
    return nullptr;
  auto length = tuples->back().getConstant();
  size_t outer = tuples->size() - 1;
  if (!length || *length < 0 || *length > static_cast<int64_t>(data->size()) || outer > indices.size())
    return nullptr;
  SmallVector<Polynomial> at, tuple(indices.begin(), indices.begin() + outer);
  tuple.push_back(0);
  for (int64_t i = 0; i < *length; ++i) {
    tuple.back() = i;
    const Expression *position = analysis.getElement(op->getOperand(1), tuple);
    auto index = position->kind == ExpressionKind::Integer ? wrap(position->polynomial, (*data)[i]) : std::nullopt;
    if (!index)
      return nullptr;
    at.push_back(*index);
  }
  at.append(indices.begin() + outer, indices.end());
  return analysis.getElement(op->getOperand(0), at);
}

/// The first of consecutive integers that are a constant.
static std::optional<int64_t> getBegin(Value places) {
  SmallVector<int64_t> integers = readIntegers(places);
  for (size_t i = 1; i < integers.size(); ++i)
    if (integers[i] != integers[0] + static_cast<int64_t>(i))
      return std::nullopt;
  return integers.empty() ? std::nullopt : std::optional(integers[0]);
}

/// A scatter to consecutive places of the first axis, as exporters write an assignment to a slice: the updates there, and elsewhere the data.
const Expression *ElementEvaluator::scatterSlice(const Polynomial &count) {
  std::optional<int64_t> begin = getBegin(op->getOperand(1));
  if (!begin) {
    Polynomial step = e.index(0, count);
    const Expression *place = analysis.getElement(op->getOperand(1), {step, Polynomial(0)});
    begin = place->kind == ExpressionKind::Integer ? (place->polynomial - step).getConstant() : std::nullopt;
  }
  if (!begin || *begin < 0)
    return nullptr;
  SmallVector<Polynomial> at(indices);
  at[0] = indices[0] - *begin;
  if (e.isNonNegative(at[0]) && e.isPositive(count - at[0]))
    return analysis.getElement(op->getOperand(2), at);
  bool isElsewhere = e.isPositive(-at[0]) || e.isNonNegative(at[0] - count);
  return isElsewhere ? analysis.getElement(op->getOperand(0), indices) : nullptr;
}

/// A scatter whose tuple at (i0 … in) is (i0 … in) itself writes every element: the result is the updates.
const Expression *ElementEvaluator::scatterNd() {
  auto data = analysis.getShape(op->getOperand(0)), tuples = analysis.getShape(op->getOperand(1));
  auto reduction = op->getAttrOfType<StringAttr>("reduction");
  if (!data || !tuples || (reduction && reduction != "none"))
    return nullptr;
  if (tuples->size() == 2 && tuples->back().isConstant(1) && !data->empty())
    return scatterSlice(tuples->front());
  if (tuples->size() != data->size() + 1)
    return nullptr;
  if (!llvm::equal(*data, ArrayRef(*tuples).drop_back()) || !tuples->back().isConstant(data->size()))
    return nullptr;
  SmallVector<Polynomial> own = analysis.getIndices(*data), tuple(own);
  tuple.push_back(0);
  for (auto [dim, index] : llvm::enumerate(own)) {
    tuple.back() = dim;
    const Expression *position = analysis.getElement(op->getOperand(1), tuple);
    if (position->kind != ExpressionKind::Integer || position->polynomial != index)
      return nullptr;
  }
  return analysis.getElement(op->getOperand(2), indices);
}

/// Only for indices that are not counted from the end.
const Expression *ElementEvaluator::oneHot() {
  auto values = analysis.getContents(op->getOperand(2));
  auto axis = normalizeAxis(getInteger(op, "axis", -1), indices.size());
  if (!values || values->size() != 2 || !axis)
    return nullptr;
  SmallVector<Polynomial> at(indices);
  Polynomial hot = at[*axis];
  at.erase(at.begin() + *axis);
  const Expression *index = analysis.getElement(op->getOperand(0), at);
  if (index->kind != ExpressionKind::Integer || !e.isNonNegative(index->polynomial))
    return nullptr;
  const Expression *isHot = e.isZero(index->polynomial - hot);
  if ((*values)[0] == 0 && (*values)[1] == 1)
    return e.integer(e.toInteger(isHot));
  return selectInteger(isHot, e.integer((*values)[1]), e.integer((*values)[0]));
}

const Expression *ElementEvaluator::trilu() {
  if (indices.size() < 2)
    return nullptr;
  auto offset = in(1) ? analysis.getContents(in(1)) : std::optional(SmallVector<Polynomial>{Polynomial(0)});
  if (!offset || offset->size() != 1)
    return nullptr;
  Polynomial distance = indices.back() - indices[indices.size() - 2] - offset->front();
  const Expression *keeps = getInteger(op, "upper", 1) != 0 ? e.nonNegative(distance) : e.nonNegative(-distance);
  const Expression *element = analysis.getElement(op->getOperand(0), indices);
  if (element->kind == ExpressionKind::Integer)
    return selectInteger(keeps, element, e.integer(0));
  return element->isFlag() ? e.conjoin({keeps, element}) : e.select(keeps, element, e.real(0));
}

/// Sums of a mask that is 1 from some position on: how far the index is past that position.
const Expression *ElementEvaluator::cumSum() {
  auto axes = analysis.getConstants(op->getOperand(1));
  auto axis = axes && axes->size() == 1 ? normalizeAxis(axes->front(), indices.size()) : std::nullopt;
  auto shape = analysis.getShape(op->getOperand(0));
  if (!axis || !shape || getInteger(op, "exclusive", 0) != 0 || getInteger(op, "reverse", 0) != 0)
    return nullptr;
  SmallVector<Polynomial> at(indices);
  at[*axis] = e.index(*axis, (*shape)[*axis]);
  auto running = at[*axis].getAtom();
  const Expression *element = analysis.getElement(op->getOperand(0), at);
  if (!running || element->kind != ExpressionKind::Integer)
    return nullptr;
  if (auto each = element->polynomial; !each.contains(*running) && !each.getAtom())
    return e.integer(each * (indices[*axis] + 1));
  auto atom = element->polynomial.getAtom();
  const Expression *flag = atom ? e.info(*atom).definition : nullptr;
  if (!flag || flag->kind != ExpressionKind::NonNegative)
    return nullptr;
  Polynomial first = Polynomial::of(*running) - flag->polynomial; // 1 where running >= first
  if (first.contains(*running) || !e.isNonNegative(first))
    return nullptr;
  return integerArithmetic("Max", indices[*axis] - first + 1, 0);
}

/// A reduction of one dimension, kept as a named function of the element at a variable that stands for the dimension.
const Expression *ElementEvaluator::reduce() {
  auto axes = constants("axes", 1);
  auto shape = analysis.getShape(op->getOperand(0));
  if (!axes || axes->size() != 1 || !shape || getInteger(op, "keepdims", 1) == 0)
    return nullptr;
  auto axis = normalizeAxis(axes->front(), shape->size());
  if (!axis)
    return nullptr;
  SmallVector<Polynomial> at(indices);
  at[*axis] = e.index(kReducedAxis, (*shape)[*axis]);
  const Expression *element = analysis.getElement(op->getOperand(0), at);
  return e.call(onnxir::getOpType(op),
                {element->isFlag() || element->kind == ExpressionKind::Integer ? element : e.toReal(element),
                 e.integer((*shape)[*axis])});
}

/// The product of all elements of a list of integers: of sizes, where dimensions are merged.
const Expression *ElementEvaluator::product() {
  auto factors = analysis.getContents(op->getOperand(0));
  auto axes = constants("axes", 1);
  bool isAll = axes ? axes->size() == 1 : !in(1) && getInteger(op, "noop_with_empty_axes", 0) == 0;
  constexpr size_t kMaxFactors = 8;
  if (!factors || !isAll || factors->size() > kMaxFactors)
    return nullptr;
  Polynomial all(1);
  for (const Polynomial &factor : *factors)
    all = all * factor;
  return e.integer(all);
}

} // namespace hone::analysis
