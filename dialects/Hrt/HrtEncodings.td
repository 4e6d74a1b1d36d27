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
    DeclareAttrInterfaceMethods<Hone_EncodingInterface, ["getViews", "repack", "getActivationRounding"]>]> {
  let mnemonic = "panels";
  let summary = "a weight `[N, K]` in panels of 16 outputs";
  let description = [{
    *Meaning.* The layout of include/hone/cpu/packing/layout.h, in panels of 16 outputs. Places after the last output or input
    hold 0.

    - `#hrt.panels<type>`: the elements rounded to `type`, to nearest, ties to even; a plane `values`
      `[panels, lines, 16, elements]`.
    - `#hrt.panels<#hone.affine<…>>`: the numbers of that encoding, with codes counted from 0; views `values`
      `[panels, lines, 16, 4]` of bytes, `scales` `[panels, groups, 16]`, and with zero points `zeros` `[panels, groups, 16]`
      of bytes.
    - `#hrt.panels<#hone.nm<2:4, of = …>>`: the kept elements of that encoding in the layout of include/hone/cpu/packing/pack_sparse.h;
      views `values`, `indices` `[panels, inputs / 32, 16, 4]` of bytes, and those of scales and zero points as above.
    - `#hrt.panels<#hone.codebook<…>>`: the layout of include/hone/cpu/packing/pack_codebook.h; views `indices` `[panels, lines, 4, 16]`
      and `tables` `[panels, registers, 4, 16]` of bytes.
    - `#hrt.panels<#hone.dense_sparse<…>>`: the planes of its outliers as they are, then those of its base in panels.

    Several views are a plane `panels` `[panels, bytes]` of bytes, a record of include/hone/cpu/packing/panel_block.h each.

    *Constraints.*

    - C1. Elements are f32, f16 or bf16, or a `#hone.affine` without groups or in groups of 32, 64 or 128, or a
      `#hone.nm` that keeps 2 of 4 of those, of 4 bits, or of 8 without zero points, or a `#hone.codebook` of bf16, or a
      `#hone.dense_sparse` of such a `#hone.affine` or `#hone.codebook`.
    - C2. The tensor has 2 dimensions, and elements of f32 or of the type of a `#hrt.panels<type>`.

    *Example.*
    ```mlir
    func.func private @weight() -> tensor<4864x896xf32, #hrt.panels<bf16>>
    func.func private @sparse() -> tensor<4864x896xf32, #hrt.panels<#hone.nm<2:4, of = bf16>>>
    func.func private @quantized() -> tensor<4864x896xf32, #hrt.panels<#hone.affine<bits = 4, group = 64, scales = f16>>>
    ```
  }];
  let parameters = (ins "::mlir::Attribute":$elements);
  let assemblyFormat = "`<` $elements `>`";
  let builders = [
    AttrBuilderWithInferredContext<(ins "::mlir::Attribute":$elements), [{
      return $_get(elements.getContext(), elements);
    }]>,
    AttrBuilderWithInferredContext<(ins "::mlir::FloatType":$type), [{
      return $_get(type.getContext(), ::mlir::TypeAttr::get(type));
    }]>];
  let skipDefaultBuilders = 1;
  let extraClassDeclaration = [{
    /// What two of every four elements are kept of, or null where all are.
    ::hone::NmAttr getNm() const { return ::llvm::dyn_cast<::hone::NmAttr>(getElements()); }
    /// The numbers that are packed, all or kept ones, without outliers; null where elements are floats.
    ::hone::AffineAttr getAffine() const {
      if (getSparse())
        return getSparse().getAffine();
      return ::llvm::dyn_cast<::hone::AffineAttr>(getNm() ? getNm().getOf() : getElements());
    }
    /// The indices that are packed, without outliers; null where elements are something else.
    ::hone::CodebookAttr getCodebook() const {
      return getSparse() ? getSparse().getCodebook() : ::llvm::dyn_cast<::hone::CodebookAttr>(getElements());
    }
    /// Numbers and outliers, or null where there are no outliers.
    ::hone::DenseSparseAttr getSparse() const { return ::llvm::dyn_cast<::hone::DenseSparseAttr>(getElements()); }

    /// Whether there are panels of weights in this encoding, or of plain f32 where it is null.
    static bool canPack(::mlir::Attribute encoding);
  }];
  let genVerifyDecl = 1;
}

class Hrt_BlocksAttr<string name, string word> : AttrDef<Hrt_Dialect, name, [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>, DeclareAttrInterfaceMethods<Hone_StateLayoutInterface>]> {
  let mnemonic = word;
  let parameters = (ins DefaultValuedParameter<"int64_t", "0">:$bits);
  let assemblyFormat = "(`<` struct($bits)^ `>`)?";
  let extraClassDeclaration = [{
    /// Whether there are blocks of such elements.
    static bool canBlock(::mlir::Type elementType) {
      return elementType.isF32() || elementType.isF16() || elementType.isBF16();
    }
  }];
  let genVerifyDecl = 1;
}

def Hrt_KeyBlocksAttr : Hrt_BlocksAttr<"KeyBlocks", "key_blocks"> {
  let summary = "keys `[B, H, S, D]` of a session's state in blocks of 16 positions";
  let description = [{
    *Meaning.* The layout BlockedKeyLayout of include/hone/cpu/packing/cache_blocks.h: what a slot of the state holds for kernels of
    attention, which alone read it. With `bits` it holds what `#hone.quantized_kv` of so many bits does, in the layout QuantizedKeyLayout
    of include/hone/cpu/packing/quantized_blocks.h.

    *Constraints.*

    - C1. The tensor has 4 dimensions, and elements of f32, f16 or bf16.
    - C2. `bits` is 0, 4 or 8, and elements are of f32 unless it is 0.

    *Example.*
    ```mlir
    hone.state @kv [#hone.slot<"key", tensor<?x4x?x64xf32, #hrt.key_blocks>, axis = 2>]
    ```
  }];
}

def Hrt_ValueBlocksAttr : Hrt_BlocksAttr<"ValueBlocks", "value_blocks"> {
  let summary = "values `[B, H, S, D]` of a session's state in blocks of positions that share words";
  let description = [{
    *Meaning.* As `#hrt.key_blocks`, in the layouts BlockedValueLayout and QuantizedValueLayout.

    *Constraints.*

    - C1. The tensor has 4 dimensions, and elements of f32, f16 or bf16.
    - C2. `bits` is 0, 4 or 8, and elements are of f32 unless it is 0.

    *Example.*
    ```mlir
    hone.state @kv [#hone.slot<"value", tensor<?x4x?x64xf32, #hrt.value_blocks>, axis = 2>]
    ```
  }];
}

#endif // HRT_ENCODINGS_TD
