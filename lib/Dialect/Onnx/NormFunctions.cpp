// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft GroupNorm and SkipGroupNorm: the groups are the channels of an InstanceNormalization, as exporters write it, computed
// in f32. Compiled with exceptions, as libonnx reports by them.

#include "SchemaBuilding.h"

using ::onnx::AttributeProto;
using ::onnx::OpSchema;
using ::onnx::TensorProto;

namespace hone::onnxir {

namespace {

/// The layout of the input, whose rank and number of channels are known.
struct Channels {
  int64_t rank, count, groups;
  bool areLast;

  /// The shape of one number a channel that broadcasts to the input.
  std::vector<int64_t> shape(int64_t batch, int64_t size) const {
    std::vector<int64_t> sizes(rank, 1);
    sizes[0] = batch;
    sizes[areLast ? rank - 1 : 1] = size;
    return sizes;
  }
};

} // namespace

static Channels readChannels(FunctionBody &body) {
  constexpr int kGamma = 1, kBeta = 2;
  auto rank = body.rank(0);
  if (!rank || *rank < 3)
    body.refuse("expected X to have 3 or more dimensions, but got " +
                (rank ? std::to_string(*rank) : "an unknown number"));
  Channels channels{*rank, 0, body.integer("groups"), body.integer("channels_last") != 0};
  auto count = body.size(0, static_cast<int>(channels.areLast ? *rank - 1 : 1));
  for (int parameter : {kGamma, kBeta}) {
    auto own = body.size(parameter, 0);
    if (count && own && *count != *own)
      body.refuse("expected gamma and beta to have an element for each of " + std::to_string(*count) +
                  " channels, but got " + std::to_string(*own));
    count = count ? count : own;
  }
  if (!count)
    body.refuse("expected the number of channels to be known");
  channels.count = *count;
  if (channels.groups < 1 || channels.count % channels.groups != 0)
    body.refuse("expected the channels to be a multiple of groups, but got " + std::to_string(channels.count) +
                " and " + std::to_string(channels.groups));
  return channels;
}

/// `to` = `from` with the channels in the second place, or back in the last.
static void moveIfLast(FunctionBody &body, const Channels &channels, const std::string &from, const std::string &to,
                       bool toLast) {
  if (channels.areLast)
    moveChannels(body, from, to, toLast);
  else
    body.add(to + " = Identity(" + from + ")");
}

/// `Y` from `sum`, f32 with the layout of the input.
static void normalize(FunctionBody &body, const Channels &channels) {
  int64_t activation = body.integer("activation");
  if (activation != 0 && activation != 1)
    body.refuse("unsupported activation " + std::to_string(activation) + "; supported: 0 (none), 1 (SiLU)");
  moveIfLast(body, channels, "sum", "planes", /*toLast=*/false);
  body.constant("group_count", {channels.groups});
  body.constant("group_shape", {0, channels.groups, -1});
  body.constant("parameter_shape", channels.shape(1, channels.count));
  body.scalar("unit", 1, TensorProto::FLOAT);
  body.scalar("nil", 0, TensorProto::FLOAT);
  body.add("units = Expand(unit, group_count)\n"
           "nils = Expand(nil, group_count)\n"
           "grouped = Reshape(planes, group_shape)\n"
           "normalized = InstanceNormalization(grouped, units, nils)");
  body.copy({"epsilon"});
  body.add("plane_shape = Shape(planes)\n"
           "normalized_planes = Reshape(normalized, plane_shape)");
  moveIfLast(body, channels, "normalized_planes", "rows", /*toLast=*/true);
  for (const char *parameter : {"gamma", "beta"})
    body.add(std::string("single_") + parameter + " = Cast<to = 1>(" + parameter + ")\nwide_" + parameter +
             " = Reshape(single_" + parameter + ", parameter_shape)");
  body.add("scaled = Mul(rows, wide_gamma)\n"
           "moved = Add(scaled, wide_beta)\n"
           "sum_shape = Shape(sum)\n"
           "shifted = Reshape(moved, sum_shape)");
  body.add(activation == 1 ? "gate = Sigmoid(shifted)\nresult = Mul(shifted, gate)" : "result = Identity(shifted)");
  body.add("Y = Cast(result)", "to", static_cast<int64_t>(body.element(0)));
}

static void makeGroupNorm(FunctionBody &body) {
  Channels channels = readChannels(body);
  body.add("sum = Cast<to = 1>(X)");
  normalize(body, channels);
}

/// The skip has the sizes of X, or one number a channel of each element of the batch: [N, C], or with dimensions of 1 between.
static void makeSkipGroupNorm(FunctionBody &body) {
  constexpr int kSkip = 3, kBias = 4, kPerChannel = 2;
  Channels channels = readChannels(body);
  auto rank = body.rank(kSkip);
  if (!rank || (*rank != kPerChannel && *rank != channels.rank))
    body.refuse("expected skip to have 2 or " + std::to_string(channels.rank) + " dimensions, but got " +
                (rank ? std::to_string(*rank) : "an unknown number"));
  body.add("single = Cast<to = 1>(X)\nsingle_skip = Cast<to = 1>(skip)");
  if (*rank == kPerChannel && channels.rank != kPerChannel) {
    body.constant("skip_shape", channels.shape(-1, channels.count));
    body.add("wide_skip = Reshape(single_skip, skip_shape)");
  } else {
    body.add("wide_skip = Identity(single_skip)");
  }
  // A sum that is larger than X, as one of the others is, does not have X's shape.
  body.add("skipped = Add(single, wide_skip)\nx_shape = Shape(X)");
  if (body.has(kBias)) {
    body.constant("bias_shape", channels.shape(1, channels.count));
    body.add("single_bias = Cast<to = 1>(bias)\n"
             "wide_bias = Reshape(single_bias, bias_shape)\n"
             "biased = Add(skipped, wide_bias)\n"
             "sum = Reshape(biased, x_shape)");
  } else {
    body.add("sum = Reshape(skipped, x_shape)");
  }
  body.add("S = Cast(sum)", "to", static_cast<int64_t>(body.element(0)));
  normalize(body, channels);
}

static OpSchema makeGroupSchema(const char *name, const Signature &signature) {
  OpSchema schema = makeSchema(name, signature);
  addFloats(schema, {{"epsilon", 1e-5f}});
  addIntegers(schema, {{"channels_last", 1}});
  schema.Attr("groups", "", AttributeProto::INT, true).Attr("activation", "", AttributeProto::INT, true);
  return schema;
}

std::vector<OpSchema> makeNormFunctions() {
  return {withFunction(makeGroupSchema("GroupNorm", {{"X", "gamma", "beta"}, {"Y"}}), makeGroupNorm),
          withFunction(makeGroupSchema("SkipGroupNorm", {{"X", "gamma", "beta", "skip", "bias?"}, {"Y", "S?"}}),
                       makeSkipGroupNorm)};
}

} // namespace hone::onnxir
