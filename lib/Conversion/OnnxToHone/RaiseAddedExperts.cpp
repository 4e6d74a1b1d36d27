// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.moe from a sum to which one expert after the other adds. The rows that chose an expert are those where a mask of its number is
// not zero; its rows, their routing weights and where results are added are compared element by element.

#include "ExpertProducts.h"
#include "Moe.h"

#include "mlir/IR/Iterators.h"

using namespace mlir;

namespace hone::raising {

using analysis::Atom;
using analysis::Expression;
using analysis::ExpressionKind;

static constexpr llvm::StringLiteral kPass = "hone-raise-mlp";

namespace {

/// `before` with `values[i]` added to row `places[i]`.
struct Addition {
  Value before, places, values;
};

/// Where an expert was chosen: choice i is number `slot` of row `row`, both integers of i.
struct Chosen {
  Value ids;
  int64_t expert;
  Polynomial row, slot;
};

/// One expert, and what it is applied to.
struct AddedExpert {
  Value x, ids, weights;
  int64_t expert = 0;
  Operation *block = nullptr; // hone.gated_mlp or hone.mlp
};

class AddedExpertRaiser {
public:
  AddedExpertRaiser(ExpertWeights &weights, SymbolicAnalysis &analysis) : weights(weights), analysis(analysis) {}

  /// Whether `sum` was raised; `links` becomes what was added to on the way.
  bool raise(Operation *sum, llvm::SmallPtrSetImpl<Operation *> &links);

private:
  std::optional<Addition> matchAddition(Value sum);
  std::optional<AddedExpert> matchExpert(const Addition &addition);
  std::optional<Chosen> matchChosen(Value column);
  Value findSource(Value value, ArrayRef<Polynomial> at, ArrayRef<Polynomial> ofSource);
  Value joinBiases(OnnxBuilder &onnx, ArrayRef<Value> biases);
  bool create(Operation *sum, ArrayRef<AddedExpert> experts);

  ExpertWeights &weights;
  SymbolicAnalysis &analysis;
};

} // namespace

/// The operation that writes rows of its first operand, by places and values.
static bool isRowScatter(Operation *op, bool adds) {
  auto reduction = op ? op->getAttrOfType<StringAttr>("reduction") : StringAttr();
  return isOp(op, "ScatterElements") && getRank(op->getResult(0)) == 2 &&
         (getInteger(op, "axis", 0) == 0 || getInteger(op, "axis", 0) == -2) &&
         (adds ? reduction && reduction == "add" : !reduction || reduction == "none");
}

/// The places of one expert are different rows, so that writing them into zeros is adding them.
std::optional<Addition> AddedExpertRaiser::matchAddition(Value sum) {
  Operation *op = skipCasts(sum).getDefiningOp();
  if (isRowScatter(op, /*adds=*/true))
    return Addition{op->getOperand(0), op->getOperand(1), op->getOperand(2)};
  if (!op || !isOp(op, "Add"))
    return std::nullopt;
  for (unsigned side : {0u, 1u})
    if (Operation *scatter = op->getOperand(side).getDefiningOp();
        isRowScatter(scatter, /*adds=*/false) && analysis.getSplat(scatter->getOperand(0)) == 0.0)
      return Addition{op->getOperand(1 - side), scatter->getOperand(1), scatter->getOperand(2)};
  return std::nullopt;
}

/// Rows and columns that `value` has before they are repeated; those are as many, since both have a row for each choice.
static Value skipExpand(Value value) {
  Operation *expand = getDefiningOp(skipCasts(value), "Expand");
  return skipCasts(expand ? expand->getOperand(0) : value);
}

/// What makes `value` one of the coordinates that NonZero gives, `[n, 1]`, of a mask of one expert.
std::optional<Chosen> AddedExpertRaiser::matchChosen(Value column) {
  auto &e = analysis.expressions;
  auto shape = analysis.getShape(column);
  if (!shape || shape->size() != 2)
    return std::nullopt;
  Polynomial i = e.index(0, shape->front());
  auto definitionOf = [&](const Expression *element) -> const Expression * {
    auto atom = element && element->kind == ExpressionKind::Integer ? element->polynomial.getAtom() : std::nullopt;
    return atom ? e.info(*atom).definition : nullptr;
  };
  const Expression *place = definitionOf(analysis.getElement(column, {i, Polynomial(0)}));
  bool isCoordinate =
      place && place->kind == ExpressionKind::Load && place->indices.size() == 2 && place->indices[1] == i;
  auto axis = isCoordinate ? place->indices[0].getConstant() : std::nullopt;
  Operation *nonZero = axis ? getDefiningOp(place->source, "NonZero") : nullptr;
  auto sizes = nonZero ? analysis.getShape(nonZero->getOperand(0)) : std::nullopt;
  if (!sizes || sizes->size() != 2)
    return std::nullopt;
  Polynomial at[] = {e.index(0, (*sizes)[0]), e.index(1, (*sizes)[1])};
  const Expression *mask = e.toFlag(analysis.getElement(nonZero->getOperand(0), at));
  if (mask->kind != ExpressionKind::IsZero)
    return std::nullopt;
  // The mask is that an id is the expert's number: a term of one atom, and perhaps a constant.
  std::optional<Atom> id;
  int64_t constant = 0, sign = 1;
  for (const Polynomial::Term &term : mask->polynomial.getTerms()) {
    if (term.atoms.empty())
      constant = term.coefficient;
    else if (id || term.atoms.size() != 1 || std::abs(term.coefficient) != 1)
      return std::nullopt;
    else
      id = term.atoms.front(), sign = term.coefficient;
  }
  const Expression *load = id ? e.info(*id).definition : nullptr;
  Operation *topK = load && load->kind == ExpressionKind::Load ? getDefiningOp(load->source, "TopK") : nullptr;
  if (!topK || load->source != topK->getResult(1) || load->indices.size() != 2)
    return std::nullopt;
  int64_t choices = getInteger(topK, "axis", -1);
  bool isStraight = load->indices[0] == at[0] && load->indices[1] == at[1];
  bool isTurned = load->indices[0] == at[1] && load->indices[1] == at[0];
  int64_t rowAxis = isStraight ? 0 : 1;
  if ((choices != -1 && choices != 1) || (!isStraight && !isTurned) || *axis != rowAxis)
    return std::nullopt;
  auto coordinate = [&](int64_t which) {
    return e.toInteger(analysis.getElement(place->source, {Polynomial(which), i}));
  };
  return Chosen{load->source, -sign * constant, coordinate(rowAxis), coordinate(1 - rowAxis)};
}

/// The tensor whose element `ofSource` is element `at` of `value`, the first of those that `value` is gathered from; null if none is.
Value AddedExpertRaiser::findSource(Value value, ArrayRef<Polynomial> at, ArrayRef<Polynomial> ofSource) {
  const Expression *element = analysis.getElement(value, at);
  bool isGathered = false;
  Value source;
  while (Operation *op = skipCasts(value).getDefiningOp()) {
    bool gathers = isOp(op, "Gather") || isOp(op, "GatherND");
    if (!gathers && !isReshape(op))
      break;
    isGathered |= gathers;
    value = op->getOperand(0);
    if (isGathered && getRank(value) == 2 && analysis.getElement(value, ofSource) == element)
      source = value;
  }
  return source;
}

std::optional<AddedExpert> AddedExpertRaiser::matchExpert(const Addition &addition) {
  Value column = skipExpand(addition.places);
  Operation *weighted = getDefiningOp(skipExpand(addition.values), "Mul");
  auto chosen = weighted ? matchChosen(column) : std::nullopt;
  if (!chosen)
    return std::nullopt;
  AddedExpert added;
  for (unsigned side : {0u, 1u})
    if (Operation *block = skipCasts(weighted->getOperand(side)).getDefiningOp();
        isa_and_nonnull<GatedMlpOp, MlpOp>(block) && getRank(weighted->getOperand(1 - side)) == 2) {
      auto shape = analysis.getShape(block->getOperand(0)), factors = analysis.getShape(weighted->getOperand(1 - side));
      if (!shape || shape->size() != 2 || !factors || !factors->back().isConstant(1))
        continue;
      Polynomial i = analysis.expressions.index(0, analysis.getShape(column)->front());
      Polynomial c = analysis.expressions.index(1, shape->back());
      added.x = findSource(block->getOperand(0), {i, c}, {chosen->row, c});
      added.weights = findSource(weighted->getOperand(1 - side), {i, Polynomial(0)}, {chosen->row, chosen->slot});
      added.block = block;
    }
  added.ids = chosen->ids, added.expert = chosen->expert;
  return added.x && added.weights ? std::optional(added) : std::nullopt;
}

/// `[N]` of each expert as `[E, N]`; null where none has one.
Value AddedExpertRaiser::joinBiases(OnnxBuilder &onnx, ArrayRef<Value> biases) {
  if (!biases.front())
    return {};
  SmallVector<Value> rows;
  for (Value bias : biases)
    rows.push_back(onnx.unsqueeze(bias, {0}));
  auto row = getRankedType(rows.front());
  auto all = RankedTensorType::get({static_cast<int64_t>(rows.size()), row.getDimSize(1)}, row.getElementType());
  return onnx.create("Concat", rows, all, onnx.integerAttr("axis", 0));
}

static ExpertLayers getLayers(Operation *block) {
  if (auto gated = dyn_cast<GatedMlpOp>(block))
    return {gated.getUp(),       gated.getGate(),     gated.getDown(),      gated.getUpBias(),
            gated.getGateBias(), gated.getDownBias(), gated.getActivation()};
  auto mlp = cast<MlpOp>(block);
  return {mlp.getUp(), {}, mlp.getDown(), mlp.getUpBias(), {}, mlp.getDownBias(), mlp.getActivation()};
}

/// Whether two values are absent, or of one type.
static bool areAlike(Value a, Value b) { return a && b ? a.getType() == b.getType() : !a && !b; }

/// `experts` are in the order of their numbers.
bool AddedExpertRaiser::create(Operation *sum, ArrayRef<AddedExpert> experts) {
  ExpertLayers first = getLayers(experts.front().block);
  Value ExpertLayers::*fields[] = {&ExpertLayers::up,     &ExpertLayers::gate,     &ExpertLayers::down,
                                   &ExpertLayers::upBias, &ExpertLayers::gateBias, &ExpertLayers::downBias};
  SmallVector<Value> parts[std::size(fields)];
  for (const AddedExpert &expert : experts) {
    ExpertLayers layers = getLayers(expert.block);
    for (auto [field, values] : llvm::zip_equal(fields, parts)) {
      if (!areAlike(first.*field, layers.*field) || layers.activation != first.activation)
        return false;
      values.push_back(layers.*field);
    }
  }
  OpBuilder b(sum);
  OnnxBuilder onnx(b, sum->getLoc());
  ExpertLayers layers;
  layers.activation = first.activation;
  Value *matrices[] = {&layers.up, &layers.gate, &layers.down};
  for (auto [index, to] : llvm::enumerate(matrices))
    if (first.*fields[index] && !(*to = weights.stack(onnx, ExpertMatrices{{}, false, parts[index]})))
      return false;
  layers.upBias = joinBiases(onnx, parts[3]), layers.gateBias = joinBiases(onnx, parts[4]);
  layers.downBias = joinBiases(onnx, parts[5]);
  const AddedExpert &any = experts.front();
  replace(sum->getResult(0), createMoe(onnx, any.x, any.ids, any.weights, layers));
  return true;
}

bool AddedExpertRaiser::raise(Operation *sum, llvm::SmallPtrSetImpl<Operation *> &links) {
  SmallVector<AddedExpert> experts;
  Value before = sum->getResult(0);
  while (auto addition = matchAddition(before)) {
    auto expert = matchExpert(*addition);
    bool isAlike = expert && (experts.empty() || (expert->x == experts[0].x && expert->ids == experts[0].ids &&
                                                  expert->weights == experts[0].weights));
    if (!isAlike)
      break;
    links.insert(skipCasts(before).getDefiningOp());
    experts.push_back(*expert);
    before = addition->before;
  }
  if (experts.empty())
    return false;
  auto refuse = [&](StringRef reason) {
    remarkMissed(sum->getLoc(), kPass, "Moe") << reason;
    return false;
  };
  llvm::sort(experts, [](const AddedExpert &a, const AddedExpert &b) { return a.expert < b.expert; });
  auto type = getRankedType(experts[0].ids.getDefiningOp()->getOperand(0)); // what the router chooses from
  for (auto [number, expert] : llvm::enumerate(experts))
    if (expert.expert != static_cast<int64_t>(number) || !type ||
        type.getShape().back() != static_cast<int64_t>(experts.size()))
      return refuse("its experts are not all that are chosen, each once");
  auto shape = analysis.getShape(before), rows = analysis.getShape(experts[0].x),
       ids = analysis.getShape(experts[0].ids);
  if (analysis.getSplat(before) != 0.0 || !shape || shape != rows)
    return refuse("the sum of its experts does not begin with zeros");
  if (!ids || ids->front() != rows->front() || analysis.getShape(experts[0].weights) != ids)
    return refuse("its rows are not as many as the router chose experts for");
  return create(sum, experts) || refuse("its experts are not blocks of one form, with parameters of plain elements");
}

unsigned raiseAddedExperts(func::FuncOp function, ExpertWeights &weights, SymbolicAnalysis &analysis) {
  SmallVector<Operation *> sums;
  function.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (isOp(op, "Add") || isRowScatter(op, /*adds=*/true))
      sums.push_back(op);
  });
  AddedExpertRaiser raiser(weights, analysis);
  llvm::SmallPtrSet<Operation *, 16> links;
  unsigned raised = 0;
  for (Operation *sum : sums)
    if (!links.contains(sum))
      raised += raiser.raise(sum, links);
  return raised;
}

} // namespace hone::raising
