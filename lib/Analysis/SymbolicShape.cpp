// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes of values as polynomials. A size that no rule gives is an atom of its own.

#include "ShapeRules.h"

using namespace mlir;

namespace hone::analysis {

Polynomial parseSizeName(StringRef name, Expressions &expressions) {
  SmallVector<StringRef> summands;
  name.split(summands, '+');
  Polynomial sum;
  for (StringRef summand : summands) {
    SmallVector<StringRef> factors;
    summand.split(factors, '*');
    Polynomial product(1);
    for (StringRef factor : factors) {
      factor = factor.trim();
      int64_t constant = 0;
      bool isName =
          !factor.empty() && llvm::all_of(factor, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
      if (!factor.getAsInteger(10, constant))
        product = product * constant;
      else if (isName)
        product = product * Polynomial::of(expressions.namedSize(factor));
      else // some other formula: one name
        return Polynomial::of(expressions.namedSize(name));
    }
    sum = sum + product;
  }
  return sum;
}

SymbolicAnalysis::SymbolicAnalysis(func::FuncOp function) : function(function) {}

void SymbolicAnalysis::invalidate() { shapes.clear(); }

Polynomial SymbolicAnalysis::sizeOf(Value value, unsigned dim) {
  auto [it, isNew] = unknownSizes.try_emplace({value, dim}, 0);
  if (isNew)
    it->second = expressions.freshSize();
  return Polynomial::of(it->second);
}

Shape SymbolicAnalysis::getArgumentShape(BlockArgument argument, RankedTensorType type) {
  ArrayAttr names;
  if (argument.getOwner() == &function.getBody().front())
    names = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), onnxir::kDimsAttr);
  Shape shape;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    auto name = names && dim < static_cast<int64_t>(names.size()) ? dyn_cast<StringAttr>(names[dim]) : StringAttr();
    if (!type.isDynamicDim(dim))
      shape.push_back(type.getDimSize(dim));
    else
      shape.push_back(name && !name.empty() ? parseSizeName(name, expressions) : sizeOf(argument, dim));
  }
  return shape;
}

OptionalShape SymbolicAnalysis::getShape(Value value) {
  if (auto it = shapes.find(value); it != shapes.end())
    return it->second;
  constexpr unsigned kMaxDepth = 400; // shapes are asked for in order, so that real chains are short
  auto type = dyn_cast<RankedTensorType>(value.getType());
  OptionalShape shape;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (type)
      shape = getArgumentShape(argument, type);
  } else if (isa<TensorType>(value.getType()) && depth < kMaxDepth) {
    ++depth;
    shape = computeShape(cast<OpResult>(value));
    --depth;
  }
  if (type && (!shape || shape->size() != static_cast<size_t>(type.getRank()))) {
    shape.emplace();
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      shape->push_back(sizeOf(value, dim));
  }
  if (type)
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      if (!ShapedType::isDynamic(size))
        (*shape)[dim] = size;
  shapes[value] = shape;
  return shape;
}

SmallVector<Polynomial> SymbolicAnalysis::getIndices(ArrayRef<Polynomial> shape) {
  SmallVector<Polynomial> indices;
  for (auto [axis, extent] : llvm::enumerate(shape))
    indices.push_back(expressions.index(axis, extent));
  return indices;
}

OptionalShape SymbolicAnalysis::computeShape(OpResult value) {
  return ShapeRules(*this, value.getOwner(), value.getResultNumber()).compute();
}

} // namespace hone::analysis
