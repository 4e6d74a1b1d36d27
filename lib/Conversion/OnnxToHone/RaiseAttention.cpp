// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention from its softmax, and from the operators that are attention.

#include "Attention.h"
#include "GroupQueryAttention.h"
#include "Rounding.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

namespace hone {
#define GEN_PASS_DEF_RAISEATTENTION
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-attention";

namespace {

class AttentionRaiser {
public:
  explicit AttentionRaiser(func::FuncOp function) : function(function), analysis(function) {}
  void run();
  unsigned raised = 0, withBias = 0;

private:
  LogicalResult raiseSoftmax(Operation *softmax);
  LogicalResult raiseOperator(Operation *op);
  bool understandsProduct(const ProbabilityUse &use, const LogitSpace &space);
  Value findKeyProbabilities(Operation *softmax, const LogitSpace &space);
  Operation *findRowGuard(Value result, const LogitSpace &space, ArrayRef<Mask> masks);
  bool isGuardOf(Value condition, Operation *guard, unsigned branch, Value result, ArrayRef<Mask> masks);
  LogicalResult emit(Operation *op, Value result, const LogitSpace &space, const HeadRows &q, const HeadRows &k,
                     const HeadRows &v, double scale, std::optional<double> softcap, ArrayRef<Mask> masks,
                     EmptyRow emptyRow, Value sinks = {});
  Value sumBiases(OpBuilder &b, Location loc, ArrayRef<Value> biases);
  Value fitBias(OpBuilder &b, Location loc, Value bias, Value query, Value key, const LogitSpace &space);
  Value findSplit(Value result, ArrayRef<Polynomial> shape);
  void putInPlace(OpBuilder &b, Value result, Value attention, const LogitSpace &space);
  LogicalResult refuse(Operation *op, StringRef reason) {
    remarkMissed(op->getLoc(), kPass, "Attention") << reason;
    return failure();
  }

  func::FuncOp function;
  SymbolicAnalysis analysis;
};

} // namespace

//===----------------------------------------------------------------------===//
// From the softmax on
//===----------------------------------------------------------------------===//

/// The probabilities of the keys where a softmax has one of a sink after them; null where it is not cut off.
Value AttentionRaiser::findKeyProbabilities(Operation *softmax, const LogitSpace &space) {
  Value probabilities = softmax->getResult(0);
  while (probabilities.hasOneUse()) {
    Operation *user = *probabilities.getUsers().begin();
    if (cutsSinksOff(user, space, analysis))
      return user->getResult(0);
    if (!isOp(user, "Cast") && !isOp(user, "Identity") && !isOp(user, "Dropout"))
      return {};
    probabilities = user->getResult(0);
  }
  return {};
}

/// Whether `condition` of a selection at `guard` is that the query sees no key: fewer than one of its keys is visible.
bool AttentionRaiser::isGuardOf(Value condition, Operation *guard, unsigned branch, Value result,
                                ArrayRef<Mask> masks) {
  auto &e = analysis.expressions;
  auto shape = analysis.getShape(guard->getResult(0)), resultShape = analysis.getShape(result);
  if (!shape || !resultShape || resultShape->size() != 4)
    return false;
  SmallVector<Polynomial> at = analysis.getIndices(*shape);
  const Expression *flag = analysis.getBroadcastElement(condition, *shape, at);
  const Expression *source = analysis.getBroadcastElement(guard->getOperand(branch), *shape, at);
  if (!flag || !source || source->kind != analysis::ExpressionKind::Load || source->source != result)
    return false;
  SmallVector<const Expression *> predicates;
  Polynomial keys;
  for (const Mask &mask : masks) {
    if (mask.shape.size() != 4)
      return false;
    Mask moved = mask;
    keys = mask.shape[3];
    moved.indices = {source->indices[0], source->indices[1], source->indices[2], e.index(analysis::kReducedAxis, keys)};
    auto visibility = getVisibility(moved, analysis);
    if (!visibility)
      return false;
    predicates.push_back(visibility->predicate);
  }
  const Expression *visible = e.conjoin(predicates);
  return flag == e.less(e.call("ReduceSum", {e.toReal(visible), e.integer(keys)}), e.real(1));
}

/// The selection, after the product, that gives 0 to queries without keys: what hone.attention gives them anyway.
Operation *AttentionRaiser::findRowGuard(Value result, const LogitSpace &space, ArrayRef<Mask> masks) {
  Value value = result;
  constexpr unsigned kMaxSteps = 6;
  for (unsigned step = 0; step < kMaxSteps && value.hasOneUse(); ++step) {
    Operation *user = *value.getUsers().begin();
    if (isOp(user, "Where") && user->getOperand(2) == value && analysis.getSplat(user->getOperand(1)) == 0.0)
      return isGuardOf(user->getOperand(0), user, 2, result, masks) ? user : nullptr;
    if (!isOp(user, "Transpose") && !isOp(user, "Reshape"))
      return nullptr;
    value = user->getResult(0);
  }
  return nullptr;
}

/// Whether the result of the product is `[B, H, Sq, D]`, or has batch and heads in one dimension.
bool AttentionRaiser::understandsProduct(const ProbabilityUse &use, const LogitSpace &space) {
  if (getRank(use.product->getResult(0)) != static_cast<int64_t>(use.leading.size()) + 2)
    return false;
  if (use.leading.size() == 2)
    return use.leading[0] == space.b && use.leading[1] == space.h;
  return use.leading.size() == 1 && use.leading[0] == space.b * space.heads + space.h;
}

LogicalResult AttentionRaiser::raiseSoftmax(Operation *softmax) {
  Value input = softmax->getOperand(0);
  int64_t rank = getRank(input), axis = getInteger(softmax, "axis", -1);
  if (rank != 4 || !isFloat(input) || (axis != -1 && axis != rank - 1))
    return failure();
  auto sinks = matchSinks(input, analysis);
  if (sinks)
    input = sinks->logits;
  auto shape = analysis.getShape(input);
  if (!shape || shape->size() != 4)
    return failure();
  LogitSpace space = makeLogitSpace(analysis, *shape);
  StringRef reason;
  FailureOr<Logits> logits = matchLogits(input, space, analysis, reason);
  if (failed(logits))
    return reason == "its logits are no product" ? failure() : refuse(softmax, reason);
  Value probabilities = sinks ? findKeyProbabilities(softmax, space) : softmax->getResult(0);
  auto use = probabilities ? matchProbabilities(probabilities, space, analysis) : std::nullopt;
  if (!use || (sinks && use->mask))
    return refuse(softmax, "its probabilities are used by something else than one product");
  if (!understandsProduct(*use, space))
    return refuse(softmax, "the product of its probabilities has other dimensions than its logits");
  if (use->mask && !logits->masks.empty())
    return refuse(softmax, "keys are hidden before and after its softmax");
  if (use->mask)
    logits->masks.push_back(*use->mask);
  EmptyRow emptyRow = sinks ? EmptyRow::Zero : use->emptyRow; // with sinks all is the sink's
  Operation *product = use->product;
  auto q =
      matchHeadRows(logits->query, logits->isQueryTransposed, logits->leading, space, space.queries, space.i, analysis);
  auto k = matchHeadRows(logits->key, logits->isKeyTransposed, logits->leading, space, space.keys, space.j, analysis);
  auto v =
      matchHeadRows(product->getOperand(1), /*isTransposed=*/false, use->leading, space, space.keys, space.j, analysis);
  if (!q || !k || !v || q->heads != space.heads.getConstant())
    return refuse(softmax, "the heads of its queries, keys or values are not understood");
  Operation *guard = findRowGuard(product->getResult(0), space, logits->masks);
  if (guard)
    emptyRow = EmptyRow::Zero;
  if (v->factor != 1)
    return refuse(softmax, "its values are scaled");
  if (failed(emit(product, product->getResult(0), space, *q, *k, *v, logits->scale * q->factor * k->factor,
                  logits->softcap, logits->masks, emptyRow, sinks ? sinks->perHead : Value())))
    return failure();
  if (guard)
    replace(guard->getResult(0), guard->getOperand(2));
  return success();
}

//===----------------------------------------------------------------------===//
// Attention of opset 23
//===----------------------------------------------------------------------===//

LogicalResult AttentionRaiser::raiseOperator(Operation *op) {
  Value query = op->getOperand(0), key = op->getOperand(1), value = op->getOperand(2), bias = getOperand(op, 3);
  for (unsigned i = 4; i < op->getNumOperands(); ++i)
    if (getOperand(op, i))
      return refuse(op, "its cache is inside the operator");
  for (unsigned i = 1; i < op->getNumResults(); ++i)
    if (!op->getResult(i).use_empty())
      return refuse(op, "its logits are used");
  double softcap = getReal(op, "softcap", 0);
  // Without a cache, positions are those of the queries: a window that reaches no later key is causal.
  int64_t left = getInteger(op, "left_window_size", -1), right = getInteger(op, "right_window_size", -1);
  bool isCausal = getInteger(op, "is_causal", 0) != 0 || right == 0;
  if (!isCausal && (left >= 0 || right >= 0))
    return refuse(op, "its window reaches later keys");
  if (softcap != 0 && (bias || isCausal))
    return refuse(op, "it caps logits after masking them");
  auto queryShape = analysis.getShape(query), keyShape = analysis.getShape(key);
  if (!queryShape || !keyShape || queryShape->size() != 4 || keyShape->size() != 4)
    return refuse(op, "its heads are not split");
  LogitSpace space = makeLogitSpace(analysis, {(*queryShape)[0], (*queryShape)[1], (*queryShape)[2], (*keyShape)[2]});
  auto heads = space.heads.getConstant(), keyHeads = (*keyShape)[1].getConstant(),
       size = queryShape->back().getConstant();
  if (!heads || !keyHeads || !size || *keyHeads == 0 || *heads % *keyHeads != 0)
    return refuse(op, "its numbers of heads are not known");
  if (isCausal && space.queries != space.keys)
    return refuse(op, "it is causal from the first key on, with another number of keys than of queries");
  // Heads may already be shared inside the operator: the heads that are read are those of the key.
  HeadRows q{query, 1, HeadRows::BHSD, *heads, *size}, k{key, 1, HeadRows::BHSD, *keyHeads, *size}, v = k;
  v.value = value;
  if (*keyHeads == *heads) {
    auto sharedKey = matchHeadRows(key, false, {space.b, space.h}, space, space.keys, space.j, analysis);
    auto sharedValue = matchHeadRows(value, false, {space.b, space.h}, space, space.keys, space.j, analysis);
    if (sharedKey && sharedValue && sharedKey->heads == sharedValue->heads && sharedKey->factor == 1 &&
        sharedValue->factor == 1)
      k = *sharedKey, v = *sharedValue;
  }
  double scale = getReal(op, "scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(static_cast<double>(*size));
  SmallVector<Mask> masks;
  if (bias) {
    Mask mask;
    mask.value = bias;
    mask.isCondition = getRankedType(bias) && getRankedType(bias).getElementType().isInteger(1);
    mask.hidden = -std::numeric_limits<double>::infinity();
    mask.shape = space.shape();
    mask.indices = space.indices();
    masks.push_back(mask);
  }
  if (isCausal && bias)
    return refuse(op, "it is causal and has a mask");
  std::optional<double> cap = softcap > 0 ? std::optional<double>(softcap) : std::nullopt;
  if (!isCausal)
    return emit(op, op->getResult(0), space, q, k, v, scale, cap, masks, EmptyRow::AsComputed);
  OpBuilder b(op);
  AttentionParts parts;
  parts.query = query;
  parts.key = buildHeadRows(k, b, op->getLoc());
  parts.value = buildHeadRows(v, b, op->getLoc());
  parts.pattern = left < 0 ? AttentionPatternInterface(CausalAttr::get(b.getContext()))
                           : AttentionPatternInterface(SlidingAttr::get(b.getContext(), left + 1));
  parts.scale = static_cast<float>(scale);
  parts.type = cast<RankedTensorType>(op->getResult(0).getType());
  Value attention = AttentionOp::create(b, op->getLoc(), parts).getResult();
  replace(op->getResult(0), attention);
  ++raised;
  return success();
}

//===----------------------------------------------------------------------===//
// hone.attention
//===----------------------------------------------------------------------===//

/// What a mask computes may be long; a remark shows how it begins.
static std::string shorten(std::string text) {
  constexpr size_t kMost = 300;
  return text.size() <= kMost ? text : text.substr(0, kMost) + " …";
}

Value AttentionRaiser::sumBiases(OpBuilder &b, Location loc, ArrayRef<Value> biases) {
  Value sum;
  OnnxBuilder onnx(b, loc);
  for (Value bias : biases)
    sum = sum ? onnx.add(sum, bias) : bias;
  return sum;
}

/// The bias with dimensions that are known to be 1, or to be those of the logits: others may be either at run time.
Value AttentionRaiser::fitBias(OpBuilder &b, Location loc, Value bias, Value query, Value key,
                               const LogitSpace &space) {
  auto shape = bias ? analysis.getShape(bias) : std::nullopt;
  if (!shape)
    return bias;
  SmallVector<Polynomial> logits = space.shape();
  auto isKnown = [&](unsigned dim) { return (*shape)[dim].isConstant(1) || (*shape)[dim] == logits[dim]; };
  if (llvm::all_of(llvm::seq<unsigned>(0, logits.size()), isKnown))
    return bias;
  OnnxBuilder onnx(b, loc);
  auto type = cast<RankedTensorType>(bias.getType()), one = RankedTensorType::get({1}, b.getI64Type());
  SmallVector<Value> wanted;
  SmallVector<int64_t> sizes;
  SmallVector<Value> sources = {query, query, query, key};
  for (auto [dim, source] : llvm::enumerate(sources)) {
    bool isOne = (*shape)[dim].isConstant(1);
    int64_t from = dim == 3 ? 2 : static_cast<int64_t>(dim);
    sizes.push_back(isOne ? 1 : cast<RankedTensorType>(source.getType()).getDimSize(from));
    Value all = isOne ? Value() : onnx.create("Shape", source, RankedTensorType::get({4}, b.getI64Type()));
    wanted.push_back(isOne ? onnx.integers(1)
                           : onnx.create("Gather", {all, onnx.integers(from)}, one, onnx.integerAttr("axis", 0)));
  }
  Value target = onnx.create("Concat", wanted, RankedTensorType::get({4}, b.getI64Type()), onnx.integerAttr("axis", 0));
  return onnx.create("Expand", {bias, target}, RankedTensorType::get(sizes, type.getElementType()));
}

/// The value of `shape` that is `result` with its dimensions apart; null where that is not computed, or what is moved is rounded.
Value AttentionRaiser::findSplit(Value result, ArrayRef<Polynomial> shape) {
  for (Value value = result; value.hasOneUse() && !getRounding(value);) {
    Operation *user = *value.getUsers().begin();
    if ((!isOp(user, "Reshape") && !isOp(user, "Squeeze") && !isOp(user, "Unsqueeze")) || user->getOperand(0) != value)
      return {};
    value = user->getResult(0);
    auto sizes = analysis.getShape(value);
    if (sizes && ArrayRef(*sizes) == shape)
      return value;
  }
  return {};
}

/// The result of the product that was: with the heads apart, or in one dimension with the batch.
void AttentionRaiser::putInPlace(OpBuilder &b, Value result, Value attention, const LogitSpace &space) {
  if (getRank(result) == 4)
    return replace(result, attention);
  if (Value split = findSplit(result, {space.batch, space.heads, space.queries, getLastSize(attention)}))
    return replace(split, attention);
  OnnxBuilder onnx(b, result.getLoc());
  auto rows = cast<RankedTensorType>(result.getType());
  auto sizes = RankedTensorType::get({4}, b.getI64Type()), one = RankedTensorType::get({1}, b.getI64Type());
  Value shape = onnx.create("Shape", attention, sizes);
  Value count = onnx.create("Slice", {shape, onnx.integers(2), onnx.integers(3), onnx.integers(int64_t(0))}, one);
  int64_t size = getLastSize(attention);
  Value wanted = onnx.create("Concat", {onnx.integers(-1), count, onnx.integers(size)},
                             RankedTensorType::get({3}, b.getI64Type()), onnx.integerAttr("axis", 0));
  replace(result, onnx.create("Reshape", {attention, wanted}, rows));
}

LogicalResult AttentionRaiser::emit(Operation *op, Value result, const LogitSpace &space, const HeadRows &q,
                                    const HeadRows &k, const HeadRows &v, double scale, std::optional<double> softcap,
                                    ArrayRef<Mask> masks, EmptyRow emptyRow, Value sinks) {
  if (k.heads != v.heads)
    return refuse(op, "keys and values have different numbers of heads");
  if (!std::isfinite(scale) || (softcap && !(*softcap > 0)))
    return refuse(op, "its scale is not a finite number");
  OpBuilder b(op);
  Location loc = op->getLoc();
  StringRef reason;
  FailureOr<MaskMeaning> meaning =
      readMasks(masks, space, emptyRow, analysis, b, loc, buildHeadRows(k, b, loc), reason);
  if (failed(meaning))
    return refuse(op, reason);
  Value query = buildHeadRows(q, b, loc), key = buildHeadRows(k, b, loc), value = buildHeadRows(v, b, loc);
  auto queryType = cast<RankedTensorType>(query.getType());
  OnnxBuilder onnx(b, loc); // casts were looked through
  key = onnx.cast(key, queryType.getElementType());
  value = onnx.cast(value, queryType.getElementType());
  Value bias = fitBias(b, loc, sumBiases(b, loc, meaning->biases), query, key, space);
  AttentionParts parts;
  parts.query = query;
  parts.key = key;
  parts.value = value;
  parts.pattern = meaning->pattern;
  parts.patternOperands = meaning->patternOperands;
  parts.scale = static_cast<float>(scale);
  if (softcap)
    parts.softcap = static_cast<float>(*softcap);
  parts.bias = bias;
  parts.alibi = meaning->alibi;
  parts.keyBegin = meaning->keyBegin;
  parts.keyEnd = meaning->keyEnd;
  if (sinks)
    parts.sinks = buildSinks(sinks, q.heads, b, loc);
  Value attention = AttentionOp::create(b, loc, parts).getResult();
  auto remark = remarkRaised(loc, kPass, "Attention");
  remark << "raised with " << std::to_string(q.heads) << " query heads, " << std::to_string(k.heads) << " key heads"
         << (sinks ? ", sinks" : "");
  if (bias)
    remarkMissed(loc, kPass, "AttentionMask") << shorten(meaning->note.empty() ? "hides keys by flags" : meaning->note);
  withBias += bias ? 1 : 0;
  ++raised;
  putInPlace(b, result, attention, space);
  return success();
}

void AttentionRaiser::run() {
  SmallVector<Operation *> softmaxes, operators, groups;
  function.walk([&](Operation *op) {
    if (isOp(op, "Softmax"))
      softmaxes.push_back(op);
    else if (isOp(op, "Attention"))
      operators.push_back(op);
    else if (isOp(op, "GroupQueryAttention", kMicrosoft))
      groups.push_back(op);
  });
  for (Operation *op : groups)
    raised += succeeded(raiseGroupQueryAttention(op, analysis, nullptr));
  analysis.invalidate();
  for (Operation *op : softmaxes)
    (void)raiseSoftmax(op);
  for (Operation *op : operators)
    (void)raiseOperator(op);
  eraseDead(function);
}

namespace {
struct RaiseAttention : impl::RaiseAttentionBase<RaiseAttention> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      AttentionRaiser raiser(function);
      raiser.run();
      numAttentions += raiser.raised;
      numBiases += raiser.withBias;
    }
  }
};
} // namespace

} // namespace hone::raising
