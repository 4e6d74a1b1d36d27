// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the operations of a module into a graph; the inverse of lib/Import/GraphImporter.h. What locations say of the file
// that a module came from is said again, as far as it still fits.

#ifndef HONE_LIB_EXPORT_GRAPHEXPORTER_H
#define HONE_LIB_EXPORT_GRAPHEXPORTER_H

#include "DataFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <set>

namespace hone {

class GraphExporter {
public:
  GraphExporter(mlir::ModuleOp module, DataFile &data);

  llvm::LogicalResult exportMain(mlir::func::FuncOp main, ::onnx::GraphProto &graph);
  /// Domains of the operators that were exported.
  const std::set<std::string> &getDomains() const { return domains; }

private:
  using Infos = ::google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto>;
  struct Scope {
    /// Types of the values that were exported, by name.
    llvm::StringMap<mlir::Type> values;
    /// Names of outputs whose nodes are still to come. Subgraphs before those may use them: exporters give the branches of
    /// an If the names of its outputs.
    llvm::StringSet<> outputs;
  };
  /// Outputs that no operation of the graph makes under that name.
  using Copies = llvm::SmallVector<std::pair<mlir::Value, std::string>>;

  llvm::LogicalResult exportGraph(mlir::Block &block, const ::onnx::GraphProto &said, ::onnx::GraphProto &graph);
  llvm::LogicalResult exportSubgraph(mlir::Region &region, ::onnx::GraphProto &graph);
  llvm::LogicalResult exportOperation(mlir::Operation *op, ::onnx::GraphProto &graph);
  llvm::LogicalResult exportAttributes(mlir::Operation *op, ::onnx::NodeProto &node);
  llvm::LogicalResult exportRegions(mlir::Operation *op, ::onnx::NodeProto &node);
  llvm::LogicalResult exportConstantNode(GetParamOp get, ::onnx::GraphProto &graph);

  llvm::LogicalResult exportInitializers(mlir::Block &block, ::onnx::GraphProto &graph);
  llvm::LogicalResult exportParameter(ParamOp param, mlir::Location loc, ::onnx::GraphProto &graph);
  llvm::LogicalResult exportSmallInitializer(mlir::Operation *constant, ::onnx::GraphProto &graph);
  void findHomes(mlir::Block &main);
  bool isConstantNode(GetParamOp get);
  bool isSmallInitializer(mlir::Operation *op);

  llvm::LogicalResult nameOutputs(mlir::Block &block, Infos &outputs, Copies &copies);
  llvm::LogicalResult exportTypes(const ::onnx::GraphProto &said, ::onnx::GraphProto &graph, mlir::Location loc);

  std::string getName(mlir::Value value);
  void setName(mlir::Value value, llvm::StringRef name);
  bool isTaken(llvm::StringRef name) const;
  std::string getFreshName(llvm::StringRef wish);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  DataFile &data;
  /// Whether parameters go to the data file, because a protobuf could not hold them.
  bool isLarge;
  llvm::DenseMap<mlir::Value, std::string> names;
  /// Of the graphs around the current operation, innermost last.
  llvm::SmallVector<Scope> scopes;
  unsigned nextValue = 0;
  /// The graph whose initializer a parameter is, and its name there.
  llvm::StringMap<mlir::Block *> homes;
  llvm::StringMap<std::string> parameterNames;
  std::set<std::string> domains;
};

} // namespace hone

#endif // HONE_LIB_EXPORT_GRAPHEXPORTER_H
