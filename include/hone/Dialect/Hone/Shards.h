//===- Shards.h - parameters of which each rank has a part ----------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module that several processes run together (docs/tensor-parallelism.md) has a grid of the upstream dialect `shard`, and
// parameters whose bytes differ from rank to rank. Their type is the same on all ranks, so that one program serves them all.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_SHARDS_H
#define HONE_DIALECT_HONE_SHARDS_H

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

#include <string>

namespace hone {

/// The attribute of a `hone.param` that differs from rank to rank: an array with what each rank stores. `storage` is that of rank
/// 0, within `#hone.converted` if there is one. A parameter without it is the same everywhere.
inline constexpr llvm::StringLiteral kShardsAttrName = "hone.shards";

/// Symbol of the `shard.grid` of all ranks, which has one axis.
inline constexpr llvm::StringLiteral kGridName = "ranks";

/// How many processes run `module` together: the size of its grid, or 1. Fails, after an error, where the grid has more axes, or a
/// size that is not known, or a parameter has another number of shards.
llvm::FailureOr<int64_t> countRanks(mlir::ModuleOp module);

/// Makes `param` store what rank number `rank` does.
void selectRank(ParamOp param, int64_t rank);

/// The file of parts whose bytes nobody reads.
constexpr llvm::StringLiteral kNoFile = "(none)";

/// What parts of a parameter are along one dimension of it.
class ParamSlices {
public:
  /// Parts of `param` along `axis`, of `size` indices each.
  ParamSlices(ParamOp param, int64_t axis, int64_t size);

  /// Why the part with these `indices`, in that order, cannot be taken as it is stored, or an empty string: groups that share a
  /// scale stay whole, and only plain, `#hone.stored` and `#hone.affine` elements have parts.
  std::string getBlocker(llvm::ArrayRef<int64_t> indices) const;

  /// The bytes of that part, of which there is no blocker, as `hone.shards` has them. Fails, after an error, where bytes of the
  /// parameter cannot be read. Rows of a file stay in it.
  llvm::FailureOr<mlir::Attribute> take(llvm::ArrayRef<int64_t> indices) const;

  /// A parameter beside the one it is a part of, with the part `indices`, of which there is no blocker; it has another name where
  /// `name` is taken. Without bytes, nothing of the parameter is read, and what is made is for nobody to read. Fails as `take` does.
  llvm::FailureOr<ParamOp> create(mlir::SymbolTable &symbols, const llvm::Twine &name, llvm::ArrayRef<int64_t> indices,
                                  bool hasBytes = true) const;

  /// Gives the parameter `shards`, one for each rank, and the type of one of them. What was measured of its inputs is forgotten
  /// where it loses some.
  void assign(llvm::ArrayRef<mlir::Attribute> shards) const;

private:
  mlir::Attribute join(llvm::ArrayRef<mlir::Attribute> planes) const;
  mlir::Attribute leaveOut() const;
  mlir::RankedTensorType cut(mlir::RankedTensorType type) const;
  void cut(ParamOp part, mlir::Attribute storage) const;

  mutable ParamOp param;
  int64_t axis, size;
};

} // namespace hone

#endif // HONE_DIALECT_HONE_SHARDS_H
