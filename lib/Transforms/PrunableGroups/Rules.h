// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the rules for onnx operations share.

#ifndef HONE_LIB_TRANSFORMS_PRUNABLEGROUPS_RULES_H
#define HONE_LIB_TRANSFORMS_PRUNABLEGROUPS_RULES_H

#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/GroupAnalysis.h"

namespace hone::prunable {

using onnxir::isNode;
using Groups = llvm::SmallVector<int32_t, 0>;

inline mlir::RankedTensorType getType(mlir::Value value) {
  return llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
}
inline int64_t countFromFront(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }
int64_t getInteger(mlir::Operation *op, llvm::StringRef name, int64_t otherwise);

/// Shape: what is computed from the number of groups may only be shapes that are set when groups go.
void visitShape(mlir::Operation *op, GroupAnalysis &analysis);

/// GroupQueryAttention and MultiHeadAttention of com.microsoft, Attention and RotaryEmbedding.
void visitGroupQueryAttention(mlir::Operation *op, GroupAnalysis &analysis);
void visitMultiHeadAttention(mlir::Operation *op, GroupAnalysis &analysis);
void visitAttention(mlir::Operation *op, GroupAnalysis &analysis);
void visitRotaryEmbedding(mlir::Operation *op, GroupAnalysis &analysis);

} // namespace hone::prunable

#endif // HONE_LIB_TRANSFORMS_PRUNABLEGROUPS_RULES_H
