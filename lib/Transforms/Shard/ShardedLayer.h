// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One layer of which each rank computes a part.

#ifndef HONE_LIB_TRANSFORMS_SHARD_SHARDEDLAYER_H
#define HONE_LIB_TRANSFORMS_SHARD_SHARDEDLAYER_H

#include "hone/Transforms/GroupAnalysis.h"

namespace hone::sharding {

/// Everything that holds what of a layer is split, with the rank of each index: groups of the analysis are ranks.
class ShardedLayer {
public:
  ShardedLayer(const prunable::SharedUses &shared, int64_t ranks)
      : analysis(shared), module(shared.module), ranks(ranks) {}

  /// Says that equal parts of `operand` along `axis`, of its `count` indices, belong to the ranks in order.
  void mark(mlir::OpOperand &operand, int64_t axis, int64_t count) { analysis.mark(operand, axis, listRanks(count)); }
  /// As for an operand.
  void mark(mlir::Value value, int64_t axis, int64_t count) { analysis.mark(value, axis, listRanks(count)); }

  /// Follows what is marked. Returns why the layer cannot be split, or an empty string.
  std::string follow(const mlir::SymbolTable &symbols);

  /// Whether the layer holds `op`.
  bool touches(mlir::Operation *op) const { return analysis.touched.contains(op); }
  /// Whether the layer splits the parameter.
  bool splits(mlir::StringAttr param) const { return analysis.params.contains(param); }
  llvm::SmallVector<mlir::StringAttr> listParams() const;

  /// Splits the layer, of which follow() found no blocker: parameters get shards, everything between them its size on one rank;
  /// sums over what is split are added up over all ranks, arguments and results of functions stay whole. Fails, after an error,
  /// where bytes of a parameter cannot be read.
  llvm::LogicalResult split(mlir::SymbolTable &symbols);

private:
  llvm::SmallVector<int32_t, 0> listRanks(int64_t count) const;
  std::string findBlocker(const mlir::SymbolTable &symbols) const;
  std::string findSums();
  bool hasEqualParts(const prunable::GroupAxis &groups) const;
  void nameConstants(mlir::SymbolTable &symbols);
  llvm::LogicalResult splitParams(const mlir::SymbolTable &symbols);
  void sliceArguments(mlir::Block &body, mlir::TypeRange whole);
  void gatherResults(mlir::Operation *terminator);
  void addUp(mlir::Operation *sum);

  prunable::GroupAnalysis analysis;
  mlir::ModuleOp module;
  int64_t ranks;
  llvm::SmallVector<mlir::Operation *> sums; // whose results are sums over what is split
};

} // namespace hone::sharding

#endif // HONE_LIB_TRANSFORMS_SHARD_SHARDEDLAYER_H
