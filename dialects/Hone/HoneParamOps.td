//===- HoneParamOps.td - parameters and their bytes ----------------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A parameter is a symbol; a function reads it by name, so that the text of a model stays small.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_PARAM_OPS_TD
#define HONE_PARAM_OPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "Hone/HoneOpBase.td"

def Hone_ParamOp : Hone_Op<"param", [DeclareOpInterfaceMethods<Symbol, ["getVisibility"]>]> {
  let summary = "a named constant tensor of the model";
  let description = [{
    *Meaning.* Names a tensor whose bytes are `storage`: a dense elements attribute, a resource blob, `#hone.external` or
    `#hone.stacked`; or, where the encoding of `type` has several planes, a dictionary of such from plane name to bytes; or
    `#hone.converted`, the bytes of the same tensor in another form. A parameter that no operation reads may be erased.

    *Constraints.*

    - C1. `type` has a static shape.
    - C2. `storage` is one of the forms above; as a dictionary it has an entry for each plane of `type` and no other.
    - C3. Elements given inline are of the plane's type, and so is what `#hone.stacked` joins.
    - C4. A `#hone.external` has as many bytes as the plane.
    - C5. A `#hone.converted` is of the shape and elements of `type`.
    - C6. With a `#hone.converted`, `type` has an encoding.

    *Example.*
    ```mlir
    hone.param @model.norm : tensor<2xf32> = dense<[1.0, 0.5]> : tensor<2xf32>
    hone.param @lm_head : tensor<4x2xf32, #hone.stored<bf16>> = #hone.external<"model.safetensors", 128, 16>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, AnyAttr:$storage);
  let assemblyFormat = "$sym_name `:` $type `=` $storage attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }

    /// The type whose bytes are kept: that of the parameter, or what #hone.converted converts from.
    ::mlir::RankedTensorType getStorageType();

    /// The bytes of each plane of that type, in the order of the planes: an ElementsAttr or an ExternalAttr.
    ::llvm::SmallVector<::mlir::Attribute> getPlaneStorage();
  }];
}

def Hone_GetParamOp : Hone_Op<"get_param", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of a parameter";
  let description = [{
    *Meaning.* The tensor that the `hone.param` called `name` holds.

    *Constraints.*

    - C1. `name` is a `hone.param`.
    - C2. The result's type is the parameter's.

    *Example.*
    ```mlir
    hone.param @model.norm : tensor<2xf32> = dense<[1.0, 0.5]> : tensor<2xf32>
    func.func @norm() -> tensor<2xf32> {
      %0 = hone.get_param @model.norm : tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$name);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Hone_PlanesOp : Hone_Op<"planes", [Pure, InferTypeOpAdaptor]> {
  let summary = "the stored form of an encoded tensor";
  let description = [{
    *Meaning.* What operations read of the encoding of `tensor`, its views, as plain tensors in the encoding's order. This is where
    a value meets its storage: for a parameter it costs nothing.

    *Constraints.*

    - C1. The type of `tensor` has a weight encoding.

    *Example.*
    ```mlir
    func.func @planes(%w: tensor<4x2xf32, #hone.stored<bf16>>) -> tensor<4x2xbf16> {
      %0 = hone.planes %w : (tensor<4x2xf32, #hone.stored<bf16>>) -> tensor<4x2xbf16>
      return %0 : tensor<4x2xbf16>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tensor);
  let results = (outs Variadic<AnyRankedTensor>:$planes);
  let assemblyFormat = "$tensor attr-dict `:` functional-type(operands, results)";
}

def Hone_UnpackOp : Hone_Op<"unpack", [Pure, DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "an encoded tensor as a plain one";
  let description = [{
    *Meaning.* The same tensor, stored element by element. Operations that take no encoded tensor read a weight through this.

    *Constraints.*

    - C1. The type of `tensor` has a weight encoding.
    - C2. The result has the shape and elements of `tensor`, and no encoding.

    *Example.*
    ```mlir
    func.func @unpack(%w: tensor<4x2xf32, #hone.stored<bf16>>) -> tensor<4x2xf32> {
      %0 = hone.unpack %w : tensor<4x2xf32, #hone.stored<bf16>> -> tensor<4x2xf32>
      return %0 : tensor<4x2xf32>
    }
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tensor);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$tensor attr-dict `:` type($tensor) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$tensor)>];
  let hasVerifier = 1;
}

#endif // HONE_PARAM_OPS_TD
