//===- HonePatterns.td - which keys a query sees -------------------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One attribute a pattern. Positions are absolute: query i of an attention over Sk keys with Sq queries is at Sk - Sq + i.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_PATTERNS_TD
#define HONE_PATTERNS_TD

include "mlir/IR/AttrTypeBase.td"
include "Hone/HoneDialect.td"
include "Hone/HoneInterfaces.td"

class Hone_Pattern<string name, string attrMnemonic, list<string> bounds = []>
    : AttrDef<Hone_Dialect, name, [DeclareAttrInterfaceMethods<Hone_AttentionPatternInterface, bounds>]> {
  let mnemonic = attrMnemonic;
}

def Hone_FullAttr : Hone_Pattern<"Full", "full"> {
  let summary = "every query sees every key";
}

def Hone_CausalAttr : Hone_Pattern<"Causal", "causal", ["getKeyRange", "isCausal"]> {
  let summary = "a query sees the keys up to its own position: k <= q";
}

def Hone_SlidingAttr : Hone_Pattern<"Sliding", "sliding", ["getKeyRange", "isCausal"]> {
  let summary = "a query sees itself and the keys shortly before it: q - window < k <= q";
  let description = [{
    *Constraints.*

    - C1. `window` is positive.
  }];
  let parameters = (ins "int64_t":$window);
  let assemblyFormat = "`<` `window` `=` $window `>`";
  let genVerifyDecl = 1;
}

def Hone_PrefixCausalAttr : Hone_Pattern<"PrefixCausal", "prefix_causal", ["getKeyRange", "needsPrefix"]> {
  let summary = "a query sees the sequence's prefix and the keys up to its own position: k < prefix or k <= q";
}

def Hone_AllOfAttr : Hone_Pattern<"AllOf", "all_of", ["getKeyRange", "isCausal", "needsPrefix"]> {
  let summary = "a query sees the keys that it sees in each of several patterns";
  let description = [{
    *Constraints.*

    - C1. There are at least two patterns.

    *Example.*
    ```mlir
    func.func private @f() attributes {
      pattern = #hone.all_of<#hone.prefix_causal, #hone.sliding<window = 512>>
    }
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::hone::AttentionPatternInterface">:$patterns);
  let assemblyFormat = "`<` $patterns `>`";
  let genVerifyDecl = 1;
}

#endif // HONE_PATTERNS_TD
