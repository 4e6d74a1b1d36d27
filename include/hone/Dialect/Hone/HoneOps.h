//===- HoneOps.h - operations of the hone dialect -----------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_HONEOPS_H
#define HONE_DIALECT_HONE_HONEOPS_H

#include "hone/Dialect/Hone/HoneOpInterfaces.h"
#include "hone/Dialect/Hone/HoneShapes.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <limits>

namespace hone {

/// What hone.attention is made from, by name.
struct AttentionParts {
  mlir::Value query, key, value;
  AttentionPatternInterface pattern;
  llvm::SmallVector<mlir::Value> patternOperands;
  float scale = 1;
  std::optional<float> softcap;
  /// Null where absent.
  mlir::Value bias, alibi, sinks, keyBegin, keyEnd, lags, keyPositions;
  bool hasBf16Products = false, hasLse = false;
  /// The type of the result, if more is known of it than operands say.
  mlir::RankedTensorType type;
};

/// What hone.moe has in place of silu and its product with up.
struct Swiglu {
  float alpha = 1, offset = 0, limit = std::numeric_limits<float>::infinity();
};

/// The experts of each row.
struct ExpertRouting {
  mlir::Value ids, weights;
};

/// The layers of the experts of hone.moe, by name.
struct ExpertLayers {
  mlir::Value up, gate, down;             // gate is null in a plain block
  mlir::Value upBias, gateBias, downBias; // each may be null
  Activation activation = Activation::Silu;
  std::optional<FusedRows> fused = std::nullopt; // where up has the gate too
  std::optional<Swiglu> swiglu = std::nullopt;
};

} // namespace hone

#define GET_OP_CLASSES
#include "hone/Dialect/Hone/HoneOps.h.inc"

#endif // HONE_DIALECT_HONE_HONEOPS_H
