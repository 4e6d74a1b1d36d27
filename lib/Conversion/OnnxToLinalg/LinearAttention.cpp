// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear attention, token after token: a state S [B, Hk, Dk, Dv] in place of keys and values. For each token, with the decay g in log space
// and the update rate beta where the rule has them,
//
//   S ← exp(g) S;   u = beta (v - Sᵀ k), or v;   S ← S + k uᵀ;   o = scale Sᵀ q
//
// (RetNet, Sun et al. 2023; GLA, Yang et al. 2023; Gated DeltaNet, Yang et al. 2024). Query heads share the state of a key head as in GQA.

#include "AttentionCore.h"
#include "Formula.h"
#include "Loops.h"

using namespace mlir;

namespace hone::lowering {

namespace {

class LinearAttention {
public:
  explicit LinearAttention(Node &node) : node(node), b(node.b) {}
  LogicalResult lower();

private:
  LogicalResult readRule();
  LogicalResult readInputs();
  LogicalResult readDecay();
  LogicalResult readBeta();
  Value readState();
  FailureOr<SmallVector<Value>> run(Value state);
  Value step(Value at, Value &state);
  LogicalResult requireOneOrAll(Size size, Size all, StringRef what);
  Value tokenOf(Value tensor, Value at, ArrayRef<Size> sizes);
  Value decayOf(Value at);
  Value rateOf(Value at);
  Value contract(ArrayRef<Size> sizes, Value vector, Value state);

  Node &node;
  Builder &b;
  Type compute;
  Size batch, steps, queryHeads, heads, group, keySize, valueSize;
  Size decaySize, betaHeads; // of a head, and of all: 1, or as many as there are
  Value query, key, value;   // [B, T, H * D], in the type that is computed in
  Value decay, beta;         // [B, T, Hk * (1 or Dk)], [B, T, 1 or Hk]; null where the rule has none
  Value scale;
  bool isGated = false, isDelta = false;
};

} // namespace

LogicalResult LinearAttention::readRule() {
  StringRef rule = node.string("update_rule", "gated_delta");
  if (!llvm::is_contained({"linear", "gated", "delta", "gated_delta"}, rule))
    return node.fail() << "unsupported update_rule '" << rule << "'; supported: linear, gated, delta, gated_delta";
  isGated = rule.starts_with("gated");
  isDelta = rule.ends_with("delta");
  for (auto [index, isWanted, name] : {std::tuple(4U, isGated, "decay"), std::tuple(5U, isDelta, "beta")})
    if (node.has(index) != isWanted)
      return node.fail() << "expected " << (isWanted ? "" : "no ") << "input '" << name << "' with update_rule '"
                         << rule << "'";
  return success();
}

LogicalResult LinearAttention::readInputs() {
  int64_t queries = node.integer("q_num_heads"), keys = node.integer("kv_num_heads");
  if (node.integer("state_window"))
    return node.fail() << "unsupported state_window; supported: 0, the state after the last token";
  if (queries <= 0 || keys <= 0 || queries % keys != 0)
    return node.fail() << "expected q_num_heads to be a positive multiple of kv_num_heads, but got " << queries
                       << " and " << keys;
  for (unsigned index : {0U, 1U, 2U, 4U, 5U})
    if (node.has(index) && node.rank(index) != 3)
      return node.fail() << "expected inputs of three dimensions, but got " << node.type(index);
  compute = getAccumulator(node.element(0));
  query = convertFloats(node, node.in(0), compute);
  key = convertFloats(node, node.in(1), compute);
  value = convertFloats(node, node.in(2), compute);
  queryHeads = b.getIndexAttr(queries);
  heads = b.getIndexAttr(keys);
  group = b.getIndexAttr(queries / keys);
  batch = node.size(query, 0);
  steps = node.size(query, 1);
  keySize = node.math.floorDiv(node.size(query, 2), queryHeads);
  valueSize = node.math.floorDiv(node.size(value, 2), heads);
  scale = getScale(node, "scale", keySize, compute);
  if (failed(requireShape(node, query, {batch, steps, node.math.mul(queryHeads, keySize)}, "query",
                          "[batch, tokens, q_num_heads * key size]")) ||
      failed(requireShape(node, key, {batch, steps, node.math.mul(heads, keySize)}, "key",
                          "[batch, tokens, kv_num_heads * key size]")) ||
      failed(requireShape(node, value, {batch, steps, node.math.mul(heads, valueSize)}, "value",
                          "[batch, tokens, kv_num_heads * value size]")))
    return failure();
  return failure(failed(readDecay()) || failed(readBeta()));
}

/// Failure if a size that may be 1 or `all` is known to be neither; a check at run time if it may be.
LogicalResult LinearAttention::requireOneOrAll(Size size, Size all, StringRef what) {
  auto known = IndexMath::getConstant(size), whole = IndexMath::getConstant(all);
  if (known == 1 || node.math.equal(size, all))
    return success();
  if (known && whole)
    return node.fail() << "expected " << what << " to be 1 or " << *whole << ", but got " << *known;
  Value isOne = node.math.compare(arith::CmpIPredicate::eq, size, b.getIndexAttr(1));
  Value isAll = node.math.compare(arith::CmpIPredicate::eq, size, all);
  node.check(b.createOrFold<arith::OrIOp>(isOne, isAll), "expected " + what + " to be 1 or {}, but got {}",
             {all, size});
  return success();
}

/// One number a head, or one for each of its keys' elements.
LogicalResult LinearAttention::readDecay() {
  if (!isGated)
    return success();
  decay = convertFloats(node, node.in(4), compute);
  decaySize = node.math.floorDiv(node.size(decay, 2), heads);
  if (failed(requireShape(node, decay, {batch, steps, node.math.mul(heads, decaySize)}, "decay",
                          "[batch, tokens, kv_num_heads or kv_num_heads * key size]")))
    return failure();
  return requireOneOrAll(decaySize, keySize, "the numbers of decay for a head");
}

/// One number a head, or one for all.
LogicalResult LinearAttention::readBeta() {
  if (!isDelta)
    return success();
  beta = convertFloats(node, node.in(5), compute);
  betaHeads = node.size(beta, 2);
  if (failed(requireShape(node, beta, {batch, steps, betaHeads}, "beta", "[batch, tokens, 1 or kv_num_heads]")))
    return failure();
  return requireOneOrAll(betaHeads, heads, "the columns of beta");
}

/// The state before the first token; null after an error.
Value LinearAttention::readState() {
  SmallVector<Size> sizes = {batch, heads, keySize, valueSize};
  if (!node.has(3)) {
    if (failed(node.lowerer.requireSizes(node.op, sizes, compute)))
      return {};
    return node.filled(sizes, node.zero(compute));
  }
  Value past = convertFloats(node, node.in(3), compute);
  if (failed(requireShape(node, past, sizes, "past_state", "[batch, kv_num_heads, key size, value size]")))
    return {};
  return node.reshape(past, sizes);
}

/// What a tensor has for one token.
Value LinearAttention::tokenOf(Value tensor, Value at, ArrayRef<Size> sizes) {
  return node.reshape(sliceAxis(node, tensor, 1, at, b.getIndexAttr(1)), sizes);
}

/// The number of a dimension that has `size` of them, 1 or all.
static Value clamp(Builder &b, Value index, Value size) {
  Value last = arith::SubIOp::create(b, size, arith::ConstantIndexOp::create(b, 1));
  return arith::MinSIOp::create(b, index, last);
}

/// What a token multiplies the state with [B, Hk, Dk, 1].
Value LinearAttention::decayOf(Value at) {
  Value each = node.math.value(decaySize);
  return node.generate({batch, heads, keySize, b.getIndexAttr(1)}, compute, [&](Builder &inner, ValueRange index) {
    Value head = arith::MulIOp::create(inner, index[1], each);
    Value column = arith::AddIOp::create(inner, head, clamp(inner, index[2], each));
    Value found = tensor::ExtractOp::create(inner, decay, ValueRange{index[0], at, column});
    return exp(Number{&inner, found}).value;
  });
}

/// How much of an update a token makes [B, Hk, 1].
Value LinearAttention::rateOf(Value at) {
  Value count = node.math.value(betaHeads);
  return node.generate({batch, heads, b.getIndexAttr(1)}, compute, [&](Builder &inner, ValueRange index) -> Value {
    return tensor::ExtractOp::create(inner, beta, ValueRange{index[0], at, clamp(inner, index[1], count)});
  });
}

/// Sums over the key's elements: of `vector[b, h, (g,) d]` and `state[b, h, d, m]`, as `sizes` [b, h, (g,) m].
Value LinearAttention::contract(ArrayRef<Size> sizes, Value vector, Value state) {
  auto rank = static_cast<unsigned>(sizes.size());
  SmallVector<AffineExpr> loops;
  for (unsigned i = 0; i <= rank; ++i)
    loops.push_back(b.getAffineDimExpr(i));
  AffineExpr inner = loops[rank], column = loops[rank - 1];
  SmallVector<AffineExpr> left(ArrayRef(loops).take_front(rank - 1)), right = {loops[0], loops[1], inner, column};
  left.push_back(inner);
  auto mapOf = [&](ArrayRef<AffineExpr> results) { return AffineMap::get(rank + 1, 0, results, b.getContext()); };
  return sumProducts(node, sizes, keySize, {vector, mapOf(left)}, {state, mapOf(right)});
}

/// The output [B, Hk, G, Dv] of a token; `state` becomes the one after it.
Value LinearAttention::step(Value at, Value &state) {
  Size one = b.getIndexAttr(1);
  SmallVector<Size> ofState = {batch, heads, keySize, valueSize};
  auto combine = [&](ArrayRef<Size> sizes, ValueRange tensors, llvm::function_ref<Number(ArrayRef<Number>)> body) {
    return node.elementwiseOver(sizes, tensors, compute, [&](Builder &inner, ValueRange values) {
      SmallVector<Number> numbers;
      for (Value one : values)
        numbers.push_back({&inner, one});
      return body(numbers).value;
    });
  };
  if (isGated)
    state = combine(ofState, {state, decayOf(at)}, [](ArrayRef<Number> x) { return x[0] * x[1]; });
  Value update = tokenOf(value, at, {batch, heads, valueSize});
  if (isDelta) {
    Value known = contract({batch, heads, valueSize}, tokenOf(key, at, {batch, heads, keySize}), state);
    update = combine({batch, heads, valueSize}, {update, known, rateOf(at)},
                     [](ArrayRef<Number> x) { return x[2] * (x[0] - x[1]); });
  }
  Value column = tokenOf(key, at, {batch, heads, keySize, one}),
        row = node.reshape(update, {batch, heads, one, valueSize});
  state = combine(ofState, {state, column, row}, [](ArrayRef<Number> x) { return x[0] + x[1] * x[2]; });
  SmallVector<Size> sizes = {batch, heads, group, valueSize};
  Value read = contract(sizes, tokenOf(query, at, {batch, heads, group, keySize}), state);
  return combine(sizes, read, [&](ArrayRef<Number> x) { return x[0] * Number{x[0].b, scale}; });
}

/// The outputs [B, T, Hq * Dv] and the last state.
FailureOr<SmallVector<Value>> LinearAttention::run(Value state) {
  Size width = node.math.mul(queryHeads, valueSize);
  SmallVector<Size> all = {batch, steps, width}, ofState = node.sizes(state);
  if (failed(node.lowerer.requireSizes(node.op, all, compute)))
    return failure();
  Value first = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ForOp::create(b, first, node.math.value(steps), one, ValueRange{node.empty(all, compute), state});
  {
    OpBuilder::InsertionGuard guard(b);
    IndexMath::RegionScope scope(node.math);
    b.setInsertionPointToStart(loop.getBody());
    Value outputs = loop.getRegionIterArg(0), next = loop.getRegionIterArg(1), at = loop.getInductionVar();
    node.lowerer.setSizes(next, ofState);
    Value row = node.reshape(step(at, next), {batch, b.getIndexAttr(1), width});
    SmallVector<Size> offsets = {b.getIndexAttr(0), at, b.getIndexAttr(0)}, ones(3, b.getIndexAttr(1));
    Value written = tensor::InsertSliceOp::create(b, row, outputs, offsets, {batch, b.getIndexAttr(1), width}, ones);
    scf::YieldOp::create(b, ValueRange{written, next});
  }
  node.lowerer.setSizes(loop.getResult(0), all);
  node.lowerer.setSizes(loop.getResult(1), ofState);
  return SmallVector<Value>(loop.getResults());
}

LogicalResult LinearAttention::lower() {
  if (failed(readRule()) || failed(readInputs()))
    return failure();
  Value state = readState();
  if (!state)
    return failure();
  auto results = run(state);
  if (failed(results))
    return failure();
  node.set(0, convertFloats(node, (*results)[0], node.element(0)));
  if (node.wants(1))
    node.set(1, convertFloats(node, (*results)[1], node.element(node.has(3) ? 3 : 0)));
  return success();
}

static LogicalResult lowerLinearAttention(Node &node) { return LinearAttention(node).lower(); }

/// com.microsoft LinearAttentionGate: decay = decay_scale softplus(a + dt_bias), beta = sigmoid(b), with numbers of f32 a head.
static LogicalResult lowerGate(Node &node) {
  if (node.wants(1) && !node.has(3))
    return node.fail() << "expected input 'b' with the output 'beta'";
  for (unsigned index : {0U, 3U})
    if (node.has(index) && node.rank(index) != 3)
      return node.fail() << "expected inputs of three dimensions, but got " << node.type(index);
  Type compute = getAccumulator(node.element(0)), element = node.element(0);
  Value a = convertFloats(node, node.in(0), compute);
  SmallVector<Size> sizes = node.sizes(a);
  if (failed(requireShape(node, node.in(1), sizes[2], "dt_bias", "[heads]")) ||
      failed(requireShape(node, node.in(2), sizes[2], "decay_scale", "[heads]")))
    return failure();
  SmallVector<Value> operands = {a, convertFloats(node, node.in(1), compute), convertFloats(node, node.in(2), compute)};
  Value decay = node.elementwiseOver(sizes, operands, compute, [](Builder &b, ValueRange x) {
    return (Number{&b, x[2]} * softplus(Number{&b, x[0]} + Number{&b, x[1]})).value;
  });
  node.set(0, convertFloats(node, decay, element));
  if (node.wants(1))
    node.set(1, computeElementwise(node, {3}, node.declared(3), [](ArrayRef<Number> x) { return sigmoid(x[0]); }));
  return success();
}

void addLinearAttentionLowerings(LoweringTable &table) {
  table["onnx.LinearAttention"] = lowerLinearAttention;
  table["onnx.com.microsoft.LinearAttention"] = lowerLinearAttention;
  table["onnx.com.microsoft.LinearAttentionGate"] = lowerGate;
}

} // namespace hone::lowering
