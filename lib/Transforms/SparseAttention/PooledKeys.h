// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of pooled keys beside the keys of attention: where those are a slot of the state, so are these.

#ifndef HONE_LIB_TRANSFORMS_SPARSEATTENTION_POOLEDKEYS_H
#define HONE_LIB_TRANSFORMS_SPARSEATTENTION_POOLEDKEYS_H

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace hone {

class PooledKeys {
public:
  /// Of blocks of `size` keys: their means, or bounds of their elements.
  PooledKeys(mlir::ModuleOp module, int64_t size, bool hasBounds) : module(module), size(size), hasBounds(hasBounds) {}

  /// Why the keys of `op` cannot be pooled, or an empty string.
  llvm::StringRef getBlocker(AttentionOp op);
  /// The rows for all keys of `op`, `[B, Hk, Sk, W]` as hone.pool_keys has them, where it has no blocker.
  mlir::Value get(AttentionOp op);

private:
  uint64_t addSlot(KvAppendOp append);
  mlir::Value build(mlir::ImplicitLocOpBuilder &b, AttentionOp op, mlir::Value fresh);

  mlir::ModuleOp module;
  int64_t size;
  bool hasBounds;
  llvm::DenseMap<mlir::Operation *, mlir::Value> rows; // by the append of keys
};

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_SPARSEATTENTION_POOLEDKEYS_H
