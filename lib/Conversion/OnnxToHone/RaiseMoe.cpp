// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.moe from its sum over the chosen experts backwards, and from com.microsoft.MoE. The router stays what it is.

#include "Activation.h"
#include "Moe.h"

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-mlp";

namespace {

/// Rows `[R, N]`: row r of `x` times the matrix `weights[ids[r]]` of `[E, N, K]`, plus `bias[ids[r]]` if that is given.
struct ExpertProduct {
  Value x, weights, ids, bias;
};

/// The layers of the experts' blocks.
struct ExpertBlock {
  Value x, ids;
  Value up, gate, down;             // gate is null in a plain block
  Value upBias, gateBias, downBias; // each may be null
  Activation activation;
};

class MoeRaiser {
public:
  explicit MoeRaiser(func::FuncOp function) : function(function), analysis(function) {}
  unsigned run();

private:
  bool raiseSum(Operation *sum);
  bool raiseOperator(Operation *op);
  std::optional<ExpertProduct> matchProduct(Value rows);
  Value matchGathered(Value value, Value &ids);
  std::optional<ExpertBlock> matchBlock(Value rows, OpBuilder &b);
  bool matchHidden(Value hidden, ExpertBlock &block, OpBuilder &b);
  bool matchGatedHidden(Operation *product, unsigned side, ExpertBlock &block, OpBuilder &b);
  Value matchRepeatedRows(Value rows, int64_t times);
  void explain(Operation *topK);

  func::FuncOp function;
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

/// Rows of each expert's matrix or bias.
static Value takeRows(OnnxBuilder &onnx, Value weights, const Half &half) {
  if (!weights || getRankedType(weights).getDimSize(1) == half.count)
    return weights;
  return onnx.slice(weights, 1, half.first, half.first + half.count);
}

bool MoeRaiser::matchGatedHidden(Operation *product, unsigned side, ExpertBlock &block, OpBuilder &b) {
  auto activation = matchActivation(product->getOperand(side), analysis);
  if (!activation || activation->bias)
    return false;
  Half gate = matchHalf(activation->source), up = matchHalf(product->getOperand(1 - side));
  auto gateRows = matchProduct(gate.rows), upRows = matchProduct(up.rows);
  bool same = gateRows && upRows && gateRows->ids == upRows->ids && gateRows->x == upRows->x &&
              gate.count == up.count && (gate.rows != up.rows || gate.first != up.first);
  if (!same)
    return false;
  OnnxBuilder onnx(b, product->getLoc());
  block.x = upRows->x, block.ids = upRows->ids, block.activation = activation->kind;
  block.gate = takeRows(onnx, gateRows->weights, gate), block.gateBias = takeRows(onnx, gateRows->bias, gate);
  block.up = takeRows(onnx, upRows->weights, up), block.upBias = takeRows(onnx, upRows->bias, up);
  return true;
}

bool MoeRaiser::matchHidden(Value hidden, ExpertBlock &block, OpBuilder &b) {
  hidden = skipCasts(hidden);
  if (Operation *product = getDefiningOp(hidden, "Mul"))
    for (unsigned side : {0u, 1u})
      if (matchGatedHidden(product, side, block, b))
        return true;
  auto activation = matchActivation(hidden, analysis);
  auto rows = activation && !activation->bias ? matchProduct(activation->source) : std::nullopt;
  if (!rows)
    return false;
  block.x = rows->x, block.ids = rows->ids, block.activation = activation->kind;
  block.up = rows->weights, block.upBias = rows->bias;
  return true;
}

std::optional<ExpertBlock> MoeRaiser::matchBlock(Value rows, OpBuilder &b) {
  auto down = matchProduct(rows);
  ExpertBlock block;
  if (!down || !matchHidden(down->x, block, b) || down->ids != block.ids)
    return std::nullopt;
  block.down = down->weights, block.downBias = down->bias;
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
    Value weights = weighted->getOperand(1 - side);
    auto block = matchBlock(weighted->getOperand(side), b);
    if (!block || getRank(weights) != 2 || getLastSize(weights) != 1)
      continue;
    Value x = matchRepeatedRows(block->x, count);
    if (!x) {
      remarkMissed(sum->getLoc(), kPass, "Moe") << "the rows of its experts are not each row repeated";
      return false;
    }
    auto type = cast<RankedTensorType>(sum->getResult(0).getType());
    Value moe = MoeOp::create(b, sum->getLoc(), type, x, foldRows(onnx, block->ids, count),
                              foldRows(onnx, weights, count), block->up, block->down, block->gate, block->upBias,
                              block->downBias, block->gateBias, block->activation);
    remarkRaised(sum->getLoc(), kPass, "Moe")
        << std::to_string(count) << " of " << std::to_string(getRankedType(block->up).getDimSize(0))
        << " experts a row, " << stringifyActivation(block->activation);
    replace(sum->getResult(0), moe);
    return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// com.microsoft.MoE
//===----------------------------------------------------------------------===//

namespace {
enum Operands { kInput, kRouter, kFirst, kFirstBias, kSecond, kSecondBias, kThird, kThirdBias };
} // namespace

/// Every second row of `[E, 2 I, …]`, or one half of them.
static Value takeFused(OnnxBuilder &onnx, Value weights, bool isInterleaved, bool isSecond) {
  if (!weights)
    return {};
  auto type = getRankedType(weights);
  int64_t all = type.getDimSize(1);
  if (!isInterleaved)
    return onnx.slice(weights, 1, isSecond ? all / 2 : 0, isSecond ? all : all / 2);
  SmallVector<int64_t> shape(type.getShape());
  shape[1] = all / 2;
  return onnx.create(
      "Slice", {weights, onnx.integers(int64_t(isSecond)), onnx.integers(all), onnx.integers(1), onnx.integers(2)},
      RankedTensorType::get(shape, type.getElementType()));
}

/// Layers of the operator's experts: fc1 is the gate where there is an fc3; a fused SwiGLU has both in fc1. Nothing with
/// `reason` where the block is not one of hone.moe.
static std::optional<ExpertBlock> readExperts(Operation *op, OnnxBuilder &onnx, StringRef &reason) {
  auto name = op->getAttrOfType<StringAttr>("activation_type");
  auto activation = llvm::StringSwitch<std::optional<Activation>>(name ? name.getValue() : "relu")
                        .Case("relu", Activation::Relu)
                        .Case("gelu", Activation::Gelu)
                        .Case("silu", Activation::Silu)
                        .Case("swiglu", Activation::Silu)
                        .Default(std::nullopt);
  int64_t fusion = name && name == "swiglu" ? getInteger(op, "swiglu_fusion", 0) : 0;
  Value first = op->getOperand(kFirst), firstBias = getOperand(op, kFirstBias), third = getOperand(op, kThird);
  reason = "its activation is none that hone.moe has";
  if (!activation || (fusion != 0 && (getReal(op, "activation_alpha", 1) != 1 ||
                                      getReal(op, "activation_beta", 0) != 0 || op->hasAttr("swiglu_limit"))))
    return std::nullopt;
  reason = "it chooses experts by a sparse mixer";
  if (getInteger(op, "use_sparse_mixer", 0) != 0)
    return std::nullopt;
  reason = "the sizes of its experts are not known";
  if (getRank(first) != 3 || !getRankedType(first).hasStaticShape() || getRank(op->getOperand(kRouter)) != 2)
    return std::nullopt;
  ExpertBlock block;
  block.activation = *activation;
  block.down = op->getOperand(kSecond), block.downBias = getOperand(op, kSecondBias);
  if (fusion == 0) {
    block.up = third ? third : first, block.upBias = third ? getOperand(op, kThirdBias) : firstBias;
    block.gate = third ? first : Value(), block.gateBias = third ? firstBias : Value();
    return block;
  }
  bool isInterleaved = fusion == 1;
  block.up = takeFused(onnx, first, isInterleaved, true),
  block.upBias = takeFused(onnx, firstBias, isInterleaved, true);
  block.gate = takeFused(onnx, first, isInterleaved, false),
  block.gateBias = takeFused(onnx, firstBias, isInterleaved, false);
  return block;
}

/// The `count` greatest of each row of `logits` `[T, E]`, and where they are.
static std::pair<Value, Value> createTopK(OnnxBuilder &onnx, Value logits, int64_t count) {
  OperationState state(onnx.loc, onnxir::getOperationName("", "TopK"));
  state.addOperands({logits, onnx.integers(count)});
  state.addAttributes({onnx.integerAttr("axis", -1), onnx.integerAttr("largest", 1), onnx.integerAttr("sorted", 1)});
  auto type = cast<RankedTensorType>(logits.getType());
  SmallVector<int64_t> shape{type.getDimSize(0), count};
  state.addTypes(
      {RankedTensorType::get(shape, type.getElementType()), RankedTensorType::get(shape, onnx.b.getI64Type())});
  Operation *topK = onnx.b.create(state);
  return {topK->getResult(0), topK->getResult(1)};
}

/// Weights are a softmax of the chosen logits, over themselves or over all of their row.
bool MoeRaiser::raiseOperator(Operation *op) {
  OpBuilder b(op);
  OnnxBuilder onnx(b, op->getLoc());
  StringRef reason;
  auto block = readExperts(op, onnx, reason);
  if (!block) {
    remarkMissed(op->getLoc(), kPass, "Moe") << reason;
    return false;
  }
  int64_t count = getInteger(op, "k", 1), experts = getRankedType(block->up).getDimSize(0),
          width = getRankedType(block->up).getDimSize(2);
  if (count < 1 || count > experts)
    return false;
  Value x = op->getOperand(kInput), logits = op->getOperand(kRouter);
  auto [chosen, ids] = createTopK(onnx, logits, count);
  auto axis = onnx.integerAttr("axis", -1);
  Value weights = getInteger(op, "normalize_routing_weights", 0) != 0
                      ? onnx.create("Softmax", chosen, chosen.getType(), axis)
                      : onnx.create("GatherElements", {onnx.create("Softmax", logits, logits.getType(), axis), ids},
                                    chosen.getType(), axis);
  Value rows = getRank(x) == 2 ? x : onnx.reshape(x, {-1, width}, {ShapedType::kDynamic, width});
  int64_t outputs = getRankedType(block->down).getDimSize(1);
  auto rowType = cast<RankedTensorType>(rows.getType());
  auto type = RankedTensorType::get({rowType.getDimSize(0), outputs}, rowType.getElementType());
  Value result = MoeOp::create(b, op->getLoc(), type, rows, ids, weights, block->up, block->down, block->gate,
                               block->upBias, block->downBias, block->gateBias, block->activation);
  if (getRank(x) != 2) {
    Value shape = onnx.create("Shape", x, RankedTensorType::get({getRank(x)}, b.getI64Type()));
    result = onnx.create("Reshape", {result, shape}, cast<RankedTensorType>(x.getType()));
  }
  remarkRaised(op->getLoc(), kPass, "Moe") << std::to_string(count) << " of " << std::to_string(experts)
                                           << " experts a row, " << stringifyActivation(block->activation);
  replace(op->getResult(0), result);
  return true;
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
    else if (isOp(op, "MoE", kMicrosoft))
      operators.push_back(op);
    else if (isOp(op, "TopK"))
      routers.push_back(op);
  });
  unsigned raised = 0;
  for (Operation *op : sums)
    raised += raiseSum(op);
  for (Operation *op : operators)
    raised += raiseOperator(op);
  for (Operation *op : routers)
    explain(op);
  eraseDead(function);
  return raised;
}

unsigned raiseMoes(func::FuncOp function) { return MoeRaiser(function).run(); }

} // namespace hone::raising
