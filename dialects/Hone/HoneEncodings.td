//===- HoneEncodings.td - how and where weights are stored ---------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Encodings say how the elements of a weight are laid out in bytes; `#hone.external` says where the bytes are.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_ENCODINGS_TD
#define HONE_ENCODINGS_TD

include "mlir/IR/AttrTypeBase.td"
include "Hone/HoneDialect.td"
include "Hone/HoneInterfaces.td"

class Hone_Encoding<string name, string attrMnemonic> : AttrDef<Hone_Dialect, name, [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
    DeclareAttrInterfaceMethods<Hone_EncodingInterface>]> {
  let mnemonic = attrMnemonic;
}

def Hone_StoredAttr : Hone_Encoding<"Stored", "stored"> {
  let summary = "plain elements of another width or order";
  let description = [{
    *Meaning.* One plane `values` with every element converted to `type`, to nearest, ties to even. With `transposed`, the
    last two dimensions are swapped in memory, so that a matrix `tensor<NxKxf32>` that a file keeps as K rows of N is mapped
    as it is.

    *Constraints.*

    - C1. `type` is f32, f16 or bf16.
    - C2. The tensor's elements are of `type`, or f32.
    - C3. With `transposed`, the tensor has at least two dimensions.

    *Example.*
    ```mlir
    func.func private @weight() -> tensor<4864x896xf32, #hone.stored<bf16, transposed>>
    ```
  }];
  let parameters = (ins
    "::mlir::FloatType":$type,
    DefaultValuedParameter<"bool", "false">:$transposed);
  let builders = [AttrBuilderWithInferredContext<(ins "::mlir::FloatType":$type, CArg<"bool", "false">:$transposed), [{
    return $_get(type.getContext(), type, transposed);
  }]>];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Hone_ExternalAttr : AttrDef<Hone_Dialect, "External"> {
  let mnemonic = "external";
  let summary = "bytes in a file on disk";
  let description = [{
    *Meaning.* `bytes` bytes at `offset` of the file `file`: dense, row-major, little-endian. The file is mapped when the
    bytes are needed and never copied into the IR. A relative name is looked up beside the file that holds the IR.

    *Constraints.*

    - C1. `file` is not empty.
    - C2. `offset` is not negative.
    - C3. `bytes` is not negative.

    *Example.*
    ```mlir
    hone.param @weight : tensor<2x3xf32> = #hone.external<"model.onnx_data", 4096, 24>
    ```
  }];
  let parameters = (ins
    StringRefParameter<"name of the file">:$file,
    "int64_t":$offset,
    "int64_t":$bytes);
  let assemblyFormat = "`<` $file `,` $offset `,` $bytes `>`";
  let genVerifyDecl = 1;
}

def Hone_ConvertedAttr : AttrDef<Hone_Dialect, "Converted"> {
  let mnemonic = "converted";
  let summary = "the bytes of a parameter in another form";
  let description = [{
    *Meaning.* The tensor of type `type` whose bytes are `storage`, in the encoding of the parameter that has this as its
    storage. Bytes are converted when they are written, one parameter after another, and never kept.

    *Constraints.*

    - C1. `storage` is dense elements, a resource or `#hone.external`.

    *Example.*
    ```mlir
    hone.param @lm_head : tensor<4x2xf32, #hone.stored<bf16>> = #hone.converted<tensor<4x2xf32> = #hone.external<"a.bin", 0, 32>>
    ```
  }];
  let parameters = (ins "::mlir::RankedTensorType":$type, "::mlir::Attribute":$storage);
  let assemblyFormat = "`<` $type `=` $storage `>`";
  let genVerifyDecl = 1;
}

#endif // HONE_ENCODINGS_TD
