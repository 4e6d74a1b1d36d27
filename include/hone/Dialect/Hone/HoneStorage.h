//===- HoneStorage.h - the bytes of a tensor type -----------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Answers for plain and encoded types alike, so that import, artefact and kernels need not tell them apart.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_HONESTORAGE_H
#define HONE_DIALECT_HONE_HONESTORAGE_H

#include "hone/Dialect/Hone/HoneInterfaces.h"

#include <optional>
#include <string>

namespace hone {

/// Whether `encoding` may be that of a weight: none, or one that says how elements are stored.
bool isWeightEncoding(mlir::Attribute encoding);

/// The planes that `type` is stored as: those of its encoding, or one named "values" of the type itself.
llvm::SmallVector<EncodingPlane> getPlanes(mlir::RankedTensorType type);

/// What operations read of the planes of `type`.
llvm::SmallVector<PlaneView> getViews(mlir::RankedTensorType type);

/// `type` without its encoding.
mlir::RankedTensorType getPlainType(mlir::RankedTensorType type);

/// Bytes that an element takes in memory; 0 if it has no size.
int64_t getElementBytes(mlir::Type element);

/// The elements of `value` as they lie in memory: whole bytes each (below 8 bits one, sign-extended for signed integers, 0 or
/// 1 for i1), little-endian, a splat repeated.
std::string getElements(mlir::DenseElementsAttr value);

/// Bytes of a dense array of the shape and elements of `type`, which has no encoding; an element takes whole bytes. Nothing
/// if the shape is dynamic, the size exceeds 64 bits, or the elements have no size.
std::optional<int64_t> getDenseBytes(mlir::RankedTensorType type);

/// Bytes of all planes of `type`; nothing where `getDenseBytes` knows none.
std::optional<int64_t> getStorageBytes(mlir::RankedTensorType type);

} // namespace hone

#endif // HONE_DIALECT_HONE_HONESTORAGE_H
