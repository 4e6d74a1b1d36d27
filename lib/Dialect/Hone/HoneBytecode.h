//===- HoneBytecode.h - attributes of the hone dialect in bytecode -------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_DIALECT_HONE_HONEBYTECODE_H
#define HONE_LIB_DIALECT_HONE_HONEBYTECODE_H

#include "mlir/Bytecode/BytecodeImplementation.h"

namespace hone {

/// Attributes are text in bytecode unless their dialect writes them otherwise. A resource within such a text is another one
/// when it is read, without bytes; so `#hone.converted`, which holds resources, has a form of its own.
class HoneBytecode : public mlir::BytecodeDialectInterface {
public:
  explicit HoneBytecode(mlir::Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  /// Fails for every attribute that is written as text.
  llvm::LogicalResult writeAttribute(mlir::Attribute attribute, mlir::DialectBytecodeWriter &writer) const override;
  /// Null, after an error, where what is read is no attribute of the dialect.
  mlir::Attribute readAttribute(mlir::DialectBytecodeReader &reader) const override;
};

} // namespace hone

#endif // HONE_LIB_DIALECT_HONE_HONEBYTECODE_H
