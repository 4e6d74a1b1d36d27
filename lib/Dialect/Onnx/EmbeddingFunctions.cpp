// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft EmbedLayerNormalization and QEmbedLayerNormalization: rows of tables of words, positions and segments, summed and
// normalised; and MRotaryEmbedding, M-RoPE of the Qwen models that see. Compiled with exceptions, as libonnx reports by them.

#include "SchemaBuilding.h"

#include <algorithm>

using ::onnx::AttributeProto;
using ::onnx::OpSchema;
using ::onnx::TensorProto;

namespace hone::onnxir {

/// `position_ids_used`: those that are given, or 0, 1, … along the sequence.
static void countPositions(FunctionBody &body, int given) {
  if (given >= 0 && body.has(given))
    return body.add("position_ids_used = Identity(" + body.name(given) + ")");
  body.number("position_ids_used", "sequence_length", "input_ids", 1);
}

/// `index` [B]: how many words each row of the mask shows; 0 without a mask.
static void countWords(FunctionBody &body, int mask, const std::string &index) {
  body.constant("counted_axis", {body.has(mask) ? 1 : 0});
  body.add("counted_sizes = Shape(input_ids)\ncounted_size = Gather(counted_sizes, counted_axis)");
  if (body.has(mask)) {
    // The axes of ReduceSum are an attribute or an input, depending on the opset; a product means the same in all.
    body.add("words = ConstantOfShape<value = float[1] {1.0}>(counted_size)\n"
             "mask_values = Cast<to = 1>(" +
             body.name(mask) + ")\nword_count = MatMul(mask_values, words)");
  } else {
    body.add("word_count = ConstantOfShape(counted_size)");
  }
  body.add(index + " = Cast(word_count)", "to", static_cast<int64_t>(TensorProto::INT32));
}

/// The sum of `word_rows`, `position_rows` and perhaps `segment_rows`, and its norm: `result`.
static void normalize(FunctionBody &body, bool hasSegments, const std::string &gamma, const std::string &beta,
                      const std::string &result) {
  body.add(hasSegments ? "token_rows = Add(word_rows, segment_rows)" : "token_rows = Identity(word_rows)");
  body.add(result +
           ", row_mean, row_deviation, row_sum = com.microsoft.SkipLayerNormalization(token_rows, position_rows, " +
           gamma + ", " + beta + ")");
  body.copy({"epsilon"});
}

static bool readSegments(FunctionBody &body) {
  if (body.has(1) != body.has(4))
    body.refuse("expected segment_ids and segment_embedding to be given together");
  return body.has(1);
}

static void makeEmbedLayerNormalization(FunctionBody &body) {
  bool hasSegments = readSegments(body);
  if (int64_t kind = body.integer("mask_index_type"))
    body.refuse("unsupported mask_index_type " + std::to_string(kind) + "; supported: 0");
  countPositions(body, 8);
  body.add("word_rows = Gather<axis = 0>(word_embedding, input_ids)\n"
           "position_rows = Gather<axis = 0>(position_embedding, position_ids_used)");
  if (hasSegments)
    body.add("segment_rows = Gather<axis = 0>(segment_embedding, segment_ids)");
  normalize(body, hasSegments, "gamma", "beta", "output");
  body.add("embedding_sum = Identity(row_sum)");
  countWords(body, 7, "mask_index");
}

/// `name`_rows: the rows `ids` of an input's table of integers, as floats; or the whole input, without ids.
static void dequantize(FunctionBody &body, const std::string &name, int input, const std::string &ids, int scale) {
  constexpr int kScaleToZero = 5;
  std::string codes = body.name(input);
  if (!ids.empty()) {
    body.add(name + "_codes = Gather<axis = 0>(" + codes + ", " + ids + ")");
    codes = name + "_codes";
  }
  body.add(name + "_rows = DequantizeLinear(" + codes + ", " + body.name(scale) + ", " +
           body.name(scale + kScaleToZero) + ")");
}

static void makeQEmbedLayerNormalization(FunctionBody &body) {
  bool hasSegments = readSegments(body);
  countPositions(body, -1);
  dequantize(body, "word", 2, "input_ids", 8);
  dequantize(body, "position", 3, "position_ids_used", 9);
  if (hasSegments)
    dequantize(body, "segment", 4, "segment_ids", 10);
  dequantize(body, "gamma", 5, "", 11);
  dequantize(body, "beta", 6, "", 12);
  normalize(body, hasSegments, "gamma_rows", "beta_rows", "layernorm_out");
  countWords(body, 7, "mask_index_out");
}

//===----------------------------------------------------------------------===//
// M-RoPE
//===----------------------------------------------------------------------===//

/// Which of `half` columns have the position of `stream` (1: height, 2: width); the others have that of time.
static std::vector<float> chooseColumns(const std::vector<int64_t> &sections, int64_t half, bool interleaved,
                                        int64_t stream) {
  constexpr int64_t kStreams = 3;
  int64_t first = sections[0] + (stream == 2 ? sections[1] : 0);
  std::vector<float> columns(half);
  for (int64_t i = 0; i < half; ++i)
    columns[i] = interleaved ? i % kStreams == stream && i < kStreams * sections[stream]
                             : i >= first && i < first + sections[stream];
  return columns;
}

/// Each column of cos and sin is read at the position of one of three streams (time, height, width); the rows that this gives for the
/// tokens, [B * S, half], are the tables of a RotaryEmbedding.
static void makeMRotaryEmbedding(FunctionBody &body) {
  constexpr int kUnsplitRank = 3;
  constexpr int64_t kMostColumns = 1 << 16;
  std::vector<int64_t> sections = body.integers("mrope_section");
  auto isColumns = [](int64_t count) { return count >= 0 && count <= kMostColumns; };
  if (sections.size() != 3 || !std::all_of(sections.begin(), sections.end(), isColumns))
    body.refuse("expected mrope_section to be 3 numbers from 0 to " + std::to_string(kMostColumns));
  int64_t half = sections[0] + sections[1] + sections[2], layout = body.integer("mrope_layout");
  if (half < 1)
    body.refuse("expected mrope_section to have columns");
  if (layout != 0 && layout != 1)
    body.refuse("unsupported mrope_layout " + std::to_string(layout) + "; supported: 0 (sections), 1 (interleaved)");
  if (body.integer("is_packed_batching") != 0 || body.real("scale") != 1)
    body.refuse("unsupported is_packed_batching or scale; supported: 0 and 1");
  if (body.integer("num_heads") == 0 && body.rank(0) == kUnsplitRank)
    body.refuse("expected num_heads for an input of 3 dimensions");
  for (int64_t stream : {0, 1, 2})
    body.single("stream" + std::to_string(stream), stream);
  for (int64_t stream : {1, 2}) {
    std::string name = "is" + std::to_string(stream);
    body.row(name + "_single", chooseColumns(sections, half, layout == 1, stream));
    body.add(name + " = Cast<to = 9>(" + name + "_single)");
  }
  body.constant("table_shape", {-1, half});
  for (const char *table : {"cos", "sin"}) {
    std::string name = table;
    body.add(name + "_rows = Gather<axis = 0>(" + name + "_cache, position_ids)");
    for (const char *stream : {"0", "1", "2"})
      body.add(name + stream + " = Gather<axis = 0>(" + name + "_rows, stream" + stream + ")");
    body.add(name + "_high = Where(is1, " + name + "1, " + name + "0)\n" + name + "_all = Where(is2, " + name + "2, " +
             name + "_high)\n" + name + "_table = Reshape(" + name + "_all, table_shape)");
  }
  body.number("tokens", "token_count", "cos_table", 0);
  body.add("times = Gather<axis = 0>(position_ids, stream0)\ntoken_shape = Shape(times)\n"
           "token_ids = Reshape(tokens, token_shape)\n"
           "output = com.microsoft.RotaryEmbedding(input, token_ids, cos_table, sin_table)");
  body.copy({"interleaved", "rotary_embedding_dim", "num_heads"});
}

static OpSchema makeMRotarySchema() {
  OpSchema schema = makeSchema("MRotaryEmbedding", {{"input", "position_ids", "cos_cache", "sin_cache"}, {"output"}});
  schema.Attr("mrope_section", "", AttributeProto::INTS, true);
  addIntegers(schema, {{"num_heads", 0},
                       {"rotary_embedding_dim", 0},
                       {"interleaved", 0},
                       {"mrope_layout", 0},
                       {"is_packed_batching", 0}});
  addFloats(schema, {{"scale", 1.0f}});
  return schema;
}

std::vector<OpSchema> makeEmbeddingFunctions() {
  OpSchema plain =
      makeSchema("EmbedLayerNormalization", {{"input_ids", "segment_ids?", "word_embedding", "position_embedding",
                                              "segment_embedding?", "gamma", "beta", "mask?", "position_ids?"},
                                             {"output", "mask_index?", "embedding_sum?"}});
  addFloats(plain, {{"epsilon", 1e-12f}});
  addOptional(plain, AttributeProto::INT, {"mask_index_type"});
  OpSchema quantized = makeSchema(
      "QEmbedLayerNormalization",
      {{"input_ids", "segment_ids?", "word_embedding_quant", "position_embedding_quant", "segment_embedding?",
        "gamma_quant", "beta_quant", "mask?", "word_embedding_scale", "position_embedding_scale",
        "segment_embedding_scale?", "gamma_scale", "beta_scale", "word_embedding_zero_point",
        "position_embedding_zero_point", "segment_embedding_zero_point?", "gamma_zero_point", "beta_zero_point"},
       {"layernorm_out", "mask_index_out"}});
  addFloats(quantized, {{"epsilon", 1e-12f}});
  return {withFunction(std::move(plain), makeEmbedLayerNormalization),
          withFunction(std::move(quantized), makeQEmbedLayerNormalization),
          withFunction(makeMRotarySchema(), makeMRotaryEmbedding)};
}

} // namespace hone::onnxir
