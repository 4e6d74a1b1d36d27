// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of experts as hone.moe wants them: the matrices of all experts one below the other. Bytes stay where they are.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_EXPERTWEIGHTS_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_EXPERTWEIGHTS_H

#include "QuantizedWeight.h"

#include "llvm/ADT/SetVector.h"

namespace hone::raising {

/// The matrices of all experts, as a file has them.
struct ExpertMatrices {
  Value all; // `[E, N, K]`, or `[E, K, N]` where transposed; or null, and
  bool isTransposed = false;
  SmallVector<Value> parts; // `[N, K]` of each

  explicit operator bool() const { return all || !parts.empty(); }
  int64_t getExpertCount() const;
  int64_t getOutputs() const;
  int64_t getInputs() const;
};

/// Makes the parameters of one module. New ones stand beside their sources until nobody reads those.
class ExpertWeights {
public:
  explicit ExpertWeights(mlir::ModuleOp module) : module(module), symbols(module), quantized(symbols) {}

  /// `weights` `[E, N, K]` as `[E · N, K]`; null if `weights` is.
  Value stack(OnnxBuilder &onnx, Value weights);

  /// The same of matrices in any form. Null where they are parameters in a form that cannot be joined, or there are none.
  Value stack(OnnxBuilder &onnx, const ExpertMatrices &matrices);

  /// Integers `[E, N, bytes]` of `bits` bits with scales `[E, N]` or `[E, N, groups]` and zero points or null, as `[E · N, K]`
  /// of `elements`; `group` inputs share a scale, 0: all. Null where they are no parameters or have other sizes.
  Value stack(OnnxBuilder &onnx, Value codes, Value scales, Value zeros, int64_t bits, int64_t group, Type elements);

  /// To be called once all experts are raised.
  void finish();

private:
  Value read(OnnxBuilder &onnx, const mlir::Twine &name, RankedTensorType type, mlir::Attribute storage);
  Value readJoined(OnnxBuilder &onnx, StringRef name, RankedTensorType type, ArrayRef<mlir::Attribute> parts,
                   ArrayRef<mlir::Attribute> names);
  Value join(OnnxBuilder &onnx, ArrayRef<Value> parts);
  Value joinCodes(OnnxBuilder &onnx, ArrayRef<ParamOp> parts);
  Value joinTransposed(OnnxBuilder &onnx, Value all);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  QuantizedMatcher quantized;
  llvm::DenseMap<std::pair<Type, mlir::Attribute>, ParamOp> params; // by what they store
  llvm::DenseMap<mlir::Attribute, mlir::Attribute> codes; // what was joined of codes, by the names of the parts
  ParamCopies copies;
  StorageParts cut;
  llvm::SetVector<ParamOp> joined; // into one
};

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_EXPERTWEIGHTS_H
