//===- HoneTypes.h - types and attributes of the hone dialect -----------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_HONETYPES_H
#define HONE_DIALECT_HONE_HONETYPES_H

#include "hone/Compress/AffineQuantization.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneInterfaces.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include "hone/Dialect/Hone/HoneEnums.h.inc"

namespace hone::compress {
struct CodebookFormat;
struct SparseWeight;
} // namespace hone::compress

#define GET_TYPEDEF_CLASSES
#include "hone/Dialect/Hone/HoneTypes.h.inc"

namespace hone {
/// A slot of one of the module's states: the state's name, and the slot's number.
using SlotId = std::pair<mlir::StringAttr, uint64_t>;
} // namespace hone

#define GET_ATTRDEF_CLASSES
#include "hone/Dialect/Hone/HoneAttributes.h.inc"

#endif // HONE_DIALECT_HONE_HONETYPES_H
