//===- Lookups.h - what callers have to know of tables --------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of functions and of their arguments that say which rows there are. The runtime checks them before a call.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_LOOKUPS_H
#define HONE_DIALECT_HONE_LOOKUPS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <string>

namespace hone {

/// The attribute of an argument whose elements number rows, `array<i64: rows, offset>`.
inline constexpr llvm::StringLiteral kLookupRowsAttrName = "hone.rows";
/// The attribute of a function with limits of its sizes, `[{most = …, sizes = ["…"], table = "…"}]`.
inline constexpr llvm::StringLiteral kPositionLimitsAttrName = "hone.limits";

/// Every element of an integer argument, plus `offset`, is the number of one of `rows` rows, from either end.
struct LookupRows {
  int64_t rows = 0, offset = 0;

  int64_t end() const { return rows - offset; }
  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  /// Nothing where the attribute is null or is not one of rows.
  static std::optional<LookupRows> get(mlir::Attribute attribute);
};

/// The sum of named sizes of a function's arguments is at most `most`, for which `table` has rows. The name
/// `hone.kv_length` stands for the positions that the state holds when the call begins.
struct PositionLimit {
  llvm::SmallVector<std::string> sizes;
  int64_t most = 0;
  std::string table;
};

mlir::Attribute toAttribute(llvm::ArrayRef<PositionLimit> limits, mlir::MLIRContext *context);
/// Nothing where the attribute is not one of limits.
std::optional<llvm::SmallVector<PositionLimit>> getPositionLimits(mlir::Attribute attribute);

} // namespace hone

#endif // HONE_DIALECT_HONE_LOOKUPS_H
