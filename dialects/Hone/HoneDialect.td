//===- HoneDialect.td - the dialect that says what a model means ---------------------------------*- tablegen -*-===//
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
  let description = [{
    An operation is here only if fusing or compressing it pays; everything else of a model is linalg, tensor and arith.
    `hone-decompose` rewrites each computing operation into those dialects, and that rewrite is its meaning.

    How a weight is stored is the encoding of its tensor type, which keys a query sees is the pattern attribute of
    `hone.attention`, and what a decoder remembers is a `!hone.kv` value, of a state that `hone.state` declares. An argument of a function that keeps state is
    given with each call, or, where it has the unit attribute `hone.context`, once a session. A module whose
    weights were changed keeps the fingerprint of the model that they come from in the attribute `hone.model`, a string, and
    a parameter `[N, K]` that has lost columns keeps in `hone.inputs` which K of how many it has: `{kept = array<i64: …>, of = …}`, and where its
    experts lost columns of their own, those of one expert after the other.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The attribute of a function's argument that is the same in all calls of a session, which is given it once.
    static constexpr ::llvm::StringLiteral getContextAttrName() { return "hone.context"; }
    /// The module attribute with the fingerprint of the model that changed weights come from.
    static constexpr ::llvm::StringLiteral getModelAttrName() { return "hone.model"; }

  private:
    void registerTypes();
    void registerAttributes();

  public:
  }];
}

#endif // HONE_DIALECT_TD
