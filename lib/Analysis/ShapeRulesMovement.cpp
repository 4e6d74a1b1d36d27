// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes of results whose elements are those of an operand in other places.

#include "ShapeRules.h"

using namespace mlir;

namespace hone::analysis {

OptionalShape ShapeRules::reshape() {
  OptionalShape input = in(0);
  auto wanted = contents(1);
  if (!input || !wanted)
    return std::nullopt;
  bool zeroIsZero = getInteger(op, "allowzero", 0) != 0;
  Shape shape;
  Polynomial total(1), rest(1);
  std::optional<size_t> inferred;
  for (const Polynomial &size : *input)
    total = total * size;
  for (auto [i, size] : llvm::enumerate(*wanted)) {
    if (size.isConstant(-1)) {
      inferred = i;
      shape.push_back(1);
      continue;
    }
    bool copies = size.isConstant(0) && !zeroIsZero;
    if (copies && i >= input->size())
      return std::nullopt;
    shape.push_back(copies ? (*input)[i] : size);
    rest = rest * shape.back();
  }
  if (!inferred)
    return shape;
  auto quotient = total.divideExactly(rest);
  shape[*inferred] = quotient ? *quotient : Polynomial::of(analysis.expressions.freshSize());
  return shape;
}

OptionalShape ShapeRules::expand() {
  OptionalShape input = in(0);
  auto wanted = contents(1);
  if (!input || !wanted)
    return std::nullopt;
  return broadcast({*input, Shape(*wanted)});
}

OptionalShape ShapeRules::tile() {
  OptionalShape shape = in(0);
  auto repeats = contents(1);
  if (!shape || !repeats || repeats->size() != shape->size())
    return std::nullopt;
  for (auto [size, repeat] : llvm::zip(*shape, *repeats))
    size = size * repeat;
  return shape;
}

OptionalShape ShapeRules::gather() { return gatherFrom(in(0), getInteger(op, "axis", 0)); }

/// Where the table is bytes, each holds 8 / bits of its elements, along the last dimension.
OptionalShape ShapeRules::gatherBlocks() {
  OptionalShape data = in(0);
  int64_t bits = getInteger(op, "bits", 4);
  if (data && !data->empty() && getElementTypeOrSelf(op->getOperand(0)).isInteger(8)) {
    if (bits != 4 && bits != 8)
      return std::nullopt;
    data->back() = data->back() * Polynomial(8 / bits);
  }
  return gatherFrom(data, getInteger(op, "gather_axis", 0));
}

OptionalShape ShapeRules::gatherFrom(const OptionalShape &data, int64_t along) {
  OptionalShape indices = in(1);
  if (!data || !indices)
    return std::nullopt;
  auto axis = normalizeAxis(along, data->size());
  if (!axis)
    return std::nullopt;
  Shape shape(ArrayRef(*data).take_front(*axis));
  shape.append(indices->begin(), indices->end());
  shape.append(data->begin() + *axis + 1, data->end());
  return shape;
}

OptionalShape ShapeRules::topK() {
  OptionalShape shape = in(0);
  auto axis = shape ? normalizeAxis(getInteger(op, "axis", -1), shape->size()) : std::nullopt;
  auto count = contents(1);
  if (!axis || !count || count->size() != 1)
    return std::nullopt;
  (*shape)[*axis] = count->front();
  return shape;
}

OptionalShape ShapeRules::oneHot() {
  OptionalShape shape = in(0);
  auto axis = shape ? normalizeAxis(getInteger(op, "axis", -1), shape->size() + 1) : std::nullopt;
  auto depth = contents(1);
  if (!axis || !depth || depth->size() != 1)
    return std::nullopt;
  shape->insert(shape->begin() + *axis, depth->front());
  return shape;
}

OptionalShape ShapeRules::gatherNd() {
  OptionalShape data = in(0), indices = in(1);
  int64_t batch = getInteger(op, "batch_dims", 0);
  if (!data || !indices || indices->empty() || batch < 0)
    return std::nullopt;
  auto length = indices->back().getConstant();
  if (!length || *length < 0 || batch + *length > static_cast<int64_t>(data->size()))
    return std::nullopt;
  Shape shape(ArrayRef(*indices).drop_back());
  shape.append(data->begin() + batch + *length, data->end());
  return shape;
}

OptionalShape ShapeRules::concat() {
  OptionalShape shape = in(0);
  if (!shape)
    return std::nullopt;
  auto axis = normalizeAxis(getInteger(op, "axis", 0), shape->size());
  if (!axis)
    return std::nullopt;
  for (unsigned i = 1; i < op->getNumOperands(); ++i) {
    OptionalShape next = in(i);
    if (!next || next->size() != shape->size())
      return std::nullopt;
    for (auto [dim, size] : llvm::enumerate(*next)) {
      if (static_cast<int64_t>(dim) == *axis)
        (*shape)[dim] = (*shape)[dim] + size;
      else if (size.getConstant())
        (*shape)[dim] = size;
    }
  }
  return shape;
}

/// The bound of a slice counted from the front: clamped to the size where it is beyond all sizes, else as it is.
static std::optional<Polynomial> resolveBound(const Polynomial &bound, const Polynomial &size,
                                              const Expressions &expressions) {
  constexpr int64_t kBeyondSizes = int64_t(1) << 31;
  if (auto constant = bound.getConstant()) {
    if (*constant >= kBeyondSizes - 1)
      return size;
    if (*constant <= -kBeyondSizes)
      return Polynomial(0);
    if (*constant < 0)
      return size + bound;
    if (auto extent = size.getConstant(); extent && *constant > *extent)
      return size;
    return bound;
  }
  if (size + bound == 0) // as many as there are, from the end
    return Polynomial(0);
  return expressions.isNonNegative(bound) ? std::optional<Polynomial>(bound) : std::nullopt;
}

OptionalShape ShapeRules::slice() {
  OptionalShape shape = in(0);
  auto starts = contents(1), ends = contents(2), axes = contents(3), steps = contents(4);
  if (!shape || !starts || !ends || (getOperand(op, 3) && !axes) || (getOperand(op, 4) && !steps))
    return std::nullopt;
  for (auto [i, start] : llvm::enumerate(*starts)) {
    auto axisValue = axes ? (*axes)[i].getConstant() : std::optional<int64_t>(i);
    auto axis = axisValue ? normalizeAxis(*axisValue, shape->size()) : std::nullopt;
    if (!axis || i >= ends->size())
      return std::nullopt;
    Polynomial &size = (*shape)[*axis];
    auto first = resolveBound(start, size, analysis.expressions),
         last = resolveBound((*ends)[i], size, analysis.expressions);
    bool unit = !steps || (*steps)[i].isConstant(1);
    // A slice may not reach beyond the end: without proof, the size is unknown.
    bool within = first && last && analysis.expressions.isNonNegative(*last - *first) &&
                  analysis.expressions.isNonNegative(size - *last);
    bool bounded = unit && first && last;
    if (unit && within)
      size = *last - *first;
    else
      size =
          Polynomial::of(bounded ? analysis.expressions.boundedSize(*last - *first) : analysis.expressions.freshSize());
  }
  return shape;
}

OptionalShape ShapeRules::range() {
  auto start = contents(0), limit = contents(1), delta = contents(2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1 ||
      !delta->front().isConstant(1))
    return std::nullopt;
  Polynomial length = limit->front() - start->front();
  if (!analysis.expressions.isNonNegative(length))
    return std::nullopt;
  return Shape{length};
}

OptionalShape ShapeRules::unsqueeze() {
  OptionalShape input = in(0);
  auto axes = constants("axes", 1);
  if (!input || !axes)
    return std::nullopt;
  size_t rank = input->size() + axes->size();
  SmallVector<bool> isNew(rank, false);
  for (int64_t given : *axes) {
    auto axis = normalizeAxis(given, rank);
    if (!axis)
      return std::nullopt;
    isNew[*axis] = true;
  }
  Shape shape;
  for (size_t dim = 0, from = 0; dim < rank; ++dim) {
    if (!isNew[dim] && from >= input->size())
      return std::nullopt;
    shape.push_back(isNew[dim] ? Polynomial(1) : (*input)[from++]);
  }
  return shape;
}

OptionalShape ShapeRules::squeeze() {
  OptionalShape input = in(0);
  auto axes = constants("axes", 1);
  if (!input || (!axes && getOperand(op, 1)))
    return std::nullopt;
  Shape shape;
  for (auto [dim, size] : llvm::enumerate(*input)) {
    bool drop =
        axes ? llvm::any_of(
                   *axes, [&](int64_t axis) { return normalizeAxis(axis, input->size()) == static_cast<int64_t>(dim); })
             : size.isConstant(1);
    if (!drop)
      shape.push_back(size);
    if (!axes && !size.getConstant())
      return std::nullopt;
  }
  return shape;
}

OptionalShape ShapeRules::split() {
  OptionalShape shape = in(0);
  auto axis = shape ? normalizeAxis(getInteger(op, "axis", 0), shape->size()) : std::nullopt;
  if (!axis)
    return std::nullopt;
  auto sizes = constants("split", 1);
  if (sizes && result < sizes->size())
    (*shape)[*axis] = (*sizes)[result];
  else if (auto size = (*shape)[*axis].getConstant(); size && !getOperand(op, 1) && *size % op->getNumResults() == 0)
    (*shape)[*axis] = *size / op->getNumResults();
  else
    (*shape)[*axis] = Polynomial::of(analysis.expressions.freshSize());
  return shape;
}

OptionalShape ShapeRules::transpose() {
  OptionalShape input = in(0);
  if (!input)
    return std::nullopt;
  auto permutation = getIntegers(op, "perm");
  Shape shape;
  for (size_t dim = 0; dim < input->size(); ++dim) {
    int64_t from = permutation ? (dim < permutation->size() ? (*permutation)[dim] : -1)
                               : static_cast<int64_t>(input->size() - 1 - dim);
    if (from < 0 || from >= static_cast<int64_t>(input->size()))
      return std::nullopt;
    shape.push_back((*input)[from]);
  }
  return shape;
}

OptionalShape ShapeRules::flatten() {
  OptionalShape input = in(0);
  if (!input)
    return std::nullopt;
  int64_t axis = getInteger(op, "axis", 1), rank = input->size();
  if (axis < 0)
    axis += rank;
  if (axis < 0 || axis > rank)
    return std::nullopt;
  Shape shape{Polynomial(1), Polynomial(1)};
  for (int64_t dim = 0; dim < rank; ++dim)
    shape[dim >= axis] = shape[dim >= axis] * (*input)[dim];
  return shape;
}

} // namespace hone::analysis
