// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft Attention and QAttention: query, key and value are one product, then comes softmax attention, spelled as exporters
// spell it; and the forms of attention for one token, as those that take any number. Compiled with exceptions, as libonnx reports by them.

#include "SchemaBuilding.h"

#include <cmath>
#include <limits>

using ::onnx::AttributeProto;
using ::onnx::OpSchema;
using ::onnx::TensorProto;

namespace hone::onnxir {

namespace {

/// Widths of query, key and value in the packed product, and the number of heads of each.
struct Heads {
  int64_t count, queryWidth, keyWidth, valueWidth;
};

} // namespace

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

static void checkWidth(const char *what, int64_t width, int64_t heads) {
  if (width <= 0 || width % heads != 0)
    FunctionBody::refuse(std::string("expected the width of the ") + what + " to be a positive multiple of " +
                         std::to_string(heads) + " heads, but got " + std::to_string(width));
}

static Heads readHeads(FunctionBody &body, int weights) {
  Heads heads{body.integer("num_heads"), 0, 0, 0};
  if (heads.count < 1)
    body.refuse("expected num_heads to be positive, but got " + std::to_string(heads.count));
  auto rank = body.rank(weights);
  if (rank && *rank != 2)
    body.refuse("expected the weights to have 2 dimensions, but got " + std::to_string(*rank));
  std::vector<int64_t> widths = body.integers("qkv_hidden_sizes");
  auto columns = body.size(weights, 1);
  if (!widths.empty() && widths.size() != 3)
    body.refuse("expected qkv_hidden_sizes to have 3 elements, but got " + std::to_string(widths.size()));
  if (widths.empty() && !columns)
    body.refuse("expected the columns of the weights or qkv_hidden_sizes to be known");
  if (widths.empty() && *columns % 3 != 0)
    body.refuse("expected the columns of the weights to be a multiple of 3, but got " + std::to_string(*columns));
  if (widths.empty())
    widths.assign(3, *columns / 3);
  heads.queryWidth = widths[0], heads.keyWidth = widths[1], heads.valueWidth = widths[2];
  checkWidth("query", heads.queryWidth, heads.count);
  checkWidth("key", heads.keyWidth, heads.count);
  checkWidth("value", heads.valueWidth, heads.count);
  int64_t all = heads.queryWidth + heads.keyWidth + heads.valueWidth;
  if (columns && *columns != all)
    body.refuse("expected the columns of the weights to be the sum of qkv_hidden_sizes, " + std::to_string(all) +
                ", but got " + std::to_string(*columns));
  if (heads.queryWidth != heads.keyWidth)
    body.refuse("expected query and key to have one width, but got " + std::to_string(heads.queryWidth) + " and " +
                std::to_string(heads.keyWidth));
  return heads;
}

/// `part`, columns [first, first + width) of the packed product, as `part`_heads [B, H, S, D].
static void splitHeads(FunctionBody &body, const std::string &part, int64_t first, int64_t width, int64_t heads) {
  body.constant(part + "_first", {first});
  body.constant(part + "_last", {first + width});
  body.constant(part + "_shape", {0, 0, heads, width / heads});
  body.add(part + "_columns = Slice(packed, " + part + "_first, " + part + "_last, two)\n" + part +
           "_split = Reshape(" + part + "_columns, " + part + "_shape)\n" + part +
           "_heads = Transpose<perm = [0, 2, 1, 3]>(" + part + "_split)");
}

/// Puts what `past` [2, B, H, P, D] holds in front of key and value, and both together into `present`.
static void extend(FunctionBody &body, bool hasPast) {
  body.constant("one", {1});
  for (std::string part : {"key", "value"}) {
    std::string fresh = part + "_heads", all = part + "_all";
    body.single(part + "_index", part == "key" ? 0 : 1);
    if (hasPast)
      body.add(part + "_past = Gather<axis = 0>(past, " + part + "_index)\n" + all + " = Concat<axis = 2>(" + part +
               "_past, " + fresh + ")");
    else
      body.add(all + " = Identity(" + fresh + ")");
    body.add(part + "_sizes = Shape(" + all + ")\n" + part + "_one = Concat<axis = 0>(one, " + part + "_sizes)\n" +
             part + "_present = Reshape(" + all + ", " + part + "_one)");
  }
  body.add("present = Concat<axis = 0>(key_present, value_present)");
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// `positions` [keys]: 0, 1, … over the keys, and `key_count`.
static void countKeys(FunctionBody &body) {
  body.single("key_axis", 2);
  body.single("zero_count", 0);
  body.single("one_count", 1);
  body.number("positions", "key_count", "key_all", 2);
}

/// `flags` [B, 1, queries, keys] of `wide_mask` [B, 1, all, all], which has a row for each position that there may be.
static void sliceSquareMask(FunctionBody &body) {
  if (body.integer("unidirectional") != 0)
    body.refuse("unsupported unidirectional 1 with a mask_index of 4 dimensions; supported: 0");
  body.constant("begin", {0});
  body.constant("column_axis", {3});
  body.add("query_sizes = Shape(query_heads)\n"
           "query_count = Gather(query_sizes, key_axis)\n"
           "past_count = Sub(key_count, query_count)\n"
           "first_row = Reshape(past_count, one)\n"
           "all_keys = Reshape(key_count, one)\n"
           "mask_rows = Slice(wide_mask, first_row, all_keys, two)\n"
           "flags = Slice(mask_rows, begin, all_keys, column_axis)");
}

/// `keep`, which broadcasts to the scores: keys that the mask shows. Its forms are those of onnxruntime: the lengths [B]; flags
/// [B, keys], [B, queries, keys] or [B, 1, all, all].
static void readMask(FunctionBody &body, int mask) {
  auto rank = body.rank(mask);
  std::string given = body.name(mask);
  if (!rank || *rank < 1 || *rank > 4)
    body.refuse("unsupported mask_index of " + (rank ? std::to_string(*rank) : "unknown") +
                " dimensions; supported: [batch], [batch, keys], [batch, queries, keys] and [batch, 1, all, all]");
  if (*rank == 1) {
    body.constant("column", {0, 1, 1, 1});
    body.constant("begin", {0});
    body.constant("ones", {1, 1, 1});
    body.add("mask_sizes = Shape(" + body.name(0) +
             ")\n"
             "batch_size = Slice(mask_sizes, begin, one)\n"
             "length_shape = Concat<axis = 0>(batch_size, ones)\n"
             "wide_mask = Cast<to = 7>(" +
             given +
             ")\n"
             "lengths = Reshape(wide_mask, length_shape)\n"
             "keep = Less(positions, lengths)");
    return;
  }
  body.add("wide_mask = Cast<to = 7>(" + given + ")");
  if (*rank == 4) {
    sliceSquareMask(body);
  } else if (*rank == 2) {
    body.constant("mask_shape", {0, 1, 1, -1});
    body.add("flags = Reshape(wide_mask, mask_shape)");
  } else {
    body.constant("begin", {0});
    body.constant("three", {3});
    body.add("mask_sizes = Shape(" + given +
             ")\n"
             "mask_batch = Slice(mask_sizes, begin, one)\n"
             "mask_rest = Slice(mask_sizes, one, three)\n"
             "mask_shape = Concat<axis = 0>(mask_batch, one, mask_rest)\n"
             "flags = Reshape(wide_mask, mask_shape)");
  }
  body.add("keep = Greater(flags, zero_count)");
}

/// `logits` from `scaled`: masked keys get mask_filter_value added, later ones the least float instead.
static void maskScores(FunctionBody &body, int mask, int32_t type, bool isCausal) {
  std::string logits = "scaled";
  if (body.has(mask)) {
    readMask(body, mask);
    bool isGiven = body.hasAttribute("mask_filter_value");
    body.scalar("hidden", isGiven ? body.real("mask_filter_value") : -10000.0f, type);
    body.scalar("shown", 0, type);
    body.add("mask_values = Where(keep, shown, hidden)\nmasked = Add(scaled, mask_values)");
    logits = "masked";
  }
  if (isCausal) {
    body.constant("query_shape", {-1, 1});
    body.add("query_sizes = Shape(query_heads)\n"
             "query_count = Gather(query_sizes, key_axis)\n"
             "past_count = Sub(key_count, query_count)\n"
             "query_positions = Range(past_count, key_count, one_count)\n"
             "query_column = Reshape(query_positions, query_shape)\n"
             "is_later = Greater(positions, query_column)");
    body.scalar("least", std::numeric_limits<float>::lowest(), TensorProto::FLOAT);
    body.add("least_typed = Cast(least)", "to", static_cast<int64_t>(type));
    body.add("causal = Where(is_later, least_typed, " + logits + ")");
    logits = "causal";
  }
  body.add("visible_logits = Identity(" + logits + ")");
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static void refuseSet(FunctionBody &body, std::initializer_list<const char *> flags) {
  for (const char *flag : flags)
    if (body.integer(flag) != 0)
      body.refuse(std::string("unsupported ") + flag + " " + std::to_string(body.integer(flag)) + "; supported: 0");
}

/// From `packed` [B, S, widths of query, key and value] to `output`; `bias` is the input that is added to the scores, or -1.
static void attend(FunctionBody &body, const Heads &heads, int mask, int past, int bias, int32_t type) {
  refuseSet(body, {"do_rotary", "past_present_share_buffer"});
  body.constant("two", {2});
  splitHeads(body, "query", 0, heads.queryWidth, heads.count);
  splitHeads(body, "key", heads.queryWidth, heads.keyWidth, heads.count);
  splitHeads(body, "value", heads.queryWidth + heads.keyWidth, heads.valueWidth, heads.count);
  extend(body, body.has(past));
  float scale = body.real("scale");
  body.scalar("factor", scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(heads.keyWidth / heads.count)), type);
  body.add("key_columns_first = Transpose<perm = [0, 1, 3, 2]>(key_all)\n"
           "scores = MatMul(query_heads, key_columns_first)\n"
           "scaled = Mul(scores, factor)");
  bool isCausal = body.integer("unidirectional") != 0;
  if (body.has(mask) || isCausal)
    countKeys(body);
  maskScores(body, mask, type, isCausal);
  if (bias >= 0 && body.has(bias))
    body.add("logits = Add(visible_logits, " + body.name(bias) + ")");
  else
    body.add("logits = Identity(visible_logits)");
  body.constant("merged_shape", {0, 0, heads.valueWidth});
  body.add("probabilities = Softmax<axis = -1>(logits)\n"
           "result = MatMul(probabilities, value_all)\n"
           "result_rows = Transpose<perm = [0, 2, 1, 3]>(result)\n"
           "output = Reshape(result_rows, merged_shape)");
}

static void makeAttention(FunctionBody &body) {
  if (body.has(6))
    body.refuse("unsupported input 'past_sequence_length'; supported: the operator without it");
  Heads heads = readHeads(body, 1);
  body.add("product = MatMul(input, weights)");
  body.add(body.has(2) ? "packed = Add(product, bias)" : "packed = Identity(product)");
  attend(body, heads, /*mask=*/3, /*past=*/4, /*bias=*/5, body.element(0));
}

static void makeQAttention(FunctionBody &body) {
  Heads heads = readHeads(body, 1);
  body.add("sums = MatMulInteger(input, weight, " + body.name(6) + ", " + body.name(7) + ")");
  body.add("single_sums = Cast(sums)", "to", static_cast<int64_t>(body.element(3)));
  body.add("scales = Mul(input_scale, weight_scale)\n"
           "product = Mul(single_sums, scales)\n"
           "packed = Add(product, bias)");
  attend(body, heads, /*mask=*/5, /*past=*/8, /*bias=*/-1, body.element(3));
}

//===----------------------------------------------------------------------===//
// One token
//===----------------------------------------------------------------------===//

static void makeDecoderSelfAttention(FunctionBody &body) {
  constexpr int kIndirection = 8;
  if (body.has(kIndirection))
    body.refuse("unsupported input 'cache_indirection'; supported: the operator without it");
  std::string operands = "input, weights, bias, " + body.name(3) + ", past, " + body.name(5);
  body.add("output, present = com.microsoft.Attention(" + operands + ")");
  body.copy({"do_rotary", "mask_filter_value", "num_heads", "past_present_share_buffer", "scale"});
}

/// `token` [B, 1, width], `key` and `value` after it where the query has all three.
static void readToken(FunctionBody &body, std::string &key, std::string &value) {
  if (body.rank(0) != 3 || (body.size(0, 1) && *body.size(0, 1) != 1))
    body.refuse("expected the query to be [batch, 1, hidden]");
  body.constant("token_shape", {0, 1, -1});
  if (body.has(1) && body.has(2))
    return body.add("token = Reshape(query, token_shape)");
  body.constant("parts_shape", {0, 3, -1});
  body.constant("part_axis", {1});
  body.add("row = Reshape(query, token_shape)\nparts = Reshape(row, parts_shape)");
  for (auto [i, name] : {std::pair(0, "token"), std::pair(1, "packed_key"), std::pair(2, "packed_value")}) {
    body.constant(std::string(name) + "_first", {i});
    body.constant(std::string(name) + "_last", {i + 1});
    body.add(std::string(name) + " = Slice(parts, " + name + "_first, " + name + "_last, part_axis)");
  }
  key = "packed_key", value = "packed_value";
}

/// A cache `past` [B, H, rows, D] of which the first `past_sequence_length` rows are in use: `part`_used.
static void readUsedRows(FunctionBody &body, const std::string &part) {
  body.add(part + "_used = Slice(past_" + part + ", begin, held, row_axis)");
}

/// The cache with the token's row after them. More rows than it has are no cache.
static void writeUsedRows(FunctionBody &body, const std::string &part) {
  body.add(part + "_rest = Slice(past_" + part + ", next, end, row_axis)\n" + part + "_written = Concat<axis = 2>(" +
           part + "_all, " + part + "_rest)\n" + part + "_sizes = Shape(past_" + part + ")\npresent_" + part +
           " = Reshape(" + part + "_written, " + part + "_sizes)");
}

/// Of one token over its own cache, or over the keys of an encoder [B, H, S, D].
static void makeDecoderAttention(FunctionBody &body) {
  constexpr int kMask = 3, kAdded = 4, kPastKey = 5, kPastValue = 6, kLength = 7, kIndirection = 9, kBias = 10;
  if (body.has(kIndirection))
    body.refuse("unsupported input 'cache_indirection'; supported: the operator without it");
  bool hasPast = body.has(kPastKey) && body.has(kPastValue);
  bool isShared = body.integer("past_present_share_buffer") != 0 && hasPast;
  if (isShared && !body.has(kLength))
    body.refuse("expected input 'past_sequence_length' with past_present_share_buffer");
  std::string key = "key", value = "value", past = body.name(kPastKey) + ", " + body.name(kPastValue);
  readToken(body, key, value);
  if (isShared) {
    body.constant("begin", {0});
    body.constant("one", {1});
    body.constant("row_axis", {2});
    body.constant("end", {std::numeric_limits<int64_t>::max()});
    body.add("wide_length = Cast<to = 7>(past_sequence_length)\n"
             "held = Reshape(wide_length, one)\n"
             "next = Add(held, one)");
    readUsedRows(body, "key");
    readUsedRows(body, "value");
    past = "key_used, value_used";
  }
  std::string present = isShared ? "key_all, value_all" : "present_key, present_value";
  body.add("output, " + present + ", qk = com.microsoft.MultiHeadAttention(token, " + key + ", " + value + ", " +
           body.name(kBias) + ", " + body.name(kMask) + ", " + body.name(kAdded) + ", " + past + ")");
  body.copy({"mask_filter_value", "num_heads", "scale"});
  if (!isShared)
    return;
  writeUsedRows(body, "key");
  writeUsedRows(body, "value");
}

static OpSchema makeDecoderSchema(const char *name, const Signature &signature) {
  OpSchema schema = makeSchema(name, signature);
  schema.Attr("num_heads", "", AttributeProto::INT, true);
  addOptional(schema, AttributeProto::INT, {"past_present_share_buffer"});
  addOptional(schema, AttributeProto::FLOAT, {"scale", "mask_filter_value"});
  return schema;
}

static OpSchema makeAttentionSchema(const char *name, const std::vector<std::string> &inputs) {
  OpSchema schema = makeSchema(name, {inputs, {"output", "present?"}});
  schema.Attr("num_heads", "", AttributeProto::INT, true);
  addIntegers(schema, {{"unidirectional", 0}});
  addOptional(schema, AttributeProto::INT, {"do_rotary", "past_present_share_buffer"});
  addOptional(schema, AttributeProto::FLOAT, {"scale", "mask_filter_value"});
  return schema;
}

std::vector<OpSchema> makeAttentionFunctions() {
  OpSchema attention = makeAttentionSchema(
      "Attention", {"input", "weights", "bias?", "mask_index?", "past?", "attention_bias?", "past_sequence_length?"});
  addOptional(attention, AttributeProto::INTS, {"qkv_hidden_sizes"});
  addOptional(attention, AttributeProto::INT, {"rotary_embedding_dim"});
  OpSchema quantized =
      makeAttentionSchema("QAttention", {"input", "weight", "bias", "input_scale", "weight_scale", "mask_index?",
                                         "input_zero_point?", "weight_zero_point?", "past?"});
  OpSchema self = makeDecoderSchema("DecoderMaskedSelfAttention",
                                    {{"input", "weights", "bias", "mask_index?", "past", "attention_bias?",
                                      "past_sequence_length?", "beam_width?", "cache_indirection?"},
                                     {"output", "present"}});
  addOptional(self, AttributeProto::INT, {"do_rotary"});
  OpSchema decoder =
      makeDecoderSchema("DecoderMaskedMultiHeadAttention",
                        {{"query", "key?", "value?", "mask_index?", "attention_bias?", "past_key?", "past_value?",
                          "past_sequence_length?", "beam_width?", "cache_indirection?", "bias?"},
                         {"output", "present_key?", "present_value?", "qk?"}});
  addOptional(decoder, AttributeProto::INT, {"output_qk"});
  return {withFunction(std::move(attention), makeAttention), withFunction(std::move(quantized), makeQAttention),
          withFunction(std::move(self), makeDecoderSelfAttention),
          withFunction(std::move(decoder), makeDecoderAttention)};
}

} // namespace hone::onnxir
