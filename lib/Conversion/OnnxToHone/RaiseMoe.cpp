// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.moe from its sum over the chosen experts backwards. The router stays what it is.

#include "ExpertProducts.h"
#include "Moe.h"

using namespace mlir;

namespace hone::raising {

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
  std::pair<const ExpertMatrices *, Value *> matrices[] = {
      {&block.up, &block.layers.up}, {&block.gate, &block.layers.gate}, {&block.down, &block.layers.down}};
  for (auto [from, to] : matrices)
    if (*from && !(*to = weights.stack(onnx, *from)))
      return refuse("the matrices of its experts are no parameters of plain elements");
  Value ids = foldRows(onnx, sorted ? sorted->source : block.ids, count);
  replace(sum->getResult(0), createMoe(onnx, x, ids, foldRows(onnx, factors, count), block.layers));
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
    if (!block || getRank(factors) != 2 || getLastSize(factors) != 1)
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
    raised += raiseSum(op);
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
