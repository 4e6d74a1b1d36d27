//===- Retention.h - how many keys a state keeps --------------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An attribute of hone.state that says which of its slots are bounded and what stays in them. The runtime evicts by it.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_RETENTION_H
#define HONE_DIALECT_HONE_RETENTION_H

#include "mlir/IR/BuiltinAttributes.h"

#include <optional>

namespace hone {

/// The attribute of a state, `{block = …, pooling = …, accumulates, shares_heads, layers = [{keys = …, values = …, …}]}`.
inline constexpr llvm::StringLiteral kRetentionAttrName = "hone.retention";
/// The entry that gives the attention mass of keys.
inline constexpr llvm::StringLiteral kImportance = "importance";
/// Most keys that a budget can be.
inline constexpr int64_t kMostRetainedKeys = int64_t{1} << 24;

/// How many keys a layer evicts at once where layers keep `budget`, a sixteenth of it, rounded up.
inline int64_t getEvictedBlock(int64_t budget) { return (budget + 15) / 16; }

/// Slots of one attention by their numbers, and how many positions they hold.
struct LayerRetention {
  int64_t keys = 0, values = 0;
  std::optional<int64_t> queries; // none: the last keys stay alone
  int64_t budget = 0, sinks = 0, recent = 0;
};

/// What hone-retain-keys says of a state. Layers with queries are in the order of the results of @importance.
struct Retention {
  int64_t block = 1;   // positions that a layer evicts at once, at least
  int64_t pooling = 1; // neighbours whose mean mass counts
  bool accumulates = false, sharesHeads = false;
  llvm::SmallVector<LayerRetention> layers;

  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  /// Nothing where the attribute is null or is not one of a retention.
  static std::optional<Retention> get(mlir::Attribute attribute);
};

} // namespace hone

#endif // HONE_DIALECT_HONE_RETENTION_H
