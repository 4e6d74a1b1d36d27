// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.moe from its sum over the chosen experts backwards. The router stays what it is.

#include "ExpertProducts.h"
#include "Moe.h"

using namespace mlir;

namespace hone::raising {

using analysis::Expression;

static constexpr llvm::StringLiteral kPass = "hone-raise-mlp";

namespace {

/// A block of experts, what rows it is applied to, and the experts of those.
struct AppliedBlock {
  Value x, ids;
  ExpertMatrices up, gate, down; // gate is none in a plain block
  ExpertLayers layers;           // all but the matrices
};

class MoeRaiser {
public:
  MoeRaiser(func::FuncOp function, ExpertWeights &weights) : function(function), weights(weights), analysis(function) {}
  unsigned run();

private:
  bool raiseSum(Operation *sum);
  bool raiseSumOfAll(Operation *sum);
  Value findRepeated(Value rows);
  bool isRouting(Operation *scatter, int64_t experts);
  bool create(Operation *sum, AppliedBlock &block, Value x, Value ids, Value factors, Value shape);
  bool raise(Operation *sum, AppliedBlock &block, Value factors, const std::optional<SortedIds> &sorted, int64_t count);
  std::optional<AppliedBlock> matchBlock(Value rows);
  bool matchHidden(Value hidden, AppliedBlock &block);
  bool matchGated(const MatchedGate &hidden, AppliedBlock &block);
  Value matchRepeatedRows(Value rows, int64_t times);
  void explain(Operation *topK);

  func::FuncOp function;
  ExpertWeights &weights;
  SymbolicAnalysis analysis;
};

} // namespace

/// `values` `[rows * count]`, with dimensions of size 1 or without, as `[rows, count]`.
static Value foldRows(OnnxBuilder &onnx, Value values, int64_t count) {
  return onnx.reshape(values, {-1, count}, {ShapedType::kDynamic, count});
}

/// `[R, K]` from which `rows` `[R * times, K]` repeat each row; null where they do not.
Value MoeRaiser::matchRepeatedRows(Value rows, int64_t times) {
  Operation *flat = getDefiningOp(skipCasts(rows), "Reshape");
  Operation *repeat = flat ? getDefiningOp(flat->getOperand(0), "Expand") : nullptr;
  Operation *insert = repeat ? getDefiningOp(repeat->getOperand(0), "Unsqueeze") : nullptr;
  if (!insert || getRank(insert->getOperand(0)) != 2)
    return {};
  Value x = insert->getOperand(0);
  auto axes = analysis.getConstants(insert->getOperand(1));
  auto shape = analysis.getShape(x), repeated = analysis.getShape(repeat->getResult(0)),
       flattened = analysis.getShape(flat->getResult(0));
  bool fits = axes && axes->size() == 1 && (axes->front() == 1 || axes->front() == -2) && shape && repeated &&
              flattened && repeated->size() == 3 && flattened->size() == 2 && (*repeated)[1].isConstant(times) &&
              (*repeated)[2] == (*shape)[1] && (*flattened)[1] == (*shape)[1];
  return fits ? x : Value();
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

namespace {
/// Columns first, first + step, … of a product.
struct Columns {
  Value rows;
  int64_t first = 0, step = 1, count = 0;
};
} // namespace

/// Every other column, where `op` takes those.
static std::optional<Columns> matchAlternate(Operation *op, SymbolicAnalysis &analysis) {
  if (!isOp(op, "Slice") || !getOperand(op, 3) || !getOperand(op, 4))
    return std::nullopt;
  auto starts = analysis.getConstants(op->getOperand(1)), axes = analysis.getConstants(op->getOperand(3)),
       steps = analysis.getConstants(op->getOperand(4));
  int64_t rank = getRank(op->getResult(0)), count = getLastSize(op->getResult(0)), all = getLastSize(op->getOperand(0));
  bool fits = starts && axes && steps && starts->size() == 1 && axes->size() == 1 && steps->size() == 1 &&
              (axes->front() == -1 || axes->front() == rank - 1) && steps->front() == 2 &&
              (starts->front() == 0 || starts->front() == 1) && !ShapedType::isDynamic(count) && all == 2 * count;
  if (!fits)
    return std::nullopt;
  return Columns{skipCasts(op->getOperand(0)), starts->front(), 2, count};
}

/// `value` as columns of what it is cut from, or as all of its own.
static Columns matchColumns(Value value, SymbolicAnalysis &analysis) {
  value = skipCasts(value);
  int64_t count = getLastSize(value);
  Operation *op = value.getDefiningOp();
  if (op)
    if (auto alternate = matchAlternate(op, analysis))
      return *alternate;
  if (!op || !isOp(op, "Split") || op->getNumResults() != 2 || ShapedType::isDynamic(count))
    return {value, 0, 1, count};
  int64_t axis = getInteger(op, "axis", 0), rank = getRank(value), all = getLastSize(op->getOperand(0));
  if ((axis != -1 && axis != rank - 1) || all != 2 * count)
    return {value, 0, 1, count};
  return {skipCasts(op->getOperand(0)), cast<OpResult>(value).getResultNumber() * count, 1, count};
}

/// Gate and up are two products, or halves or alternate columns of one with the gate first.
bool MoeRaiser::matchGated(const MatchedGate &hidden, AppliedBlock &block) {
  Columns gate = matchColumns(hidden.gate, analysis), up = matchColumns(hidden.up, analysis);
  auto gateRows = matchExpertProduct(gate.rows, analysis), upRows = matchExpertProduct(up.rows, analysis);
  bool isOne = gate.rows == up.rows, isAlternate = isOne && gate.step == 2;
  bool same = gateRows && upRows && gateRows->ids == upRows->ids && gateRows->x == upRows->x &&
              gate.count == up.count && gate.step == up.step && gate.first == 0 &&
              up.first == (isAlternate ? 1
                           : isOne     ? up.count
                                       : 0);
  if (!same || (!isOne && (gate.step != 1 || upRows->weights.getOutputs() != up.count)))
    return false;
  block.x = upRows->x, block.ids = upRows->ids, block.up = upRows->weights;
  block.layers.activation = hidden.kind, block.layers.swiglu = hidden.swiglu, block.layers.upBias = upRows->bias;
  if (isOne)
    block.layers.fused = isAlternate ? FusedRows::Alternate : FusedRows::Halves;
  else
    block.gate = gateRows->weights, block.layers.gateBias = gateRows->bias;
  return true;
}

bool MoeRaiser::matchHidden(Value hidden, AppliedBlock &block) {
  for (const MatchedGate &gated : matchGates(hidden, analysis))
    if (matchGated(gated, block))
      return true;
  auto activation = matchActivation(hidden, analysis);
  auto rows = activation && !activation->bias ? matchExpertProduct(activation->source, analysis) : std::nullopt;
  if (!rows)
    return false;
  block.x = rows->x, block.ids = rows->ids, block.up = rows->weights;
  block.layers.activation = activation->kind, block.layers.upBias = rows->bias;
  return true;
}

std::optional<AppliedBlock> MoeRaiser::matchBlock(Value rows) {
  auto down = matchExpertProduct(rows, analysis);
  AppliedBlock block;
  if (!down || !matchHidden(skipCasts(down->x), block) || down->ids != block.ids ||
      down->weights.getOutputs() != block.up.getInputs() || down->weights.getExpertCount() != block.up.getExpertCount())
    return std::nullopt;
  block.down = down->weights, block.layers.downBias = down->bias;
  return block;
}

//===----------------------------------------------------------------------===//
// Sums over the chosen experts
//===----------------------------------------------------------------------===//

bool MoeRaiser::raise(Operation *sum, AppliedBlock &block, Value factors, const std::optional<SortedIds> &sorted,
                      int64_t count) {
  auto refuse = [&](StringRef reason) {
    remarkMissed(sum->getLoc(), kPass, "Moe") << reason;
    return false;
  };
  Value x = sorted ? matchSortedRows(block.x, sorted->order, count, analysis) : matchRepeatedRows(block.x, count);
  if (!x)
    return refuse(sorted ? "the rows of its experts are not in the order that they were sorted in"
                         : "the rows of its experts are not each row repeated");
  if (sorted && !(factors = matchGatheredBy(skipReshapes(factors), sorted->order)))
    return refuse("the routing weights are not in the order that rows were sorted in");
  OpBuilder b(sum);
  OnnxBuilder onnx(b, sum->getLoc());
  Value ids = foldRows(onnx, sorted ? sorted->source : block.ids, count);
  return create(sum, block, x, ids, foldRows(onnx, factors, count), {});
}

/// Puts hone.moe in place of `sum`, in that `shape` unless it is null.
bool MoeRaiser::create(Operation *sum, AppliedBlock &block, Value x, Value ids, Value factors, Value shape) {
  OpBuilder b(sum);
  OnnxBuilder onnx(b, sum->getLoc());
  std::pair<const ExpertMatrices *, Value *> matrices[] = {
      {&block.up, &block.layers.up}, {&block.gate, &block.layers.gate}, {&block.down, &block.layers.down}};
  for (auto [from, to] : matrices)
    if (*from && !(*to = weights.stack(onnx, *from))) {
      remarkMissed(sum->getLoc(), kPass, "Moe") << "the matrices of its experts are no parameters of plain elements";
      return false;
    }
  for (Value *bias : {&block.layers.upBias, &block.layers.gateBias, &block.layers.downBias})
    if (*bias && getRank(*bias) == 3) {
      int64_t experts = getRankedType(*bias).getDimSize(0), outputs = getLastSize(*bias);
      *bias = onnx.reshape(*bias, {experts, outputs}, {experts, outputs});
    }
  Value result = createMoe(onnx, x, ids, factors, block.layers);
  if (shape)
    result = onnx.create("Reshape", {result, shape}, getRankedType(sum->getResult(0)));
  replace(sum->getResult(0), result);
  return true;
}

/// The sum over the second dimension of `[T, k, N]`, of weighted rows of experts.
bool MoeRaiser::raiseSum(Operation *sum) {
  Value terms = sum->getOperand(0);
  auto axes = getOperand(sum, 1) ? analysis.getConstants(sum->getOperand(1)) : std::nullopt;
  bool isSum = getRank(terms) == 3 && axes && axes->size() == 1 && (axes->front() == 1 || axes->front() == -2) &&
               getInteger(sum, "keepdims", 1) == 0;
  Operation *fold = isSum ? getDefiningOp(terms, "Reshape") : nullptr;
  int64_t count = isSum ? getRankedType(terms).getDimSize(1) : ShapedType::kDynamic;
  if (!fold || ShapedType::isDynamic(count))
    return false;
  Value rows = skipCasts(fold->getOperand(0));
  auto gather = matchGather(rows);
  Operation *weighted = getDefiningOp(gather ? skipCasts(gather->first) : rows, "Mul");
  if (!weighted || getRank(weighted->getResult(0)) != 2 || getLastSize(terms) != getLastSize(weighted->getResult(0)))
    return false;
  for (unsigned side : {0u, 1u}) {
    Value factors = weighted->getOperand(1 - side);
    auto block = matchBlock(weighted->getOperand(side));
    if (!block || !block->ids || getRank(factors) != 2 || getLastSize(factors) != 1)
      continue;
    auto sorted = matchSortedIds(block->ids, analysis);
    if (gather.has_value() != sorted.has_value() || (sorted && !matchSortedBack(rows, sorted->order, analysis))) {
      remarkMissed(sum->getLoc(), kPass, "Moe") << "the results of its experts are not in the order of its rows";
      return false;
    }
    return raise(sum, *block, factors, sorted, count);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Sums over all experts
//===----------------------------------------------------------------------===//

/// `[R, K]` that `rows` `[E, R, K]` have for each expert; null where there is none.
Value MoeRaiser::findRepeated(Value rows) {
  auto shape = analysis.getShape(rows);
  if (!shape || shape->size() != 3)
    return {};
  SmallVector<Polynomial> at = analysis.getIndices(*shape);
  const Expression *element = analysis.getElement(rows, at);
  for (Operation *op = rows.getDefiningOp(); op; op = rows.getDefiningOp()) {
    if (!isOp(op, "Reshape") && !isOp(op, "Tile") && !isOp(op, "Expand") && !isOp(op, "Unsqueeze"))
      return {};
    rows = skipCasts(op->getOperand(0));
    auto source = analysis.getShape(rows);
    if (source && source->size() == 2 && source->front() == (*shape)[1] &&
        analysis.getElement(rows, {at[1], at[2]}) == element)
      return rows;
  }
  return {};
}

/// The sum over the first dimension of `[E, …, N]`, of the results that each expert has for all rows, times weights that are 0 but where
/// a row chose the expert.
bool MoeRaiser::raiseSumOfAll(Operation *sum) {
  Value terms = sum->getOperand(0);
  auto axes = getOperand(sum, 1) ? analysis.getConstants(sum->getOperand(1)) : std::nullopt;
  bool isSum = axes && axes->size() == 1 && axes->front() == 0 && getInteger(sum, "keepdims", 1) == 0;
  Operation *weighted = isSum ? getDefiningOp(skipCasts(terms), "Mul") : nullptr;
  auto shape = weighted ? analysis.getShape(weighted->getResult(0)) : std::nullopt;
  if (!shape || shape->size() < 3)
    return false;
  for (unsigned side : {0u, 1u}) {
    Value factors = weighted->getOperand(1 - side), blocks = skipCasts(weighted->getOperand(side));
    Operation *unfold = shape->size() > 3 ? getDefiningOp(blocks, "Reshape") : nullptr;
    Value rows = unfold ? skipCasts(unfold->getOperand(0)) : blocks;
    auto block = getRank(rows) == 3 ? matchBlock(rows) : std::nullopt;
    auto from = analysis.getShape(rows);
    if (!block || block->ids || !from || analysis.getShape(blocks) != shape)
      continue;
    SmallVector<Polynomial> at = analysis.getIndices(*shape);
    auto place = analysis.mapReshape(*from, *shape, at);
    const Expression *factor = analysis.getBroadcastElement(factors, *shape, at);
    // The weight of row and expert, which a router has written into zeros.
    Operation *scatter =
        factor && factor->kind == analysis::ExpressionKind::Load ? factor->source.getDefiningOp() : nullptr;
    bool fits = place && scatter && isOp(scatter, "ScatterElements") && factor->indices.size() == 2 &&
                factor->indices[0] == (*place)[1] && factor->indices[1] == (*place)[0];
    Value x = fits ? findRepeated(block->x) : Value();
    if (!x || !isRouting(scatter, block->up.getExpertCount())) {
      remarkMissed(sum->getLoc(), kPass, "Moe") << "all rows go through all experts, and their weights are no router's";
      return false;
    }
    OpBuilder b(sum);
    OnnxBuilder onnx(b, sum->getLoc());
    Value target;
    if (unfold) {
      auto wanted = analysis.getContents(unfold->getOperand(1));
      int64_t rank = static_cast<int64_t>(shape->size());
      if (!wanted || !wanted->front().isConstant(block->up.getExpertCount()))
        return false;
      auto type = RankedTensorType::get({rank - 1}, b.getI64Type());
      target = onnx.create(
          "Slice", {unfold->getOperand(1), onnx.integers(1), onnx.integers(rank), onnx.integers(int64_t(0))}, type);
    }
    return create(sum, *block, x, scatter->getOperand(1), scatter->getOperand(2), target);
  }
  return false;
}

/// Whether `scatter` writes weights `[R, k]` into zeros `[R, experts]`, each of a row at another expert.
bool MoeRaiser::isRouting(Operation *scatter, int64_t experts) {
  Operation *topK = getDefiningOp(scatter->getOperand(1), "TopK");
  auto reduction = scatter->getAttrOfType<StringAttr>("reduction");
  int64_t axis = getInteger(scatter, "axis", 0), choices = topK ? getInteger(topK, "axis", -1) : 0;
  auto all = analysis.getShape(scatter->getResult(0)), ids = analysis.getShape(scatter->getOperand(1));
  return topK && scatter->getOperand(1) == topK->getResult(1) && (choices == -1 || choices == 1) &&
         (axis == -1 || axis == 1) && (!reduction || reduction == "none") && all && ids && all->size() == 2 &&
         ids->size() == 2 && all->front() == ids->front() && all->back().isConstant(experts) &&
         analysis.getSplat(scatter->getOperand(0)) == 0.0;
}

//===----------------------------------------------------------------------===//
// The pass's part
//===----------------------------------------------------------------------===//

/// Says why experts that a router chooses were not raised.
void MoeRaiser::explain(Operation *topK) {
  for (Operation *user : topK->getResult(1).getUsers()) {
    if (isOp(user, "OneHot"))
      remarkMissed(topK->getLoc(), kPass, "Moe") << "each expert gathers its own rows, and adds its results to a sum";
    else if (isOp(user, "Reshape") &&
             llvm::any_of(user->getResult(0).getUsers(), [](Operation *next) { return isOp(next, "TopK"); }))
      remarkMissed(topK->getLoc(), kPass, "Moe")
          << "rows are sorted by expert, and each expert's are multiplied at once";
  }
}

unsigned MoeRaiser::run() {
  SmallVector<Operation *> sums, operators;
  function.walk([&](Operation *op) {
    if (isOp(op, "ReduceSum"))
      sums.push_back(op);
    else if (isOp(op, "MoE", kMicrosoft) || isOp(op, "QMoE", kMicrosoft))
      operators.push_back(op);
  });
  unsigned raised = raiseAddedExperts(function, weights, analysis);
  for (Operation *op : sums)
    raised += raiseSum(op) || raiseSumOfAll(op);
  for (Operation *op : operators)
    raised += raiseMoeOperator(op, weights);
  eraseDead(function);
  function.walk([&](Operation *op) {
    if (isOp(op, "TopK"))
      explain(op);
  });
  return raised;
}

unsigned raiseMoes(func::FuncOp function, ExpertWeights &weights) { return MoeRaiser(function, weights).run(); }

} // namespace hone::raising
