// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft GroupQueryAttention and MultiHeadAttention, with the numbers of onnxruntime's CPU kernels.

#include "AttentionCore.h"
#include "Indices.h"

using namespace mlir;

namespace hone::lowering {

/// `[B, S, hidden]`, columns [first, first + count).
static Value takeColumns(Node &node, Value tensor, Size first, Size count) {
  return sliceAxis(node, tensor, 2, first, count);
}

static LogicalResult refuse(Node &node, std::initializer_list<std::pair<unsigned, const char *>> inputs) {
  for (auto [index, name] : inputs)
    if (node.has(index))
      return node.fail() << "unsupported input '" << name << "'; supported: the operator without it";
  return success();
}

//===----------------------------------------------------------------------===//
// GroupQueryAttention
//===----------------------------------------------------------------------===//

namespace {

/// Sequence b of the batch has seqlens_k[b] + 1 keys when the call is over, of which the last S are those of this call;
/// in a first call (S is total_sequence_length) the keys start at 0 whatever the lengths say. Caches are padded on the
/// right. With sliding_window_cache they keep as many rows as they have, and of a sequence's keys the last few.
class GroupQueryAttention {
public:
  explicit GroupQueryAttention(Node &node) : node(node), b(node.b) {}
  LogicalResult lower();

private:
  LogicalResult readHeads();
  LogicalResult checkSizes(Size batch);
  LogicalResult readLengths();
  LogicalResult readWindow();
  void rotateHeads();
  Value append(Value past, Value fresh);
  Value evict(Value all);
  Value getLength(Builder &inner, Value sequence);
  Value getPast(Builder &inner, Value sequence);
  Value countKept(Builder &inner, Value length);
  Value getFirstRow(Builder &inner, Value sequence);
  Number see(Number score, ValueRange at);

  Node &node;
  Builder &b;
  Type element, compute;
  Value query, key, value; // [B, H, S, D]
  Size rows, total;
  Value isFirst, rowCount;
  bool isWindowed = false;
  Value capacity, evicted; // of a windowed cache: its rows, and how many it drops at a time
  std::optional<BroadcastReader> bias;
};

} // namespace

/// Three tensors by head, from three inputs or from one that has all columns side by side.
LogicalResult GroupQueryAttention::readHeads() {
  int64_t heads = node.integer("num_heads"), keyHeads = node.integer("kv_num_heads");
  if (heads < 1 || keyHeads < 1 || heads % keyHeads)
    return node.fail() << "expected num_heads to be a multiple of kv_num_heads, but got " << heads << " and "
                       << keyHeads;
  if (node.rank(0) != 3)
    return node.fail() << "expected the query to have three dimensions, but got " << node.type(0);
  element = node.element(0);
  compute = getAccumulator(element);
  query = node.in(0);
  key = node.in(1);
  value = node.in(2);
  rows = node.size(query, 1);
  if (!key) {
    Size head = node.math.floorDiv(node.size(query, 2), b.getIndexAttr(heads + 2 * keyHeads));
    Size width = node.math.mul(head, b.getIndexAttr(heads)), keyWidth = node.math.mul(head, b.getIndexAttr(keyHeads));
    key = takeColumns(node, query, width, keyWidth);
    value = takeColumns(node, query, node.math.add(width, keyWidth), keyWidth);
    query = takeColumns(node, query, b.getIndexAttr(0), width);
  }
  Size batch = node.size(query, 0);
  for (Value tensor : {key, value})
    if (failed(requireShape(node, tensor, {batch, rows, node.size(tensor, 2)}, "key and value", "those of query")))
      return failure();
  if (failed(requireElements(node, rows, "query")))
    return failure();
  query = splitHeads(node, query, b.getIndexAttr(heads));
  key = splitHeads(node, key, b.getIndexAttr(keyHeads));
  value = splitHeads(node, value, b.getIndexAttr(keyHeads));
  return checkSizes(batch);
}

/// Inputs that the calls before made, or that say where this one stands.
LogicalResult GroupQueryAttention::checkSizes(Size batch) {
  for (auto [input, fresh] : {std::pair(3u, key), std::pair(4u, value)}) {
    if (!node.has(input))
      continue;
    SmallVector<Size> sizes = node.sizes(fresh);
    if (node.rank(input) == 4)
      sizes[2] = node.size(node.in(input), 2);
    if (failed(requireShape(node, node.in(input), sizes, "the past", "[batch, kv_num_heads, rows, head size]")))
      return failure();
  }
  if (node.rank(5) == 0)
    return node.fail() << "expected seqlens_k to be [batch], but got " << node.type(5);
  SmallVector<Size> lengths(node.rank(5), b.getIndexAttr(1)), ones(node.rank(6), b.getIndexAttr(1));
  SmallVector<Size> places = {batch, rows};
  lengths[0] = batch;
  if (failed(requireShape(node, node.in(5), lengths, "seqlens_k", "[batch]")) ||
      failed(requireShape(node, node.in(6), ones, "total_sequence_length", "[1]")))
    return failure();
  return node.has(9) ? requireShape(node, node.in(9), places, "position_ids", "[batch, positions]") : success();
}

LogicalResult GroupQueryAttention::readLengths() {
  Value whole = node.in(6);
  auto known = node.scalars(whole);
  if (known && known->size() == 1) {
    total = node.math.fromScalar(known->front());
  } else {
    SmallVector<Value> at(node.rank(6), arith::ConstantIndexOp::create(b, 0));
    total = node.math.fromScalar(tensor::ExtractOp::create(b, whole, at));
  }
  auto checked = requireSize(node, total, "total_sequence_length");
  if (failed(checked))
    return failure();
  total = *checked;
  rowCount = node.math.value(rows);
  isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rowCount, node.math.value(total));
  return success();
}

LogicalResult GroupQueryAttention::readWindow() {
  int64_t window = node.integer("local_window_size", -1);
  isWindowed = node.integer("sliding_window_cache");
  if (!isWindowed)
    return success();
  if (window < 1 || !node.has(3) || !node.has(4))
    return node.fail() << "expected a positive local_window_size and a cache with sliding_window_cache, but got "
                       << window;
  if (node.has(10))
    return node.fail() << "unsupported attention_bias with sliding_window_cache; supported: one of them";
  Size held = node.size(node.in(3), 2);
  node.check(node.math.compare(arith::CmpIPredicate::sge, held, b.getIndexAttr(window)),
             "expected the cache to have at least local_window_size rows, as sliding_window_cache needs");
  capacity = node.math.value(held);
  evicted = node.math.value(node.math.add(node.math.sub(held, b.getIndexAttr(window)), b.getIndexAttr(1)));
  return success();
}

/// How many keys sequence `sequence` has after this call.
Value GroupQueryAttention::getLength(Builder &inner, Value sequence) {
  SmallVector<Value> at(node.rank(5), arith::ConstantIndexOp::create(inner, 0));
  at[0] = sequence;
  Value last =
      arith::IndexCastOp::create(inner, inner.getIndexType(), tensor::ExtractOp::create(inner, node.in(5), at));
  return arith::AddIOp::create(inner, last, arith::ConstantIndexOp::create(inner, 1));
}

/// How many keys it had before this call.
Value GroupQueryAttention::getPast(Builder &inner, Value sequence) {
  Value zero = arith::ConstantIndexOp::create(inner, 0);
  Value past = arith::MaxSIOp::create(inner, arith::SubIOp::create(inner, getLength(inner, sequence), rowCount), zero);
  return arith::SelectOp::create(inner, isFirst, zero, past);
}

/// How many of `length` keys a windowed cache keeps: all that fit, less `evicted` at a time (com.microsoft's
/// GroupQueryAttention, section "Windowed KV Cache").
Value GroupQueryAttention::countKept(Builder &inner, Value length) {
  Value zero = arith::ConstantIndexOp::create(inner, 0);
  Value over = arith::MaxSIOp::create(inner, arith::SubIOp::create(inner, length, capacity), zero);
  Value times = arith::CeilDivSIOp::create(inner, over, evicted);
  return arith::SubIOp::create(inner, length, arith::MulIOp::create(inner, times, evicted));
}

/// The row of the cache where this call's keys begin: how many of the keys before it are still held.
Value GroupQueryAttention::getFirstRow(Builder &inner, Value sequence) {
  Value past = getPast(inner, sequence);
  return isWindowed ? countKept(inner, past) : past;
}

void GroupQueryAttention::rotateHeads() {
  if (!node.integer("do_rotary") || !node.has(7) || !node.has(8))
    return;
  Value positions = node.in(9);
  auto position = [&](Builder &inner, Value sequence, Value row) -> Value {
    if (!positions)
      return arith::AddIOp::create(inner, getPast(inner, sequence), row);
    Value at = tensor::ExtractOp::create(inner, positions, ValueRange{sequence, row});
    return arith::IndexCastOp::create(inner, inner.getIndexType(), at);
  };
  bool isInterleaved = node.integer("rotary_interleaved");
  query = rotate(node, query, node.in(7), node.in(8), isInterleaved, position);
  key = rotate(node, key, node.in(7), node.in(8), isInterleaved, position);
}

/// What was in the cache, then the fresh rows, then zeros.
Value GroupQueryAttention::append(Value past, Value fresh) {
  SmallVector<Size> sizes = node.sizes(fresh);
  Value zero = node.zero(element), none = arith::ConstantIndexOp::create(b, 0);
  if (isWindowed)
    sizes[2] = node.math.add(node.size(past, 2), rows);
  else
    sizes[2] = past ? node.math.max(node.size(past, 2), total) : total;
  Value held = past ? node.math.value(node.size(past, 2)) : none;
  return node.generate(sizes, element, [&](Builder &inner, ValueRange at) -> Value {
    Value one = arith::ConstantIndexOp::create(inner, 1), first = arith::ConstantIndexOp::create(inner, 0);
    Value before = getFirstRow(inner, at[0]), row = arith::SubIOp::create(inner, at[2], before);
    auto read = [&](Value tensor, Value index, Value size) -> Value {
      Value last = arith::MaxSIOp::create(inner, arith::SubIOp::create(inner, size, one), first);
      Value inside = arith::MinSIOp::create(inner, arith::MaxSIOp::create(inner, index, first), last);
      return tensor::ExtractOp::create(inner, tensor, ValueRange{at[0], at[1], inside, at[3]});
    };
    Value isFresh = arith::CmpIOp::create(inner, arith::CmpIPredicate::ult, row, rowCount);
    Value result = arith::SelectOp::create(inner, isFresh, read(fresh, row, rowCount), zero);
    if (!past)
      return result;
    // An empty cache is not read: its first row does not exist.
    Value isOld =
        arith::CmpIOp::create(inner, arith::CmpIPredicate::slt, at[2], arith::MinSIOp::create(inner, before, held));
    auto choose = scf::IfOp::create(
        inner, isOld,
        [&](OpBuilder &nested, Location loc) {
          Builder deeper(loc, nested);
          scf::YieldOp::create(deeper, tensor::ExtractOp::create(deeper, past, at).getResult());
        },
        [&](OpBuilder &nested, Location loc) { scf::YieldOp::create(nested, loc, result); });
    return choose.getResult(0);
  });
}

/// Of what was in a windowed cache and the fresh rows, those that it keeps, then zeros.
Value GroupQueryAttention::evict(Value all) {
  if (!isWindowed)
    return all;
  SmallVector<Size> sizes = node.sizes(all);
  sizes[2] = node.size(node.in(3), 2);
  Value zero = node.zero(element), rowsOfAll = node.math.value(node.size(all, 2));
  return node.generate(sizes, element, [&](Builder &inner, ValueRange at) -> Value {
    Value length = getLength(inner, at[0]), kept = countKept(inner, length);
    Value end = arith::AddIOp::create(inner, getFirstRow(inner, at[0]),
                                      arith::SubIOp::create(inner, length, getPast(inner, at[0])));
    Value row = arith::AddIOp::create(inner, at[2], arith::SubIOp::create(inner, end, kept));
    Value one = arith::ConstantIndexOp::create(inner, 1), first = arith::ConstantIndexOp::create(inner, 0);
    Value last = arith::SubIOp::create(inner, rowsOfAll, one);
    Value inside = arith::MaxSIOp::create(inner, arith::MinSIOp::create(inner, row, last), first);
    Value read = tensor::ExtractOp::create(inner, all, ValueRange{at[0], at[1], inside, at[3]});
    Value isKept = arith::CmpIOp::create(inner, arith::CmpIPredicate::slt, at[2], kept);
    return arith::SelectOp::create(inner, isKept, read, zero);
  });
}

/// A query sees the keys up to its own position, and of those the last local_window_size, its own among them. Without
/// causal it sees all that its sequence has.
Number GroupQueryAttention::see(Number score, ValueRange at) {
  Builder &inner = *score.b;
  Value begin = getFirstRow(inner, at[0]), position = arith::AddIOp::create(inner, begin, at[2]);
  if (!node.integer("causal", 1))
    position = arith::SubIOp::create(inner, getLength(inner, at[0]), arith::ConstantIndexOp::create(inner, 1));
  Value visible = arith::CmpIOp::create(inner, arith::CmpIPredicate::sle, at[3], position);
  if (int64_t window = node.integer("local_window_size", -1); window > 0) {
    Value first = arith::SubIOp::create(inner, position, arith::ConstantIndexOp::create(inner, window));
    Value isNear = arith::CmpIOp::create(inner, arith::CmpIPredicate::sgt, at[3], first);
    visible = arith::AndIOp::create(inner, visible, isNear);
  }
  if (bias)
    score = score + Number{&inner, convertFloat(inner, bias->read(inner, at), compute)};
  return select(visible, score, never(score));
}

LogicalResult GroupQueryAttention::lower() {
  if (failed(refuse(node, {{12, "k_scale"}, {13, "v_scale"}, {14, "q_norm_weight"}, {15, "k_norm_weight"}})) ||
      failed(readHeads()) || failed(readWindow()))
    return failure();
  if (node.wants(3))
    return node.fail() << "unsupported output 'output_qk'; supported: the operator without it";
  if (failed(readLengths()))
    return failure();
  rotateHeads();
  Value allKeys = append(node.in(3), key), allValues = append(node.in(4), value);
  // Rows beyond total_sequence_length are room for later calls.
  Size count = isWindowed ? node.size(allKeys, 2) : total;
  Value keys = sliceAxis(node, allKeys, 2, b.getIndexAttr(0), count);
  Value values = sliceAxis(node, allValues, 2, b.getIndexAttr(0), count);
  AttentionInputs inputs{convertFloats(node, query, compute),
                         convertFloats(node, keys, compute),
                         convertFloats(node, values, compute),
                         {},
                         node.real("softcap", 0),
                         {}};
  inputs.scale = getScale(node, "scale", node.size(query, 3), compute);
  Size heads = b.getIndexAttr(node.integer("num_heads"));
  if (node.has(11))
    inputs.sinks = convertFloats(node, node.in(11), compute);
  else if (node.integer("smooth_softmax", -1) == 1)
    inputs.sinks = node.filled(heads, node.zero(compute));
  if (node.has(10))
    bias.emplace(node, node.in(10), ArrayRef<Size>{node.size(query, 0), heads, rows, total});
  auto steps = attend(node, inputs, [&](Number score, ValueRange at) { return see(score, at); });
  if (failed(steps))
    return failure();
  node.set(0, mergeHeads(node, convertFloats(node, steps->result, element)));
  node.set(1, evict(allKeys));
  node.set(2, evict(allValues));
  return success();
}

static LogicalResult lowerGroupQueryAttention(Node &node) { return GroupQueryAttention(node).lower(); }

//===----------------------------------------------------------------------===//
// MultiHeadAttention
//===----------------------------------------------------------------------===//

namespace {

class MultiHeadAttention {
public:
  explicit MultiHeadAttention(Node &node)
      : node(node), b(node.b), heads(node.b.getIndexAttr(node.integer("num_heads"))) {}
  LogicalResult lower();

private:
  LogicalResult readHeads();
  Value readPart(Value packed, int64_t part);
  Value addBias(Value tensor, Size first);
  void prepareMasks();
  Number see(Number score, ValueRange at);

  Node &node;
  Builder &b;
  Size heads;
  Type element, compute;
  Value query, key, value; // [B, H, S, D], with the past before
  Value pastLength;
  std::optional<BroadcastReader> bias, padding;
  bool areLengths = false;
};

} // namespace

/// Part `part` of `[B, S, H, parts, D]`, as `[B, H, S, D]`.
Value MultiHeadAttention::readPart(Value packed, int64_t part) {
  Value slice = sliceAxis(node, packed, 3, b.getIndexAttr(part), b.getIndexAttr(1));
  SmallVector<Size> sizes = node.sizes(slice);
  return node.transpose(node.reshape(slice, {sizes[0], sizes[1], sizes[2], sizes[4]}), {0, 2, 1, 3});
}

/// Adds the elements of the bias from `first` on to the columns of `[B, S, hidden]`.
Value MultiHeadAttention::addBias(Value tensor, Size first) {
  if (!node.has(3))
    return tensor;
  static constexpr StringLiteral kExpected =
      "expected the bias to have an element for each column of query, key and value";
  Size end = node.math.add(first, node.size(tensor, 2)), all = node.size(node.in(3), 0);
  auto knownEnd = IndexMath::getConstant(end), knownAll = IndexMath::getConstant(all);
  if (knownEnd && knownAll && *knownEnd > *knownAll) {
    node.fail() << kExpected << ", but got " << *knownAll;
    node.isBroken = true;
    return tensor;
  }
  node.check(node.math.compare(arith::CmpIPredicate::sle, end, all), kExpected);
  Value part = sliceAxis(node, node.in(3), 0, first, node.size(tensor, 2));
  return node.elementwiseOver(node.sizes(tensor), {tensor, part}, element,
                              [](Builder &inner, ValueRange v) { return addScalars(inner, v[0], v[1]); });
}

LogicalResult MultiHeadAttention::readHeads() {
  element = node.element(0);
  compute = getAccumulator(element);
  if (node.integer("num_heads") < 1)
    return node.fail() << "expected num_heads to be positive, but got " << node.integer("num_heads");
  bool isPacked = node.rank(0) == 5, isKeyPacked = !isPacked && node.has(1) && node.rank(1) == 5;
  if ((isPacked || isKeyPacked) && node.has(3))
    return node.fail() << "unsupported bias with packed query, key and value; supported: separate ones";
  if (isPacked && failed(requireEqual(node, node.size(node.in(0), 3), b.getIndexAttr(3), "the parts of query and 3")))
    return failure();
  if (isKeyPacked && failed(requireEqual(node, node.size(node.in(1), 3), b.getIndexAttr(2), "the parts of key and 2")))
    return failure();
  if (isPacked) {
    query = readPart(node.in(0), 0);
    key = readPart(node.in(0), 1);
    value = readPart(node.in(0), 2);
  } else {
    if (node.rank(0) != 3 || !node.has(1) || (!isKeyPacked && !node.has(2)))
      return node.fail() << "expected query, key and value, or a query of five dimensions with all of them";
    Size width = node.size(node.in(0), 2);
    query = splitHeads(node, addBias(node.in(0), b.getIndexAttr(0)), heads);
    auto byHead = [&](unsigned input, Size first) {
      return node.rank(input) == 4 ? node.in(input) : splitHeads(node, addBias(node.in(input), first), heads);
    };
    key = isKeyPacked ? readPart(node.in(1), 0) : byHead(1, width);
    value = isKeyPacked ? readPart(node.in(1), 1) : byHead(2, node.math.mul(width, b.getIndexAttr(2)));
  }
  Size past = b.getIndexAttr(0);
  if (node.has(6) && node.has(7)) {
    past = node.size(node.in(6), 2);
    key = join(node, {node.in(6), key}, 2);
    value = join(node, {node.in(7), value}, 2);
  }
  pastLength = node.math.value(past);
  return success();
}

void MultiHeadAttention::prepareMasks() {
  SmallVector<Size> sizes = node.sizes(query);
  sizes[3] = node.size(key, 2);
  if (node.has(5))
    bias.emplace(node, node.in(5), sizes);
  if (!node.has(4))
    return;
  areLengths = node.rank(4) == 1;
  SmallVector<Size> shape =
      node.rank(4) == 3 ? SmallVector<Size>{sizes[0], sizes[2], sizes[3]} : SmallVector<Size>{sizes[0], sizes[3]};
  if (!areLengths)
    padding.emplace(node, node.in(4), shape);
}

/// Masked keys get mask_filter_value added; keys after a query that is unidirectional get the least float.
Number MultiHeadAttention::see(Number score, ValueRange at) {
  Builder &inner = *score.b;
  if (bias)
    score = score + Number{&inner, convertFloat(inner, bias->read(inner, at), compute)};
  Value masked;
  if (areLengths) {
    Value length = tensor::ExtractOp::create(inner, node.in(4), at[0]);
    length = arith::IndexCastOp::create(inner, inner.getIndexType(), length);
    masked = arith::CmpIOp::create(inner, arith::CmpIPredicate::sge, at[3], length);
  } else if (padding) {
    SmallVector<Value> where = {at[0], at[3]};
    if (node.rank(4) == 3)
      where.insert(where.begin() + 1, at[2]);
    Value keep = padding->read(inner, where);
    Value zero = arith::ConstantOp::create(inner, inner.getZeroAttr(keep.getType()));
    masked = arith::CmpIOp::create(inner, arith::CmpIPredicate::eq, keep, zero);
  }
  if (masked)
    score = score + select(masked, score.with(node.real("mask_filter_value", -10000.0)), score.with(0));
  if (!node.integer("unidirectional"))
    return score;
  Value position = arith::AddIOp::create(inner, at[2], pastLength);
  Value visible = arith::CmpIOp::create(inner, arith::CmpIPredicate::sle, at[3], position);
  return select(visible, score, score.with(std::numeric_limits<float>::lowest()));
}

LogicalResult MultiHeadAttention::lower() {
  if (failed(refuse(node, {{8, "past_sequence_length"}, {9, "cache_indirection"}})) || failed(readHeads()))
    return failure();
  if (node.has(4) && (node.rank(4) < 1 || node.rank(4) > 3))
    return node.fail() << "unsupported key_padding_mask of type " << node.type(4)
                       << "; supported: [batch], [batch, keys] and [batch, queries, keys]";
  if (node.has(4) && node.rank(4) == 1 &&
      failed(requireShape(node, node.in(4), node.size(query, 0), "the key_padding_mask", "[batch]")))
    return failure();
  prepareMasks();
  AttentionInputs inputs{convertFloats(node, query, compute),
                         convertFloats(node, key, compute),
                         convertFloats(node, value, compute),
                         {},
                         0,
                         {}};
  inputs.scale = getScale(node, "scale", node.size(query, 3), compute);
  auto steps = attend(node, inputs, [&](Number score, ValueRange at) { return see(score, at); });
  if (failed(steps))
    return failure();
  node.set(0, mergeHeads(node, convertFloats(node, steps->result, element)));
  node.set(1, key);
  node.set(2, value);
  node.set(3, convertFloats(node, steps->scores, element));
  return success();
}

static LogicalResult lowerMultiHeadAttention(Node &node) { return MultiHeadAttention(node).lower(); }

void addMicrosoftAttentionLowerings(LoweringTable &table) {
  table["onnx.com.microsoft.GroupQueryAttention"] = lowerGroupQueryAttention;
  table["onnx.com.microsoft.MultiHeadAttention"] = lowerMultiHeadAttention;
}

} // namespace hone::lowering
