// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft operators over a residual stream of several branches (hyper-connections, the gate of Engram), and what gated layers add
// and normalise. All but GatedAdd are computed in f32. Sums over a dimension are products with ones, as the axes of ReduceSum are an
// attribute or an input, depending on the opset. Compiled with exceptions, as libonnx reports by them.

#include "SchemaBuilding.h"

#include <cmath>

using ::onnx::AttributeProto;
using ::onnx::OpSchema;
using ::onnx::TensorProto;

namespace hone::onnxir {

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static int64_t readRank(const FunctionBody &body, int input, int64_t least) {
  auto rank = body.rank(input);
  if (!rank || *rank < least)
    FunctionBody::refuse("expected input " + std::to_string(input) + " to have " + std::to_string(least) +
                         " or more dimensions, but got " + (rank ? std::to_string(*rank) : "an unknown number"));
  return *rank;
}

static int64_t readSize(const FunctionBody &body, int input, int64_t dim) {
  auto size = body.size(input, static_cast<int>(dim));
  if (!size)
    FunctionBody::refuse("expected size " + std::to_string(dim) + " of input " + std::to_string(input) +
                         " to be known");
  return *size;
}

/// `count` numbers that are `value`.
static void fill(FunctionBody &body, const std::string &name, int64_t count, float value) {
  constexpr int64_t kMost = 1 << 24; // sizes are what a file claims
  if (count < 1 || count > kMost)
    body.refuse("unsupported size " + std::to_string(count) + "; supported: 1 to " + std::to_string(kMost));
  body.row(name, std::vector<float>(count, value));
}

/// `to` = `from` with its first `kept` sizes and then `sizes`, of which one may be -1.
static void reshape(FunctionBody &body, const std::string &from, const std::string &to, int64_t kept,
                    const std::vector<int64_t> &sizes) {
  std::vector<int64_t> shape(kept, 0);
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  body.constant(to + "_shape", shape);
  body.add(to + " = Reshape(" + from + ", " + to + "_shape)");
}

/// `to` = `from`, f32, with the type and the sizes of input 0: one that is larger, as an operand is, does not have them.
static void finish(FunctionBody &body, const std::string &from, const std::string &to) {
  body.add(to + "_sizes = Shape(" + body.name(0) + ")\n" + to + "_sized = Reshape(" + from + ", " + to + "_sizes)\n" +
           to + " = Cast(" + to + "_sized)");
  body.attribute("to", static_cast<int64_t>(body.element(0)));
}

namespace {

/// Branches [..., count, width] of a stream that has them so, or as [..., count * width]; only those have their number in the node.
struct Branches {
  int64_t rank;
  std::optional<int64_t> flatCount;
};

} // namespace

/// `branches` = input 0 in f32, as [..., count, width].
static Branches readBranches(FunctionBody &body) {
  int64_t count = body.integer("num_branches");
  if (count < 0)
    body.refuse("expected num_branches to be at least 0, but got " + std::to_string(count));
  body.add("stream = Cast<to = 1>(" + body.name(0) + ")");
  if (count > 0) {
    int64_t rank = readRank(body, 0, 1) + 1;
    reshape(body, "stream", "branches", rank - 2, {count, -1});
    return {rank, count};
  }
  int64_t rank = readRank(body, 0, 2);
  body.add("branches = Identity(stream)");
  return {rank, std::nullopt};
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// `to` = `from` / sqrt(mean(from^2) + epsilon) over the last dimension, of `width`.
static void normalize(FunctionBody &body, const std::string &from, const std::string &to, int64_t width) {
  fill(body, to + "_ones", width, 1);
  body.add(to + " = com.microsoft.SimplifiedLayerNormalization(" + from + ", " + to + "_ones)");
  body.copy({"epsilon"});
}

/// Y = norm(X) * scale * activation(gate); the norm is over groups of as many elements as the scale has.
static void makeGatedRmsNorm(FunctionBody &body) {
  std::string activation = body.text("activation");
  if (activation != "silu" && activation != "swish" && activation != "sigmoid")
    body.refuse("unsupported activation '" + activation + "'; supported: sigmoid, silu, swish");
  int64_t rank = readRank(body, 0, 1), width = readSize(body, 1, 0);
  body.add("stream = Cast<to = 1>(X)\nsingle_scale = Cast<to = 1>(scale)\nsingle_gate = Cast<to = 1>(gate)");
  if (body.size(0, static_cast<int>(rank - 1)) == width)
    body.add("groups = Identity(stream)");
  else
    reshape(body, "stream", "groups", rank - 1, {-1, width});
  body.add("normalized = com.microsoft.SimplifiedLayerNormalization(groups, single_scale)");
  body.copy({"epsilon"});
  body.add("x_shape = Shape(X)\nrows = Reshape(normalized, x_shape)\nopen = Sigmoid(single_gate)");
  body.add(activation == "sigmoid" ? "factor = Identity(open)" : "factor = Mul(single_gate, open)");
  body.add("gated = Mul(rows, factor)");
  finish(body, "gated", "Y");
}

/// The scale has an element for each of the stream, of a branch, or as [branches, width].
static void makeBranchwiseRmsNorm(FunctionBody &body) {
  constexpr int kScale = 1;
  Branches branches = readBranches(body);
  int64_t last = readSize(body, 0, *body.rank(0) - 1), width = last / branches.flatCount.value_or(1);
  normalize(body, "branches", "normalized", width);
  if (!body.has(kScale))
    return finish(body, "normalized", "Y");
  body.add("single_scale = Cast<to = 1>(scale)");
  bool isOfAll = readRank(body, kScale, 1) == 1 && readSize(body, kScale, 0) != width;
  if (isOfAll)
    reshape(body, "single_scale", "factor", 0, {-1, width});
  else
    body.add("factor = Identity(single_scale)");
  body.add("scaled = Mul(normalized, factor)");
  finish(body, "scaled", "Y");
}

//===----------------------------------------------------------------------===//
// Gates
//===----------------------------------------------------------------------===//

static void makeGatedAdd(FunctionBody &body) {
  body.add("scaled = Mul(Y, gate)\nsum = Add(X, scaled)\nx_shape = Shape(X)\noutput = Reshape(sum, x_shape)");
}

/// `to` = `from` [batch, sequence, branches, width] in f32, its norm times `scale` [branches, width].
static void normalizeBranches(FunctionBody &body, const std::string &from, const std::string &scale,
                              const std::string &to, int64_t width) {
  body.add(to + "_single = Cast<to = 1>(" + from + ")\n" + to + "_scale = Cast<to = 1>(" + scale + ")");
  normalize(body, to + "_single", to + "_normalized", width);
  body.add(to + " = Mul(" + to + "_normalized, " + to + "_scale)");
}

/// sigmoid(sign(d) * sqrt(max(|d|, 1e-6))) * value, where d = norm(key) · norm(query) / sqrt(width).
static void makeEngramGate(FunctionBody &body) {
  constexpr int kKeyScale = 3, kConvScale = 5;
  constexpr float kLeast = 1e-6f;
  int64_t width = readSize(body, kKeyScale, 1);
  normalizeBranches(body, "key", "key_norm_scale", "keys", width);
  normalizeBranches(body, "query", "query_norm_scale", "queries", width);
  fill(body, "shares", width, 1 / std::sqrt(static_cast<float>(width)));
  reshape(body, "shares", "share_column", 0, {-1, 1});
  body.scalar("least", kLeast, TensorProto::FLOAT);
  body.add("products = Mul(keys, queries)\n"
           "dot = MatMul(products, share_column)\n"
           "sign = Sign(dot)\n"
           "size = Abs(dot)\n"
           "limited = Max(size, least)\n"
           "root = Sqrt(limited)\n"
           "signed_root = Mul(sign, root)\n"
           "open = Sigmoid(signed_root)\n"
           "single_value = Cast<to = 1>(value)");
  reshape(body, "single_value", "values", 2, {1, -1});
  body.add("gated = Mul(open, values)");
  finish(body, "gated", "output");
  if (body.has(kConvScale)) {
    normalizeBranches(body, "gated", "conv_norm_scale", "convolved", width);
    return finish(body, "convolved", "gated_value_normed");
  }
  if (body.isAskedFor(1))
    body.refuse("expected conv_norm_scale beside gated_value_normed");
  body.add("gated_value_normed = Identity(output)"); // which nobody reads
}

//===----------------------------------------------------------------------===//
// Hyper-connections
//===----------------------------------------------------------------------===//

/// Y[..., h] = reduction_scale * sum over c of X[..., c, h] * pre_mix[..., c, h].
static void makePreMix(FunctionBody &body) {
  constexpr int kMix = 1;
  Branches branches = readBranches(body);
  int64_t rank = readRank(body, kMix, 1);
  body.add("mix = Cast<to = 1>(pre_mix)");
  auto flat = branches.flatCount;
  bool isFlat = flat && rank == branches.rank - 1 && readSize(body, kMix, rank - 1) != *flat;
  if (rank == branches.rank - 1 && !isFlat) {
    reshape(body, "mix", "weights", rank - 1, {1, -1}); // one number a branch
    body.add("terms = Identity(branches)");
  } else {
    if (isFlat)
      reshape(body, "mix", "gates", rank - 1, {*flat, -1});
    else
      body.add("gates = Identity(mix)");
    body.add("terms = Mul(branches, gates)");
    fill(body, "ones", flat ? *flat : readSize(body, 0, branches.rank - 2), 1);
    reshape(body, "ones", "weights", 0, {1, -1});
  }
  body.scalar("factor", body.real("reduction_scale"), TensorProto::FLOAT);
  body.add("sum = MatMul(weights, terms)\nscaled = Mul(sum, factor)");
  reshape(body, "scaled", "result", branches.rank - 2, {-1});
  body.add("output = Cast(result)", "to", static_cast<int64_t>(body.element(0)));
}

/// Y[..., k, h] = sum over c of stream_mix[..., c, k] * streams[..., c, h] + post_mix[..., k, h] * block_output[..., h].
static void makePostMix(FunctionBody &body) {
  constexpr int kPostMix = 2, kStreamMix = 3;
  Branches branches = readBranches(body);
  body.add("single_block = Cast<to = 1>(block_output)\nsingle_mix = Cast<to = 1>(post_mix)");
  reshape(body, "single_block", "block", branches.rank - 2, {1, -1});
  if (readRank(body, kPostMix, 1) == branches.rank)
    body.add("gates = Identity(single_mix)");
  else
    reshape(body, "single_mix", "gates", branches.rank - 1, {1});
  body.add("injected = Mul(gates, block)");
  if (body.has(kStreamMix)) {
    int64_t rank = readRank(body, kStreamMix, 2);
    std::vector<int64_t> order(rank);
    for (int64_t dim = 0; dim < rank; ++dim)
      order[dim] = dim;
    std::swap(order[rank - 2], order[rank - 1]);
    body.add("single_matrix = Cast<to = 1>(stream_mix)");
    body.add("matrix = Transpose(single_matrix)", "perm", order);
    body.add("mixed = MatMul(matrix, branches)");
  } else {
    body.add("mixed = Identity(branches)");
  }
  body.add("sum = Add(mixed, injected)");
  finish(body, "sum", "output");
}

//===----------------------------------------------------------------------===//
// Schemas
//===----------------------------------------------------------------------===//

static OpSchema makeNormSchema(const char *name, const Signature &signature) {
  OpSchema schema = makeSchema(name, signature);
  addFloats(schema, {{"epsilon", 1e-5f}});
  return schema;
}

std::vector<OpSchema> makeBranchFunctions() {
  OpSchema gatedNorm = makeNormSchema("GatedRMSNorm", {{"X", "scale", "gate"}, {"Y"}});
  gatedNorm.Attr("activation", "", AttributeProto::STRING, std::string("silu"));
  OpSchema branchwise = makeNormSchema("BranchwiseRMSNorm", {{"X", "scale?"}, {"Y"}});
  OpSchema engram =
      makeNormSchema("EngramGate", {{"key", "query", "value", "key_norm_scale", "query_norm_scale", "conv_norm_scale?"},
                                    {"output", "gated_value_normed?"}});
  OpSchema preMix = makeSchema("HyperConnectionPreMix", {{"streams", "pre_mix"}, {"output"}});
  addFloats(preMix, {{"reduction_scale", 1.0f}});
  OpSchema postMix =
      makeSchema("HyperConnectionPostMix", {{"streams", "block_output", "post_mix", "stream_mix?"}, {"output"}});
  for (OpSchema *schema : {&branchwise, &preMix, &postMix})
    addIntegers(*schema, {{"num_branches", 0}});
  return {withFunction(makeSchema("GatedAdd", {{"X", "Y", "gate"}, {"output"}}), makeGatedAdd),
          withFunction(std::move(gatedNorm), makeGatedRmsNorm),
          withFunction(std::move(branchwise), makeBranchwiseRmsNorm),
          withFunction(std::move(engram), makeEngramGate),
          withFunction(std::move(preMix), makePreMix),
          withFunction(std::move(postMix), makePostMix)};
}

} // namespace hone::onnxir
