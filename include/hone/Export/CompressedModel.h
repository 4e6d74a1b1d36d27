// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compression that ONNX can express, written back from a raised copy to the nodes of the file.

#ifndef HONE_EXPORT_COMPRESSEDMODEL_H
#define HONE_EXPORT_COMPRESSEDMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

namespace hone {

class ParamOp;
class StackedAttr;

/// A module of the onnx dialect beside a raised copy of it, in which passes compress the weights.
class CompressedModel {
public:
  /// What metadata says of a weight, as JSON; nothing of one that did not change.
  using Describe = llvm::function_ref<std::optional<std::string>(llvm::StringRef weight)>;

  CompressedModel(mlir::ModuleOp module, mlir::ModuleOp copy) : module(module), copy(copy) {}

  /// To be called before passes remove layers from the copy.
  void recordLayers();

  /// After structured pruning of the copy: makes the module as much smaller, with the elements that the copy has. Fails after an
  /// error.
  llvm::LogicalResult shrink();

  /// To be called before passes change elements of the copy.
  void recordParameters();

  /// What became of the copy's parameters since recordParameters(), those of the module become, as other elements or as nodes on
  /// integers, and each node that reads one gets metadata that says so (docs/compression.md). Warns of those that stay as they are
  /// though the copy's did not. Fails after an error.
  llvm::LogicalResult restoreWeight(Describe describe);

private:
  /// A parameter of the copy before it was compressed.
  struct Before {
    mlir::RankedTensorType type;
    mlir::Attribute storage;
  };

  llvm::LogicalResult removeLayers();
  llvm::LogicalResult exportWeight(mlir::SymbolTable &symbols, ParamOp compressed, Describe describe);
  llvm::LogicalResult exportWhole(mlir::SymbolTable &symbols, ParamOp compressed, StackedAttr stacked,
                                  Describe describe);
  llvm::LogicalResult exportJoined(mlir::SymbolTable &symbols, ParamOp compressed, mlir::ArrayAttr names,
                                   Describe describe);

  mlir::ModuleOp module, copy;
  llvm::SmallVector<mlir::StringAttr> branchEnds; // weights of the last products of each layer that the copy had
  llvm::StringMap<Before> before;
};

} // namespace hone

#endif // HONE_EXPORT_COMPRESSEDMODEL_H
