// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GroupQueryAttention does five things at once: it splits packed heads, rotates queries and keys, extends the cache, masks
// and attends. Operands: query, key, value, past_key, past_value, seqlens_k (lengths less one), total_sequence_length,
// cos_cache, sin_cache, position_ids, attention_bias, head_sink.
//
// Its caches may be longer than what they hold, and the sequences of a batch of different lengths: with caches as tensors
// the operator stays, and its lowering has all of that. A state has one length and left padding, so that there its caches
// are extended as any other's; a cache of the window's size is a whole one there.

#include "GroupQueryAttention.h"

#include <cmath>

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-attention";

namespace {

enum Operands {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCos,
  kSin,
  kPositions,
  kBias,
  kSinks,
  kQueryNorm = 14,
  kKeyNorm
};

class GroupQueryExpansion {
public:
  GroupQueryExpansion(Operation *op, SymbolicAnalysis &analysis, StateThread *thread)
      : op(op), analysis(analysis), thread(thread), b(op), onnx(b, op->getLoc()), heads(getInteger(op, "num_heads", 0)),
        sharedHeads(getInteger(op, "kv_num_heads", 0)) {}

  LogicalResult run();

private:
  LogicalResult check();
  Value splitHeads(Value packed, int64_t first, int64_t count);
  Value rotate(Value x);
  Value gatherRows(Value table, Value rows);
  Value getPositions();
  Value extend(Value past, Value fresh);
  Value getBias(Value query, Value keys);
  Value getSinks();
  AttentionPatternInterface getPattern();

  Operation *op;
  SymbolicAnalysis &analysis;
  StateThread *thread;
  OpBuilder b;
  OnnxBuilder onnx;
  int64_t heads, sharedHeads, size = 0;
  Value positions;
};

} // namespace

LogicalResult GroupQueryExpansion::check() {
  auto refuse = [&](StringRef reason) {
    remarkMissed(op->getLoc(), kPass, "GroupQueryAttention") << reason;
    return failure();
  };
  Value query = op->getOperand(kQuery), key = getOperand(op, kKey);
  if (heads <= 0 || sharedHeads <= 0 || heads % sharedHeads != 0)
    return refuse("its numbers of heads do not divide");
  int64_t width = getLastSize(query), count = key ? heads : heads + 2 * sharedHeads;
  if (getRank(query) != 3 || ShapedType::isDynamic(width) || width % count != 0)
    return refuse("the width of its queries is not known");
  size = width / count;
  for (Value shared : {key, getOperand(op, kValue)})
    if (shared && (getRank(shared) != 3 || getLastSize(shared) != sharedHeads * size))
      return refuse("its keys or values do not have the size of its heads");
  for (unsigned i : {unsigned(kPastKey), unsigned(kPastValue)})
    if (Value past = getOperand(op, i);
        past && (getRank(past) != 4 || getRankedType(past).getElementType() != getRankedType(query).getElementType()))
      return refuse("its cache does not hold elements of the query's type");
  if (bool(getOperand(op, kPastKey)) != bool(getOperand(op, kPastValue)) || bool(key) != bool(getOperand(op, kValue)))
    return refuse("it has a key without a value");
  if (getOperand(op, kPastKey) && !thread)
    return refuse("its cache may be longer than what it holds, in each sequence by another number");
  for (StringRef quantized : {"k_quant_type", "v_quant_type"})
    if (auto type = op->getAttrOfType<StringAttr>(quantized); type && type != "NONE")
      return refuse("its cache is quantized");
  if (getInteger(op, "qk_output", 0) > 0 || getOperand(op, kQueryNorm) || getOperand(op, kKeyNorm))
    return refuse("its logits are used, or its heads are normalised");
  if (Value bias = getOperand(op, kBias); bias && (getRank(bias) != 4 || !isFloat(bias)))
    return refuse("its bias has not four dimensions");
  if (getInteger(op, "do_rotary", 0) != 0)
    for (unsigned i : {unsigned(kCos), unsigned(kSin)})
      if (!getOperand(op, i) || getRank(getOperand(op, i)) != 2 ||
          ShapedType::isDynamic(getLastSize(getOperand(op, i))))
        return refuse("it rotates without tables");
  if (Value sinks = getOperand(op, kSinks);
      sinks && (getRank(sinks) != 1 || !getRankedType(sinks).getElementType().isF32()))
    return refuse("its sinks are not f32");
  for (unsigned i = 3; i < op->getNumResults(); ++i)
    if (!op->getResult(i).use_empty())
      return refuse("its logits are used");
  return success();
}

/// `[B, S, …]` with `count` heads from element `first` on, as `[B, count, S, size]`.
Value GroupQueryExpansion::splitHeads(Value packed, int64_t first, int64_t count) {
  if (first != 0 || getLastSize(packed) != count * size)
    packed = onnx.slice(packed, 2, first, first + count * size);
  auto shape = cast<RankedTensorType>(packed.getType()).getShape();
  Value split = onnx.reshape(packed, {0, 0, count, size}, {shape[0], shape[1], count, size});
  return onnx.transpose(split, {0, 2, 1, 3});
}

/// Positions of the new tokens. Without a state, a first call is at 0, and a later one ends where its sequence's length is.
Value GroupQueryExpansion::getPositions() {
  if (thread)
    return thread->positions;
  if (Value given = getOperand(op, kPositions))
    return given;
  auto i64 = b.getI64Type();
  auto scalar = RankedTensorType::get({}, i64);
  Value shape = onnx.create("Shape", op->getOperand(kQuery), RankedTensorType::get({3}, i64));
  Value fresh = onnx.create("Gather", {shape, onnx.integer(1)}, scalar);
  Value total = onnx.cast(op->getOperand(kTotal), i64);
  Value lengths = onnx.cast(op->getOperand(kLengths), i64);
  auto perSequence = cast<RankedTensorType>(lengths.getType());
  Value ends = onnx.create("Add", {lengths, onnx.integer(1)}, perSequence);
  Value begins = onnx.create("Sub", {ends, fresh}, perSequence);
  Value isFirst = onnx.create("Equal", {total, fresh},
                              RankedTensorType::get(cast<RankedTensorType>(total.getType()).getShape(), b.getI1Type()));
  Value held = onnx.create("Where", {isFirst, onnx.integer(0), begins}, perSequence);
  if (perSequence.getRank() == 1)
    held = onnx.unsqueeze(held, {1});
  auto counted = RankedTensorType::get({ShapedType::kDynamic}, i64);
  Value steps = onnx.create("Range", {onnx.integer(0), fresh, onnx.integer(1)}, counted);
  return onnx.create("Add", {held, steps}, RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic}, i64));
}

Value GroupQueryExpansion::gatherRows(Value table, Value rows) {
  auto shape = cast<RankedTensorType>(rows.getType()).getShape();
  auto type = cast<RankedTensorType>(table.getType());
  return onnx.create("Gather", {table, rows},
                     RankedTensorType::get({shape[0], shape[1], type.getDimSize(1)}, type.getElementType()),
                     onnx.integerAttr("axis", 0));
}

Value GroupQueryExpansion::rotate(Value x) {
  if (getInteger(op, "do_rotary", 0) == 0)
    return x;
  if (!positions)
    positions = getPositions();
  Value cos = gatherRows(op->getOperand(kCos), positions), sin = gatherRows(op->getOperand(kSin), positions);
  return RopeOp::create(b, op->getLoc(), x.getType(), x, cos, sin,
                        getInteger(op, "rotary_interleaved", 0) != 0 ? b.getUnitAttr() : UnitAttr());
}

Value GroupQueryExpansion::extend(Value past, Value fresh) {
  auto shape = SmallVector<int64_t>(cast<RankedTensorType>(fresh.getType()).getShape());
  shape[2] = ShapedType::kDynamic;
  auto type = RankedTensorType::get(shape, cast<RankedTensorType>(fresh.getType()).getElementType());
  if (!past)
    return fresh;
  if (!thread)
    return onnx.create("Concat", {past, fresh}, type, onnx.integerAttr("axis", 2));
  auto append = KvAppendOp::create(b, op->getLoc(), thread->state.getType(), type, thread->state, fresh,
                                   past.getDefiningOp<KvViewOp>().getSlot());
  thread->state = append.getNext();
  return append.getAll();
}

/// The bias as f32 whose sizes are 1 or those of the logits.
Value GroupQueryExpansion::getBias(Value query, Value keys) {
  Value bias = getOperand(op, kBias);
  if (!bias)
    return {};
  bias = onnx.cast(bias, b.getF32Type());
  auto shape = analysis.getShape(bias), queryShape = analysis.getShape(query), keyShape = analysis.getShape(keys);
  SmallVector<Polynomial> logits{(*queryShape)[0], (*queryShape)[1], (*queryShape)[2], (*keyShape)[2]};
  bool fits = llvm::all_of(llvm::zip(*shape, logits), [](auto pair) {
    return std::get<0>(pair).isConstant(1) || std::get<0>(pair) == std::get<1>(pair);
  });
  if (fits)
    return bias;
  auto sizes = RankedTensorType::get({4}, b.getI64Type()), one = RankedTensorType::get({1}, b.getI64Type());
  Value front = onnx.create("Slice", {onnx.create("Shape", query, sizes), onnx.integers(int64_t(0)), onnx.integers(3)},
                            RankedTensorType::get({3}, b.getI64Type()));
  Value count = onnx.create("Gather", {onnx.create("Shape", keys, sizes), onnx.integers(2)}, one);
  Value wanted = onnx.create("Concat", {front, count}, sizes, onnx.integerAttr("axis", 0));
  auto type = cast<RankedTensorType>(query.getType());
  return onnx.create(
      "Expand", {bias, wanted},
      RankedTensorType::get({type.getDimSize(0), heads, type.getDimSize(2), ShapedType::kDynamic}, b.getF32Type()));
}

/// A smooth softmax has a logit of 0 beside those of the keys.
Value GroupQueryExpansion::getSinks() {
  Value sinks = getOperand(op, kSinks);
  if (sinks || getInteger(op, "smooth_softmax", -1) != 1)
    return sinks;
  return onnx.constant(DenseElementsAttr::get(RankedTensorType::get({heads}, b.getF32Type()), 0.0f));
}

/// The window counts the query's own position: onnxruntime 1.31 shows 8 keys for a window of 8.
AttentionPatternInterface GroupQueryExpansion::getPattern() {
  int64_t window = getInteger(op, "local_window_size", -1);
  if (getInteger(op, "causal", 1) == 0)
    return FullAttr::get(b.getContext());
  return window > 0 ? AttentionPatternInterface(SlidingAttr::get(b.getContext(), window))
                    : CausalAttr::get(b.getContext());
}

LogicalResult GroupQueryExpansion::run() {
  if (failed(check()))
    return failure();
  Location loc = op->getLoc();
  Value query = op->getOperand(kQuery), key = getOperand(op, kKey), value = getOperand(op, kValue);
  int64_t shared = sharedHeads * size;
  Value q = rotate(splitHeads(query, 0, heads));
  Value k = rotate(splitHeads(key ? key : query, key ? 0 : heads * size, sharedHeads));
  Value v = splitHeads(key ? value : query, key ? 0 : heads * size + shared, sharedHeads);
  Value keys = extend(getOperand(op, kPastKey), k), values = extend(getOperand(op, kPastValue), v);
  double scale = getReal(op, "scale", 0), softcap = getReal(op, "softcap", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(static_cast<double>(size));
  Value bias = getBias(q, keys), sinks = getSinks();
  AttentionParts parts;
  parts.query = q;
  parts.key = keys;
  parts.value = values;
  parts.pattern = getPattern();
  parts.scale = static_cast<float>(scale);
  if (softcap > 0)
    parts.softcap = static_cast<float>(softcap);
  parts.bias = bias;
  parts.sinks = sinks;
  parts.keyBegin = thread ? thread->padding : Value();
  parts.type = cast<RankedTensorType>(q.getType());
  Value attention = AttentionOp::create(b, loc, parts).getResult();
  Value rows = onnx.transpose(attention, {0, 2, 1, 3});
  auto shape = cast<RankedTensorType>(rows.getType()).getShape();
  Value result = onnx.reshape(rows, {0, 0, heads * size}, {shape[0], shape[1], heads * size});
  remarkRaised(loc, kPass, "GroupQueryAttention")
      << "raised with " << std::to_string(heads) << " query heads, " << std::to_string(sharedHeads) << " key heads";
  replace(op->getResult(0), result);
  if (Value present = getResult(op, 1))
    replace(present, keys);
  if (Value present = getResult(op, 2))
    replace(present, values);
  op->erase();
  return success();
}

LogicalResult raiseGroupQueryAttention(Operation *op, SymbolicAnalysis &analysis, StateThread *thread) {
  return GroupQueryExpansion(op, analysis, thread).run();
}

} // namespace hone::raising
