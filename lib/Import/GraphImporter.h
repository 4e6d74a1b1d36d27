// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the graph of a checked ONNX model into operations of the `onnx` dialect, one node an operation, subgraphs as
// regions, initializers as parameters.

#ifndef HONE_LIB_IMPORT_GRAPHIMPORTER_H
#define HONE_LIB_IMPORT_GRAPHIMPORTER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <memory>

namespace hone {

class GraphImporter {
public:
  using Descriptions = llvm::DenseMap<const ::onnx::GraphProto *, ::onnx::GraphProto>;

  /// `descriptions` are what the file says of its graphs; locations then say what it says beside the computation.
  GraphImporter(std::shared_ptr<const ::onnx::ModelProto> model, mlir::StringRef path, mlir::ModuleOp module,
                const Descriptions *descriptions = nullptr)
      : model(std::move(model)), path(path), module(module), builder(module.getContext()),
        parameters(mlir::OpBuilder::atBlockBegin(module.getBody())), descriptions(descriptions) {}

  /// Makes `@main` of the main graph.
  mlir::LogicalResult importMain();
  /// Imports the main graph's nodes at `where`, all with its location; `inputs` stand for the graph's inputs, and the
  /// values of its outputs come back.
  mlir::FailureOr<mlir::SmallVector<mlir::Value>> importAt(mlir::OpBuilder &where, mlir::Location loc,
                                                           mlir::ValueRange inputs);

private:
  using Scope = llvm::StringMap<mlir::Value>;

  mlir::LogicalResult importInitializers(const ::onnx::GraphProto &graph);
  mlir::LogicalResult importInitializer(const ::onnx::TensorProto &tensor, mlir::StringRef name, mlir::Location loc);
  mlir::Attribute importExternal(const ::onnx::TensorProto &tensor, mlir::RankedTensorType type, mlir::Location loc);
  mlir::LogicalResult importNodes(const ::onnx::GraphProto &graph);
  mlir::LogicalResult importNode(const ::onnx::NodeProto &node);
  mlir::LogicalResult importAttributes(const ::onnx::NodeProto &node, mlir::OperationState &state,
                                       mlir::SmallVectorImpl<const ::onnx::AttributeProto *> &subgraphs);
  mlir::Attribute importAttribute(const ::onnx::AttributeProto &attribute, mlir::Location loc);
  mlir::LogicalResult importSubgraph(const ::onnx::GraphProto &graph, mlir::Region &region, mlir::Location loc);
  mlir::LogicalResult yieldOutputs(const ::onnx::GraphProto &graph, mlir::Location loc,
                                   mlir::SmallVectorImpl<mlir::Value> &values);

  mlir::LogicalResult bindGradient(const ::onnx::NodeProto &node, mlir::Location loc,
                                   mlir::SmallVectorImpl<mlir::Value> &operands);
  mlir::FailureOr<mlir::SmallVector<mlir::Value>> lookUpInputs(const ::onnx::NodeProto &node, mlir::Location loc);
  std::string makeSymbol(mlir::StringRef name);
  mlir::Value lookUp(mlir::StringRef name);
  mlir::Type getType(mlir::StringRef name);
  mlir::Location getLocation(const ::onnx::GraphProto &graph);
  mlir::Location getLocation(const ::onnx::NodeProto &node);
  mlir::Location getLocation(const ::onnx::TensorProto &tensor);
  mlir::Location getLocation(mlir::StringRef name, mlir::StringRef key = "", mlir::StringAttr text = {});
  mlir::Value getNoValue(mlir::Location loc);
  void collectTypes(const ::onnx::GraphProto &graph);

  std::shared_ptr<const ::onnx::ModelProto> model;
  mlir::StringRef path;
  mlir::ModuleOp module;
  mlir::OpBuilder builder;
  /// Where the next parameter goes: before the function, in the order of the file.
  mlir::OpBuilder parameters;
  mlir::SmallVector<Scope> scopes;
  /// Inferred types of the graphs around the current node, innermost last.
  mlir::SmallVector<llvm::StringMap<const ::onnx::TypeProto *>> types;
  /// Symbols of the module; the compiler's own functions have the first.
  llvm::StringSet<> symbols{"main", "forward", "draft", "verify"};
  /// How many symbols were tried for a name beside itself.
  llvm::StringMap<unsigned> parameterNames;
  /// Where given, the location of everything.
  std::optional<mlir::Location> location;
  const Descriptions *descriptions;
};

} // namespace hone

#endif // HONE_LIB_IMPORT_GRAPHIMPORTER_H
