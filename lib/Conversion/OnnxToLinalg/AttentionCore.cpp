// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scores, softmax, heads and rotation.

#include "AttentionCore.h"

using namespace mlir;

namespace hone::lowering {

//===----------------------------------------------------------------------===//
// Heads and scale
//===----------------------------------------------------------------------===//

Value splitHeads(Node &node, Value tensor, Size heads) {
  SmallVector<Size> sizes = node.sizes(tensor);
  Size each = node.math.floorDiv(sizes[2], heads);
  if (failed(requireEqual(node, sizes[2], node.math.mul(each, heads), "the columns and a multiple of the heads")))
    node.isBroken = true;
  return node.transpose(node.reshape(tensor, {sizes[0], sizes[1], heads, each}), {0, 2, 1, 3});
}

Value mergeHeads(Node &node, Value tensor) {
  Value rows = node.transpose(tensor, {0, 2, 1, 3});
  SmallVector<Size> sizes = node.sizes(rows);
  return node.reshape(rows, {sizes[0], sizes[1], node.math.mul(sizes[2], sizes[3])});
}

Value getScale(Node &node, StringRef name, Size headSize, Type type) {
  if (double given = node.real(name, 0))
    return node.constant(given, type);
  if (auto known = IndexMath::getConstant(headSize); known && *known > 0)
    return node.constant(1.0 / std::sqrt(static_cast<double>(*known)), type);
  Value size = arith::SIToFPOp::create(node.b, type, node.math.scalar(headSize, node.b.getI64Type()));
  return math::RsqrtOp::create(node.b, size);
}

//===----------------------------------------------------------------------===//
// Scores and softmax
//===----------------------------------------------------------------------===//

FailureOr<Value> multiplyByHead(Node &node, Value lhs, Value rhs) {
  SmallVector<Size> left = node.sizes(lhs), right = node.sizes(rhs);
  Size rows = node.math.mul(node.math.floorDiv(left[1], right[1]), left[2]);
  auto product = multiplyMatrices(node, node.reshape(lhs, {left[0], right[1], rows, left[3]}), rhs);
  if (failed(product))
    return failure();
  return node.reshape(*product, {left[0], left[1], left[2], right[3]});
}

using IndexedBody = llvm::function_ref<Number(Number, ValueRange)>;

/// Element-wise with the indices of the element.
static Value transform(Node &node, Value tensor, IndexedBody body) {
  SmallVector<Size> sizes = node.sizes(tensor);
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  return node.elementwiseOver(sizes, tensor, element, [&](Builder &b, ValueRange x) {
    SmallVector<Value> at;
    for (size_t i = 0; i < sizes.size(); ++i)
      at.push_back(linalg::IndexOp::create(b, i));
    return body({&b, x[0]}, at).value;
  });
}

/// Softmax over the last dimension; 0 for rows of minus infinity.
static Value softmax(Node &node, Value logits, Value sinks) {
  Type element = cast<RankedTensorType>(logits.getType()).getElementType();
  Value least = node.constant(-std::numeric_limits<double>::infinity(), element);
  if (sinks) {
    SmallVector<Size> column(3, node.b.getIndexAttr(1));
    column[0] = node.size(sinks, 0);
    sinks = node.reshape(sinks, column);
  }
  Value peaks = node.reduce(logits, {3}, /*keep=*/true, least, [](Builder &b, Value x, Value peak) -> Value {
    return arith::MaximumFOp::create(b, x, peak);
  });
  SmallVector<Value> operands = {peaks};
  if (sinks)
    operands.push_back(sinks);
  peaks = node.elementwise(operands, element, [&](Builder &b, ValueRange v) -> Value {
    Number peak{&b, v[0]};
    if (sinks)
      peak = max(peak, {&b, v[1]});
    return select(peak == never(peak), peak.with(0), peak).value;
  });
  Value powers = node.elementwiseOver(node.sizes(logits), {logits, peaks}, element, [](Builder &b, ValueRange v) {
    return exp(Number{&b, v[0]} - Number{&b, v[1]}).value;
  });
  Value sums = node.reduce(powers, {3}, /*keep=*/true, node.zero(element),
                           [](Builder &b, Value x, Value sum) -> Value { return arith::AddFOp::create(b, x, sum); });
  operands = {sums, peaks};
  if (sinks)
    operands.push_back(sinks);
  sums = node.elementwise(operands, element, [&](Builder &b, ValueRange v) -> Value {
    Number sum{&b, v[0]};
    if (sinks)
      sum = sum + exp(Number{&b, v[2]} - Number{&b, v[1]});
    return select(sum == 0.0, sum.with(1), sum).value;
  });
  return node.elementwiseOver(node.sizes(logits), {powers, sums}, element,
                              [](Builder &b, ValueRange v) -> Value { return arith::DivFOp::create(b, v[0], v[1]); });
}

/// What products of matrices do not compare.
static LogicalResult checkHeads(Node &node, const AttentionInputs &inputs) {
  SmallVector<Size> query = node.sizes(inputs.query), key = node.sizes(inputs.key), value = node.sizes(inputs.value);
  Size group = node.math.floorDiv(query[1], key[1]);
  if (failed(requireEqual(node, query[0], key[0], "the batches of query and key")) ||
      failed(requireEqual(node, key[0], value[0], "the batches of key and value")) ||
      failed(requireEqual(node, key[1], value[1], "the heads of key and value")) ||
      failed(requireEqual(node, node.math.mul(group, key[1]), query[1],
                          "the heads of query and a multiple of those of key")))
    return failure();
  return inputs.sinks ? requireShape(node, inputs.sinks, query[1], "the sinks", "[heads]") : success();
}

FailureOr<Value> computeScores(Node &node, const AttentionInputs &inputs) {
  if (failed(checkHeads(node, inputs)))
    return failure();
  auto products = multiplyByHead(node, inputs.query, node.transpose(inputs.key, {0, 1, 3, 2}));
  if (failed(products))
    return failure();
  return transform(node, *products, [&](Number x, ValueRange) { return x * Number{x.b, inputs.scale}; });
}

FailureOr<AttentionSteps> attend(Node &node, const AttentionInputs &inputs, MaskBody mask) {
  auto scores = computeScores(node, inputs);
  if (failed(scores))
    return failure();
  AttentionSteps steps;
  steps.scores = *scores;
  steps.capped = steps.scores;
  if (inputs.softcap > 0)
    steps.capped =
        transform(node, steps.scores, [&](Number x, ValueRange) { return tanh(x / inputs.softcap) * inputs.softcap; });
  steps.masked = transform(node, steps.capped, mask);
  steps.probabilities = softmax(node, steps.masked, inputs.sinks);
  auto result = multiplyByHead(node, steps.probabilities, inputs.value);
  if (failed(result))
    return failure();
  steps.result = *result;
  return steps;
}

/// Failure, or a check, where a dimension of the bias is not known to be 1 and not that of the logits.
static LogicalResult checkBias(Node &node, Value bias, ArrayRef<Size> logits) {
  for (auto [own, wanted] : llvm::zip_equal(node.sizes(bias), logits))
    if (IndexMath::getConstant(own) != 1 &&
        failed(requireEqual(node, own, wanted, "the sizes of a mask and of the scores")))
      return failure();
  return success();
}

LogicalResult checkAttention(Node &node, AttentionOp op) {
  auto lookUp = [&](Value value) { return value ? node.lowerer.lookUp(value) : Value(); };
  AttentionInputs inputs{lookUp(op.getQuery()), lookUp(op.getKey()), lookUp(op.getValue()), {}, 0, {}};
  auto isPlain = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && !type.getEncoding();
  };
  if (!isPlain(inputs.key) || !isPlain(inputs.value))
    return success(); // of the state, which has one size
  SmallVector<Size> query = node.sizes(inputs.query), key = node.sizes(inputs.key), value = node.sizes(inputs.value);
  if (failed(checkHeads(node, inputs)) || failed(requireEqual(node, key[2], value[2], "the rows of key and value")) ||
      failed(requireEqual(node, query[3], key[3], "the sizes of a head of query and key")))
    return failure();
  for (auto [bound, what] : {std::pair(op.getKeyBegin(), "the first keys"),
                             std::pair(op.getKeyEnd(), "the ends of the keys"), std::pair(op.getLags(), "the lags")})
    if (bound && failed(requireShape(node, lookUp(bound), query[0], what, "[batch]")))
      return failure();
  if (op.getKeyPositions() &&
      failed(requireShape(node, lookUp(op.getKeyPositions()), {query[0], key[2]}, "the positions", "[batch, keys]")))
    return failure();
  return op.getBias() ? checkBias(node, lookUp(op.getBias()), {query[0], query[1], query[2], key[2]}) : success();
}

//===----------------------------------------------------------------------===//
// Broadcast masks
//===----------------------------------------------------------------------===//

/// What is compared where a dimension of a mask is not 1.
static constexpr llvm::StringLiteral kBroadcast = "the sizes of a mask and of the scores";

BroadcastReader::BroadcastReader(Node &node, Value tensor, ArrayRef<Size> sizes) : tensor(tensor) {
  SmallVector<Size> own = node.sizes(tensor);
  if (own.size() > sizes.size()) {
    node.fail() << "expected a mask of at most " << sizes.size() << " dimensions, but got " << tensor.getType();
    node.isBroken = true;
    return;
  }
  size_t offset = sizes.size() - own.size();
  for (auto [i, size] : llvm::enumerate(own)) {
    auto constant = IndexMath::getConstant(size);
    isFixed.push_back(constant == 1);
    if (constant == 1 || constant || node.math.equal(size, sizes[offset + i])) {
      isOne.emplace_back();
      node.isBroken |= constant != 1 && failed(requireEqual(node, size, sizes[offset + i], kBroadcast));
      continue;
    }
    isOne.push_back(node.math.compare(arith::CmpIPredicate::eq, size, node.b.getIndexAttr(1)));
    Value isSame = node.math.compare(arith::CmpIPredicate::eq, size, sizes[offset + i]);
    node.check(node.b.createOrFold<arith::OrIOp>(isOne.back(), isSame), "expected " + kBroadcast + " to be equal");
  }
}

Value BroadcastReader::read(Builder &b, ValueRange at) const {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  SmallVector<Value> indices;
  ValueRange own = at.take_back(isFixed.size());
  for (size_t i = 0; i < isFixed.size(); ++i) {
    Value index = isFixed[i] ? zero : own[i];
    indices.push_back(isOne[i] ? arith::SelectOp::create(b, isOne[i], zero, index).getResult() : index);
  }
  return tensor::ExtractOp::create(b, tensor, indices);
}

//===----------------------------------------------------------------------===//
// Rotation
//===----------------------------------------------------------------------===//

LogicalResult checkRotation(Node &node, Value x, Value cos, Value sin) {
  SmallVector<Size> sizes = node.sizes(x), tables = node.sizes(cos);
  Size batch = IndexMath::getConstant(tables[0]) == 1 ? tables[0] : sizes[0];
  Size width = node.math.mul(tables[2], node.b.getIndexAttr(2));
  if (failed(requireShape(node, cos, {batch, sizes[2], tables[2]}, "the cosines", "[batch, positions, pairs]")) ||
      failed(requireShape(node, sin, tables, "the sines", "those of the cosines")))
    return failure();
  node.check(node.math.compare(arith::CmpIPredicate::sle, width, sizes[3]),
             "expected a head to be as wide as the pairs that are rotated");
  return success();
}

Value rotateByTables(Node &node, Value x, Value cos, Value sin, bool isInterleaved) {
  SmallVector<Size> sizes = node.sizes(x);
  node.isBroken |= failed(checkRotation(node, x, cos, sin));
  Value result = RopeOp::create(node.b, x.getType(), x, cos, sin, isInterleaved);
  node.lowerer.setSizes(result, sizes);
  return result;
}

Value rotate(Node &node, Value x, Value cos, Value sin, bool isInterleaved, PositionBody position) {
  SmallVector<Size> sizes = node.sizes(x);
  node.isBroken |= failed(requireElements(node, node.size(cos, 0), "the table of cosines")) ||
                   failed(requireElements(node, node.size(sin, 0), "the table of sines"));
  auto gather = [&](Value cache) {
    Value last = node.math.value(node.math.sub(node.size(cache, 0), node.b.getIndexAttr(1)));
    Type element = cast<RankedTensorType>(cache.getType()).getElementType();
    return node.generate({sizes[0], sizes[2], node.size(cache, 1)}, element, [&](Builder &b, ValueRange at) -> Value {
      Value row = arith::MaxSIOp::create(b, position(b, at[0], at[1]), arith::ConstantIndexOp::create(b, 0));
      row = arith::MinSIOp::create(b, row, last);
      return tensor::ExtractOp::create(b, cache, ValueRange{row, at[2]});
    });
  };
  return rotateByTables(node, x, gather(cos), gather(sin), isInterleaved);
}

} // namespace hone::lowering
