//===- InitAll.h - registers all of Hone, for tools ----------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one place where a new dialect or pass becomes known to every tool.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_INITALL_H
#define HONE_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace hone {

/// Adds Hone's dialects and every upstream dialect with its extensions to `registry`.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Registers Hone's passes and pipelines and every upstream pass, by name, in the process.
void registerAllPasses();

/// Makes LLVM's option --version print "`program` VERSION", Hone's, as all of its programs do.
void setVersionPrinter(const char *program);

} // namespace hone

#endif // HONE_INITALL_H
