// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attentions of @forward whose queries the state keeps (hone-retain-keys), for entries that look at them afterwards.

#ifndef HONE_TRANSFORMS_SCOREDLAYERS_H
#define HONE_TRANSFORMS_SCOREDLAYERS_H

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/Retention.h"
#include "hone/Transforms/Loops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hone {

/// A causal attention of @forward, whose keys and values are slots of the state, and the slots that it has.
struct ScoredLayer {
  AttentionOp attention;
  LayerRetention slots;

  /// The name of the slot with its keys.
  llvm::StringRef getName() const;
  /// The attention of all queries that `state` keeps over the keys and values in it, without a bias or padding.
  AttentionParts getParts(LocBuilder &b, mlir::Value state) const;
};

/// Those of `forward`, in its order.
llvm::SmallVector<ScoredLayer> findScoredLayers(mlir::func::FuncOp forward);

/// A function `name` after `forward` over its state: arguments of `inputs`, then the state; results are what `build` makes of them, then
/// the state.
mlir::func::FuncOp
addStateEntry(mlir::func::FuncOp forward, llvm::StringRef name, mlir::TypeRange inputs,
              llvm::function_ref<llvm::SmallVector<mlir::Value>(LocBuilder &, mlir::Block::BlockArgListType)> build);

} // namespace hone

#endif // HONE_TRANSFORMS_SCOREDLAYERS_H
