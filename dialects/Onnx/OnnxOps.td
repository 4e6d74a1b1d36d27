// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `onnx` dialect's own two operations; all others are ONNX's and come from its schema registry at start-up.

#ifndef ONNX_OPS_TD
#define ONNX_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Onnx_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::hone::onnxir";
  let summary = "what an ONNX file says, losslessly";
  let description = [{
    Every operator of every domain that the schema registry of libonnx knows is an operation: `onnx.Add` is Add of the
    default domain, `onnx.com.microsoft.MoE` is MoE of com.microsoft. Its schema, at the opset of the module's attribute
    `onnx.opsets`, is its verifier. Subgraphs are regions that end in `onnx.Yield`; an optional input that is not given is
    `onnx.NoValue`.
  }];
  let isExtensible = 1;
  let extraClassDeclaration = [{
    /// Registers the operators of the schema registry, and the types that tensors do not cover.
    void registerOperators();

    mlir::Type parseType(mlir::DialectAsmParser &parser) const override;
    void printType(mlir::Type type, mlir::DialectAsmPrinter &printer) const override;
  }];
}

def Onnx_YieldOp : Op<Onnx_Dialect, "Yield", [Pure, ReturnLike, Terminator]> {
  let summary = "ends a subgraph";
  let arguments = (ins Variadic<AnyType>:$values);
}

def Onnx_NoValueOp : Op<Onnx_Dialect, "NoValue", [Pure]> {
  let summary = "an optional input that is not given";
  let results = (outs NoneType:$result);
}

#endif // ONNX_OPS_TD
