// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft CausalConvWithState: a depthwise convolution over what the state holds and the input after it, whose last positions are
// the next state. Compiled with exceptions, as libonnx reports by them.

#include "SchemaBuilding.h"

#include <limits>

using ::onnx::AttributeProto;
using ::onnx::OpSchema;

namespace hone::onnxir {

namespace {

struct CausalConv {
  int64_t rank, channels, taps, state; // `state`: how many positions it holds
  bool isLast;
};

} // namespace

static CausalConv readCausalConv(FunctionBody &body) {
  for (auto [name, supported] : {std::pair("ndim", 1), std::pair("state_window", 0)})
    if (body.integer(name) != supported)
      body.refuse(std::string("unsupported ") + name + " " + std::to_string(body.integer(name)) +
                  "; supported: " + std::to_string(supported));
  bool isLast = body.integer("channels_last") != 0;
  int64_t dilation = body.integer("dilation");
  if (dilation < 1)
    body.refuse("expected dilation to be positive, but got " + std::to_string(dilation));
  auto rank = body.rank(0);
  if (!rank || (isLast ? *rank < 3 : *rank != 3))
    body.refuse(std::string("expected input to have ") + (isLast ? "3 or more" : "3") + " dimensions, but got " +
                (rank ? std::to_string(*rank) : "an unknown number"));
  auto channels = body.size(1, 0), depth = body.size(1, 1), taps = body.size(1, 2);
  if (body.rank(1) != 3 || !channels || !taps || *taps < 1 || (depth && *depth != 1))
    body.refuse("expected weight to be [channels, 1, taps] of known sizes");
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (*taps - 1 > kMost / dilation)
    body.refuse("expected a state of at most " + std::to_string(kMost) + " positions, but got " +
                std::to_string(*taps) + " taps with dilation " + std::to_string(dilation));
  return {*rank, *channels, *taps, (*taps - 1) * dilation, isLast};
}

/// `to` [B, C, positions] of `from`, whose channels are several dimensions at the end where they are last; any number of positions
/// where that is -1. Failure at run time where the sizes are others.
static void gatherChannels(FunctionBody &body, const CausalConv &conv, const std::string &from, const std::string &to,
                           int64_t positions) {
  if (!conv.isLast && positions < 0)
    return body.add(to + " = Identity(" + from + ")");
  if (!conv.isLast) {
    body.constant(to + "_shape", {0, conv.channels, positions});
    return body.add(to + " = Reshape(" + from + ", " + to + "_shape)");
  }
  body.constant(to + "_shape", {0, positions, conv.channels});
  body.add(to + "_rows = Reshape(" + from + ", " + to + "_shape)\n" + to + " = Transpose<perm = [0, 2, 1]>(" + to +
           "_rows)");
}

/// The other way round, with the channels' dimensions of the input.
static void spreadChannels(FunctionBody &body, const CausalConv &conv, const std::string &from, const std::string &to) {
  if (!conv.isLast)
    return body.add(to + " = Identity(" + from + ")");
  body.add(from + "_rows = Transpose<perm = [0, 2, 1]>(" + from + ")\n" + from + "_sizes = Shape(" + from + "_rows)\n" +
           from + "_leading = Slice(" + from + "_sizes, begin, two)\n" + from + "_all = Concat<axis = 0>(" + from +
           "_leading, channel_sizes)\n" + to + " = Reshape(" + from + "_rows, " + from + "_all)");
}

/// `held` [B, C, state]: the state, or zeros.
static void readState(FunctionBody &body, const CausalConv &conv) {
  if (body.has(3))
    return gatherChannels(body, conv, "past_state", "held", conv.state);
  body.constant("state_shape", {conv.channels, conv.state});
  body.scalar("nil", 0, body.element(0));
  body.add("batch_size = Slice(input_sizes, begin, one)\n"
           "held_shape = Concat<axis = 0>(batch_size, state_shape)\n"
           "held = Expand(nil, held_shape)");
}

static void makeCausalConv(FunctionBody &body) {
  CausalConv conv = readCausalConv(body);
  std::string activation = body.text("activation");
  if (activation != "none" && activation != "silu" && activation != "swish")
    body.refuse("unsupported activation '" + activation + "'; supported: none, silu, swish");
  body.constant("begin", {0});
  body.constant("one", {1});
  body.constant("two", {2});
  body.constant("end", {std::numeric_limits<int64_t>::max()});
  body.constant("held_count", {conv.state});
  body.add("input_sizes = Shape(input)\nchannel_sizes = Slice(input_sizes, two, end)");
  gatherChannels(body, conv, "input", "fresh", -1);
  readState(body, conv);
  body.add("joined = Concat<axis = 2>(held, fresh)\n"
           "convolved = Conv(joined, weight" +
           std::string(body.has(2) ? ", bias)" : ")"));
  body.attribute("group", conv.channels);
  body.attribute("dilations", std::vector<int64_t>{body.integer("dilation")});
  body.add(activation == "none" ? "activated = Identity(convolved)"
                                : "gate = Sigmoid(convolved)\nactivated = Mul(convolved, gate)");
  spreadChannels(body, conv, "activated", "output");
  body.add("joined_sizes = Shape(joined)\n"
           "joined_count = Slice(joined_sizes, two, end)\n"
           "next_begin = Sub(joined_count, held_count)\n"
           "next = Slice(joined, next_begin, end, two)");
  spreadChannels(body, conv, "next", "present_state");
}

std::vector<OpSchema> makeCausalConvFunctions() {
  OpSchema schema =
      makeSchema("CausalConvWithState", {{"input", "weight", "bias?", "past_state?"}, {"output", "present_state?"}});
  addIntegers(schema, {{"ndim", 1}, {"state_window", 0}, {"channels_last", 0}, {"dilation", 1}});
  schema.Attr("activation", "", AttributeProto::STRING, std::string("none"));
  return {withFunction(std::move(schema), makeCausalConv)};
}

} // namespace hone::onnxir
