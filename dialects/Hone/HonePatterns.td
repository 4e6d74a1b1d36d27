//===- HonePatterns.td - which keys a query sees -------------------------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One attribute a pattern. Queries and keys have positions, as hone.attention says.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_PATTERNS_TD
#define HONE_PATTERNS_TD

include "mlir/IR/AttrTypeBase.td"
include "Hone/HoneDialect.td"
include "Hone/HoneInterfaces.td"

class Hone_Pattern<string name, string attrMnemonic, list<string> methods = ["getVisibility"]>
    : AttrDef<Hone_Dialect, name, [DeclareAttrInterfaceMethods<Hone_AttentionPatternInterface, methods>]> {
  let mnemonic = attrMnemonic;
}

def Hone_FullAttr : Hone_Pattern<"Full", "full"> {
  let summary = "every query sees every key";
}

def Hone_CausalAttr : Hone_Pattern<"Causal", "causal"> {
  let summary = "a query sees the keys up to its own position: k <= q";
}

def Hone_SlidingAttr : Hone_Pattern<"Sliding", "sliding"> {
  let summary = "a query sees itself and the keys shortly before it: q - window < k <= q";
  let description = [{
    *Constraints.*

    - C1. `window` is positive.
  }];
  let parameters = (ins "int64_t":$window);
  let assemblyFormat = "`<` `window` `=` $window `>`";
  let genVerifyDecl = 1;
}

defvar honePatternOfOperands = ["getOperandCount", "verifyOperands", "getVisibility"];

def Hone_PrefixCausalAttr : Hone_Pattern<"PrefixCausal", "prefix_causal", honePatternOfOperands> {
  let summary = "a query sees the sequence's prefix and the keys up to its own position: k < prefix or k <= q";
  let description = [{
    *Operand.* The length of the prefix of each sequence, `[B]`.

    *Constraints.*

    - C1. The operand has B elements.
  }];
}

def Hone_BlocksAttr : Hone_Pattern<"Blocks", "blocks", honePatternOfOperands # ["buildTables"]> {
  let summary = "a query sees the blocks of keys that its list has";
  let description = [{
    Block n is the keys `n * size … n * size + size - 1` by their indices. Query i of the call reads list `i / queries`, so
    that with `queries` of 1 each has its own. What else hides keys, causality or a window, is said beside it:
    `#hone.all_of<#hone.causal, #hone.blocks<size = 64>>`.

    *Operand.* `[B or 1, H, Q, T]`, the numbers of the blocks: unique in a list, and padded by -1; blocks that hold no key add none.
    `H` is 1 for lists that all heads share, Hk for one a KV head, or Hq. `Q` is `Sq / queries`, rounded up. A first dimension
    that is known to be 1 is repeated; a dynamic one is B.

    *Constraints.*

    - C1. `size` and `queries` are positive.
    - C2. The operand is a 4D tensor.
    - C3. Its first dimension is 1 or B.
    - C4. Its second dimension is known, and 1, Hk or Hq.
    - C5. Its third dimension is Sq / queries, rounded up.

    *Example.* `#hone.blocks<size = 64, queries = 16>`
  }];
  let parameters = (ins "int64_t":$size, DefaultValuedParameter<"int64_t", "1">:$queries);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Hone_TreeAttr : Hone_Pattern<"Tree", "tree", honePatternOfOperands> {
  let summary = "a query sees all keys before the draft tokens, itself, and its ancestors among the draft tokens";
  let description = [{
    The queries of the call are the draft tokens of a tree, and their keys are the last: key `Sk - Sq + j` is draft token j. All
    earlier keys are visible.

    *Operand.* `[B or 1, Sq, ceil(Sq / 64)]` i64: bit j of row i, from the least of word 0 on, is set iff draft token j is i or an
    ancestor of i. A first dimension that is known to be 1 is repeated; a dynamic one is B.

    *Constraints.*

    - C1. The operand is a 3D tensor of i64.
    - C2. Its first dimension is 1 or B.
    - C3. Its second dimension is Sq, its third ceil(Sq / 64).
  }];
}

def Hone_AllOfAttr : Hone_Pattern<"AllOf", "all_of", honePatternOfOperands # ["buildTables"]> {
  let summary = "a query sees the keys that it sees in each of several patterns";
  let description = [{
    *Operands.* Those of the patterns, in their order.

    Kernels know intersections of causality and windows with one list of blocks and one tree.

    *Constraints.*

    - C1. There are at least two patterns.

    *Example.*
    ```mlir
    func.func private @f() attributes {
      pattern = #hone.all_of<#hone.causal, #hone.blocks<size = 64>>
    }
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::hone::AttentionPatternInterface">:$patterns);
  let assemblyFormat = "`<` $patterns `>`";
  let genVerifyDecl = 1;
}

#endif // HONE_PATTERNS_TD
