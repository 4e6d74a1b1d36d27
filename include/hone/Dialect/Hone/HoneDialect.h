//===- HoneDialect.h - the dialect that says what a model means ---------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_HONE_HONEDIALECT_H
#define HONE_DIALECT_HONE_HONEDIALECT_H

#include "mlir/IR/Dialect.h"

#include "hone/Dialect/Hone/HoneDialect.h.inc"

#endif // HONE_DIALECT_HONE_HONEDIALECT_H
