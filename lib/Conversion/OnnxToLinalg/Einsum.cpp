// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Einsum: operands are multiplied from left to right, and a label is summed away with the last operand that has it.

#include "Loops.h"

#include "hone/Dialect/Onnx/EinsumEquation.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace hone::lowering {

namespace {

using Label = onnxir::EinsumEquation::Label;

/// A tensor and the label of each of its dimensions, all different.
struct Term {
  Value tensor;
  SmallVector<Label> labels;
};

class Einsum {
public:
  explicit Einsum(Node &node) : node(node) {}
  LogicalResult lower();

private:
  LogicalResult parseEquation();
  LogicalResult recordSizes();
  AffineMap getMap(const Term &term, ArrayRef<Label> loops);
  Term sumAlone(const Term &term, ArrayRef<Label> kept);
  Term multiply(const Term &lhs, const Term &rhs, ArrayRef<Label> kept);
  SmallVector<Size> getSizes(ArrayRef<Label> labels);

  Node &node;
  SmallVector<Term> terms;
  SmallVector<Label> output;
  llvm::MapVector<Label, Size> sizes;
};

} // namespace

LogicalResult Einsum::parseEquation() {
  SmallVector<int64_t> ranks;
  for (unsigned i = 0; i < node.inputs(); ++i)
    ranks.push_back(node.rank(i));
  std::string reason;
  auto equation = onnxir::EinsumEquation::parse(node.string("equation"), ranks, reason);
  if (!equation)
    return node.fail() << reason;
  for (auto [i, labels] : llvm::enumerate(equation->terms))
    terms.push_back({node.in(i), labels});
  output = equation->output;
  return success();
}

LogicalResult Einsum::recordSizes() {
  for (const Term &term : terms)
    for (auto [label, size] : llvm::zip(term.labels, node.sizes(term.tensor))) {
      auto [it, isNew] = sizes.insert({label, size});
      if (isNew)
        continue;
      if (IndexMath::getConstant(it->second) == 1)
        it->second = size;
      else if (IndexMath::getConstant(size) != 1 &&
               failed(requireEqual(node, it->second, size, "dimensions of one label")))
        return failure();
    }
  return success();
}

SmallVector<Size> Einsum::getSizes(ArrayRef<Label> labels) {
  return llvm::to_vector(llvm::map_range(labels, [&](Label label) { return sizes.find(label)->second; }));
}

AffineMap Einsum::getMap(const Term &term, ArrayRef<Label> loops) {
  SmallVector<AffineExpr> exprs;
  for (auto [label, size] : llvm::zip(term.labels, node.sizes(term.tensor))) {
    unsigned loop = llvm::find(loops, label) - loops.begin();
    bool isRepeated = IndexMath::getConstant(size) == 1;
    exprs.push_back(isRepeated ? node.b.getAffineConstantExpr(0) : node.b.getAffineDimExpr(loop));
  }
  return AffineMap::get(loops.size(), 0, exprs, node.b.getContext());
}

/// Labels of `from` that are not in `kept`, each once.
static SmallVector<Label> getSummed(ArrayRef<Label> from, ArrayRef<Label> kept) {
  llvm::SetVector<Label> summed;
  for (Label label : from)
    if (!llvm::is_contained(kept, label))
      summed.insert(label);
  return summed.takeVector();
}

/// The diagonal of repeated labels, summed over the labels that are not kept.
Term Einsum::sumAlone(const Term &term, ArrayRef<Label> kept) {
  SmallVector<Label> summed = getSummed(term.labels, kept), loops(kept);
  if (term.labels == SmallVector<Label>(kept))
    return term;
  llvm::append_range(loops, summed);
  Type element = cast<RankedTensorType>(term.tensor.getType()).getElementType(), wide = getAccumulator(element);
  Value sum = accumulate(node, getSizes(kept), getSizes(summed), Operand{term.tensor, getMap(term, loops)},
                         node.zero(wide), [&](Builder &b, ValueRange x, Value total) {
                           return addScalars(b, total, isa<FloatType>(wide) ? convertFloat(b, x[0], wide) : x[0]);
                         });
  if (wide != element)
    sum = convertFloats(node, sum, element);
  return {sum, SmallVector<Label>(kept)};
}

Term Einsum::multiply(const Term &lhs, const Term &rhs, ArrayRef<Label> kept) {
  SmallVector<Label> both(lhs.labels), loops(kept);
  llvm::append_range(both, rhs.labels);
  SmallVector<Label> summed = getSummed(both, kept);
  llvm::append_range(loops, summed);
  Value product = sumProducts(node, getSizes(kept), getSizes(summed), {lhs.tensor, getMap(lhs, loops)},
                              {rhs.tensor, getMap(rhs, loops)});
  return {product, SmallVector<Label>(kept)};
}

LogicalResult Einsum::lower() {
  if (failed(parseEquation()) || failed(recordSizes()))
    return failure();
  Term result = terms.front();
  if (terms.size() == 1)
    result = sumAlone(result, output);
  for (size_t i = 1; i < terms.size(); ++i) {
    SmallVector<Label> later(output), kept;
    for (size_t k = i + 1; k < terms.size(); ++k)
      llvm::append_range(later, terms[k].labels);
    SmallVector<Label> both(result.labels);
    llvm::append_range(both, terms[i].labels);
    for (Label label : both)
      if (llvm::is_contained(later, label) && !llvm::is_contained(kept, label))
        kept.push_back(label);
    result = multiply(result, terms[i], i + 1 == terms.size() ? ArrayRef<Label>(output) : ArrayRef<Label>(kept));
  }
  node.set(0, result.tensor);
  return success();
}

static LogicalResult lowerEinsum(Node &node) { return Einsum(node).lower(); }

void addEinsumLowerings(LoweringTable &table) { table["onnx.Einsum"] = lowerEinsum; }

} // namespace hone::lowering
