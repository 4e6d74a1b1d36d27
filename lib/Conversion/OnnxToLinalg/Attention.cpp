// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX's own Attention and RotaryEmbedding.

#include "AttentionCore.h"

using namespace mlir;

namespace hone::lowering {

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {

class Attention {
public:
  explicit Attention(Node &node) : node(node), b(node.b) {}
  LogicalResult lower();

private:
  LogicalResult readHeads();
  LogicalResult prepareMask();
  Number see(Number score, ValueRange at);
  Value getOffset(Builder &inner, Value sequence);
  void setResults(const AttentionSteps &steps);

  Node &node;
  Builder &b;
  Type element, compute;
  AttentionInputs inputs;
  Value presentKey, presentValue; // in the operator's type
  Size past;
  Value pastLength, queries, maskEnd;
  std::optional<BroadcastReader> mask;
  bool isMaskShort = false;
};

} // namespace

/// Query, key and value by head, with what the past holds before.
LogicalResult Attention::readHeads() {
  element = node.element(0);
  compute = getAccumulator(element);
  int64_t rank = node.rank(0);
  if ((rank != 3 && rank != 4) || node.rank(1) != rank || node.rank(2) != rank)
    return node.fail() << "expected Q, K and V to have three or four dimensions each, but got " << node.type(0) << ", "
                       << node.type(1) << " and " << node.type(2);
  Value operands[3] = {node.in(0), node.in(1), node.in(2)};
  if (rank == 3) {
    int64_t heads[3] = {node.integer("q_num_heads"), node.integer("kv_num_heads"), node.integer("kv_num_heads")};
    for (auto [operand, count] : llvm::zip(operands, heads)) {
      if (count < 1)
        return node.fail() << "expected q_num_heads and kv_num_heads to be positive with three-dimensional inputs";
      operand = splitHeads(node, operand, b.getIndexAttr(count));
    }
  }
  past = b.getIndexAttr(0);
  if (node.has(4) && node.has(5)) {
    past = node.size(node.in(4), 2);
    operands[1] = join(node, {node.in(4), operands[1]}, 2);
    operands[2] = join(node, {node.in(5), operands[2]}, 2);
  }
  presentKey = operands[1];
  presentValue = operands[2];
  inputs.query = convertFloats(node, operands[0], compute);
  inputs.key = convertFloats(node, presentKey, compute);
  inputs.value = convertFloats(node, presentValue, compute);
  inputs.scale = getScale(node, "scale", node.size(inputs.query, 3), compute);
  inputs.softcap = node.real("softcap", 0);
  return success();
}

LogicalResult Attention::prepareMask() {
  SmallVector<Size> sizes = node.sizes(inputs.query);
  sizes[3] = node.size(inputs.key, 2);
  pastLength = node.math.value(past);
  queries = node.math.value(sizes[2]);
  if (node.has(6) && failed(requireShape(node, node.in(6), sizes[0], "nonpad_kv_seqlen", "[batch]")))
    return failure();
  if (!node.has(3))
    return success();
  if (node.rank(3) == 0)
    return node.fail() << "expected the mask to have dimensions, but got " << node.type(3);
  Size end = node.sizes(node.in(3)).back();
  if (failed(requireElements(node, end, "the mask")))
    return failure();
  isMaskShort = !node.math.equal(end, sizes[3]);
  maskEnd = node.math.value(end);
  sizes[3] = end;
  mask.emplace(node, node.in(3), sizes);
  return success();
}

/// How many keys come before the first query of a sequence.
Value Attention::getOffset(Builder &inner, Value sequence) {
  if (!node.has(6) || node.has(4))
    return pastLength;
  Value length = tensor::ExtractOp::create(inner, node.in(6), sequence);
  return arith::SubIOp::create(inner, arith::IndexCastOp::create(inner, inner.getIndexType(), length), queries);
}

static Value isAtMost(Builder &b, Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, lhs, rhs);
}

/// Adds the mask to a score, and takes away the keys that is_causal, the window, the lengths or a short mask exclude.
Number Attention::see(Number score, ValueRange at) {
  Builder &inner = *score.b;
  SmallVector<Value> conditions;
  Value offset = getOffset(inner, at[0]), position = arith::AddIOp::create(inner, at[2], offset);
  if (node.integer("is_causal"))
    conditions.push_back(isAtMost(inner, at[3], position));
  auto shift = [&](int64_t by) {
    return arith::AddIOp::create(inner, position, arith::ConstantIndexOp::create(inner, by));
  };
  if (int64_t left = node.integer("left_window_size", -1); left >= 0)
    conditions.push_back(isAtMost(inner, shift(-left), at[3]));
  if (int64_t right = node.integer("right_window_size", -1); right >= 0)
    conditions.push_back(isAtMost(inner, at[3], shift(right)));
  if (node.has(6)) {
    Value length =
        arith::IndexCastOp::create(inner, inner.getIndexType(), tensor::ExtractOp::create(inner, node.in(6), at[0]));
    conditions.push_back(arith::CmpIOp::create(inner, arith::CmpIPredicate::slt, at[3], length));
  }
  if (mask) {
    SmallVector<Value> from(at);
    if (isMaskShort) {
      conditions.push_back(arith::CmpIOp::create(inner, arith::CmpIPredicate::slt, at[3], maskEnd));
      Value last = arith::SubIOp::create(inner, maskEnd, arith::ConstantIndexOp::create(inner, 1));
      from[3] = arith::MinSIOp::create(inner, at[3], last);
    }
    Value value = mask->read(inner, from);
    if (value.getType().isInteger(1))
      conditions.push_back(value);
    else
      score = score + Number{&inner, convertFloat(inner, value, compute)};
  }
  for (Value condition : conditions)
    score = select(condition, score, never(score));
  return score;
}

void Attention::setResults(const AttentionSteps &steps) {
  Value result = convertFloats(node, steps.result, element);
  node.set(0, node.rank(0) == 3 ? mergeHeads(node, result) : result);
  node.set(1, presentKey);
  node.set(2, presentValue);
  if (!node.wants(3))
    return;
  Value products[] = {steps.scores, steps.capped, steps.masked, steps.probabilities};
  int64_t mode = node.integer("qk_matmul_output_mode");
  // As in ONNX's reference, what comes out of the product is already capped.
  Value product = products[std::clamp<int64_t>(mode == 0 ? 1 : mode, 0, 3)];
  node.set(3, convertFloats(node, product, element));
}

LogicalResult Attention::lower() {
  if (failed(readHeads()) || failed(prepareMask()))
    return failure();
  auto steps = attend(node, inputs, [&](Number score, ValueRange at) { return see(score, at); });
  if (failed(steps))
    return failure();
  setResults(*steps);
  return success();
}

static LogicalResult lowerAttention(Node &node) { return Attention(node).lower(); }

//===----------------------------------------------------------------------===//
// RotaryEmbedding
//===----------------------------------------------------------------------===//

/// `x` by head: itself with four dimensions, else [B, S, H * D] split.
static FailureOr<Value> getHeads(Node &node, int64_t heads) {
  if (node.rank(0) == 4)
    return node.in(0);
  if (node.rank(0) != 3 || heads < 1) {
    node.fail() << "expected X to have four dimensions, or three and num_heads to be positive, but got " << node.type(0)
                << " and " << heads;
    return failure();
  }
  return splitHeads(node, node.in(0), node.b.getIndexAttr(heads));
}

static LogicalResult lowerRotaryEmbedding(Node &node) {
  auto x = getHeads(node, node.integer("num_heads"));
  if (failed(x))
    return failure();
  Value cos = node.in(1), sin = node.in(2), positions = node.in(3);
  bool isInterleaved = node.integer("interleaved");
  if (node.rank(1) != (positions ? 2 : 3) || node.rank(2) != node.rank(1))
    return node.fail() << "expected the caches to have " << (positions ? 2 : 3) << " dimensions, but got "
                       << node.type(1);
  if (positions &&
      failed(requireShape(node, positions, {node.size(*x, 0), node.size(*x, 2)}, "position_ids", "[batch, positions]")))
    return failure();
  Value rotated = positions ? rotate(node, *x, cos, sin, isInterleaved,
                                     [&](Builder &b, Value sequence, Value row) -> Value {
                                       Value at = tensor::ExtractOp::create(b, positions, ValueRange{sequence, row});
                                       return arith::IndexCastOp::create(b, b.getIndexType(), at);
                                     })
                            : rotateByTables(node, *x, cos, sin, isInterleaved);
  node.set(0, node.rank(0) == 3 ? mergeHeads(node, rotated) : rotated);
  return success();
}

/// com.microsoft RotaryEmbedding: positions are [B, S], or one that the first row of every sequence has.
static LogicalResult lowerMicrosoftRotaryEmbedding(Node &node) {
  int64_t heads = node.integer("num_heads"), dimension = node.integer("rotary_embedding_dim");
  if (node.rank(0) == 3 && heads == 0 && dimension == 0) { // then a head is as wide as the caches say
    Size width = node.math.mul(node.size(node.in(2), 1), node.b.getIndexAttr(2));
    heads = IndexMath::getConstant(node.math.floorDiv(node.size(node.in(0), 2), width)).value_or(0);
  }
  auto x = getHeads(node, heads);
  if (failed(x))
    return failure();
  Value positions = node.in(1);
  bool isStart = node.rank(1) < 2;
  SmallVector<Size> whole = {node.size(*x, 0), node.size(*x, 2)};
  if (isStart)
    whole.assign(node.rank(1), node.b.getIndexAttr(1));
  if (failed(requireShape(node, positions, whole, "position_ids", isStart ? "[1]" : "[batch, positions]")))
    return failure();
  Value rotated = rotate(node, *x, node.in(2), node.in(3), node.integer("interleaved"),
                         [&](Builder &b, Value sequence, Value row) -> Value {
                           SmallVector<Value> at = {sequence, row};
                           if (isStart)
                             at.assign(node.rank(1), arith::ConstantIndexOp::create(b, 0));
                           Value value = tensor::ExtractOp::create(b, positions, at);
                           Value position = arith::IndexCastOp::create(b, b.getIndexType(), value);
                           return isStart ? arith::AddIOp::create(b, position, row).getResult() : position;
                         });
  node.set(0, node.rank(0) == 3 ? mergeHeads(node, rotated) : rotated);
  return success();
}

void addAttentionLowerings(LoweringTable &table) {
  table["onnx.Attention"] = lowerAttention;
  table["onnx.RotaryEmbedding"] = lowerRotaryEmbedding;
  table["onnx.com.microsoft.RotaryEmbedding"] = lowerMicrosoftRotaryEmbedding;
}

} // namespace hone::lowering
