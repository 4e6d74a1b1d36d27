//===- HoneOps.cpp - generated definitions of the hone operations -----------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

#define GET_OP_CLASSES
#include "hone/Dialect/Hone/HoneOps.cpp.inc"
