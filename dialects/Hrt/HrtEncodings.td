// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Encodings of weights in the layouts that the CPU's kernels read.

#ifndef HRT_ENCODINGS_TD
#define HRT_ENCODINGS_TD

include "Hone/HoneInterfaces.td"
include "Hrt/HrtDialect.td"

def Hrt_PanelsAttr : AttrDef<Hrt_Dialect, "Panels", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
    DeclareAttrInterfaceMethods<Hone_EncodingInterface>]> {
  let mnemonic = "panels";
  let summary = "a weight `[N, K]` in panels of 16 outputs";
  let description = [{
    *Meaning.* One plane `values` of elements `type`, to nearest, ties to even, of shape `[panels, steps, 16, elements]`: what
    runtime/cpu/packing/layout.h calls f32, f16 and bf16. Places behind the last output or input hold 0.

    *Constraints.*

    - C1. `type` is f32, f16 or bf16.
    - C2. The tensor has 2 dimensions, and elements of `type` or f32.

    *Example.*
    ```mlir
    func.func private @weight() -> tensor<4864x896xf32, #hrt.panels<bf16>>
    ```
  }];
  let parameters = (ins "::mlir::FloatType":$type);
  let builders = [AttrBuilderWithInferredContext<(ins "::mlir::FloatType":$type), [{
    return $_get(type.getContext(), type);
  }]>];
  let skipDefaultBuilders = 1;
  let assemblyFormat = "`<` $type `>`";
  let genVerifyDecl = 1;
}

#endif // HRT_ENCODINGS_TD
