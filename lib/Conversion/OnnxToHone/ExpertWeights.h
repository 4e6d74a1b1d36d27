// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of experts as hone.moe wants them: the matrices of all experts one below the other. Bytes stay where they are.

#ifndef HONE_LIB_CONVERSION_ONNXTOHONE_EXPERTWEIGHTS_H
#define HONE_LIB_CONVERSION_ONNXTOHONE_EXPERTWEIGHTS_H

#include "QuantizedWeight.h"

namespace hone::raising {

/// Makes the parameters of one module. New ones stand beside their sources until nobody reads those.
class ExpertWeights {
public:
  explicit ExpertWeights(mlir::ModuleOp module) : module(module), symbols(module), quantized(symbols) {}

  /// `weights` `[E, N, K]` as `[E · N, K]`; null if `weights` is.
  Value stack(OnnxBuilder &onnx, Value weights);

  /// Integers `[E, N, bytes]` of `bits` bits with scales `[E, N]` or `[E, N, groups]` and zero points or null, as `[E · N, K]`
  /// of `elements`; `group` inputs share a scale, 0: all. Null where they are no parameters or have other sizes.
  Value stack(OnnxBuilder &onnx, Value codes, Value scales, Value zeros, int64_t bits, int64_t group, Type elements);

  /// To be called once all experts are raised.
  void finish() { passNamesOn(module, symbols, copies); }

private:
  Value read(OnnxBuilder &onnx, const mlir::Twine &name, RankedTensorType type, mlir::Attribute storage);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  QuantizedMatcher quantized;
  llvm::DenseMap<std::pair<Type, mlir::Attribute>, ParamOp> params; // by what they store
  ParamCopies copies;
};

} // namespace hone::raising

#endif // HONE_LIB_CONVERSION_ONNXTOHONE_EXPERTWEIGHTS_H
