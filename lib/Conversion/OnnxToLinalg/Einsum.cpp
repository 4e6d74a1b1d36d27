// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Einsum: operands are multiplied from left to right, and a label is summed away with the last operand that has it.

#include "Loops.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace hone::lowering {

namespace {

/// A label of the equation: a letter, or kEllipsis + how many dimensions of the ellipsis follow it.
using Label = int;
constexpr Label kEllipsis = 256;

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
  FailureOr<SmallVector<Label>> parse(StringRef text, std::optional<int64_t> rank);
  LogicalResult parseEquation();
  LogicalResult recordSizes();
  void chooseOutput();
  AffineMap getMap(const Term &term, ArrayRef<Label> loops);
  Term sumAlone(const Term &term, ArrayRef<Label> kept);
  Term multiply(const Term &lhs, const Term &rhs, ArrayRef<Label> kept);
  SmallVector<Size> getSizes(ArrayRef<Label> labels);

  Node &node;
  SmallVector<Term> terms;
  std::optional<SmallVector<Label>> output;
  llvm::MapVector<Label, Size> sizes;
  int64_t ellipsisRank = 0;
};

} // namespace

/// The labels of one term; `rank` says how many dimensions an ellipsis stands for (in the output: as many as anywhere).
FailureOr<SmallVector<Label>> Einsum::parse(StringRef text, std::optional<int64_t> rank) {
  std::string packed;
  for (char c : text)
    if (c != ' ')
      packed += c;
  StringRef rest = packed;
  size_t dots = rest.find("...");
  int64_t letters = dots == StringRef::npos ? rest.size() : rest.size() - 3;
  int64_t hidden = dots == StringRef::npos ? 0 : rank ? *rank - letters : ellipsisRank;
  if (hidden < 0 || (rank && letters + hidden != *rank)) {
    node.fail() << "expected the term '" << text << "' of the equation to have " << *rank << " labels, but got "
                << letters;
    return failure();
  }
  ellipsisRank = std::max(ellipsisRank, hidden);
  SmallVector<Label> labels;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (i == dots) { // the last dimension of every ellipsis has the same label
      for (int64_t d = hidden; d > 0; --d)
        labels.push_back(kEllipsis + d);
      i += 2;
    } else if (llvm::isAlpha(rest[i])) {
      labels.push_back(rest[i]);
    } else {
      node.fail() << "expected the equation to have letters, commas, '...' and '->', but got '" << rest.substr(i, 1)
                  << "'";
      return failure();
    }
  }
  return labels;
}

LogicalResult Einsum::parseEquation() {
  StringRef equation = node.string("equation");
  auto [inputs, result] = equation.split("->");
  SmallVector<StringRef> texts;
  inputs.split(texts, ',');
  if (texts.size() != node.inputs())
    return node.fail() << "expected the equation to have " << node.inputs() << " terms, but got " << texts.size();
  for (auto [i, text] : llvm::enumerate(texts)) {
    auto labels = parse(text, node.rank(i));
    if (failed(labels))
      return failure();
    terms.push_back({node.in(i), *labels});
  }
  if (equation.contains("->")) {
    auto labels = parse(result, std::nullopt);
    if (failed(labels))
      return failure();
    output = *labels;
  }
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
  if (output)
    for (Label label : *output)
      if (!sizes.contains(label) || llvm::count(*output, label) != 1)
        return node.fail() << "expected each label of the result to be in a term, and once in the result";
  return success();
}

/// Without "->": the ellipsis, then the labels that occur once, in alphabetic order.
void Einsum::chooseOutput() {
  if (output)
    return;
  llvm::MapVector<Label, unsigned> uses;
  for (const Term &term : terms)
    for (Label label : term.labels)
      ++uses[label];
  output.emplace();
  for (auto [label, count] : uses)
    if (count == 1 || label >= kEllipsis)
      output->push_back(label);
  llvm::sort(*output, [](Label a, Label b) {
    bool hiddenA = a >= kEllipsis, hiddenB = b >= kEllipsis;
    return hiddenA != hiddenB ? hiddenA : hiddenA ? a > b : a < b;
  });
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
  chooseOutput();
  Term result = terms.front();
  if (terms.size() == 1)
    result = sumAlone(result, *output);
  for (size_t i = 1; i < terms.size(); ++i) {
    SmallVector<Label> later(*output), kept;
    for (size_t k = i + 1; k < terms.size(); ++k)
      llvm::append_range(later, terms[k].labels);
    SmallVector<Label> both(result.labels);
    llvm::append_range(both, terms[i].labels);
    for (Label label : both)
      if (llvm::is_contained(later, label) && !llvm::is_contained(kept, label))
        kept.push_back(label);
    result = multiply(result, terms[i], i + 1 == terms.size() ? ArrayRef<Label>(*output) : ArrayRef<Label>(kept));
  }
  node.set(0, result.tensor);
  return success();
}

static LogicalResult lowerEinsum(Node &node) { return Einsum(node).lower(); }

void addEinsumLowerings(LoweringTable &table) { table["onnx.Einsum"] = lowerEinsum; }

} // namespace hone::lowering
