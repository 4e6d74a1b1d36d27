//===- HoneStateOps.td - declaring, reading and extending a session's state ----------------------*- tablegen -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// state, and kv_append, kv_replace, kv_view, kv_length, kv_lag, kv_padding, logits_to_keep, of which each is one service of the
// runtime (include/hone/runtime/program.h).
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_STATE_OPS_TD
#define HONE_STATE_OPS_TD

include "Hone/HoneOpBase.td"

def Hone_StateOp : Hone_Op<"state", [Symbol, HasParent<"::mlir::ModuleOp">,
                                     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "what a session remembers between calls";
  let description = [{
    *Meaning.* Declares the state `sym_name`, whose values have the type `!hone.kv<@sym_name>`. It has the tensors `slots`, which
    operations name by their numbers. Functions that keep the same state share it in a session; a module may have several
    states, of models that run beside one another.

    *Constraints.*

    - C1. No two slots have the same name.
    - C2. What a slot begins with is a `hone.param` of its type.

    *Example.*
    ```mlir
    hone.state @kv [#hone.slot<"layers.0.key", tensor<?x4x?x64xf32>, axis = 2>]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypedArrayAttrBase<Hone_SlotAttr, "array of slots">:$slots);
  let assemblyFormat = "$sym_name $slots attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Slot number `slot`, one of them.
    ::hone::SlotAttr getSlotAttr(uint64_t slot) { return ::llvm::cast<::hone::SlotAttr>(getSlots()[slot]); }
    /// Whether a slot begins with the parameter of that name.
    bool beginsWith(::llvm::StringRef param);
    /// The state that values of this type have, for an operation of its module; null where there is none.
    static StateOp lookup(::mlir::Operation *from, KvType type);
  }];
}

class Hone_KvOp<string mnemonic, list<Trait> traits = []>
    : Hone_Op<mnemonic, traits # [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]>;

def Hone_KvAppendOp : Hone_KvOp<"kv_append", [AllTypesMatch<["state", "next"]>]> {
  let summary = "a slot of the state extended by fresh positions";
  let description = [{
    *Meaning.* `next` is `state` with `fresh` concatenated to slot number `slot` along the slot's axis; `all` is that slot of
    `next`. A slot is appended to at most once on each path of a program. f32 is rounded to the nearest of what a slot of 16 bits
    holds, and of two to the even one.

    *Constraints.*

    - C1. fresh and all have the same rank, are equal in all dimensions but at most one, and have the same elements, or fresh f32
      and all f16 or bf16.
    - C2. The type of `state` names a state of the module, and `slot` is one of its slots, which grows.
    - C3. all has the elements, rank and dimensions of the slot's type, and fresh differs from all at the slot's axis only.

    *Example.*
    ```mlir
    hone.state @kv [#hone.slot<"0.key", tensor<?x4x?x64xf32>, axis = 2>]
    func.func @append(%s: !hone.kv<@kv>, %k: tensor<?x4x?x64xf32>) -> (!hone.kv<@kv>, tensor<?x4x?x64xf32>) {
      %next, %all = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x4x?x64xf32> -> tensor<?x4x?x64xf32>
      return %next, %all : !hone.kv<@kv>, tensor<?x4x?x64xf32>
    }
    ```
  }];
  let arguments = (ins Hone_KvType:$state, AnyRankedTensor:$fresh, ConfinedAttr<I64Attr, [IntNonNegative]>:$slot);
  let results = (outs Hone_KvType:$next, AnyRankedTensor:$all);
  let assemblyFormat = "$state `[` $slot `]` `,` $fresh attr-dict `:` qualified(type($state)) `,` type($fresh) `->` type($all)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::hone::SlotId getSlotId() { return {getState().getType().getState().getAttr(), getSlot()}; }
  }];
}

def Hone_KvReplaceOp : Hone_KvOp<"kv_replace", [AllTypesMatch<["state", "next"]>]> {
  let summary = "a slot of the state replaced as a whole";
  let description = [{
    *Meaning.* `next` is `state` with `value` as slot number `slot`: the recurrent state of a linear attention or of a convolution.
    Such a slot is replaced at most once on each path of a program. It has no history: a session returns to what it was by a
    checkpoint only.

    With `in_place`, `value` is written where the slot is, if it is computed there: by an operation whose init is the slot's view and that
    is the last one to read it. Otherwise it is copied. A call that fails leaves such a slot undefined: the session says so when it is read
    next.

    *Constraints.*

    - C1. The type of `state` names a state of the module, and `slot` is one of its slots, which does not grow.
    - C2. value has the elements, rank and dimensions of the slot's type.

    *Example.*
    ```mlir
    hone.state @kv [#hone.slot<"0.conv", tensor<?x4x64x64xf32>>]
    func.func @replace(%s: !hone.kv<@kv>, %v: tensor<?x4x64x64xf32>) -> !hone.kv<@kv> {
      %next = hone.kv_replace %s[0], %v : !hone.kv<@kv>, tensor<?x4x64x64xf32>
      return %next : !hone.kv<@kv>
    }
    ```
  }];
  let arguments = (ins Hone_KvType:$state, AnyRankedTensor:$value, ConfinedAttr<I64Attr, [IntNonNegative]>:$slot,
                       UnitAttr:$in_place);
  let results = (outs Hone_KvType:$next);
  let assemblyFormat = "$state `[` $slot `]` `,` $value attr-dict `:` qualified(type($state)) `,` type($value)";
  let extraClassDeclaration = [{
    ::hone::SlotId getSlotId() { return {getState().getType().getState().getAttr(), getSlot()}; }
  }];
}

def Hone_KvViewOp : Hone_KvOp<"kv_view"> {
  let summary = "a slot of the state";
  let description = [{
    *Meaning.* Slot number `slot` of `state`. One that does not grow is its beginning, or zeros, before the first call replaces it.

    *Constraints.*

    - C1. The type of `state` names a state of the module, and `slot` is one of its slots.
    - C2. The result has the elements, rank and dimensions of the slot's type.

    *Example.*
    ```mlir
    hone.state @kv [#hone.slot<"0.key", tensor<?x4x?x64xf32>, axis = 2>, #hone.slot<"0.value", tensor<?x4x?x64xf32>, axis = 2>]
    func.func @view(%s: !hone.kv<@kv>) -> tensor<?x4x?x64xf32> {
      %0 = hone.kv_view %s[1] : !hone.kv<@kv> -> tensor<?x4x?x64xf32>
      return %0 : tensor<?x4x?x64xf32>
    }
    ```
  }];
  let arguments = (ins Hone_KvType:$state, ConfinedAttr<I64Attr, [IntNonNegative]>:$slot);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$state `[` $slot `]` attr-dict `:` qualified(type($state)) `->` type($result)";
  let hasFolder = 1;
  let extraClassDeclaration = [{
    ::hone::SlotId getSlotId() { return {getState().getType().getState().getAttr(), getSlot()}; }
  }];
}

def Hone_KvLengthOp : Hone_KvOp<"kv_length"> {
  let summary = "how many positions were held when the call began";
  let description = [{
    *Meaning.* The number of positions of `state` before any append of the running call: the position of the first new token. Of
    sequences with lengths of their own it is that of the longest (`hone.kv_lag`).

    *Example.*
    ```mlir
    hone.state @kv []
    func.func @length(%s: !hone.kv<@kv>) -> index {
      %0 = hone.kv_length %s : !hone.kv<@kv>
      return %0 : index
    }
    ```
  }];
  let arguments = (ins Hone_KvType:$state);
  let results = (outs Index:$result);
  let assemblyFormat = "$state attr-dict `:` qualified(type($state))";
  let hasFolder = 1;
}

def Hone_KvLagOp : Hone_KvOp<"kv_lag"> {
  let summary = "how many positions fewer than the longest a sequence holds";
  let description = [{
    *Meaning.* Sequence number `sequence` holds `kv_length - kv_lag` positions before any append of the running call, and what is
    appended follows them: the last `kv_lag` positions of a slot are none of the sequence, and may hold anything finite. A session gives an
    entry without this operation sequences of one length.

    *Example.*
    ```mlir
    hone.state @kv []
    func.func @lag(%s: !hone.kv<@kv>, %b: index) -> index {
      %0 = hone.kv_lag %s[%b] : !hone.kv<@kv>
      return %0 : index
    }
    ```
  }];
  let arguments = (ins Hone_KvType:$state, Index:$sequence);
  let results = (outs Index:$result);
  let assemblyFormat = "$state `[` $sequence `]` attr-dict `:` qualified(type($state))";
  let hasFolder = 1;
}

def Hone_KvPaddingOp : Hone_KvOp<"kv_padding"> {
  let summary = "how many of a sequence's positions are padding";
  let description = [{
    *Meaning.* How many positions of sequence number `sequence`, from the left, are padding.

    *Example.*
    ```mlir
    hone.state @kv []
    func.func @padding(%s: !hone.kv<@kv>, %b: index) -> index {
      %0 = hone.kv_padding %s[%b] : !hone.kv<@kv>
      return %0 : index
    }
    ```
  }];
  let arguments = (ins Hone_KvType:$state, Index:$sequence);
  let results = (outs Index:$result);
  let assemblyFormat = "$state `[` $sequence `]` attr-dict `:` qualified(type($state))";
  let hasFolder = 1;
}

def Hone_LogitsToKeepOp : Hone_KvOp<"logits_to_keep"> {
  let summary = "how many last positions of a call the caller wants logits of";
  let description = [{
    *Meaning.* Of `fresh` new positions logits are computed for the last `result` alone, 0 … `fresh`; for all of them unless
    the caller says otherwise.

    *Example.*
    ```mlir
    hone.state @kv []
    func.func @kept(%s: !hone.kv<@kv>, %fresh: index) -> index {
      %0 = hone.logits_to_keep %s of %fresh : !hone.kv<@kv>
      return %0 : index
    }
    ```
  }];
  let arguments = (ins Hone_KvType:$state, Index:$fresh);
  let results = (outs Index:$result);
  let assemblyFormat = "$state `of` $fresh attr-dict `:` qualified(type($state))";
  let hasFolder = 1;
}

#endif // HONE_STATE_OPS_TD
