//===- HoneTypes.td - the state of a session -----------------------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state's type and the attribute that describes one slot of it.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_TYPES_TD
#define HONE_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "Hone/HoneDialect.td"

def Hone_KvType : TypeDef<Hone_Dialect, "Kv"> {
  let mnemonic = "kv";
  let summary = "what a session remembers between calls";
  let description = [{
    A value of this type is the list of tensors of the `hone.state` that it names, with the number of positions that were held when
    the call began and how many of those, from the left, are padding in each sequence. Appending makes a new value; the
    runtime keeps the memory. A function that keeps state takes one such value and returns one.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$state);
  let assemblyFormat = "`<` $state `>`";
}

def Hone_SlotAttr : AttrDef<Hone_Dialect, "Slot"> {
  let mnemonic = "slot";
  let summary = "one tensor of a session's state";
  let description = [{
    *Meaning.* A slot called `name` whose tensor has the type `type` and grows along the dimension `axis`; without an axis it is replaced as
    a whole. One with a `beginning` holds the value of that parameter until it is replaced; others of that kind begin as zeros.

    *Constraints.*

    - C1. `name` is not empty.
    - C2. `axis` is a dimension of `type`.
    - C3. The dimension `axis` of `type` is dynamic.
    - C4. A slot with a `beginning` has no axis.

    *Example.*
    ```mlir
    hone.state @kv [#hone.slot<"layers.0.key", tensor<?x4x?x64xf32>, axis = 2>]
    hone.param @gain : tensor<2xf32> = dense<1.0> : tensor<2xf32>
    hone.state @training [#hone.slot<"gain", tensor<2xf32> = @gain>]
    ```
  }];
  let parameters = (ins
    StringRefParameter<"what messages and manifests call it">:$name,
    "::mlir::RankedTensorType":$type,
    OptionalParameter<"::std::optional<int64_t>">:$axis,
    OptionalParameter<"::mlir::FlatSymbolRefAttr">:$beginning);
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$name, "::mlir::RankedTensorType":$type,
                                   "::std::optional<int64_t>":$axis), [{
    return $_get($_ctxt, name, type, axis, ::mlir::FlatSymbolRefAttr());
  }]>];
  let assemblyFormat = "`<` $name `,` $type (`=` $beginning^)? (`,` `axis` `=` $axis^)? `>`";
  let genVerifyDecl = 1;
}

#endif // HONE_TYPES_TD
