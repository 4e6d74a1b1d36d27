// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MultiHeadAttention of com.microsoft as the operations that attention and state are recognised in. Operands: query, key, value, bias,
// key_padding_mask, attention_bias, past_key, past_value.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>
#include <limits>

namespace hone {
#define GEN_PASS_DEF_EXPANDMULTIHEADATTENTION
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-expand-multi-head-attention";

namespace {

enum Operands { kQuery, kKey, kValue, kBias, kMask, kAdded, kPastKey, kPastValue, kFirstUnknown };

class MultiHeadExpansion {
public:
  explicit MultiHeadExpansion(Operation *op)
      : op(op), b(op), onnx(b, op->getLoc()), heads(getInteger(op, "num_heads", 0)) {}

  LogicalResult run();

private:
  LogicalResult check();
  LogicalResult checkPart(unsigned operand, int64_t &size);
  LogicalResult refuse(StringRef reason);
  Value getHeads(unsigned operand, int64_t size, int64_t first);
  Value extend(unsigned past, Value fresh);
  Value single(Value value) { return onnx.cast(value, b.getF32Type()); }
  Value countRows(Value rows); // i64, no dimension
  Value range(Value begin, Value end);
  Value getShown(Value keys);
  Value mask(Value scores, Value keys);
  Value hideLater(Value scores, Value keys);
  Value mergeHeads(Value rows);

  RankedTensorType typeOf(ArrayRef<int64_t> sizes, Type element) { return RankedTensorType::get(sizes, element); }

  Operation *op;
  OpBuilder b;
  OnnxBuilder onnx;
  int64_t heads, keySize = 0, valueSize = 0;
  Type element;
};

} // namespace

LogicalResult MultiHeadExpansion::refuse(StringRef reason) {
  remarkMissed(op->getLoc(), kPass, "MultiHeadAttention") << reason;
  return failure();
}

//===----------------------------------------------------------------------===//
// What is expanded
//===----------------------------------------------------------------------===//

/// Key or value: [B, S, width], or [B, heads, S, size], of a width that is known; `size` is that of a head.
LogicalResult MultiHeadExpansion::checkPart(unsigned operand, int64_t &size) {
  Value value = getOperand(op, operand);
  auto type = value ? getRankedType(value) : RankedTensorType();
  if (!type || (type.getRank() != 3 && type.getRank() != 4) || type.getElementType() != element)
    return refuse("its key or value has another form than [batch, rows, width] or [batch, heads, rows, size]");
  int64_t width = getLastSize(value);
  if (ShapedType::isDynamic(width) || (type.getRank() == 3 && width % heads != 0) ||
      (type.getRank() == 4 && type.getDimSize(1) != heads))
    return refuse("the number or the width of its heads is not known");
  size = type.getRank() == 3 ? width / heads : width;
  return success();
}

LogicalResult MultiHeadExpansion::check() {
  Value query = op->getOperand(kQuery);
  if (heads < 1 || getRank(query) != 3 || !isFloat(query))
    return refuse("its query is packed, or not of narrow floats");
  element = getRankedType(query).getElementType();
  int64_t width = getLastSize(query);
  if (ShapedType::isDynamic(width) || width % heads != 0)
    return refuse("the width of its queries is not known");
  if (failed(checkPart(kKey, keySize)) || failed(checkPart(kValue, valueSize)))
    return failure();
  if (keySize * heads != width || keySize < 1 || valueSize < 1)
    return refuse("its queries and keys have heads of different sizes");
  for (unsigned past : {unsigned(kPastKey), unsigned(kPastValue)})
    if (Value value = getOperand(op, past);
        value &&
        (getRank(value) != 4 || getRankedType(value).getElementType() != element ||
         getRankedType(value).getDimSize(1) != heads || getLastSize(value) != (past == kPastKey ? keySize : valueSize)))
      return refuse("its cache is not [batch, heads, rows, size] of the query's type");
  if (bool(getOperand(op, kPastKey)) != bool(getOperand(op, kPastValue)))
    return refuse("it has a past key without a past value");
  if (Value bias = getOperand(op, kBias);
      bias && (getRank(bias) != 1 || getLastSize(bias) != (2 * keySize + valueSize) * heads))
    return refuse("its bias has not an element for each column of query, key and value");
  if (Value added = getOperand(op, kAdded); added && (getRank(added) != 4 || !isFloat(added)))
    return refuse("its attention bias has not four dimensions");
  Value mask = getOperand(op, kMask);
  if (mask && (getRank(mask) < 1 || getRank(mask) > 3 || !getRankedType(mask).getElementType().isInteger(32)))
    return refuse("its key padding mask has another form than [batch], [batch, keys] or [batch, queries, keys]");
  for (unsigned i = kFirstUnknown; i < op->getNumOperands(); ++i)
    if (getOperand(op, i))
      return refuse("its cache is shared");
  if (Value logits = getResult(op, 3); logits && !logits.use_empty())
    return refuse("its logits are used");
  return success();
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

/// Operand `operand`, with the elements of the bias from `first` on, as [B, heads, S, size]. Heads that are apart have no bias.
Value MultiHeadExpansion::getHeads(unsigned operand, int64_t size, int64_t first) {
  Value rows = op->getOperand(operand);
  if (getRank(rows) == 4)
    return rows;
  if (Value bias = getOperand(op, kBias))
    rows = onnx.add(rows, onnx.slice(bias, 0, first, first + heads * size));
  auto shape = getRankedType(rows).getShape();
  Value split = onnx.reshape(rows, {0, 0, heads, size}, {shape[0], shape[1], heads, size});
  return onnx.transpose(split, {0, 2, 1, 3});
}

Value MultiHeadExpansion::extend(unsigned past, Value fresh) {
  Value held = getOperand(op, past);
  if (!held)
    return fresh;
  SmallVector<int64_t> shape(getRankedType(fresh).getShape());
  shape[2] = ShapedType::kDynamic;
  return onnx.create("Concat", {held, fresh}, typeOf(shape, element), onnx.integerAttr("axis", 2));
}

/// [B, heads, S, size] as [B, S, heads * size]: what a mask of more sequences or queries made larger does not have the query's rows.
Value MultiHeadExpansion::mergeHeads(Value rows) {
  Value turned = onnx.transpose(rows, {0, 2, 1, 3}), query = op->getOperand(kQuery);
  auto shape = getRankedType(query).getShape();
  SmallVector<int64_t> merged = {shape[0], shape[1], heads * valueSize};
  if (!getOperand(op, kMask) && !getOperand(op, kAdded))
    return onnx.reshape(turned, {0, 0, heads * valueSize}, merged);
  auto i64 = b.getI64Type();
  Value sizes = onnx.create("Shape", query, typeOf({3}, i64));
  Value leading = onnx.create("Slice", {sizes, onnx.integers(int64_t(0)), onnx.integers(2)}, typeOf({2}, i64));
  Value wanted =
      onnx.create("Concat", {leading, onnx.integers(heads * valueSize)}, typeOf({3}, i64), onnx.integerAttr("axis", 0));
  return onnx.create("Reshape", {turned, wanted}, typeOf(merged, getRankedType(rows).getElementType()));
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

Value MultiHeadExpansion::countRows(Value rows) {
  auto i64 = b.getI64Type();
  Value sizes = onnx.create("Shape", rows, typeOf({getRank(rows)}, i64));
  return onnx.create("Gather", {sizes, onnx.integer(getRank(rows) - 2)}, typeOf({}, i64), onnx.integerAttr("axis", 0));
}

Value MultiHeadExpansion::range(Value begin, Value end) {
  return onnx.create("Range", {begin, end, onnx.integer(1)}, typeOf({ShapedType::kDynamic}, b.getI64Type()));
}

/// Flags that broadcast to the scores: keys that the key padding mask shows.
Value MultiHeadExpansion::getShown(Value keys) {
  Value mask = op->getOperand(kMask);
  auto shape = getRankedType(mask).getShape();
  if (shape.size() == 3)
    return onnx.unsqueeze(onnx.cast(mask, b.getI1Type()), {1});
  if (shape.size() == 2)
    return onnx.unsqueeze(onnx.cast(mask, b.getI1Type()), {1, 2});
  Value lengths = onnx.unsqueeze(onnx.cast(mask, b.getI64Type()), {1, 2, 3});
  return onnx.create("Less", {range(onnx.integer(0), countRows(keys)), lengths},
                     typeOf({shape[0], 1, 1, ShapedType::kDynamic}, b.getI1Type()));
}

/// Adds the attention bias, and mask_filter_value to the keys that the key padding mask hides.
Value MultiHeadExpansion::mask(Value scores, Value keys) {
  auto type = getRankedType(scores);
  if (Value added = getOperand(op, kAdded))
    scores = onnx.create("Add", {scores, single(added)}, type);
  if (!getOperand(op, kMask))
    return scores;
  Value shown = getShown(keys);
  Value hidden = onnx.real(static_cast<float>(getReal(op, "mask_filter_value", -10000)));
  Value bias =
      onnx.create("Where", {shown, onnx.real(0), hidden}, typeOf(getRankedType(shown).getShape(), b.getF32Type()));
  return onnx.create("Add", {scores, bias}, type);
}

/// Query i comes after as many keys as the past has.
Value MultiHeadExpansion::hideLater(Value scores, Value keys) {
  if (getInteger(op, "unidirectional", 0) == 0)
    return scores;
  auto scalar = typeOf({}, b.getI64Type());
  Value past = getOperand(op, kPastKey), queries = countRows(op->getOperand(kQuery));
  Value begin = past ? countRows(past) : onnx.integer(0);
  Value end = past ? onnx.create("Add", {begin, queries}, scalar) : queries;
  Value rows = onnx.unsqueeze(range(begin, end), {1}), columns = range(onnx.integer(0), countRows(keys));
  constexpr int64_t kAny = ShapedType::kDynamic;
  Value isLater = onnx.create("Greater", {columns, rows}, typeOf({kAny, kAny}, b.getI1Type()));
  return onnx.create("Where", {isLater, onnx.real(std::numeric_limits<float>::lowest()), scores}, scores.getType());
}

//===----------------------------------------------------------------------===//
// The node
//===----------------------------------------------------------------------===//

LogicalResult MultiHeadExpansion::run() {
  if (failed(check()))
    return failure();
  int64_t width = heads * keySize;
  Value query = getHeads(kQuery, keySize, 0);
  Value keys = extend(kPastKey, getHeads(kKey, keySize, width));
  Value values = extend(kPastValue, getHeads(kValue, valueSize, 2 * width));
  auto queryShape = getRankedType(query).getShape();
  auto logits = typeOf({queryShape[0], heads, queryShape[2], getRankedType(keys).getDimSize(2)}, b.getF32Type());
  double scale = getReal(op, "scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(static_cast<double>(keySize));
  // Narrow floats are computed in f32 and rounded once.
  Value scores = onnx.create("MatMul", {single(query), onnx.transpose(single(keys), {0, 1, 3, 2})}, logits);
  scores = onnx.create("Mul", {scores, onnx.real(static_cast<float>(scale))}, logits);
  Value probabilities =
      onnx.create("Softmax", hideLater(mask(scores, keys), keys), logits, onnx.integerAttr("axis", -1));
  auto rows = typeOf({queryShape[0], heads, queryShape[2], valueSize}, b.getF32Type());
  Value product = onnx.create("MatMul", {probabilities, single(values)}, rows);
  replace(op->getResult(0), mergeHeads(onnx.cast(product, element)));
  for (auto [i, present] : {std::pair(1U, keys), std::pair(2U, values)})
    if (Value result = getResult(op, i))
      replace(result, present);
  op->erase();
  return success();
}

namespace {
struct ExpandMultiHeadAttention : impl::ExpandMultiHeadAttentionBase<ExpandMultiHeadAttention> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
        if (isOp(&op, "MultiHeadAttention", kMicrosoft))
          numExpanded += succeeded(MultiHeadExpansion(&op).run());
    }
  }
};
} // namespace

} // namespace hone::raising
