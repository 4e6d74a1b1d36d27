// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.moe from its sum over the chosen experts backwards. The router stays what it is.

#include "Moe.h"

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-mlp";

namespace {

/// Rows `[R, N]`: row r of `x` times the matrix `weights[ids[r]]` of `[E, N, K]`, plus `bias[ids[r]]` if that is given.
struct ExpertProduct {
  Value x, weights, ids, bias;
};

/// A block of experts, what rows it is applied to, and the experts of those.
struct AppliedBlock {
  Value x, ids;
  ExpertBlock layers;
};

class MoeRaiser {
public:
  MoeRaiser(func::FuncOp function, ExpertWeights &weights) : function(function), weights(weights), analysis(function) {}
  unsigned run();

private:
  bool raiseSum(Operation *sum);
  std::optional<ExpertProduct> matchProduct(Value rows);
  Value matchGathered(Value value, Value &ids);
  std::optional<AppliedBlock> matchBlock(Value rows);
  bool matchHidden(Value hidden, AppliedBlock &block);
  bool matchGatedHidden(Operation *product, unsigned side, AppliedBlock &block);
  Value matchRepeatedRows(Value rows, int64_t times);
  void explain(Operation *topK);

  func::FuncOp function;
  ExpertWeights &weights;
  SymbolicAnalysis analysis;
};

} // namespace

/// What is left of `value` without operators that only add or drop dimensions of size 1 or make one dimension of several.
static Value skipReshapes(Value value) {
  while (Operation *op = skipCasts(value).getDefiningOp()) {
    if (!isOp(op, "Unsqueeze") && !isOp(op, "Squeeze") && !isOp(op, "Reshape") && !isOp(op, "Flatten"))
      break;
    value = op->getOperand(0);
  }
  return skipCasts(value);
}

/// `values` `[rows * count]`, with dimensions of size 1 or without, as `[rows, count]`.
static Value foldRows(OnnxBuilder &onnx, Value values, int64_t count) {
  return onnx.reshape(values, {-1, count}, {ShapedType::kDynamic, count});
}

//===----------------------------------------------------------------------===//
// Products with gathered matrices
//===----------------------------------------------------------------------===//

/// The weights whose entries along the first dimension are chosen by `ids` `[R]` or `[R, 1]`; null if there are none, or if
/// `ids` are already others.
Value MoeRaiser::matchGathered(Value value, Value &ids) {
  Operation *op = value.getDefiningOp();
  bool isGather = op && isOp(op, "Gather") && getInteger(op, "axis", 0) == 0 && getRank(op->getOperand(1)) == 1;
  bool isGatherNd = op && isOp(op, "GatherND") && getInteger(op, "batch_dims", 0) == 0 &&
                    getRank(op->getOperand(1)) == 2 && getLastSize(op->getOperand(1)) == 1;
  if ((!isGather && !isGatherNd) || !isWeight(op->getOperand(0)))
    return {};
  Value source = skipReshapes(op->getOperand(1));
  if (ids && ids != source)
    return {};
  ids = source;
  return op->getOperand(0);
}

/// Whether an operator drops the last dimension, of size 1.
static bool dropsLast(Operation *op) {
  int64_t rank = getRank(op->getOperand(0));
  return (isOp(op, "Squeeze") || isOp(op, "Reshape")) && rank == 3 && getRank(op->getResult(0)) == 2 &&
         getLastSize(op->getOperand(0)) == 1 &&
         getLastSize(op->getResult(0)) == getRankedType(op->getOperand(0)).getDimSize(1);
}

std::optional<ExpertProduct> MoeRaiser::matchProduct(Value rows) {
  ExpertProduct product;
  rows = skipCasts(rows);
  if (Operation *sum = getDefiningOp(rows, "Add")) {
    for (unsigned side : {0u, 1u})
      if (!product.bias && (product.bias = matchGathered(skipCasts(sum->getOperand(side)), product.ids)))
        rows = skipCasts(sum->getOperand(1 - side));
  }
  Operation *drop = rows.getDefiningOp();
  Operation *matmul = drop && dropsLast(drop) ? getDefiningOp(skipCasts(drop->getOperand(0)), "MatMul") : nullptr;
  if (!matmul)
    return std::nullopt;
  product.weights = matchGathered(skipCasts(matmul->getOperand(0)), product.ids);
  auto column = skipCasts(matmul->getOperand(1)).getDefiningOp();
  bool isColumn = column && (isOp(column, "Unsqueeze") || isOp(column, "Reshape")) &&
                  getRank(column->getOperand(0)) == 2 && getLastSize(column->getResult(0)) == 1 &&
                  getRank(column->getResult(0)) == 3 &&
                  getRankedType(column->getResult(0)).getDimSize(1) == getLastSize(column->getOperand(0));
  if (!product.weights || getRank(product.weights) != 3 || !isColumn)
    return std::nullopt;
  product.x = skipCasts(column->getOperand(0));
  return product;
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
/// One half of the columns of a product.
struct Half {
  Value rows;
  int64_t first = 0, count = 0;
};
} // namespace

/// `value` as columns of what it is cut from, or as all of its own.
static Half matchHalf(Value value) {
  value = skipCasts(value);
  int64_t count = getLastSize(value);
  Operation *op = value.getDefiningOp();
  if (!op || !isOp(op, "Split") || op->getNumResults() != 2 || ShapedType::isDynamic(count))
    return {value, 0, count};
  int64_t axis = getInteger(op, "axis", 0), rank = getRank(value), all = getLastSize(op->getOperand(0));
  if ((axis != -1 && axis != rank - 1) || all != 2 * count)
    return {value, 0, count};
  return {skipCasts(op->getOperand(0)), cast<OpResult>(value).getResultNumber() * count, count};
}

/// Gate and up are two products, or the halves of one with the gate first.
bool MoeRaiser::matchGatedHidden(Operation *product, unsigned side, AppliedBlock &block) {
  auto activation = matchActivation(product->getOperand(side), analysis);
  if (!activation || activation->bias)
    return false;
  Half gate = matchHalf(activation->source), up = matchHalf(product->getOperand(1 - side));
  auto gateRows = matchProduct(gate.rows), upRows = matchProduct(up.rows);
  bool isOne = gate.rows == up.rows;
  bool same = gateRows && upRows && gateRows->ids == upRows->ids && gateRows->x == upRows->x &&
              gate.count == up.count && gate.first == 0 && up.first == (isOne ? up.count : 0);
  if (!same || (!isOne && getRankedType(upRows->weights).getDimSize(1) != up.count))
    return false;
  block.x = upRows->x, block.ids = upRows->ids, block.layers.activation = activation->kind;
  block.layers.up = upRows->weights, block.layers.upBias = upRows->bias;
  if (isOne)
    block.layers.fused = FusedRows::Halves;
  else
    block.layers.gate = gateRows->weights, block.layers.gateBias = gateRows->bias;
  return true;
}

bool MoeRaiser::matchHidden(Value hidden, AppliedBlock &block) {
  hidden = skipCasts(hidden);
  if (Operation *product = getDefiningOp(hidden, "Mul"))
    for (unsigned side : {0u, 1u})
      if (matchGatedHidden(product, side, block))
        return true;
  auto activation = matchActivation(hidden, analysis);
  auto rows = activation && !activation->bias ? matchProduct(activation->source) : std::nullopt;
  if (!rows)
    return false;
  block.x = rows->x, block.ids = rows->ids, block.layers.activation = activation->kind;
  block.layers.up = rows->weights, block.layers.upBias = rows->bias;
  return true;
}

std::optional<AppliedBlock> MoeRaiser::matchBlock(Value rows) {
  auto down = matchProduct(rows);
  AppliedBlock block;
  if (!down || !matchHidden(down->x, block) || down->ids != block.ids ||
      getRankedType(down->weights).getDimSize(1) != getRankedType(block.layers.up).getDimSize(2))
    return std::nullopt;
  block.layers.down = down->weights, block.layers.downBias = down->bias;
  return block;
}

/// The sum over the second dimension of `[T, k, N]`, of weighted rows of experts.
bool MoeRaiser::raiseSum(Operation *sum) {
  Value terms = sum->getOperand(0);
  auto axes = getOperand(sum, 1) ? analysis.getConstants(sum->getOperand(1)) : std::nullopt;
  bool isSum = getRank(terms) == 3 && axes && axes->size() == 1 && (axes->front() == 1 || axes->front() == -2) &&
               getInteger(sum, "keepdims", 1) == 0;
  Operation *fold = isSum ? getDefiningOp(terms, "Reshape") : nullptr;
  Operation *weighted = fold ? getDefiningOp(skipCasts(fold->getOperand(0)), "Mul") : nullptr;
  int64_t count = isSum ? getRankedType(terms).getDimSize(1) : ShapedType::kDynamic;
  if (!weighted || ShapedType::isDynamic(count) || getRank(weighted->getResult(0)) != 2 ||
      getLastSize(terms) != getLastSize(weighted->getResult(0)))
    return false;
  OpBuilder b(sum);
  OnnxBuilder onnx(b, sum->getLoc());
  for (unsigned side : {0u, 1u}) {
    Value factors = weighted->getOperand(1 - side);
    auto block = matchBlock(weighted->getOperand(side));
    if (!block || getRank(factors) != 2 || getLastSize(factors) != 1)
      continue;
    Value x = matchRepeatedRows(block->x, count);
    if (!x) {
      remarkMissed(sum->getLoc(), kPass, "Moe") << "the rows of its experts are not each row repeated";
      return false;
    }
    ExpertBlock layers = block->layers;
    for (Value *layer : {&layers.up, &layers.gate, &layers.down})
      *layer = weights.stack(onnx, *layer);
    replace(sum->getResult(0),
            createMoe(onnx, x, foldRows(onnx, block->ids, count), foldRows(onnx, factors, count), layers));
    return true;
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
  SmallVector<Operation *> sums, operators, routers;
  function.walk([&](Operation *op) {
    if (isOp(op, "ReduceSum"))
      sums.push_back(op);
    else if (isOp(op, "MoE", kMicrosoft) || isOp(op, "QMoE", kMicrosoft))
      operators.push_back(op);
    else if (isOp(op, "TopK"))
      routers.push_back(op);
  });
  unsigned raised = 0;
  for (Operation *op : sums)
    raised += raiseSum(op);
  for (Operation *op : operators)
    raised += raiseMoeOperator(op, weights);
  for (Operation *op : routers)
    explain(op);
  eraseDead(function);
  return raised;
}

unsigned raiseMoes(func::FuncOp function, ExpertWeights &weights) { return MoeRaiser(function, weights).run(); }

} // namespace hone::raising
