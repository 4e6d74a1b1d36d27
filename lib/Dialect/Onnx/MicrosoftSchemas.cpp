// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schemas of the com.microsoft operators that exporters emit: arity, attributes, defaults and the inference of result
// types, as onnxruntime documents them (docs/ContribOperators.md of that project).

#include "SchemaBuilding.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "onnx/defs/shape_inference.h"

using ::onnx::AttributeProto;
using ::onnx::InferenceContext;
using ::onnx::OpSchema;

namespace hone::onnxir {

/// Output `index` has the type of input 0, if that output is asked for.
static void inferLikeInput(InferenceContext &ctx, size_t index, size_t input = 0) {
  if (ctx.getNumOutputs() <= index)
    return;
  ::onnx::propagateElemTypeFromInputToOutput(ctx, input, index);
  if (::onnx::hasInputShape(ctx, input))
    ::onnx::propagateShapeFromInputToOutput(ctx, input, index);
}

static void registerAll(std::vector<OpSchema> schemas) {
  for (OpSchema &schema : schemas)
    ::onnx::RegisterSchema(std::move(schema), 0, false);
}

//===----------------------------------------------------------------------===//
// Normalisation and activations
//===----------------------------------------------------------------------===//

static std::vector<OpSchema> makeNormalizations() {
  std::vector<OpSchema> schemas;
  auto add = [&](OpSchema schema, size_t sumOutput) {
    addFloats(schema, {{"epsilon", 1e-5f}});
    schema.TypeAndShapeInferenceFunction([sumOutput](InferenceContext &ctx) {
      inferLikeInput(ctx, 0);
      inferLikeInput(ctx, sumOutput);
    });
    schemas.push_back(std::move(schema));
  };
  add(makeSchema("SkipSimplifiedLayerNormalization",
                 {{"input", "skip", "gamma", "bias?"}, {"output", "mean?", "inv_std_var?", "input_skip_bias_sum?"}}),
      3);
  add(makeSchema("SkipLayerNormalization", {{"input", "skip", "gamma", "beta?", "bias?"},
                                            {"output", "mean?", "inv_std_var?", "input_skip_bias_sum?"}}),
      3);
  OpSchema simplified = makeSchema("SimplifiedLayerNormalization", {{"X", "scale"}, {"Y", "inv_std_var?"}});
  addIntegers(simplified, {{"axis", -1}, {"stash_type", 1}});
  add(std::move(simplified), 2);
  return schemas;
}

static std::vector<OpSchema> makeActivations() {
  std::vector<OpSchema> schemas;
  auto add = [&](OpSchema schema) {
    schema.TypeAndShapeInferenceFunction([](InferenceContext &ctx) { inferLikeInput(ctx, 0); });
    schemas.push_back(std::move(schema));
  };
  add(makeSchema("BiasGelu", {{"A", "B"}, {"C"}}));
  add(makeSchema("FastGelu", {{"X", "bias?"}, {"Y"}}));
  add(makeSchema("Gelu", {{"X"}, {"Y"}}));
  OpSchema quick = makeSchema("QuickGelu", {{"X"}, {"Y"}});
  addFloats(quick, {{"alpha", 1.702f}});
  add(std::move(quick));
  return schemas;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Present caches keep batch, heads and head size; their length is not known from the types.
static void inferPresent(InferenceContext &ctx, size_t pastInput, size_t presentOutput) {
  if (ctx.getNumOutputs() <= presentOutput || !ctx.getInputType(0))
    return;
  ::onnx::propagateElemTypeFromInputToOutput(ctx, 0, presentOutput);
  if (!::onnx::hasInputShape(ctx, pastInput))
    return;
  ::onnx::TensorShapeProto shape = ::onnx::getInputShape(ctx, pastInput);
  if (shape.dim_size() == 4)
    shape.mutable_dim(2)->Clear();
  ::onnx::updateOutputShape(ctx, presentOutput, shape);
}

static int64_t getInteger(InferenceContext &ctx, const char *name) {
  const auto *attr = ctx.getAttribute(name);
  return attr ? attr->i() : 0;
}

/// The query is [batch, sequence, hidden]; packed QKV (no key) holds (heads + 2 kv heads) x head size in its last axis.
static void inferGroupQueryAttention(InferenceContext &ctx) {
  ::onnx::propagateElemTypeFromInputToOutput(ctx, 0, 0);
  if (::onnx::hasInputShape(ctx, 0)) {
    ::onnx::TensorShapeProto shape = ::onnx::getInputShape(ctx, 0);
    bool packed = ctx.getNumInputs() < 2 || !ctx.getInputType(1);
    int64_t heads = getInteger(ctx, "num_heads"), kvHeads = getInteger(ctx, "kv_num_heads");
    if (packed && shape.dim_size() == 3 && shape.dim(2).has_dim_value() && heads + 2 * kvHeads > 0)
      shape.mutable_dim(2)->set_dim_value(shape.dim(2).dim_value() / (heads + 2 * kvHeads) * heads);
    ::onnx::updateOutputShape(ctx, 0, shape);
  }
  inferPresent(ctx, 3, 1);
  inferPresent(ctx, 4, 2);
}

static OpSchema makeGroupQueryAttention() {
  OpSchema schema = makeSchema(
      "GroupQueryAttention", {{"query", "key?", "value?", "past_key?", "past_value?", "seqlens_k",
                               "total_sequence_length", "cos_cache?", "sin_cache?", "position_ids?", "attention_bias?",
                               "head_sink?", "k_scale?", "v_scale?", "q_norm_weight?", "k_norm_weight?"},
                              {"output", "present_key?", "present_value?", "output_qk?"}});
  schema.Attr("num_heads", "", AttributeProto::INT, true).Attr("kv_num_heads", "", AttributeProto::INT, true);
  schema.Attr("k_quant_type", "", AttributeProto::STRING, std::string("NONE"));
  schema.Attr("v_quant_type", "", AttributeProto::STRING, std::string("NONE"));
  schema.Attr("scale", "", AttributeProto::FLOAT, false);
  addFloats(schema, {{"softcap", 0.0f}, {"qk_norm_epsilon", 1e-6f}});
  addIntegers(schema, {{"do_rotary", 0},
                       {"rotary_interleaved", 0},
                       {"causal", 1},
                       {"local_window_size", -1},
                       {"sliding_window_cache", 0},
                       {"smooth_softmax", -1},
                       {"qk_output", 0},
                       {"kv_cache_bit_width", 0}});
  schema.TypeAndShapeInferenceFunction(inferGroupQueryAttention);
  return schema;
}

/// The output has the rows of the query, and the width of the values' heads.
static void inferMultiHeadAttention(InferenceContext &ctx) {
  ::onnx::propagateElemTypeFromInputToOutput(ctx, 0, 0);
  inferPresent(ctx, 6, 1);
  inferPresent(ctx, 7, 2);
  if (!::onnx::hasInputShape(ctx, 0) || ::onnx::getInputShape(ctx, 0).dim_size() != 3)
    return;
  ::onnx::TensorShapeProto shape = ::onnx::getInputShape(ctx, 0);
  if (ctx.getNumInputs() > 2 && ctx.getInputType(2)) {
    shape.mutable_dim(2)->Clear();
    const ::onnx::TensorShapeProto value = ::onnx::hasInputShape(ctx, 2) ? ::onnx::getInputShape(ctx, 2) : shape;
    int last = value.dim_size() - 1;
    if ((last == 2 || last == 3) && value.dim(last).has_dim_value())
      shape.mutable_dim(2)->set_dim_value(value.dim(last).dim_value() * (last == 2 ? 1 : getInteger(ctx, "num_heads")));
  }
  ::onnx::updateOutputShape(ctx, 0, shape);
}

static OpSchema makeMultiHeadAttention() {
  OpSchema schema =
      makeSchema("MultiHeadAttention", {{"query", "key?", "value?", "bias?", "key_padding_mask?", "attention_bias?",
                                         "past_key?", "past_value?", "past_sequence_length?", "cache_indirection?"},
                                        {"output", "present_key?", "present_value?", "qk?"}});
  schema.Attr("num_heads", "", AttributeProto::INT, true).Attr("scale", "", AttributeProto::FLOAT, false);
  addFloats(schema, {{"mask_filter_value", -10000.0f}});
  addIntegers(schema, {{"unidirectional", 0}});
  schema.TypeAndShapeInferenceFunction(inferMultiHeadAttention);
  return schema;
}

static OpSchema makeRotaryEmbedding() {
  OpSchema schema = makeSchema("RotaryEmbedding", {{"input", "position_ids", "cos_cache", "sin_cache"}, {"output"}});
  addIntegers(schema, {{"interleaved", 0}, {"rotary_embedding_dim", 0}, {"num_heads", 0}, {"is_packed_batching", 0}});
  addFloats(schema, {{"scale", 1.0f}});
  schema.TypeAndShapeInferenceFunction([](InferenceContext &ctx) { inferLikeInput(ctx, 0); });
  return schema;
}

/// The output has the width of all query heads, the state [batch, heads, key size, value size] those of a head.
static void inferLinearAttention(InferenceContext &ctx) {
  ::onnx::propagateElemTypeFromInputToOutput(ctx, 0, 0);
  bool hasPast = ctx.getNumInputs() > 3 && ctx.getInputType(3);
  if (ctx.getNumOutputs() > 1)
    ::onnx::propagateElemTypeFromInputToOutput(ctx, hasPast ? 3 : 0, 1);
  if (!::onnx::hasInputShape(ctx, 0) || !::onnx::hasInputShape(ctx, 2))
    return;
  ::onnx::TensorShapeProto query = ::onnx::getInputShape(ctx, 0), value = ::onnx::getInputShape(ctx, 2), state;
  int64_t queryHeads = getInteger(ctx, "q_num_heads"), heads = getInteger(ctx, "kv_num_heads");
  if (query.dim_size() != 3 || value.dim_size() != 3 || queryHeads <= 0 || heads <= 0)
    return;
  *state.add_dim() = query.dim(0);
  state.add_dim()->set_dim_value(heads);
  for (auto [shape, count] : {std::pair(&query, queryHeads), std::pair(&value, heads)}) {
    auto *size = state.add_dim();
    if (shape->dim(2).has_dim_value())
      size->set_dim_value(shape->dim(2).dim_value() / count);
  }
  query.mutable_dim(2)->Clear();
  if (value.dim(2).has_dim_value())
    query.mutable_dim(2)->set_dim_value(value.dim(2).dim_value() / heads * queryHeads);
  ::onnx::updateOutputShape(ctx, 0, query);
  if (ctx.getNumOutputs() > 1 && getInteger(ctx, "state_window") == 0)
    ::onnx::updateOutputShape(ctx, 1, state);
}

static std::vector<OpSchema> makeLinearAttention() {
  OpSchema attention = makeSchema(
      "LinearAttention", {{"query", "key", "value", "past_state?", "decay?", "beta?"}, {"output", "present_state?"}});
  attention.Attr("q_num_heads", "", AttributeProto::INT, true).Attr("kv_num_heads", "", AttributeProto::INT, true);
  attention.Attr("update_rule", "", AttributeProto::STRING, std::string("gated_delta"));
  addIntegers(attention, {{"chunk_size", 64}, {"state_window", 0}});
  addFloats(attention, {{"scale", 0.0f}});
  attention.TypeAndShapeInferenceFunction(inferLinearAttention);
  OpSchema gate = makeSchema("LinearAttentionGate", {{"a", "dt_bias", "decay_scale", "b?"}, {"decay", "beta?"}});
  gate.TypeAndShapeInferenceFunction([](InferenceContext &ctx) {
    inferLikeInput(ctx, 0);
    if (ctx.getNumInputs() > 3 && ctx.getInputType(3))
      inferLikeInput(ctx, 1, 3);
  });
  return {std::move(attention), std::move(gate)};
}

static OpSchema makeTrilu() {
  OpSchema schema = makeSchema("Trilu", {{"X", "k?"}, {"Y"}});
  addIntegers(schema, {{"upper", 1}});
  schema.TypeAndShapeInferenceFunction([](InferenceContext &ctx) { inferLikeInput(ctx, 0); });
  return schema;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Y is A with its last axis replaced by the attribute N.
static void inferMatMulNBits(InferenceContext &ctx) {
  ::onnx::propagateElemTypeFromInputToOutput(ctx, 0, 0);
  if (!::onnx::hasInputShape(ctx, 0) || ::onnx::getInputShape(ctx, 0).dim_size() == 0)
    return;
  ::onnx::TensorShapeProto shape = ::onnx::getInputShape(ctx, 0);
  shape.mutable_dim(shape.dim_size() - 1)->set_dim_value(getInteger(ctx, "N"));
  ::onnx::updateOutputShape(ctx, 0, shape);
}

static OpSchema makeMatMulNBits() {
  OpSchema schema = makeSchema("MatMulNBits", {{"A", "B", "scales", "zero_points?", "g_idx?", "bias?"}, {"Y"}});
  schema.Attr("K", "", AttributeProto::INT, true).Attr("N", "", AttributeProto::INT, true);
  addIntegers(schema, {{"bits", 4}, {"block_size", 32}, {"accuracy_level", 0}, {"weight_prepacked", 0}});
  schema.TypeAndShapeInferenceFunction(inferMatMulNBits);
  return schema;
}

static OpSchema makeFusedMatMul() {
  OpSchema schema = makeSchema("FusedMatMul", {{"A", "B"}, {"Y"}});
  addIntegers(schema, {{"transA", 0}, {"transB", 0}, {"transBatchA", 0}, {"transBatchB", 0}});
  addFloats(schema, {{"alpha", 1.0f}});
  schema.TypeAndShapeInferenceFunction([](InferenceContext &ctx) {
    ::onnx::propagateElemTypeFromInputToOutput(ctx, 0, 0);
    if (!::onnx::hasInputShape(ctx, 0) || !::onnx::hasInputShape(ctx, 1))
      return;
    auto a = ::onnx::getInputShape(ctx, 0), b = ::onnx::getInputShape(ctx, 1);
    bool plain = !getInteger(ctx, "transBatchA") && !getInteger(ctx, "transBatchB");
    if (!plain || a.dim_size() < 2 || b.dim_size() < 2)
      return;
    if (getInteger(ctx, "transA"))
      a.mutable_dim()->SwapElements(a.dim_size() - 1, a.dim_size() - 2);
    if (getInteger(ctx, "transB"))
      b.mutable_dim()->SwapElements(b.dim_size() - 1, b.dim_size() - 2);
    if (a.dim_size() < b.dim_size())
      return;
    *a.mutable_dim(a.dim_size() - 1) = b.dim(b.dim_size() - 1);
    ::onnx::updateOutputShape(ctx, 0, a);
  });
  return schema;
}

/// The elements of a table of blocks: bytes hold 8 / bits of them along the last dimension.
static ::onnx::TensorShapeProto getElementsOfBlocks(InferenceContext &ctx) {
  ::onnx::TensorShapeProto data = ::onnx::getInputShape(ctx, 0);
  auto &last = *data.mutable_dim(data.dim_size() - 1);
  int64_t bits = getInteger(ctx, "bits");
  bool isPacked = ctx.getInputType(0)->tensor_type().elem_type() == ::onnx::TensorProto::UINT8;
  if (isPacked && (bits == 4 || bits == 8) && last.has_dim_value())
    last.set_dim_value(last.dim_value() * (8 / bits));
  else if (isPacked)
    last.Clear();
  return data;
}

/// The table's elements with the dimension `gather_axis` replaced by those of the indices.
static void inferGatherBlockQuantized(InferenceContext &ctx) {
  ::onnx::propagateElemTypeFromInputToOutput(ctx, 2, 0);
  if (!::onnx::hasInputShape(ctx, 0) || !::onnx::hasInputShape(ctx, 1) || ::onnx::getInputShape(ctx, 0).dim_size() == 0)
    return;
  ::onnx::TensorShapeProto data = getElementsOfBlocks(ctx), shape;
  int64_t axis = getInteger(ctx, "gather_axis");
  axis += axis < 0 ? data.dim_size() : 0;
  for (int64_t dim = 0; dim < data.dim_size(); ++dim)
    if (dim == axis)
      shape.MergeFrom(::onnx::getInputShape(ctx, 1));
    else
      *shape.add_dim() = data.dim(static_cast<int>(dim));
  ::onnx::updateOutputShape(ctx, 0, shape);
}

static OpSchema makeGatherBlockQuantized() {
  OpSchema schema = makeSchema("GatherBlockQuantized", {{"data", "indices", "scales", "zero_points?"}, {"output"}});
  addIntegers(schema, {{"gather_axis", 0}, {"quantize_axis", 1}, {"block_size", 128}, {"bits", 4}});
  schema.TypeAndShapeInferenceFunction(inferGatherBlockQuantized);
  return schema;
}

static OpSchema makeExperts(const char *name, const Signature &signature) {
  OpSchema schema = makeSchema(name, signature);
  schema.Attr("activation_type", "", AttributeProto::STRING, std::string("relu"));
  addFloats(schema, {{"activation_alpha", 1.0f}, {"activation_beta", 0.0f}});
  schema.Attr("swiglu_limit", "", AttributeProto::FLOAT, false);
  addIntegers(schema, {{"k", 1}, {"normalize_routing_weights", 0}, {"use_sparse_mixer", 0}, {"swiglu_fusion", 0}});
  schema.TypeAndShapeInferenceFunction([](InferenceContext &ctx) { inferLikeInput(ctx, 0); });
  return schema;
}

static OpSchema makeMoE() {
  return makeExperts("MoE", {{"input", "router_probs", "fc1_experts_weights", "fc1_experts_bias?",
                              "fc2_experts_weights", "fc2_experts_bias?", "fc3_experts_weights?", "fc3_experts_bias?"},
                             {"output"}});
}

static OpSchema makeQMoE() {
  OpSchema schema = makeExperts(
      "QMoE", {{"input", "router_probs", "fc1_experts_weights", "fc1_scales?", "fc1_experts_bias?",
                "fc2_experts_weights", "fc2_scales?", "fc2_experts_bias?", "fc3_experts_weights?", "fc3_scales?",
                "fc3_experts_bias?", "fc1_zero_points?", "fc2_zero_points?", "fc3_zero_points?", "router_weights?"},
               {"output"}});
  addIntegers(schema, {{"expert_weight_bits", 4}});
  for (const char *name : {"block_size", "accuracy_level", "fc1_expert_weight_bits", "fc2_expert_weight_bits",
                           "fc3_expert_weight_bits", "weights_prepacked"})
    schema.Attr(name, "", AttributeProto::INT, false);
  schema.Attr("quant_type", "", AttributeProto::STRING, std::string("int"));
  return schema;
}

/// The operators of the default domain as they were before it had integers of 16 bits and less than 8.
static std::vector<OpSchema> makeLinearQuantization() {
  OpSchema quantize = makeSchema("QuantizeLinear", {{"x", "y_scale", "y_zero_point?"}, {"y"}});
  OpSchema dequantize = makeSchema("DequantizeLinear", {{"x", "x_scale", "x_zero_point?"}, {"y"}});
  addIntegers(quantize, {{"axis", 1}});
  addIntegers(dequantize, {{"axis", 1}});
  quantize.TypeAndShapeInferenceFunction([](InferenceContext &ctx) {
    if (ctx.getNumInputs() > 2 && ctx.getInputType(2))
      ::onnx::propagateElemTypeFromInputToOutput(ctx, 2, 0);
    else
      ::onnx::updateOutputElemType(ctx, 0, ::onnx::TensorProto::UINT8);
    if (::onnx::hasInputShape(ctx, 0))
      ::onnx::propagateShapeFromInputToOutput(ctx, 0, 0);
  });
  dequantize.TypeAndShapeInferenceFunction([](InferenceContext &ctx) {
    ::onnx::propagateElemTypeFromInputToOutput(ctx, 1, 0);
    if (::onnx::hasInputShape(ctx, 0))
      ::onnx::propagateShapeFromInputToOutput(ctx, 0, 0);
  });
  return {std::move(quantize), std::move(dequantize)};
}

void registerMicrosoftSchemas() {
  auto &versions = ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance();
  versions.AddDomainToVersion(kMicrosoft, 1, 1);
  registerAll(makeNormalizations());
  registerAll(makeActivations());
  registerAll({makeGroupQueryAttention(), makeMultiHeadAttention(), makeRotaryEmbedding(), makeMatMulNBits(),
               makeFusedMatMul(), makeGatherBlockQuantized(), makeMoE(), makeQMoE(), makeTrilu()});
  for (auto family : {makeLinearAttention, makeLinearQuantization, makeAttentionFunctions, makeBranchFunctions,
                      makeCausalConvFunctions, makeEmbeddingFunctions, makeFusedFunctions, makeNormFunctions,
                      makeQuantizedFunctions, makeQuantizedProducts})
    registerAll(family());
  registerMachineLearningFunctions();
}

} // namespace hone::onnxir
