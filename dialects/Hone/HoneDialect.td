//===- HoneDialect.td - the dialect that says what a model means -------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect itself; its types, attributes and operations are in the files beside this one.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_DIALECT_TD
#define HONE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Hone_Dialect : Dialect {
  let name = "hone";
  let cppNamespace = "::hone";
  let summary = "what a transformer model means: tensors by value, no targets";
}

#endif // HONE_DIALECT_TD
