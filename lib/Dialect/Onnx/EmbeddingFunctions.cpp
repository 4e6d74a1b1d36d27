// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft EmbedLayerNormalization and QEmbedLayerNormalization: rows of tables of words, positions and segments, summed and
// normalised. Compiled with exceptions, as libonnx reports by them.

#include "SchemaBuilding.h"

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
          withFunction(std::move(quantized), makeQEmbedLayerNormalization)};
}

} // namespace hone::onnxir
