//===- ParamBytes.h - the bytes of parameters -----------------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the bytes of a parameter are needed: to write them out, or to change what they say.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_PARAMBYTES_H
#define HONE_DIALECT_HONE_PARAMBYTES_H

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/io/file.h"

#include <memory>
#include <optional>
#include <vector>

namespace hone {

/// The bytes of a plane where they lie: in the IR, or in a file that is mapped as long as this lives or the IR does.
class StoredBytes {
public:
  /// `storage` is that of a parameter's plane. Fails, after an error, where its file is not as long as it says, or a resource has
  /// no bytes.
  static llvm::FailureOr<StoredBytes> open(mlir::Attribute storage, mlir::Location loc);

  llvm::ArrayRef<char> get() const { return bytes; }
  /// Gives the mapped pages of [begin, end) back.
  void release(uint64_t begin, uint64_t end) const;

private:
  llvm::LogicalResult map(ExternalAttr external, mlir::Location loc);
  llvm::LogicalResult join(StackedAttr stacked, mlir::Location loc);

  std::optional<io::MappedFile> file;
  bool isScratch = false;
  std::unique_ptr<std::string> copy; // of elements that are kept in another form
  llvm::ArrayRef<char> bytes;
};

/// `bytes`, of an array of `type`, as a resource of the IR, in the dialect's scratch file if there is one.
mlir::Attribute makeResource(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);

/// The bytes of each plane of what a parameter stores, in the order of `getPlanes`. Fails, after an error, where they cannot be
/// read, or are not as many as the plane has.
llvm::FailureOr<llvm::SmallVector<StoredBytes>> openPlanes(ParamOp param);

/// The elements of a parameter of f32 that is plain or `#hone.stored`, row-major, as they are before any conversion. Fails, after
/// an error, where its bytes cannot be read.
llvm::FailureOr<std::vector<float>> readElements(ParamOp param);

/// The elements of `value`, row-major: a parameter of i64, or what an operation has as its attribute `value`. Empty where it is neither.
llvm::SmallVector<int64_t> readIntegers(mlir::Value value);

/// The planes of a parameter with `#hone.converted`, as it will be stored. Fails, after an error, where its bytes cannot be read,
/// or its encoding cannot take its elements.
llvm::FailureOr<llvm::SmallVector<llvm::SmallVector<char, 0>>> convertPlanes(ParamOp param);

/// The elements of a parameter of f32 in any encoding, row-major, as those find them who read it once it is stored. Fails as
/// convertPlanes does.
llvm::FailureOr<std::vector<float>> readStoredElements(ParamOp param);

/// Gives a parameter that `readElements` reads other elements, in the form in which it
/// keeps them now.
void writeElements(ParamOp param, llvm::ArrayRef<float> elements);

/// Leaves `indices` of those of `param` along `axis`, in that order; of a matrix [N, K] what is kept of its inputs, and their scales,
/// follow. Fails as readElements does.
llvm::LogicalResult takeIndices(ParamOp param, int64_t axis, llvm::ArrayRef<int64_t> indices);

} // namespace hone

#endif // HONE_DIALECT_HONE_PARAMBYTES_H
