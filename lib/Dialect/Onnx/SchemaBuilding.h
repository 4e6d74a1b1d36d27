// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files of com.microsoft schemas share. An operator is a schema alone, which a lowering then gives a meaning, or a schema
// with a function: nodes of other operators that mean the same, made for the attributes and operand types of a node.

#ifndef HONE_LIB_DIALECT_ONNX_SCHEMABUILDING_H
#define HONE_LIB_DIALECT_ONNX_SCHEMABUILDING_H

#include "onnx/defs/function.h"
#include "onnx/defs/schema.h"

#include <optional>

namespace hone::onnxir {

inline constexpr const char *kMicrosoft = "com.microsoft";

/// What an operator says beyond its name: inputs (a trailing '?' makes one optional, a trailing '*' the last repeated) and
/// outputs.
struct Signature {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

::onnx::OpSchema makeSchema(const char *name, const Signature &signature);
void addIntegers(::onnx::OpSchema &schema, std::initializer_list<std::pair<const char *, int64_t>> defaults);
void addFloats(::onnx::OpSchema &schema, std::initializer_list<std::pair<const char *, float>> defaults);
void addOptional(::onnx::OpSchema &schema, ::onnx::AttributeProto::AttributeType type,
                 std::initializer_list<const char *> names);

/// The nodes that a function is of, for one node of its operator. Nodes are text in libonnx's syntax. What the function does
/// not cover is refused by throwing UnsupportedForm.
class FunctionBody {
public:
  FunctionBody(const ::onnx::FunctionBodyBuildContext &context, const ::onnx::OpSchema &schema,
               ::onnx::FunctionProto &proto)
      : context(context), schema(schema), proto(proto), builder(proto) {}

  // The node.
  bool has(int input) const { return context.hasInput(input); }
  bool isAskedFor(int output) const { return context.hasOutput(output); }
  /// Name of the input in text, "" where it is not given.
  std::string name(int input) const;
  int64_t integer(const char *attribute) const;
  float real(const char *attribute) const;
  std::string text(const char *attribute) const;
  bool hasAttribute(const char *attribute) const { return context.getAttribute(attribute) != nullptr; }
  std::vector<int64_t> integers(const char *attribute) const;
  std::vector<float> reals(const char *attribute) const;
  std::vector<std::string> texts(const char *attribute) const;
  /// TensorProto::DataType of an input; thrown where the file leaves it open.
  int32_t element(int input) const;
  std::optional<int64_t> rank(int input) const;
  std::optional<int64_t> size(int input, int dim) const;

  // The function.
  void add(const std::string &nodes) { builder.Add(nodes.c_str()); }
  template <typename T>
  void add(const std::string &node, const char *attribute, const T &value) {
    builder.Add(node.c_str(), std::string(attribute), value);
  }
  /// Gives the last node an attribute.
  template <typename T> void attribute(const char *name, const T &value) {
    builder.AddAttributeToNode(std::string(name), value);
  }
  /// Gives the last node an attribute of this node under the same name, where it has it.
  void copy(std::initializer_list<const char *> attributes);
  /// Constants: of one dimension, and of none.
  void constant(const std::string &name, const std::vector<int64_t> &values) { builder.Const(name, values); }
  void row(const std::string &name, const std::vector<float> &values) { builder.Const(name, values); }
  void single(const std::string &name, int64_t value) { builder.Const(name, value); }
  /// A scalar of element type `type`.
  void scalar(const std::string &name, float value, int32_t type);
  /// An integer zero of element type `type`, of 8 or 16 bits.
  void zero(const std::string &name, int32_t type);
  /// `count`, the size of dimension `dim` of `tensor`, and `numbers` [count]: 0, 1, … as many as that.
  void number(const std::string &numbers, const std::string &count, const std::string &tensor, int64_t dim);
  /// Each input to have the schema's name, and those that are repeated names of their own: `name0`, `name1`, …; how many there are.
  int repeat(int first, const std::string &name);

  [[noreturn]] static void refuse(const std::string &reason);
  bool finish();

private:
  const ::onnx::FunctionBodyBuildContext &context;
  const ::onnx::OpSchema &schema;
  ::onnx::FunctionProto &proto;
  ::onnx::FunctionBuilder builder;
  std::vector<std::string> repeated;
};

/// `to` = `from`, which has the rank of input 0, with its channels last instead of second or the other way round.
void moveChannels(FunctionBody &body, const std::string &from, const std::string &to, bool toLast);

using FunctionMaker = void (*)(FunctionBody &);

/// Gives `schema` a function, and infers its types through that.
::onnx::OpSchema withFunction(::onnx::OpSchema schema, FunctionMaker make);

// The families.
std::vector<::onnx::OpSchema> makeAttentionFunctions();
std::vector<::onnx::OpSchema> makeBranchFunctions();
std::vector<::onnx::OpSchema> makeCausalConvFunctions();
std::vector<::onnx::OpSchema> makeEmbeddingFunctions();
std::vector<::onnx::OpSchema> makeFusedFunctions();
std::vector<::onnx::OpSchema> makeNormFunctions();
std::vector<::onnx::OpSchema> makeQuantizedFunctions();
std::vector<::onnx::OpSchema> makeQuantizedProducts();

/// Gives operators of ai.onnx.ml, which libonnx registers, functions.
void registerMachineLearningFunctions();

} // namespace hone::onnxir

#endif // HONE_LIB_DIALECT_ONNX_SCHEMABUILDING_H
