//===- HoneStateOps.td - reading and extending a session's state ---------------------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kv_append, kv_view, kv_length, kv_padding. Each is one service of the runtime (include/hone/runtime/program.h).
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_STATE_OPS_TD
#define HONE_STATE_OPS_TD

include "Hone/HoneOpBase.td"

class Hone_StateOp<string mnemonic, list<Trait> traits = []> : Hone_Op<mnemonic, traits # [Pure]>;

def Hone_KvAppendOp : Hone_StateOp<"kv_append"> {
  let summary = "a slot of the state extended by fresh positions";
  let description = [{
    *Meaning.* `next` is `state` with `fresh` concatenated to slot number `slot` along the slot's axis; `all` is that slot of
    `next`. A slot is appended to at most once on each path of a program. f32 is rounded to the nearest of what a slot of 16 bits
    holds, and of two to the even one.

    *Constraints.*

    - C1. fresh and all have the same rank, are equal in all dimensions but at most one, and have the same elements, or fresh f32
      and all f16 or bf16.
    - C2. If the module lists its slots, `slot` is one of them.
    - C3. If the module lists its slots, all has the elements, rank and dimensions of the slot's type, and fresh differs from all
      at the slot's axis only.

    *Example.*
    ```mlir
    func.func @append(%s: !hone.kv, %k: tensor<?x4x?x64xf32>) -> (!hone.kv, tensor<?x4x?x64xf32>) {
      %next, %all = hone.kv_append %s[0], %k : tensor<?x4x?x64xf32> -> tensor<?x4x?x64xf32>
      return %next, %all : !hone.kv, tensor<?x4x?x64xf32>
    }
    ```
  }];
  let arguments = (ins Hone_KvType:$state, AnyRankedTensor:$fresh, ConfinedAttr<I64Attr, [IntNonNegative]>:$slot);
  let results = (outs Hone_KvType:$next, AnyRankedTensor:$all);
  let assemblyFormat = "$state `[` $slot `]` `,` $fresh attr-dict `:` type($fresh) `->` type($all)";
  let hasVerifier = 1;
}

def Hone_KvViewOp : Hone_StateOp<"kv_view"> {
  let summary = "a slot of the state";
  let description = [{
    *Meaning.* Slot number `slot` of `state`.

    *Constraints.*

    - C1. If the module lists its slots, `slot` is one of them.
    - C2. If the module lists its slots, the result has the elements, rank and dimensions of the slot's type.

    *Example.*
    ```mlir
    func.func @view(%s: !hone.kv) -> tensor<?x4x?x64xf32> {
      %0 = hone.kv_view %s[1] : tensor<?x4x?x64xf32>
      return %0 : tensor<?x4x?x64xf32>
    }
    ```
  }];
  let arguments = (ins Hone_KvType:$state, ConfinedAttr<I64Attr, [IntNonNegative]>:$slot);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$state `[` $slot `]` attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Hone_KvLengthOp : Hone_StateOp<"kv_length"> {
  let summary = "how many positions were held when the call began";
  let description = [{
    *Meaning.* The number of positions of `state` before any append of the running call: the position of the first new token.

    *Example.*
    ```mlir
    func.func @length(%s: !hone.kv) -> index {
      %0 = hone.kv_length %s
      return %0 : index
    }
    ```
  }];
  let arguments = (ins Hone_KvType:$state);
  let results = (outs Index:$result);
  let assemblyFormat = "$state attr-dict";
  let hasFolder = 1;
}

def Hone_KvPaddingOp : Hone_StateOp<"kv_padding"> {
  let summary = "how many of a sequence's positions are padding";
  let description = [{
    *Meaning.* How many positions of sequence number `sequence`, from the left, are padding.

    *Example.*
    ```mlir
    func.func @padding(%s: !hone.kv, %b: index) -> index {
      %0 = hone.kv_padding %s[%b]
      return %0 : index
    }
    ```
  }];
  let arguments = (ins Hone_KvType:$state, Index:$sequence);
  let results = (outs Index:$result);
  let assemblyFormat = "$state `[` $sequence `]` attr-dict";
  let hasFolder = 1;
}

def Hone_LogitsToKeepOp : Hone_StateOp<"logits_to_keep"> {
  let summary = "how many last positions of a call the caller wants logits of";
  let description = [{
    *Meaning.* Of `fresh` new positions logits are computed for the last `result` alone, 0 … `fresh`; for all of them unless
    the caller says otherwise.

    *Example.*
    ```mlir
    func.func @kept(%s: !hone.kv, %fresh: index) -> index {
      %0 = hone.logits_to_keep %s of %fresh
      return %0 : index
    }
    ```
  }];
  let arguments = (ins Hone_KvType:$state, Index:$fresh);
  let results = (outs Index:$result);
  let assemblyFormat = "$state `of` $fresh attr-dict";
  let hasFolder = 1;
}

#endif // HONE_STATE_OPS_TD
